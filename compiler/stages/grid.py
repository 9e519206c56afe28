"""The work items that a kernel is launched with, read off its SPECIALs.

A kernel that knows workgroups, by an item's number in one, LOCAL memory or a BARRIER, is launched
with exactly those that it asks for. Any other one says how many work items there are, and the
launch groups them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uop.spec.args import AddrSpace, ConstArg, SpecialArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import kept_with_root

OVER_ALL = ("gidx0", "gidx1", "gidx2")
"""The SPECIALs that number workgroups, or work items where nothing speaks of groups."""
IN_GROUP = ("lidx0", "lidx1", "lidx2")
"""The SPECIALs that number the work items of a workgroup."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How many workgroups and work items of each along every axis."""

    groups: tuple[int, ...]
    items: tuple[int, ...]


@kept_with_root
def is_grouped(linear: UOp) -> bool:
    """Whether a kernel knows which work items are one workgroup."""
    return any(
        u.op is Op.BARRIER
        or (u.op is Op.BUFFER and u.addrspace is AddrSpace.LOCAL)
        or (u.op is Op.SPECIAL and name_of(u) in IN_GROUP)
        for u in linear.src
    )


def grid_of(linear: UOp) -> Grid:
    """The launch of a kernel that knows workgroups."""
    groups, items = (_along(linear, names) for names in (OVER_ALL, IN_GROUP))
    rank = max(len(groups), len(items), 1)
    return Grid(_filled(groups, rank), _filled(items, rank))


def work_items(linear: UOp) -> tuple[int, ...]:
    """How many work items any other kernel needs along each axis; () where one does all."""
    return _along(linear, OVER_ALL)


def runs(linear: UOp) -> bool:
    """Whether a kernel has any work item."""
    return all(work_items(linear)) and all(_along(linear, IN_GROUP))


def specials(linear: UOp) -> list[UOp]:
    """The SPECIALs of a kernel. UnsupportedError for one that counts something else."""
    found = {u for u in linear.src if u.op is Op.SPECIAL}
    for u in found:
        if name_of(u) not in OVER_ALL + IN_GROUP:
            known = ", ".join(OVER_ALL + IN_GROUP)
            raise UnsupportedError(f"SPECIAL {name_of(u)}: expected one of {known}")
    return sorted(found, key=name_of)


def name_of(special: UOp) -> str:
    return arg_of(special, SpecialArg).name


def fixed_bound(u: UOp) -> int:
    """The bound of a SPECIAL or RANGE. UnsupportedError where it is data."""
    if not isinstance(u.src[0].arg, ConstArg):
        raise UnsupportedError(f"{u.op.name} with a bound that is no CONST")
    return int(u.src[0].arg.value)


def _along(linear: UOp, names: Sequence[str]) -> tuple[int, ...]:
    """The bounds by axis; one where an axis below the last is not asked for."""
    bounds = {names.index(name_of(u)): fixed_bound(u) for u in specials(linear)
              if name_of(u) in names}  # fmt: skip
    return tuple(bounds.get(axis, 1) for axis in range(1 + max(bounds, default=-1)))


def _filled(counts: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (*counts, *(1,) * (rank - len(counts)))
