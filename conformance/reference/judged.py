"""Reads how judged systems do on each op from the matrix that `uop compare --markdown` wrote."""

from __future__ import annotations

from collections.abc import Mapping

from uop.conformance.compare.matrix import MARKS, State
from uop.conformance.reference.section import Section

STATES = {mark: state for state, mark in MARKS.items()}
Systems = Mapping[str, str]
"""The square of each system."""


def matrix_of(page: str) -> dict[str, Systems]:
    """The squares of each row of the page's table of ops."""
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in page.splitlines()]
    start = next(k for k, row in enumerate(rows) if row[:1] == ["op"])
    head = rows[start][1:]
    end = next(k for k in range(start, len(rows)) if not rows[k])
    return {row[0]: dict(zip(head, row[1:], strict=True)) for row in rows[start + 2 : end]}


def judged_section(systems: Systems) -> Section:
    """What each system does with an op, those that fail first."""
    by_text: dict[str, list[str]] = {}
    for name, square in sorted(systems.items(), key=lambda item: not item[1].startswith(FAILS)):
        by_text.setdefault(_words(square), []).append(name)
    table = tuple((" ".join(names), text) for text, names in by_text.items())
    return Section("Judged systems", ("system", "with this op"), table)


FAILS = MARKS[State.FAILS]


def _words(square: str) -> str:
    """`fails 2 of 37 programs` for a failure, else the state alone."""
    mark, _, numbers = square.partition(" ")
    if mark != FAILS:
        return STATES[mark]
    failed, _, programs = numbers.partition("/")
    return f"{STATES[mark]} {failed} of {programs} programs"
