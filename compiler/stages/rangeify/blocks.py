"""Computes long folds and scans in blocks, by rules on the graph of a function (in rangeify).

A scan gives each element the fold of all elements up to it. As a graph it is a REDUCE of a square
of which one half is neutral, so its work grows with the square of its size. In blocks, an element
folds the elements before it in its block, and the folds of the blocks before, which are a scan
again.

A large fold to few elements becomes a fold of parts, which run in parallel, and a fold of their
results. The order of a fold is free: for integers it changes nothing, for floats nothing that the
spec rejects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from uop.compiler.build import TRUE, ZERO_FILL, expand, full, identity, reshaped
from uop.compiler.loops import largest_divisor, linear_steps
from uop.compiler.rewriting.rewrite import Fired, Rewriter, RuleSet, rewrites
from uop.compiler.rewriting.simplify import SIMPLIFY, conjuncts, linear_form
from uop.compiler.stages.rangeify.lower import Lowering
from uop.spec.args import AxisType, FlipArg, PermuteArg, ReduceArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.graph import toposort
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.shards import window
from uop.spec.uop import UOp, dims

BLOCK = 8
"""The elements of a block of a scan: its square, unrolled, is one growing vector."""
LONG = 128
"""A scan of up to so many elements is computed as a square."""
LARGE = 1 << 19
"""From so many elements on, a fold gains more by parts than a second kernel costs."""
FEW = 256
"""So many results keep the cores busy without parts."""
PARTS = 1024
"""The most parts, of all results together."""


def in_blocks(function: UOp, fired: Fired) -> UOp:
    """A TUPLE of values whose long folds are in blocks."""
    folds = [u for u in function.toposort() if u.op is Op.REDUCE]
    if not any(_is_long(u) or _is_large(u) for u in folds):
        return function
    return Rewriter(BLOCKS, fired)(function)


@rewrites(Op.REDUCE)
def scan_in_blocks(u: UOp) -> UOp | None:
    """A long scan -> a scan of each block, after a scan of the folds of the blocks."""
    scan = _scan(u) if _is_long(u) else None
    if scan is None:
        return None
    op, (*rest, size) = arg_of(u, ReduceArg).op, scan.row.shape
    row = _flipped(scan.row) if scan.is_backward else scan.row
    count = -(-size // BLOCK)
    blocks = reshaped(_padded(row, op, 0, count * BLOCK), (*rest, count, BLOCK))
    totals = UOp(Op.REDUCE, blocks, arg=ReduceArg(op, (len(rest) + 1,)))
    before = _start(_padded(reshaped(totals, (*rest, count)), op, 1, count + 1), count)
    before = reshaped(_square(before, op), (*rest, count, 1))
    joined = UOp(op, expand(before, blocks.shape), _square(blocks, op))
    result = _start(reshaped(joined, (*rest, count * BLOCK)), size)
    result = _flipped(result) if scan.is_backward else result
    back = tuple(scan.order.index(k) for k in range(len(scan.order)))
    return UOp(Op.PERMUTE, reshaped(result, (*rest, size, 1)), arg=PermuteArg(back))


@rewrites(Op.REDUCE)
def fold_in_parts(u: UOp) -> UOp | None:
    """A large fold to few elements -> a fold of parts of an axis, and a fold of these."""
    if not _is_large(u):
        return None
    (source,), arg, shape = u.src, arg_of(u, ReduceArg), u.src[0].shape
    most = PARTS // math.prod(u.shape)
    for axis in arg.axes:
        parts = largest_divisor(shape[axis], most)
        if 2 * parts >= most:
            sizes = (*shape[:axis], parts, shape[axis] // parts, *shape[axis + 1 :])
            within = tuple(k + (k >= axis) for k in arg.axes)
            folds = UOp(Op.REDUCE, reshaped(source, sizes), arg=ReduceArg(arg.op, within))
            return reshaped(UOp(Op.REDUCE, folds, arg=ReduceArg(arg.op, (axis,))), u.shape)
    return None


BLOCKS = RuleSet(scan_in_blocks, fold_in_parts)


@dataclass(frozen=True, slots=True)
class _Scan:
    """A REDUCE that is a scan."""

    row: UOp
    """What is scanned, along its last axis."""
    is_backward: bool
    """Whether an element folds the elements after it, not those before it."""
    order: tuple[int, ...]
    """The axes of the square: those of the rows, then the one that is kept, then the folded one."""


@dataclass(frozen=True, slots=True)
class _Square:
    """An element of a square, and the loops over the axis that is kept and the folded one."""

    element: UOp
    kept: UOp
    folded: UOp
    size: int


def _is_seen_through(u: UOp) -> bool:
    """Whether a square is made of it. Anything else below a square is data."""
    return u.declaration.is_view or u.op in (Op.WHERE, Op.CONST, Op.AND, Op.NOT)


def _is_long(u: UOp) -> bool:
    """Whether a REDUCE may be a scan that is worth blocks."""
    source, axes = u.src[0], arg_of(u, ReduceArg).axes
    is_plain = len(u.src) == len(axes) == 1 and _is_seen_through(source)
    if not is_plain or not all(isinstance(dim, int) for dim in source.shape):
        return False
    return bool(source.shape[axes[0]] > LONG)


def _is_large(u: UOp) -> bool:
    """Whether a REDUCE to few elements is worth parts."""
    shape = u.src[0].shape
    is_plain = len(u.src) == 1 and all(isinstance(dim, int) for dim in shape)
    return is_plain and math.prod(u.shape) < FEW and math.prod(shape) >= LARGE


def _scan(u: UOp) -> _Scan | None:
    source, arg = u.src[0], arg_of(u, ReduceArg)
    shape, (axis,) = source.shape, arg.axes
    kept = [k for k, dim in enumerate(shape) if dim == shape[axis] and k != axis]
    if not kept:
        return None
    # Out of bounds the index of a view is none of one term, so what is padded is data.
    views = toposort([source], lambda v: v.src if _is_seen_through(v) else ())
    padded = {v.src[0] for v in views if v.op is Op.PAD and v.dtype is not dtypes.bool}

    def data(v: UOp) -> UOp | None:
        return v if not _is_seen_through(v) or v in padded else None

    lowering = Lowering(data, Rewriter(SIMPLIFY))
    at = [lowering.range(dim, AxisType.LOOP) for dim in shape]
    element = lowering.simplify(lowering.element(source, tuple(at)))
    nothing = identity(arg.op, u.dtype)
    for k in kept:
        whole = _whole_row(_Square(element, at[k], at[axis], shape[axis]), nothing)
        if whole is not None:
            rest = [d for d in range(len(shape)) if d not in (k, axis)]
            row = window(source, k, whole, 1)
            row = UOp(Op.PERMUTE, row, arg=PermuteArg((*rest, k, axis)))
            row = reshaped(row, (*(shape[d] for d in rest), shape[axis]))
            return _Scan(row, whole == 0, (*rest, k, axis))
    return None


def _whole_row(square: _Square, nothing: UOp) -> int | None:
    """The row of the square of a scan that holds all elements: the last one or the first one.

    None for other squares. In row i of that of a scan, element j is x[j] or x[i + j - c] in one
    half, and neutral in the other one.
    """
    u, conditions = square.element, list[UOp]()
    if u.op is Op.WHERE and u.src[2] is nothing:
        u, conditions = u.src[1], conjuncts(u.src[0])
    elif u.op is Op.LOAD and u.src[1:2] == (nothing,):
        u, conditions = UOp(Op.LOAD, u.src[0]), conjuncts(u.src[2])
    for condition in conditions:
        if (half := _halves(condition, square)) is not None:
            others = [u, *(c for c in conditions if c is not condition)]
            is_scan = all(_moves_with_rows(o, square, half.is_window) for o in others)
            return half.whole if is_scan else None
    return None


@dataclass(frozen=True, slots=True)
class _Half:
    """The half of a square in which there are elements."""

    whole: int
    """The whole row that it contains."""
    is_window: bool
    """Whether rows are windows of one row, each one element later; else they are equal."""


def _halves(condition: UOp, square: _Square) -> _Half | None:
    """The half of the square in which a condition is true."""
    last = square.size - 1
    halves = {
        (1, -1, 0): _Half(last, False),  # j <= i
        (-1, 1, 0): _Half(0, False),  # i <= j
        (1, 1, -last): _Half(last, True),  # last <= i + j
        (-1, -1, last): _Half(0, True),  # i + j <= last
    }
    if condition.op is not Op.CMPLT or condition.src[0].dtype is not dtypes.index:
        return None
    terms, offset = linear_form(UOp(Op.SUB, condition.src[1], condition.src[0]))
    if terms.keys() != {square.kept, square.folded}:
        return None
    return halves.get((terms[square.kept], terms[square.folded], offset - 1))


def _moves_with_rows(u: UOp, square: _Square, is_window: bool) -> bool:
    """Whether each row of the square has the same values; those of a window, one element later."""
    for v in toposort([u], lambda v: () if v.op in (Op.INDEX, Op.CMPLT) else v.src):
        if v in (square.kept, square.folded):
            return False
        if v.op in (Op.INDEX, Op.CMPLT):
            index = v.src[1] if v.op is Op.INDEX else UOp(Op.SUB, v.src[1], v.src[0])
            down, along = linear_steps(index, (square.kept, square.folded))
            if down is None or down != (along if is_window else 0):
                return False
    return True


def _square(row: UOp, op: Op) -> UOp:
    """The scan of a row, as a fold of its square."""
    *rest, size = row.shape
    shape = (*rest, size, size)
    wide = expand(reshaped(row, (*rest, 1, size)), shape)
    chosen = UOp(
        Op.WHERE, expand(_lower_half(size), shape), wide, full(identity(op, row.dtype), shape)
    )
    return reshaped(UOp(Op.REDUCE, chosen, arg=ReduceArg(op, (len(shape) - 1,))), row.shape)


def _lower_half(size: int) -> UOp:
    """Whether j <= i, for each i and j: rows that are windows, each one element later."""
    long = 2 * size - 1
    steps = UOp(Op.PAD, full(TRUE, (size,)), dims((size - 1,)), dims((long,)), arg=ZERO_FILL)
    rows = reshaped(expand(steps, (size + 1, long)), ((size + 1) * long,))
    windows = reshaped(_start(rows, 2 * size * size), (size, 2 * size))
    return _flipped(_start(windows, size))


def _flipped(u: UOp) -> UOp:
    """The last axis from its end."""
    return UOp(Op.FLIP, u, arg=FlipArg((*(False for _ in u.shape[1:]), True)))


def _start(u: UOp, size: int) -> UOp:
    """The first elements along the last axis."""
    return window(u, len(u.shape) - 1, 0, size)


def _padded(u: UOp, op: Op, before: int, size: int) -> UOp:
    """The last axis at an offset among elements that change no fold."""
    shape: Shape = (*u.shape[:-1], size)
    if u.shape == shape:
        return u
    places = dims((*(0 for _ in shape[1:]), before)), dims(shape)
    wide, nothing = UOp(Op.PAD, u, *places, arg=ZERO_FILL), identity(op, u.dtype)
    if op is Op.ADD:
        return wide
    inside = UOp(Op.PAD, full(TRUE, u.shape), *places, arg=ZERO_FILL)
    return UOp(Op.WHERE, inside, wide, full(nothing, shape))
