"""Maps parallel RANGEs to work items, and folds of a workgroup to LOCAL memory (in select)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uop.compiler import loops
from uop.compiler.build import ONE, add, buffer, counting, div, mod, mul, only_where, sub
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.stages.expand import flat, shaped
from uop.spec.args import AddrSpace, AxisType, ReduceArg, SpecialArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.graph import rebuild
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_size
from uop.spec.registry import Shape
from uop.spec.uop import UOp, index_const

GROUPS = (AxisType.GLOBAL, AxisType.THREAD)
GROUP_REDUCE = AxisType.GROUP_REDUCE
IN_WARP = "in warp"
"""The tag of a BARRIER for the items of a warp alone."""


def launched(body: UOp, warp: int) -> UOp:
    """Replace parallel RANGEs by digits of the workgroup number and of the local id. A kernel
    without local axes has groups of one work item. `warp` is the number of items in a warp.
    """
    order = body.toposort()
    ranges = [u for u in order if u.op is Op.RANGE]
    outer = sorted((r for r in ranges if loops.type_of(r) in GROUPS), key=loops.id_of)
    folds = shared_folds(order)
    around = {u.src[1] for u in order if u.op is Op.END and loops.type_of(u.src[1]) is GROUP_REDUCE}
    shared = _shared_writes(order, folds)
    around -= set(shared)
    inner = [r for r in ranges if loops.type_of(r) in loops.ITEMS or r in around]
    # Lanes of a warp are neighbours in their group.
    inner.sort(key=lambda r: (loops.type_of(r) is AxisType.WARP, loops.id_of(r)))
    if any(int_value(r.src[0]) == 0 for r in (*outer, *inner)):
        return _never(body, ranges)
    new: dict[UOp, UOp] = {}

    def numbered(number: UOp, ranges: Sequence[UOp]) -> None:
        """Each RANGE is a digit of a number."""
        new.update(zip(ranges, loops.digits(number, [r.src[0] for r in ranges]), strict=True))

    if outer:
        if not all(is_size(r.src[0]) for r in outer):
            raise UnsupportedError("select: a parallel RANGE whose bound is no size")
        groups = loops.iterations(r.src[0] for r in outer)
        numbered(UOp(Op.SPECIAL, groups, arg=SpecialArg("gidx0")), outer)
    if inner or folds:
        sharing = _sharing(folds)
        item = _special("lidx0", math.prod(map(_bound, inner)) * sharing)
        body = _through_memory(body, folds, item, shared, warp) if folds else body
        within = mod(item, sharing)
        for each in (*map(_shared, folds), *([r] for r in shared)):
            numbered(within, each)
        numbered(div(item, sharing), inner)
    return _replaced(body, new) if new else body


def is_work_item(r: UOp) -> bool:
    """Whether the iterations of a RANGE are work items."""
    return loops.type_of(r) in (*GROUPS, *loops.ITEMS, GROUP_REDUCE)


def shared_folds(order: Sequence[UOp]) -> list[UOp]:
    """The REDUCEs that the items of a workgroup share."""
    return [u for u in order if u.op is Op.REDUCE and _shared(u)]


def _shared(u: UOp) -> list[UOp]:
    return [r for r in u.src[1:] if loops.type_of(r) is GROUP_REDUCE]


def _shared_writes(order: Sequence[UOp], folds: Sequence[UOp]) -> list[UOp]:
    """The GROUP_REDUCEs around a STORE that is shared by the items that share the folds. Around any
    other STORE their iterations are ordinary work items of the group.
    """
    if not folds:
        return []
    inside = open_ranges(order)
    found: dict[UOp, None] = {}
    for u in order:
        own = [r for r in inside[u] if loops.type_of(r) is GROUP_REDUCE] if u.op is Op.STORE else []
        if len(own) == 1 and _bound(own[0]) == _sharing(folds):
            found[own[0]] = None
    return list(found)


def _sharing(folds: Sequence[UOp]) -> int:
    """The number of work items that share each fold; UnsupportedError if the folds differ in it."""
    counts = {math.prod(map(_bound, _shared(u))) for u in folds}
    if len(counts) > 1:
        found = ", ".join(map(str, sorted(counts)))
        raise UnsupportedError(f"folds of one kernel shared by {found} work items")
    return counts.pop() if counts else 1


def _through_memory(
    body: UOp, folds: Sequence[UOp], item: UOp, shared: Sequence[UOp], warp: int
) -> UOp:
    """Each work item folds its part, then combines it with the parts of others through LOCAL
    memory, in a logarithmic number of steps. Then all have the result: they share the STOREs in
    loops of as many iterations, and the first item does all others.
    """
    order = body.toposort()
    inside = open_ranges(order)
    sharing = _sharing(folds)
    if not sharing:
        raise UnsupportedError("a fold shared by no work items")
    fresh, group = loops.free_id(order), _Group(item, sharing, warp)
    is_first = UOp(Op.CMPLT, mod(item, sharing), ONE)

    def combined(u: UOp, src: list[UOp]) -> UOp:
        if u in folds:
            if any(loops.type_of(r) in loops.FOLDED for r in inside[u]):
                raise UnsupportedError("a fold that a workgroup shares, inside another one")
            slot = folds.index(u)
            return group.combined(u, _own_part(u, src), slot, fresh + slot)
        if u.op is Op.STORE and inside[u].isdisjoint(shared):
            shape = src[1].shape
            gate = flat(is_first, shape) if shape else is_first
            gate = only_where(gate, src[2]) if len(src) > 2 else gate
            return u.with_src([*src[:2], gate])
        return u.with_src(src)

    return rebuild(body, combined)


def _own_part(u: UOp, src: Sequence[UOp]) -> UOp:
    """What one of the items that share a fold computes of it."""
    value, *ranges = src
    own = [r for r in ranges if loops.type_of(r) is not GROUP_REDUCE]
    return UOp(Op.REDUCE, value, *own, arg=u.arg) if own or arg_of(u, ReduceArg).axes else value


@dataclass(frozen=True, slots=True)
class _Group:
    """Work items that share folds, which are neighbours in a workgroup."""

    item: UOp
    """The number of a work item in the workgroup."""
    count: int
    """The number of work items that share a fold."""
    warp: int

    def combined(self, fold: UOp, total: UOp, slot: int, loop_id: int) -> UOp:
        """The result of a fold in each work item, from the part that each has folded.

        In each step an item combines its part with that of another one, twice as far away as in the
        step before. If their number is no power of two, the last step folds the rest. Steps
        alternate between two parts of the memory: an item that writes one has passed the barrier
        after the last read. In a step within warps an item waits for its warp alone.
        """
        shape, op = fold.shape, arg_of(fold, ReduceArg).op
        size = _bound(self.item)
        count = 2 * size * math.prod(shape)
        memory = buffer(slot, fold.dtype, count, AddrSpace.LOCAL)
        step, part = 1, 0
        while step < self.count:
            own = add(self.item, part * size)
            effect = UOp(Op.STORE, _row(memory, own, shape), flat(total, shape))
            rest = self.count // step
            is_near = rest % 2 == 0 and 2 * step <= self.warp
            after = UOp(Op.AFTER, memory, UOp(Op.BARRIER, effect, tag=IN_WARP if is_near else None))
            if rest % 2 == 0:
                # To the item whose number differs in the bit of the step.
                away = sub(step, mul(mod(div(self.item, step), 2), 2 * step))
                found = UOp(Op.LOAD, _row(after, add(own, away), shape))
                total, step = UOp(op, total, shaped(found, shape)), 2 * step
            else:
                # To the items that have the same place in their run of so many.
                loop = loops.ranged(rest, loop_id, AxisType.REDUCE)
                away = mul(sub(loop, div(mod(self.item, self.count), step)), step)
                found = UOp(Op.LOAD, _row(after, add(own, away), shape))
                fold_rest = ReduceArg(op)
                total, step = UOp(Op.REDUCE, shaped(found, shape), loop, arg=fold_rest), self.count
            part = 1 - part
        return total


def _row(memory: UOp, number: UOp, shape: Shape) -> UOp:
    """The place of the values of a work item, which have some shape."""
    if not shape:
        return UOp(Op.INDEX, memory, number)
    count = math.prod(shape)
    first = mul(number, count)
    return UOp(Op.INDEX, memory, add(first, counting(count)))


def _never(body: UOp, ranges: Sequence[UOp]) -> UOp:
    """A kernel without work items, because a parallel RANGE is empty: each STORE depends on one."""
    item = _special("gidx0", 0)
    parallel = {r: item for r in ranges if loops.type_of(r) in (*GROUPS, *loops.ITEMS)}
    alone = {
        r: loops.ranged(r.src[0], loops.id_of(r), AxisType.REDUCE)
        for r in ranges
        if r not in parallel
    }
    empty = _replaced(loops.rebuilt(body, alone), parallel)
    places = {u.src[0]: u.src[0].src[0] for u in empty.toposort() if u.op is Op.STORE}
    return empty.substitute({p: UOp(Op.INDEX, memory, item) for p, memory in places.items()})


def _replaced(body: UOp, digits: Mapping[UOp, UOp]) -> UOp:
    """Replace RANGEs by digits and drop their ENDs."""

    def replaced(u: UOp, src: list[UOp]) -> UOp:
        return src[0] if u.op is Op.END and u.src[1] in digits else u.with_src(src)

    return rebuild(body, replaced, done=dict(digits))


def _bound(u: UOp) -> int:
    bound = int_value(u.src[0])
    if bound is None:
        raise UnsupportedError("select: a parallel RANGE whose bound is no CONST")
    return bound


def _special(name: str, count: int) -> UOp:
    return UOp(Op.SPECIAL, index_const(count), arg=SpecialArg(name))
