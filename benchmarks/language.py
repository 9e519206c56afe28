"""How much of the documents is covered: rows of the ledger, round trips through the editions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from figure import Figure, at_least, equal
from hypothesis import HealthCheck, given, settings

from uop.spec.documents.rows import Standing, rows
from uop.spec.editions import EDITIONS, parse, print_program
from uop.spec.errors import UnsupportedError
from uop.spec.uop import UOp

PROGRAMS = 10_000
SAME, ALIKE = "the same node", "another node of the same properties"
REFUSED, CHANGED = "refused by the name of an op", "changed"

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from strategies import programs  # noqa: E402 - the tests' own random programs


def ledger() -> Iterator[Figure]:
    """Rows by status: no other one than these is read."""
    standings = Counter(row.standing for row in rows().values())
    yield Figure("rows of the ledger", "", f"{len(rows()):,}")
    for standing in Standing:
        yield Figure(f"- {standing} ...", "", f"{standings[standing]:,}")
    yield equal("- without one of them", len(rows()) - standings.total(), 0)


def editions() -> Iterator[Figure]:
    """Random programs written in each edition and read back."""
    outcomes: dict[str, Counter[str]] = {edition: Counter() for edition in EDITIONS}

    @settings(
        max_examples=PROGRAMS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def draw(u: UOp) -> None:
        for edition, counted in outcomes.items():
            counted[round_trip(u, edition)] += 1

    draw()
    for edition, counted in outcomes.items():
        yield at_least(f"programs written in {edition}", counted.total(), PROGRAMS, "")
        for outcome in (SAME, ALIKE, REFUSED):
            yield Figure(f"- {outcome}", "", f"{counted[outcome]:,}")
        yield equal(f"- {CHANGED}", counted[CHANGED], 0)


def round_trip(u: UOp, edition: str) -> str:
    """What becomes of a program that is written in an edition and read back."""
    try:
        text = print_program(u, edition)
    except UnsupportedError as error:
        return REFUSED if any(v.op.name in str(error) for v in u.toposort()) else CHANGED
    v = parse(text)
    if v is u:
        return SAME
    alike = (v.dtype, v.shape, v.device, v.axis) == (u.dtype, u.shape, u.device, u.axis)
    return ALIKE if alike else CHANGED
