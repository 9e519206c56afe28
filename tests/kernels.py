"""Kernel bodies for tests: short names for their nodes, and a few whole ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uop.conformance.suite.levels.kernel.scalar import Listing
from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.fragments import fragments_of
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import (
    AddrSpace,
    AxisType,
    BufferArg,
    DTypeArg,
    ParamArg,
    RangeArg,
    SpecialArg,
    WmmaArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.codegen import WARP, fragment_shapes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

I32 = dtypes.int32
REVERSE = """
extern "C" __global__ void reverse(int* b0, int* b1, long long n) {
  __shared__ int s[3];
  s[threadIdx.x] = b1[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  b0[blockIdx.x * blockDim.x + threadIdx.x] = s[2 - threadIdx.x] + n;
}
"""
"""CUDA: each group of three reverses its part, and adds n."""


def argument(slot: int, count: int, dtype: DType = I32) -> UOp:
    return UOp(Op.BUFFER, dims((count,)), arg=BufferArg(slot, dtype))


def kernel_param(slot: int, count: int, dtype: DType = I32) -> UOp:
    return UOp(Op.PARAM, dims((count,)), arg=ParamArg(slot, dtype, None, AddrSpace.GLOBAL))


def memory(space: AddrSpace, count: int, dtype: DType = I32, slot: int = 0) -> UOp:
    return UOp(Op.BUFFER, dims((count,)), arg=BufferArg(slot, dtype, None, space))


def loop(number: int, count: int | UOp, kind: AxisType = AxisType.LOOP) -> UOp:
    bound = index_const(count) if isinstance(count, int) else count
    return UOp(Op.RANGE, bound, arg=RangeArg(number, kind))


def special(count: int, name: str = "gidx0") -> UOp:
    return UOp(Op.SPECIAL, index_const(count), arg=SpecialArg(name))


def number(value: int | UOp) -> UOp:
    return index_const(value) if isinstance(value, int) else value


def at(place: UOp, i: UOp | int) -> UOp:
    return UOp(Op.INDEX, place, number(i))


def load(place: UOp, i: UOp | int) -> UOp:
    return UOp(Op.LOAD, at(place, i))


def store(place: UOp, i: UOp | int, value: UOp, *gate: UOp) -> UOp:
    return UOp(Op.STORE, at(place, i), value, *gate)


def add(a: UOp, b: UOp | int) -> UOp:
    return UOp(Op.ADD, a, number(b))


def times(a: UOp, n: int) -> UOp:
    return UOp(Op.MUL, a, index_const(n))


def below(a: UOp, b: UOp | int) -> UOp:
    return UOp(Op.CMPLT, a, number(b))


def int32(i: UOp | int) -> UOp:
    if isinstance(i, int):
        return const(i, I32)
    return UOp(Op.CAST, i, arg=DTypeArg(I32))


def vector(values: Sequence[UOp]) -> UOp:
    return UOp(Op.STACK, *values)


def after(place: UOp, *deps: UOp) -> UOp:
    return UOp(Op.AFTER, place, *deps)


def program(body: UOp, *buffers: int | UOp) -> UOp:
    """One CALL; a number stands for an int32 buffer of that size in the next slot."""
    arguments = [argument(k, b) if isinstance(b, int) else b for k, b in enumerate(buffers)]
    return UOp(Op.SINK, UOp(Op.CALL, body, *arguments))


def run(root: UOp, *inputs: Array, first: int = 1) -> Array:
    """What stands in slot 0; the inputs are those of the slots from the first one on."""
    result = evaluate(root, dict(enumerate(inputs, first)))
    assert isinstance(result, dict)
    return result[0]


def fragment(slot: int, count: int, lane: UOp, elements: int, dtype: DType) -> UOp:
    """What a lane holds of a matrix whose fragments stand one after the other."""
    first = times(lane, elements)
    places = vector([add(first, e) for e in range(elements)])
    return load(kernel_param(slot, count, dtype), places)


def warp_product(arg: WmmaArg, lane: UOp, gate: UOp | None = None) -> UOp:
    """One instruction of one warp, on fragments in memory: slots 1, 2 and 3 into 0."""
    shapes = fragment_shapes(arg)
    assert shapes is not None
    counts = [elements * WARP for (elements,) in shapes]
    kinds = (arg.dtype_in, arg.dtype_in, arg.dtype_out)
    operands = [
        fragment(slot, count, lane, count // WARP, dtype)
        for slot, count, dtype in zip((1, 2, 3), counts, kinds, strict=True)
    ]
    value = UOp(Op.WMMA, *operands, arg=arg)
    first = times(lane, counts[2] // WARP)
    places = vector([add(first, e) for e in range(counts[2] // WARP)])
    target = at(kernel_param(0, counts[2], arg.dtype_out), places)
    listing = Listing()
    if gate is None:
        listing.do(UOp(Op.STORE, target, value))
    else:
        with listing.where(gate):
            listing.do(UOp(Op.STORE, target, value))
    buffers = zip((counts[2], *counts), (arg.dtype_out, *kinds), strict=True)
    return program(listing.body, *(argument(k, n, d) for k, (n, d) in enumerate(buffers)))


def sums(dtype: DType, terms: Array, copies: int = 1) -> tuple[UOp, dict[int, Array]]:
    """Each work item adds its term to element 0; so many instructions share the terms."""
    count = len(terms) // copies
    item, listing = special(count), Listing()
    out, given = kernel_param(0, 2, dtype), kernel_param(1, len(terms), dtype)
    for k in range(copies):
        place = UOp(Op.ADD, item, index_const(k * count))
        listing.do(UOp(Op.ATOMICADD, at(out, 0), load(given, place)))
    root = program(listing.body, argument(0, 2, dtype), argument(1, len(terms), dtype))
    return root, {0: np.asarray([3, 5], np_dtype(dtype)), 1: terms}


def matrices(arg: WmmaArg, a: Array, b: Array, acc: Array) -> dict[int, Array]:
    maps = fragments_of(arg)
    kinds = (arg.dtype_in, arg.dtype_in, arg.dtype_out)
    full = zip((1, 2, 3), (maps.a, maps.b, maps.acc), (a, b, acc), kinds, strict=True)
    return {k: m.scatter(x.astype(np_dtype(d))).reshape(-1) for k, m, x, d in full}
