"""Maps parallel RANGEs to work items, and folds of a workgroup to LOCAL memory (in select)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uop.compiler.build import ONE, add, buffer, counting, div, mod, mul, only_where, sub
from uop.compiler.loops import FOLDED, ITEMS, free_id, id_of, ranged, rebuilt, type_of
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
    outer = sorted((r for r in ranges if type_of(r) in GROUPS), key=id_of)
    folds = shared_folds(order)
    around = {u.src[1] for u in order if u.op is Op.END and type_of(u.src[1]) is GROUP_REDUCE}
    shared = _shared_writes(order, folds)
    around -= set(shared)
    inner = [r for r in ranges if type_of(r) in ITEMS or r in around]
    # Lanes of a warp are neighbours in their group.
    inner.sort(key=lambda r: (type_of(r) is AxisType.WARP, id_of(r)))
    if any(int_value(r.src[0]) == 0 for r in (*outer, *inner)):
        return _never(body, ranges)
    new: dict[UOp, UOp] = {}
    if outer:
        new |= _digits(UOp(Op.SPECIAL, _product(outer), arg=SpecialArg("gidx0")), outer)
    if inner or folds:
        sharing = _sharing(folds)
        item = _special("lidx0", math.prod(map(_bound, inner)) * sharing)
        body = _through_memory(body, folds, item, shared, warp) if folds else body
        within = mod(item, sharing)
        for each in (*map(_shared, folds), *([r] for r in shared)):
            new |= _digits(within, each)
        new |= _digits(div(item, sharing), inner)
    return _replaced(body, new) if new else body


def is_work_item(r: UOp) -> bool:
    """Whether the iterations of a RANGE are work items."""
    return type_of(r) in (*GROUPS, *ITEMS, GROUP_REDUCE)


def shared_folds(order: Sequence[UOp]) -> list[UOp]:
    """The REDUCEs that the items of a workgroup share."""
    return [u for u in order if u.op is Op.REDUCE and _shared(u)]


def _shared(u: UOp) -> list[UOp]:
    return [r for r in u.src[1:] if type_of(r) is GROUP_REDUCE]


def _shared_writes(order: Sequence[UOp], folds: Sequence[UOp]) -> list[UOp]:
    """The GROUP_REDUCEs around a STORE that is shared by the items that share the folds. Around any
    other STORE their iterations are ordinary work items of the group.
    """
    if not folds:
        return []
    inside = open_ranges(order)
    found: dict[UOp, None] = {}
    for u in order:
        own = [r for r in inside[u] if type_of(r) is GROUP_REDUCE] if u.op is Op.STORE else []
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
    fresh = free_id(order)
    is_first = UOp(Op.CMPLT, mod(item, sharing), ONE)

    def combined(u: UOp, src: list[UOp]) -> UOp:
        if u in folds:
            if any(type_of(r) in FOLDED for r in inside[u]):
                raise UnsupportedError("a fold that a workgroup shares, inside another one")
            slot = folds.index(u)
            parts = _Sharing(u, item, sharing, slot, fresh + slot, warp)
            return parts.combined(_own_part(u, src))
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
    own = [r for r in ranges if type_of(r) is not GROUP_REDUCE]
    return UOp(Op.REDUCE, value, *own, arg=u.arg) if own or arg_of(u, ReduceArg).axes else value


@dataclass(frozen=True, slots=True)
class _Sharing:
    """A fold that work items share, which are neighbours in the group."""

    fold: UOp
    item: UOp
    """The number of a work item in the group."""
    count: int
    """The number of work items that share the fold."""
    slot: int
    """The slot of their LOCAL memory."""
    loop: int
    """A free id for a loop."""
    warp: int

    def combined(self, total: UOp) -> UOp:
        """The result in each work item, from the part that each has folded.

        In each step an item combines its part with that of another one, twice as far away as in the
        step before. If their number is no power of two, the last step folds the rest. Steps
        alternate between two parts of the memory: an item that writes one has passed the barrier
        after the last read. In a step within warps an item waits for its warp alone.
        """
        shape, op = self.fold.shape, arg_of(self.fold, ReduceArg).op
        size = _bound(self.item)
        count = 2 * size * math.prod(shape)
        memory = buffer(self.slot, self.fold.dtype, count, AddrSpace.LOCAL)
        step, part = 1, 0
        while step < self.count:
            own = add(self.item, part * size)
            effect = UOp(Op.STORE, _row(memory, own, shape), flat(total, shape))
            rest = self.count // step
            is_near = rest % 2 == 0 and 2 * step <= self.warp
            barrier = UOp(Op.BARRIER, effect, tag=IN_WARP if is_near else None)
            after = UOp(Op.AFTER, memory, barrier)
            loop = ranged(rest, self.loop, AxisType.REDUCE)
            away = self._across(step) if rest % 2 == 0 else self._among(step, loop)
            place = _row(after, add(own, away), shape)
            found = shaped(UOp(Op.LOAD, place), shape)
            if rest % 2 == 0:
                total, step = UOp(op, total, found), 2 * step
            else:
                total, step = UOp(Op.REDUCE, found, loop, arg=ReduceArg(op)), self.count
            part = 1 - part
        return total

    def _across(self, step: int) -> UOp:
        """How far away the item is whose number differs in the bit of a step."""
        bit = mod(div(self.item, step), 2)
        return sub(step, mul(bit, 2 * step))

    def _among(self, step: int, loop: UOp) -> UOp:
        """How far away the items are that have the same place in their run of so many."""
        within = mod(self.item, self.count)
        own = div(within, step)
        return mul(sub(loop, own), step)


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
    parallel = {r: item for r in ranges if type_of(r) in (*GROUPS, *ITEMS)}
    alone = {r: ranged(r.src[0], id_of(r), AxisType.REDUCE) for r in ranges if r not in parallel}
    empty = _replaced(rebuilt(body, alone), parallel)
    places = {u.src[0]: u.src[0].src[0] for u in empty.toposort() if u.op is Op.STORE}
    return empty.substitute({p: UOp(Op.INDEX, memory, item) for p, memory in places.items()})


def _digits(number: UOp, ranges: Sequence[UOp]) -> dict[UOp, UOp]:
    """Each RANGE as a digit of a number, the last one the lowest."""
    digits: dict[UOp, UOp] = {}
    for k, r in enumerate(ranges):
        quotient = div(number, _product(ranges[k + 1 :]))
        # The simplifier sees that the first digit is the whole quotient only if it is a number.
        is_whole = not k and int_value(r.src[0]) is None
        digits[r] = quotient if is_whole else mod(quotient, r.src[0])
    return digits


def _product(ranges: Sequence[UOp]) -> UOp:
    """The number of iterations of a nest: a constant, or a product of sizes."""
    bounds = [r.src[0] for r in ranges]
    total = index_const(math.prod(b for b in map(int_value, bounds) if b is not None))
    for bound in bounds:
        if int_value(bound) is None:
            if not is_size(bound):
                raise UnsupportedError("select: a parallel RANGE whose bound is no size")
            total = mul(total, bound)
    return total


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
