"""Explains a knob of a profile: its values, and the programs that observe it."""

from __future__ import annotations

from collections.abc import Iterator

from uop.conformance.profile.points import knob_points
from uop.conformance.reference.section import Section
from uop.spec.latitude import KNOBS, STRICT
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import knob_values

PROGRAMS = 6
"""A section shows at most this many programs, each on its first element."""


def knobs_of(op: Op) -> list[tuple[str, str]]:
    """The knobs about an op: their sentence names it, or a program that shows them ends in it."""
    ends = {(p.knob, w.root.op) for p in knob_points() for w in p.witnesses}
    return [
        (name, says)
        for name, says in KNOBS.items()
        if op.name in says.replace(",", "").split() or (name, op) in ends
    ]


def knob_sections(name: str) -> Iterator[Section]:
    """The values of a knob, and its points."""
    strict = getattr(STRICT, name)
    yield Section(
        "Values",
        ("", ""),
        (
            ("may be", knob_values(name)),
            ("strict", "none" if isinstance(strict, frozenset) else str(strict).lower()),
        ),
    )
    for point in knob_points():
        if point.knob != name:
            continue
        by_program = {w.expression(0): w for w in reversed(point.witnesses)}
        rows = [
            (program, " | ".join((*w.answers[0], *filter(None, (w.ended, w.otherwise)))))
            for program, w in reversed(by_program.items())
        ]
        yield Section(f"Probed by: {point.name}", ("program", "answers"), tuple(rows[:PROGRAMS]))
