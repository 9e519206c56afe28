"""The launch size of a kernel, from its SPECIALs.

A kernel uses workgroups if it has local ids, LOCAL memory or a BARRIER; it is launched with exactly
the workgroups that it requires. Any other kernel has a number of work items, which the launch puts
into groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from uop.spec.args import AddrSpace, ConstArg, SpecialArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.graph import kept_with_root
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import bind, is_size, variables
from uop.spec.uop import UOp

OVER_ALL = ("gidx0", "gidx1", "gidx2")
"""The SPECIALs that number workgroups, or the work items of a kernel that uses no workgroups."""
IN_GROUP = ("lidx0", "lidx1", "lidx2")
"""The SPECIALs that number the work items of a workgroup."""
Numbers = Mapping[UOp, int]
"""The numbers that a launch gives the variables of its kernel."""
NONE: Numbers = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Grid:
    """The number of workgroups, and of work items in each, along every axis."""

    groups: tuple[int, ...]
    items: tuple[int, ...]

    @classmethod
    def covering(cls, items: tuple[int, ...], group: int) -> Grid:
        """At least `items` work items in groups of `group` along axis 0; () is one item."""
        if not items:
            return cls((1,), (1,))
        sizes = (group, *(1 for _ in items[1:]))
        return cls(tuple(-(-n // size) for n, size in zip(items, sizes, strict=True)), sizes)


@kept_with_root
def is_grouped(linear: UOp) -> bool:
    """Whether a kernel uses workgroups."""
    return any(
        u.op is Op.BARRIER
        or (u.op is Op.BUFFER and u.addrspace is AddrSpace.LOCAL)
        or (u.op is Op.SPECIAL and name_of(u) in IN_GROUP)
        for u in linear.src
    )


def grid_of(linear: UOp, numbers: Numbers = NONE, local_size: int = 1) -> Grid:
    """The launch size of a kernel; one that uses no workgroups has groups of the local size."""
    groups, items = (_along(linear, names, numbers) for names in (OVER_ALL, IN_GROUP))
    if not is_grouped(linear):
        return Grid.covering(groups, local_size)
    rank = max(len(groups), len(items), 1)
    return Grid(_filled(groups, rank), _filled(items, rank))


def runs(linear: UOp, numbers: Numbers = NONE) -> bool:
    """Whether a kernel has any work item."""
    return all(_along(linear, OVER_ALL + IN_GROUP, numbers))


def specials(linear: UOp) -> list[UOp]:
    """The SPECIALs of a kernel by name; UnsupportedError for an unknown name."""
    found = {u for u in linear.src if u.op is Op.SPECIAL}
    for u in found:
        if name_of(u) not in OVER_ALL + IN_GROUP:
            known = ", ".join(OVER_ALL + IN_GROUP)
            raise UnsupportedError(f"SPECIAL {name_of(u)}: expected one of {known}")
    return sorted(found, key=name_of)


def name_of(special: UOp) -> str:
    return arg_of(special, SpecialArg).name


def fixed_bound(u: UOp) -> int:
    """The bound of a SPECIAL or RANGE; UnsupportedError if it is no CONST."""
    if not isinstance(u.src[0].arg, ConstArg):
        raise UnsupportedError(f"{u.op.name} with a bound that is no CONST")
    return int(u.src[0].arg.value)


def _along(linear: UOp, names: Sequence[str], numbers: Numbers) -> tuple[int, ...]:
    """The bounds by axis; 1 for an axis without SPECIAL below the last one."""
    bounds = {names.index(name_of(u)): bound_under(u, numbers) for u in specials(linear)
              if name_of(u) in names}  # fmt: skip
    return tuple(bounds.get(axis, 1) for axis in range(1 + max(bounds, default=-1)))


def bound_under(u: UOp, numbers: Numbers) -> int:
    """The bound of a SPECIAL or RANGE under these numbers."""
    if is_size(u.src[0]):
        bound = bind(u.src[0], {v: numbers[v] for v in variables(u.src[0])})
        u = u.with_src((bound,))
    return fixed_bound(u)


def _filled(counts: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (*counts, *(1,) * (rank - len(counts)))
