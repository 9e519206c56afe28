"""Order the instructions of a kernel body, and the loops and branches around them.

RANGEs that carry nothing from one iteration to the next are numpy axes, not loops. A loop is serial
if its body writes to memory that the next iteration reuses, or has a barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from uop.spec.args import AddrSpace, AxisType, ConstArg, RangeArg, arg_of
from uop.spec.conditions.clauses import lacking, undefined
from uop.spec.dtype import dtypes
from uop.spec.graph import base_of, toposort
from uop.spec.kernel.forms import closed_by
from uop.spec.kernel.listing import BLOCK_ENDS, BLOCK_STARTS
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp

PARALLEL = frozenset(
    {AxisType.GLOBAL, AxisType.LOCAL, AxisType.WARP, AxisType.THREAD, AxisType.GROUP_REDUCE}
)
"""The axis types whose iterations are work items; those of the others run one after the other."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A serial loop: its RANGE and the items of its body."""

    range: UOp
    items: Items


@dataclass(frozen=True, slots=True)
class Branch:
    """The items inside an IF, which run in the work items where its gate is true."""

    gate: UOp
    items: Items


@dataclass(frozen=True, slots=True)
class Term:
    """The operand of a REDUCE in its loops: each iteration adds one term."""

    fold: UOp


Item: TypeAlias = "UOp | Loop | Branch | Term"
Items = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The items of a body, and its nodes that run, sources first."""

    items: Items
    order: list[UOp]
    around: dict[UOp, frozenset[UOp]]
    """The loops around each effect of a graph that only their bodies use."""

    @property
    def counters(self) -> list[UOp]:
        """The SPECIALs and RANGEs that are axes, not loops."""
        loops = set(_loop_ranges(self.items))
        return [u for u in self.order if u.op in (Op.SPECIAL, Op.RANGE) and u not in loops]


def scheduled(body: UOp, *, one_after_the_other: bool = False) -> Schedule:
    """Order a body: a LINEAR by its list, a graph by data flow.

    With `one_after_the_other` every loop of a graph is serial whose iterations are not work items.
    """
    order = toposort([body], _executed_sources)
    if body.op is Op.LINEAR:
        return Schedule(_of_linear(body.src), order, {})
    around = _loops_of_effects(order)
    return Schedule(_of_graph(body, order, around, one_after_the_other), order, around)


def _loop_ranges(items: Items) -> list[UOp]:
    ranges = []
    for item in items:
        if isinstance(item, Loop | Branch):
            ranges += [*([item.range] if isinstance(item, Loop) else []), *_loop_ranges(item.items)]
    return ranges


def _of_linear(instructions: Iterable[UOp]) -> Items:
    """Build the blocks of a LINEAR: RANGE and IF open one, END and ENDIF close it."""
    open_blocks: list[tuple[UOp | None, list[Item]]] = [(None, [])]
    for u in instructions:
        if u.op in BLOCK_STARTS:
            open_blocks.append((u, []))
        elif u.op in BLOCK_ENDS:
            opened, items = open_blocks.pop()
            closed = u.src[1] if u.op is Op.END else u.src[0]
            if opened is None or opened is not closed:
                found = (
                    f"{u.op.name} closes {closed.op.name}, which is not the innermost open block"
                )
                raise undefined("LINEAR.u1", found, u)
            block = Loop if u.op is Op.END else Branch
            open_blocks[-1][1].append(
                block(opened if u.op is Op.END else opened.src[0], tuple(items))
            )
        else:
            open_blocks[-1][1].append(u)
    opened = open_blocks[-1][0]
    if opened is not None:
        raise undefined("LINEAR.u1", f"{opened.op.name} is never closed", opened)
    return tuple(open_blocks[0][1])


def _of_graph(
    body: UOp, order: Sequence[UOp], around: dict[UOp, frozenset[UOp]], one_after_the_other: bool
) -> Items:
    """Build the loops of a body that is still a graph, by data flow; omit those that never run."""
    for u in order:
        if u.op is Op.IF:
            raise undefined("IF.u1", "IF outside a LINEAR", u)
    # A RANGE is a loop if its body carries state from one iteration to the next.
    ends = [u.src for u in order if u.op is Op.END and not is_parallel(u.src[1])]
    serial = {
        r
        for ended, r in ends
        if one_after_the_other
        or not has_fixed_bound(r)
        or any(_carries(s) for s in ended.toposort())
    }
    serial |= _serially_folded(order, serial)
    open_at: dict[UOp, frozenset[UOp]] = {}
    for u in order:
        inside = frozenset().union(*(open_at[s] for s in _executed_sources(u)))
        inside |= around.get(u, frozenset()) & serial
        if u in serial:
            inside |= {u}
        else:
            inside -= {*closed_by(u)}
        open_at[u] = inside
    for u in open_at[body]:
        raise undefined("RANGE.u1", "a serial RANGE is never closed", u)
    return _block(order, open_at, frozenset())


def _executed_sources(u: UOp) -> tuple[UOp, ...]:
    """Return the sources that run: none below an END or REDUCE over an empty range."""
    return () if any(has_fixed_bound(r) and bound(r) == 0 for r in closed_by(u)) else u.src


def has_fixed_bound(u: UOp) -> bool:
    """Whether a RANGE or SPECIAL has the same bound in every work item."""
    return u.src[0].op is Op.CONST


def bound(u: UOp) -> int:
    """Return the iterations of a RANGE, or the items of a SPECIAL."""
    if not has_fixed_bound(u):
        raise lacking("RANGE.n1", f"a bound by {u.src[0].op.name}", u)
    return int(cast(ConstArg, u.src[0].arg).value)


def is_parallel(u: UOp) -> bool:
    """Whether the iterations of a RANGE are work items; a SPECIAL counts nothing else."""
    return u.op is Op.SPECIAL or arg_of(u, RangeArg).axis_type in PARALLEL


def _serially_folded(order: Iterable[UOp], serial: set[UOp]) -> set[UOp]:
    """Return the RANGEs that REDUCEs fold in loops: all RANGEs of a REDUCE if the bound of one
    depends on other values, or if one is a loop, because a fold runs through them in their order.
    """
    folds = [u.src[1:] for u in order if u.op is Op.REDUCE and len(u.src) > 1]
    found: set[UOp] = set()
    before = -1
    while before < len(found):
        before = len(found)
        for ranges in folds:
            if any(r in serial or r in found or not has_fixed_bound(r) for r in ranges):
                found.update(ranges)
    return found


def _loops_of_effects(order: Sequence[UOp]) -> dict[UOp, frozenset[UOp]]:
    """Return the loops around each effect that only their bodies use.

    It runs as often as they do, although no value may depend on them (D-056).
    """
    users: dict[UOp, set[UOp]] = {}
    for u in order:
        for s in _executed_sources(u):
            users.setdefault(s, set()).add(u)
    loops: dict[UOp, frozenset[UOp]] = {}
    for u in reversed(order):
        using = users.get(u, set())
        if u.dtype is dtypes.void and len(using) == 1:
            (user,) = using
            if user.op is Op.END:
                loops[u] = loops.get(user, frozenset()) | {user.src[1]}
            elif user.op is Op.GROUP:
                loops[u] = loops.get(user, frozenset())
    return loops


def _carries(u: UOp) -> bool:
    if u.declaration.is_write:
        return base_of(u.src[0]).addrspace is not AddrSpace.GLOBAL
    return u.op is Op.BARRIER


def _block(
    nodes: Iterable[UOp], open_at: dict[UOp, frozenset[UOp]], current: frozenset[UOp]
) -> Items:
    """Collect what runs directly inside the loops `current`, in topological order."""
    items: list[Item] = []
    for u in nodes:
        if u in current or not open_at[u] <= current:
            continue
        closed = _loops_closed_by(u, open_at, current)
        last: Items = (Term(u),) if u.op is Op.REDUCE else ()
        if closed:
            items.append(_nest(u, closed, open_at, current, last))
        if not closed or last:
            items.append(u)
    return tuple(items)


def _nest(
    closer: UOp,
    ranges: Sequence[UOp],
    open_at: dict[UOp, frozenset[UOp]],
    current: frozenset[UOp],
    last: Items,
) -> Loop:
    """Build the loops that an END or REDUCE closes, the first one outermost."""
    first, *others = ranges
    inside = current | {first}
    content = _block(
        [v for v in closer.toposort()[:-1] if first in open_at.get(v, ())], open_at, inside
    )
    inner = (_nest(closer, others, open_at, inside, last),) if others else last
    return Loop(first, (*content, *inner))


def _loops_closed_by(
    u: UOp, open_at: dict[UOp, frozenset[UOp]], current: frozenset[UOp]
) -> list[UOp]:
    """Return the serial RANGEs that a node closes, each after those that its bound depends on."""
    left = [r for r in closed_by(u) if r in open_at.get(r, ())]
    ordered: list[UOp] = []
    while left:
        known = current.union(ordered)
        ordered.append(next(r for r in left if open_at[r] <= known | {r}))
        left.remove(ordered[-1])
    return ordered
