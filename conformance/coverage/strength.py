"""Measures how strong a verdict is: cells judged, share of the suite, gain of one more op."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from uop.conformance.judging.lowering import UNSUPPORTED, submission_of
from uop.conformance.protocol.types import Hello
from uop.conformance.report.model import Strength
from uop.conformance.report.tally import Tally
from uop.conformance.run.selection import COSTLY
from uop.conformance.suite.case import InvalidCase
from uop.conformance.suite.generate import AnyGroup
from uop.conformance.suite.levels.group import Group
from uop.spec.ops.names import Op

MOST_OPENED = 3
"""The number of ops listed, those with the largest gain first."""


def programs_of(tally: Tally) -> int:
    """The number of judged programs, without invalid ones."""
    return sum(cell.programs for cell in tally.cells.values() if cell.level != "invalid")


def opened(
    groups: Iterable[AnyGroup], effort: str, hello: Hello, tally: Tally, seed: int
) -> dict[str, int]:
    """For each unlisted op the number of programs that need only it: skipped or not selected.

    The first program of an unselected group represents the group.
    """
    gains = Counter[str]()
    for cell in tally.cells.values():
        for reason, n in cell.skipped.items():
            _, _, names = reason.partition(UNSUPPORTED)
            if cell.level != "invalid" and names in Op.__members__:
                gains[names] += n
    if "tensor" in hello.forms:
        for group in groups:
            if isinstance(group, Group) and _is_unlisted(group, hello):
                lacking = {group.op} if group.name in COSTLY else _lacking(group, hello, seed)
                if lacking == {group.op}:
                    gains[group.op] += group.count(effort)
    return dict(sorted(gains.items(), key=lambda item: (-item[1], item[0]))[:MOST_OPENED])


def _is_unlisted(group: Group, hello: Hello) -> bool:
    is_op = group.op in Op.__members__ and group.op not in hello.ops
    return is_op and group.dtype in hello.dtypes


def _lacking(group: Group, hello: Hello, seed: int) -> set[str]:
    case = group.case(0, seed)
    reason = "" if isinstance(case, InvalidCase) else submission_of(case, hello).reason
    return set(reason.partition(UNSUPPORTED)[2].split(", "))


def strength_line(strength: Strength) -> str:
    """The figures in one line."""
    share = f"{strength.programs / strength.suite:.0%}" if strength.suite else "nothing"
    line = f"{share} of the suite applied"
    if strength.listed:
        line = f"{strength.judged:,} of {strength.listed:,} listed cells judged, {line}"
    more = ", ".join(f"{op} {n:,} programs more" for op, n in strength.opens.items() if n)
    return f"{line}; one more op in the list: {more}" if more else line
