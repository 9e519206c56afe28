"""All cases, lazily and in one order: the same seed gives the same cases under the same ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from itertools import chain

from uop.conformance.case import EFFORTS, LEVELS, Case, CaseId, InvalidCase, NoSuchCaseError
from uop.conformance.levels import (
    absent,
    calls,
    casts,
    device,
    elementwise,
    function,
    graph,
    handed_on,
    invalid,
    kernel,
    memory,
    movement,
    placed,
    property,
    reduce,
    schedule,
    sizes,
    twin,
    written,
)
from uop.conformance.levels.group import Group
from uop.conformance.levels.invalid import InvalidGroup

AnyGroup = Group | InvalidGroup

__all__ = ["EFFORTS", "LEVELS", "case_by_id", "cases", "further"]


def cases(
    levels: Collection[str] = LEVELS,
    seed: int = 0,
    effort: str = "default",
    ops: Collection[str] | None = None,
    dtypes: Collection[str] | None = None,
) -> Iterator[Case | InvalidCase]:
    """The cases of these levels; `ops` and `dtypes` select by name, None takes all."""
    for level in LEVELS:
        if level not in levels:
            continue
        for group in groups(level):
            if (ops is None or group.op in ops) and (dtypes is None or group.dtype in dtypes):
                for index in range(group.count(effort)):
                    yield group.case(index, seed)


def case_by_id(text: str, seed: int = 0) -> Case | InvalidCase:
    """The one case of this id, without making the others. NoSuchCaseError where there is none."""
    id = CaseId.parse(text)
    return group_of(id).case(id.index, seed)


def further(cells: Collection[tuple[str, str]], effort: str) -> Iterator[CaseId]:
    """The ids of cases that an effort leaves out, for the ops and dtypes of a ledger with gaps.

    Of each level in turn: those about an op come before the random graphs that hold it.
    """
    for level in LEVELS:
        for group in groups(level):
            if (group.op, group.dtype) in cells:
                for index in range(group.count(effort), max(group.counts)):
                    yield group.id(index)


def group_of(id: CaseId) -> AnyGroup:
    """The group that makes the case of this id. NoSuchCaseError where there is none."""
    group = _by_name(id.level).get((id.op, id.dtype, id.group))
    if group is None or id.index >= max(group.counts):
        raise NoSuchCaseError(f"no case {str(id)!r}")
    return group


@cache
def groups(level: str) -> tuple[AnyGroup, ...]:
    """The groups of a level, in the order in which they run."""
    modules = LEVEL_MODULES.get(level, ())
    return tuple(chain.from_iterable(module() for module in modules))


@cache
def _by_name(level: str) -> dict[tuple[str, str, str], AnyGroup]:
    return {(group.op, group.dtype, group.name): group for group in groups(level)}


LEVEL_MODULES: dict[str, tuple[Callable[[], Iterator[AnyGroup]], ...]] = {
    "op": (
        elementwise.groups,
        casts.groups,
        movement.groups,
        reduce.groups,
        memory.groups,
        calls.groups,
        absent.groups,
        sizes.groups,
        partial(written.groups, "op"),
    ),
    "invalid": (invalid.groups,),
    "property": (property.groups, handed_on.groups),
    "function": (function.groups, partial(written.groups, "function")),
    "graph": (graph.groups,),
    "twin": (twin.groups,),
    "kernel": (kernel.groups, partial(written.groups, "kernel")),
    "schedule": (schedule.groups,),
    "device": (device.groups, placed.groups, partial(written.groups, "device")),
}
"""What makes the groups of each level."""
