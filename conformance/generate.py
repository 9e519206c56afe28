"""All cases, lazily and in one order: the same seed gives the same cases under the same ids."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from itertools import chain

from uop.conformance.case import EFFORTS, LEVELS, Case, CaseId, InvalidCase, NoSuchCaseError
from uop.conformance.levels import calls, casts, elementwise, graph, memory, movement, reduce
from uop.conformance.levels.group import Group

__all__ = ["EFFORTS", "LEVELS", "case_by_id", "cases"]


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
    for group in groups(id.level):
        if (group.op, group.dtype, group.name) == (id.op, id.dtype, id.group):
            return group.case(id.index, seed)
    raise NoSuchCaseError(f"no case {text!r}")


@cache
def groups(level: str) -> tuple[Group, ...]:
    """The groups of a level, in the order in which they run."""
    if level == "op":
        sections = (elementwise, casts, movement, reduce, memory, calls)
        return tuple(chain.from_iterable(section.groups() for section in sections))
    return tuple(graph.groups()) if level == "graph" else ()
