"""Maps parallel RANGEs to work items, and folds of a workgroup to LOCAL memory (in select)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from uop.compiler.simplify import int_value
from uop.compiler.stages.expand import flat, shaped
from uop.compiler.stages.indices import counting
from uop.compiler.stages.optimize.axes import (
    FOLDED,
    ITEMS,
    Parts,
    axes,
    id_of,
    ranged,
    rebuilt,
    type_of,
)
from uop.compiler.validity import FALSE
from uop.spec.args import AddrSpace, AxisType, BufferArg, ReduceArg, SpecialArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_size
from uop.spec.registry import Shape
from uop.spec.uop import UOp, dims, index_const

GROUPS = (AxisType.GLOBAL, AxisType.THREAD)
GROUP_REDUCE = AxisType.GROUP_REDUCE


def launched(body: UOp) -> UOp:
    """Replace parallel RANGEs by digits of the workgroup number and of the local id; a kernel
    without local axes has groups of one work item.
    """
    order = body.toposort()
    ranges = [u for u in order if u.op is Op.RANGE]
    outer = [r for r in ranges if type_of(r) in GROUPS]
    # Around a STORE the iterations of a GROUP_REDUCE are work items like others of the group.
    around = {u.src[1] for u in order if u.op is Op.END and type_of(u.src[1]) is GROUP_REDUCE}
    inner = sorted((r for r in ranges if type_of(r) in ITEMS or r in around), key=id_of)
    folds = shared_folds(order)
    if any(int_value(r.src[0]) == 0 for r in (*outer, *inner)):
        return _never(body, ranges)
    new: dict[UOp, UOp] = {}
    if outer:
        new |= _digits(UOp(Op.SPECIAL, _product(outer), arg=SpecialArg("gidx0")), outer)
    if inner or folds:
        sharing = _sharing(folds)
        item = _special("lidx0", math.prod(map(_bound, inner)) * sharing)
        body = _through_memory(body, folds, item) if folds else body
        within = UOp(Op.MOD, item, index_const(sharing))
        for u in folds:
            new |= _digits(within, _shared(u))
        new |= _digits(UOp(Op.IDIV, item, index_const(sharing)), inner)
    return _replaced(body, new) if new else body


def is_work_item(r: UOp) -> bool:
    """Whether the iterations of a RANGE are work items."""
    return type_of(r) in (*GROUPS, *ITEMS, GROUP_REDUCE)


def shared_folds(order: Sequence[UOp]) -> list[UOp]:
    """The REDUCEs that the items of a workgroup share."""
    return [u for u in order if u.op is Op.REDUCE and _shared(u)]


def _shared(u: UOp) -> list[UOp]:
    return [r for r in u.src[1:] if type_of(r) is GROUP_REDUCE]


def _sharing(folds: Sequence[UOp]) -> int:
    """The number of work items that share each fold; UnsupportedError if the folds differ in it."""
    counts = {math.prod(map(_bound, _shared(u))) for u in folds}
    if len(counts) > 1:
        found = ", ".join(map(str, sorted(counts)))
        raise UnsupportedError(f"folds of one kernel shared by {found} work items")
    return counts.pop() if counts else 1


def _through_memory(body: UOp, folds: Sequence[UOp], item: UOp) -> UOp:
    """Each work item folds its part and stores it in LOCAL memory; after a barrier every work item
    folds the parts, and the first of those that share a fold stores the result.
    """
    order = body.toposort()
    inside = open_ranges(order)
    sharing = _sharing(folds)
    if not sharing:
        raise UnsupportedError("a fold shared by no work items")
    fresh = 1 + max(map(id_of, axes(body)))
    is_first = UOp(Op.CMPLT, UOp(Op.MOD, item, index_const(sharing)), index_const(1))
    new: dict[UOp, UOp] = {}
    for u in order:
        src = [new[s] for s in u.src]
        if u in folds:
            if any(type_of(r) in FOLDED for r in inside[u]):
                raise UnsupportedError("a fold that a workgroup shares, inside another one")
            slot = folds.index(u)
            part = ranged(index_const(sharing), fresh + slot, AxisType.REDUCE)
            new[u] = _combined(u, src, (item, part), slot)
        elif u.op is Op.STORE:
            shape = src[1].shape
            gate = flat(is_first, shape) if shape else is_first
            gate = UOp(Op.WHERE, gate, src[2], FALSE) if len(src) > 2 else gate
            new[u] = u.with_src([*src[:2], gate])
        else:
            new[u] = u.with_src(src)
    return new[body]


def _combined(u: UOp, src: Sequence[UOp], counters: tuple[UOp, UOp], slot: int) -> UOp:
    value, *ranges = src
    item, part = counters
    sharing, items = index_const(_bound(part)), _bound(item)
    own = [r for r in ranges if type_of(r) is not GROUP_REDUCE]
    op, axes = arg_of(u, ReduceArg).op, arg_of(u, ReduceArg).axes
    mine = UOp(Op.REDUCE, value, *own, arg=u.arg) if own or axes else value
    arg = BufferArg(slot, u.dtype, None, AddrSpace.LOCAL)
    memory = UOp(Op.BUFFER, dims((items * math.prod(u.shape),)), arg=arg)
    written = UOp(Op.BARRIER, UOp(Op.STORE, _row(memory, item, u.shape), flat(mine, u.shape)))
    first = UOp(Op.MUL, UOp(Op.IDIV, item, sharing), sharing)
    place = _row(UOp(Op.AFTER, memory, written), UOp(Op.ADD, first, part), u.shape)
    return UOp(Op.REDUCE, shaped(UOp(Op.LOAD, place), u.shape), part, arg=ReduceArg(op))


def _row(memory: UOp, number: UOp, shape: Shape) -> UOp:
    """The place of the values of a work item, which have some shape."""
    if not shape:
        return UOp(Op.INDEX, memory, number)
    count = math.prod(shape)
    first = UOp(Op.MUL, number, index_const(count))
    return UOp(Op.INDEX, memory, UOp(Op.ADD, first, counting(count)))


def _never(body: UOp, ranges: Sequence[UOp]) -> UOp:
    """A kernel without work items, because a parallel RANGE is empty: each STORE depends on one."""
    item = _special("gidx0", 0)
    parallel = {r: item for r in ranges if type_of(r) in (*GROUPS, *ITEMS)}
    alone = {r: ranged(r.src[0], id_of(r), AxisType.REDUCE) for r in ranges if r not in parallel}
    empty = _replaced(rebuilt(body, {r: Parts(a, (a,)) for r, a in alone.items()}), parallel)
    places = {u.src[0]: u.src[0].src[0] for u in empty.toposort() if u.op is Op.STORE}
    return empty.substitute({p: UOp(Op.INDEX, memory, item) for p, memory in places.items()})


def _digits(number: UOp, ranges: Sequence[UOp]) -> dict[UOp, UOp]:
    """Each RANGE as a digit of a number, the last one the lowest."""
    digits: dict[UOp, UOp] = {}
    for k, r in enumerate(ranges):
        quotient = UOp(Op.IDIV, number, _product(ranges[k + 1 :]))
        # The simplifier sees that the first digit is the whole quotient only if it is a number.
        is_whole = not k and int_value(r.src[0]) is None
        digits[r] = quotient if is_whole else UOp(Op.MOD, quotient, r.src[0])
    return digits


def _product(ranges: Sequence[UOp]) -> UOp:
    """The number of iterations of a nest: a constant, or a product of sizes."""
    bounds = [r.src[0] for r in ranges]
    total = index_const(math.prod(b for b in map(int_value, bounds) if b is not None))
    for bound in bounds:
        if int_value(bound) is None:
            if not is_size(bound):
                raise UnsupportedError("select: a parallel RANGE whose bound is no size")
            total = UOp(Op.MUL, total, bound)
    return total


def _replaced(body: UOp, digits: Mapping[UOp, UOp]) -> UOp:
    """Replace RANGEs by digits and drop their ENDs."""
    new: dict[UOp, UOp] = dict(digits)
    for u in body.toposort():
        if u not in new:
            src = [new[s] for s in u.src]
            closes = u.op is Op.END and u.src[1] in digits
            new[u] = src[0] if closes else u.with_src(src)
    return new[body]


def _bound(u: UOp) -> int:
    bound = int_value(u.src[0])
    if bound is None:
        raise UnsupportedError("select: a parallel RANGE whose bound is no CONST")
    return bound


def _special(name: str, count: int) -> UOp:
    return UOp(Op.SPECIAL, index_const(count), arg=SpecialArg(name))
