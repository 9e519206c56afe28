"""Level kernel, matrices: one WMMA of one warp, on fragments in memory.

Judged by the graph of the product: acc is one more term of each sum, whose order is open.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uop.conformance import values
from uop.conformance.case import Batch, Source
from uop.conformance.choices import Choices, data_key
from uop.conformance.levels.group import Program
from uop.conformance.levels.listing import Listing
from uop.conformance.levels.scalar import Memory, argument, at, load
from uop.interpreter.fragments import SHAPES, LaneMap, fragments_of
from uop.interpreter.values import Array
from uop.spec.args import (
    BinaryArg,
    DTypeArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
    SpecialArg,
    WmmaArg,
)
from uop.spec.dtype import dtypes
from uop.spec.ops.codegen import WARP
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, dims, index_const

TF32 = 0xFFFFE000
"""The bits of a float32 that a matrix instruction reads."""
WHOLE = tuple(arg for arg in SHAPES if arg.dtype_out is dtypes.float32)
"""Instructions whose exact products their result can hold."""


def multiplied(arg: WmmaArg, choices: Choices, index: int) -> Program:
    """Slots 1, 2 and 3 hold A, B and acc as fragments, lane after lane; slot 0 gets the result."""
    sizes = (arg.m * arg.k, arg.k * arg.n, arg.m * arg.n)
    kinds = (arg.dtype_in, arg.dtype_in, arg.dtype_out)
    target = Memory(0, sizes[2], arg.dtype_out)
    sources = [Memory(k + 1, n, d) for k, (n, d) in enumerate(zip(sizes, kinds, strict=True))]
    lane = UOp(Op.SPECIAL, index_const(WARP), arg=SpecialArg("lidx0"))
    held = [load(s.param, _places(lane, s.count)) for s in sources]
    listing = Listing()
    value = UOp(Op.WMMA, *held, arg=arg)
    listing.do(UOp(Op.STORE, at(target.param, _places(lane, target.count)), value))
    kernel = UOp(Op.CALL, listing.body, *(argument(m) for m in (target, *sources)))
    batches = tuple(
        Batch({s.slot: values.draw_ordinary(s.dtype, s.count, data_key(choices)) for s in sources})
        for _ in range(2)
    )
    return Program(UOp(Op.SINK, kernel), batches, Source(product(arg, target, sources), batches))


def product(arg: WmmaArg, target: Memory, sources: Sequence[Memory]) -> UOp:
    """The same by tensor ops: exact products and acc, summed in any order."""
    maps = fragments_of(arg)
    m, n, k = arg.m, arg.n, arg.k
    a, b, acc = (
        UOp(Op.INDEX, UOp(Op.CONTIGUOUS, argument(s)), _table(_flat(of)))
        for s, of in zip(sources, (maps.a, maps.b, maps.acc), strict=True)
    )
    left = _spread(_wide(a, arg), (m, 1, k), (m, n, k))
    across = UOp(Op.PERMUTE, UOp(Op.RESHAPE, _wide(b, arg), dims((k, n))), arg=PermuteArg((1, 0)))
    right = _spread(across, (1, n, k), (m, n, k))
    terms = _padded(UOp(Op.MUL, left, right), 0, k + 1)
    terms = UOp(Op.ADD, terms, _padded(UOp(Op.RESHAPE, acc, dims((m, n, 1))), k, k + 1))
    total = UOp(Op.RESHAPE, UOp(Op.REDUCE, terms, arg=ReduceArg(Op.ADD, (2,))), dims((m * n,)))
    places = np.argsort(_flat(maps.acc).reshape(-1))
    return UOp(Op.SINK, UOp(Op.STORE, argument(target), UOp(Op.INDEX, total, _table(places))))


def _places(lane: UOp, count: int) -> UOp:
    """What a lane holds of so many elements."""
    each = count // WARP
    first = UOp(Op.MUL, lane, index_const(each))
    return UOp(Op.STACK, *(UOp(Op.ADD, first, index_const(k)) for k in range(each)))


def _flat(of: LaneMap) -> Array:
    """For each place of a matrix where it stands among the fragments."""
    return np.asarray(of.lane * (int(of.element.max()) + 1) + of.element)


def _table(places: Array) -> UOp:
    raw = np.ascontiguousarray(places.reshape(-1), np.int32).tobytes()
    return UOp(Op.BITCAST, UOp(Op.BINARY, arg=BinaryArg(raw)), arg=DTypeArg(dtypes.int32))


def _wide(t: UOp, arg: WmmaArg) -> UOp:
    """As float32, in which products of two are exact: of a float32 a tf32 is left."""
    if arg.dtype_in is not dtypes.float32:
        return UOp(Op.CAST, t, arg=DTypeArg(dtypes.float32))
    bits = UOp(Op.BITCAST, t, arg=DTypeArg(dtypes.uint32))
    kept = UOp(Op.AND, bits, const(TF32, dtypes.uint32))
    return UOp(Op.BITCAST, kept, arg=DTypeArg(dtypes.float32))


def _spread(t: UOp, shape: Shape, wide: Shape) -> UOp:
    return UOp(Op.EXPAND, UOp(Op.RESHAPE, t, dims(shape)), dims(wide))


def _padded(t: UOp, before: int, size: int) -> UOp:
    """Zeros around the last axis."""
    m, n, _ = t.shape
    return UOp(Op.PAD, t, dims((0, 0, before)), dims((m, n, size)), arg=PadArg(PadFill.ZERO))
