"""Orders the cases that hunt a mutant: those about what it breaks come first.

An adversary that pushes one op outside its accepted set says how many results of a case are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np

from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.mutants.catalogue import Mutant
from uop.conformance.suite.case import ANY_LABEL, EFFORTS, LEVELS, MIXED, Case, CaseId
from uop.conformance.suite.generate import AnyGroup, groups
from uop.conformance.suite.levels.invalid import InvalidGroup
from uop.interpreter.accepted.order import is_float, is_nan
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.inputs import Inputs
from uop.interpreter.numeric.storage import to_bits
from uop.interpreter.values import Value, either
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

PUSHED = "adversary"
"""The name of the backend that pushes an op."""
EXHAUSTIVE = "exhaustive"
TWIN = "twin"
"""The name of groups whose programs do not contain their op."""
SEVERAL = re.compile(r"\((\d+) of \d+ elements are outside\)$")

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


def pushed(op: Op, seed: int, profile: Profile) -> Iterator[tuple[str, int]]:
    """The first program of each group about an op, and the number of elements pushed outside.

    Only programs of one output and one set of inputs; those written by hand first, exhaustive ones
    last.
    """
    about = [g for g in groups("op") if g.op == op.name and g.name != TWIN]
    for group in sorted(about, key=lambda g: (g.name == EXHAUSTIVE, not is_by_hand(g))):
        case = group.case(0, seed)
        if isinstance(case, Case) and len(case.batches) == 1:
            with np.errstate(all="ignore"):
                wrong = _moved(case.root, case.batches[0].inputs, op, profile)
            if wrong:
                yield str(case.id), wrong


def rejected(verdict: Verdict) -> int:
    """The number of elements that a verdict rejects."""
    if verdict.status is not Status.FAILED or verdict.failure is None:
        return 0
    several = SEVERAL.search(verdict.failure.message)
    return int(several[1]) if several else 1


def _moved(root: UOp, inputs: Inputs, op: Op, profile: Profile) -> int:
    """The number of specified elements that the adversary changes; 0 for several outputs."""
    value = evaluate_full(root, inputs)
    data = evaluate_adversarially(root, inputs, push=op, profile=profile)
    if not isinstance(value, Value) or not isinstance(data, np.ndarray):
        return 0
    moved = to_bits(value.data) != to_bits(data)
    if is_float(data.dtype):
        moved &= ~(is_nan(data) & is_nan(value.data))
    opened = either(value.unspecified, value.invalid)
    return int(np.count_nonzero(moved if opened is None else moved & ~opened))
