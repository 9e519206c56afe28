"""Orders the cases that hunt a mutant: those about the ops and labels it breaks come first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from uop.conformance.mutants.catalogue import Mutant
from uop.conformance.suite.case import ANY_LABEL, EFFORTS, LEVELS, MIXED, Case, CaseId
from uop.conformance.suite.generate import AnyGroup, groups
from uop.conformance.suite.levels.invalid import InvalidGroup

HAND = "hand"
"""The names of groups written by hand begin with this."""


def in_order(mutant: Mutant) -> Iterator[CaseId]:
    """All cases: a few of each group about a broken op or label, then the rest of those groups.

    Groups written by hand come before others: they are small and the surest to fail. Those about
    another op that hold a broken one come between. Groups of many ops come after those of one.
    """
    every = [group for level in LEVELS for group in groups(level)]
    # False sorts before True.
    every.sort(
        key=lambda group: (
            group.level != mutant.level,
            not is_about(group, mutant),
            not is_by_hand(group),
            group.op == MIXED,
        )
    )
    few, all = EFFORTS[:2]
    near = {g: g.level == mutant.level or is_about(g, mutant) for g in every}
    holding = {g: not near[g] and not ops_by_hand(g).isdisjoint(mutant.breaks) for g in every}
    yield from _ids(filter(near.get, every), "", few)
    yield from _ids(filter(holding.get, every), "", all)
    yield from _ids(filter(near.get, every), few, all)
    yield from _ids((g for g in every if not near[g] and not holding[g]), "", all)


def is_about(group: AnyGroup, mutant: Mutant) -> bool:
    """Whether a group is named for an op or label that a mutant breaks."""
    if not isinstance(group, InvalidGroup):
        return group.op in mutant.breaks
    if group.name == ANY_LABEL:
        return any(label.startswith(f"{group.op}.") for label in mutant.breaks)
    return f"{group.op}.{group.name}" in mutant.breaks


def is_by_hand(group: AnyGroup) -> bool:
    return group.name.startswith(HAND)


@cache
def ops_by_hand(group: AnyGroup) -> frozenset[str]:
    """The ops of a program written by hand; none for a random one."""
    case = group.case(0, 0) if is_by_hand(group) else None
    nodes = case.root.toposort() if isinstance(case, Case) else []
    return frozenset(u.op.name for u in nodes)


def _ids(chosen: Iterable[AnyGroup], from_effort: str, to: str) -> Iterator[CaseId]:
    """The cases of groups at one effort, without those of a smaller one, if any."""
    for group in chosen:
        start = group.count(from_effort) if from_effort else 0
        yield from (group.id(index) for index in range(start, group.count(to)))
