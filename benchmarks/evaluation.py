"""The speed of the reference: kernel programs, small tensors, large integer tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
from figure import Figure, alternated, at_most, seconds
from numpy.typing import NDArray

from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import AddrSpace, AxisType, BufferArg, ParamArg, RangeArg, SpecialArg
from uop.spec.dtype import DType, dtypes
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

Array = NDArray[Any]

ITEMS = 1 << 16
SIDE = 64
SMALL = 64
LARGE = 1 << 20
CHAIN = (Op.ADD, Op.MUL, Op.MAX, Op.ADD, Op.MUL, Op.ADD, Op.MAX, Op.MUL)

BY_HAND: dict[Op, Callable[[Array, Array], Array]] = {
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.MAX: np.maximum,
    Op.AND: np.bitwise_and,
    Op.OR: np.bitwise_or,
    Op.XOR: np.bitwise_xor,
    Op.CMPLT: np.less,
    Op.CMPNE: np.not_equal,
    Op.SHL: np.left_shift,
}
"""The int ops that are one call of numpy."""


def machine() -> Iterator[Figure]:
    """Kernel programs, unchecked."""
    for dtype in (dtypes.int32, dtypes.float32):
        root, inputs = elementwise_kernel(dtype)
        each = seconds(lambda: evaluate_full(root, inputs), 15) / ITEMS / len(CHAIN)  # noqa: B023
        name = f"kernel of {len(CHAIN)} elementwise ops over 2^16 work items, {dtype.name}"
        yield at_most(f"{name}: an element and op", each * 1e9, 15, "ns")
    for dtype in (dtypes.int32, dtypes.float32):
        root, inputs = gemm_kernel(dtype)
        spent = seconds(lambda: evaluate_full(root, inputs), 7)  # noqa: B023
        yield at_most(f"gemm kernel of 64 x 64 x 64, {dtype.name}", spent * 1e3, 40, "ms")


def tensor() -> Iterator[Figure]:
    """Tensor graphs: what a node costs besides its elements, and what an element costs."""
    for dtype in (dtypes.int32, dtypes.float32):
        root, inputs = chain(dtype, SMALL)
        nodes = len(CHAIN) * 4
        free, checked = alternated(
            (lambda: evaluate_full(root, inputs), lambda: evaluate(root, inputs)),  # noqa: B023
            300,
        )
        name = f"a node of {nodes} at {SMALL} elements, {dtype.name}"
        yield at_most(f"{name}, unchecked", free / nodes * 1e6, 12, "us")
        yield at_most(f"{name}, checked", checked / nodes * 1e6, 30, "us")
    yield at_most("a node that a Tensor operator builds", built() * 1e6, 30, "us")
    yield from integers()


def built() -> float:
    """Seconds for each of 10,000 additions of Tensors, which build a graph and evaluate nothing."""
    one, two = (Tensor([float(k), 1.0]) for k in range(2))
    count = 10_000

    def added() -> Tensor:
        total = one
        for _ in range(count):
            total = total + two
        return total

    return seconds(added, 5) / count


def integers() -> Iterator[Figure]:
    """Each int op against the same in numpy, and all of them in one program."""
    for dtype in (dtypes.int32, dtypes.int64, dtypes.uint8):
        ratios = {op: against_numpy(op, dtype) for op in BY_HAND}
        worst = max(ratios, key=lambda op: ratios[op])
        title = f"{len(ratios)} {dtype.name} ops at 2^20 elements against numpy"
        yield at_most(f"{title}, the middle one", median(ratios.values()), 1.3, "x")
        yield at_most(f"{title}, the slowest ({worst.name})", ratios[worst], 1.3, "x")
        over = ", ".join(f"{op.name} {ratio:.2f}" for op, ratio in ratios.items() if ratio > 1.3)
        yield Figure("- over 1.3 x", "", over)
    a, b = (contents(dtypes.int32, LARGE, seed) for seed in (1, 2))
    root, _ = chain(dtypes.int32, LARGE)
    ours, numpys = alternated(
        (lambda: evaluate_full(root, {0: a, 1: b}), lambda: chain_by_hand(a, b)), 11
    )
    yield at_most("a chain of them against the same in numpy", ours / numpys, 1.3, "x")


def against_numpy(op: Op, dtype: DType) -> float:
    """The time of one op next to that of the same in numpy; shift counts fit."""
    a, b = (contents(dtype, LARGE, seed) for seed in (1, 2))
    if op is Op.SHL:
        b &= b.dtype.type(7)
    root = UOp(op, *(param(slot, (LARGE,), dtype) for slot in (0, 1)))
    by_hand = BY_HAND[op]
    ours, numpys = alternated(
        (lambda: evaluate_full(root, {0: a, 1: b}), lambda: by_hand(a, b)), 41
    )
    return ours / numpys


def contents(dtype: DType, count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if dtype is dtypes.float32:
        return rng.standard_normal(count, np.float32)
    return rng.integers(-(2**31), 2**31, count).astype(np_dtype(dtype))


def chain(dtype: DType, count: int) -> tuple[UOp, dict[int, Array]]:
    """Four times the ops of CHAIN on two inputs."""
    a, b = (param(slot, (count,), dtype) for slot in (0, 1))
    u = a
    for op in CHAIN * 4:
        u = UOp(op, u, b)
    return u, {slot: contents(dtype, count, slot) for slot in (0, 1)}


def chain_by_hand(a: Array, b: Array) -> Array:
    for op in CHAIN * 4:
        a = BY_HAND[op](a, b)
    return a


def elementwise_kernel(dtype: DType) -> tuple[UOp, dict[int, Array]]:
    """out[g] of a chain of ops on a[g] and b[g], for work items g."""
    g = UOp(Op.SPECIAL, index_const(ITEMS), arg=SpecialArg("gidx0"))
    out, a, b = (kernel_param(slot, ITEMS, dtype) for slot in range(3))
    left, right = load(a, g), load(b, g)
    for op in CHAIN:
        left = UOp(op, left, right)
    body = UOp(Op.SINK, UOp(Op.STORE, at(out, g), left))
    return program(body, ITEMS, dtype)


def gemm_kernel(dtype: DType) -> tuple[UOp, dict[int, Array]]:
    """A work item per output, a RANGE for k, an accumulator in a register."""
    count, side = SIDE * SIDE, index_const(SIDE)
    g = UOp(Op.SPECIAL, index_const(count), arg=SpecialArg("gidx0"))
    k = UOp(Op.RANGE, side, arg=RangeArg(0, AxisType.REDUCE))
    row = UOp(Op.MUL, UOp(Op.IDIV, g, side), side)
    column = UOp(Op.MOD, g, side)
    out, a, b = (kernel_param(slot, count, dtype) for slot in range(3))
    left = load(a, UOp(Op.ADD, row, k))
    right = load(b, UOp(Op.ADD, UOp(Op.MUL, k, side), column))
    acc = UOp(Op.BUFFER, dims((1,)), arg=BufferArg(0, dtype, None, AddrSpace.REG))
    first = index_const(0)
    start = UOp(Op.STORE, at(acc, first), const(0, dtype))
    inside = UOp(Op.AFTER, acc, start, k)
    grown = UOp(Op.ADD, load(inside, first), UOp(Op.MUL, left, right))
    update = UOp(Op.STORE, at(inside, first), grown)
    total = load(UOp(Op.AFTER, acc, UOp(Op.END, update, k)), first)
    return program(UOp(Op.SINK, UOp(Op.STORE, at(out, g), total)), count, dtype)


def program(body: UOp, count: int, dtype: DType) -> tuple[UOp, dict[int, Array]]:
    """A body on an output in slot 0 and inputs in slots 1 and 2."""
    buffers = [UOp(Op.BUFFER, dims((count,)), arg=BufferArg(slot, dtype)) for slot in range(3)]
    inputs = {slot: contents(dtype, count, slot) for slot in (1, 2)}
    return UOp(Op.SINK, UOp(Op.CALL, body, *buffers)), inputs


def kernel_param(slot: int, count: int, dtype: DType) -> UOp:
    return UOp(Op.PARAM, dims((count,)), arg=ParamArg(slot, dtype, None, AddrSpace.GLOBAL))


def at(memory: UOp, i: UOp) -> UOp:
    return UOp(Op.INDEX, memory, i)


def load(memory: UOp, i: UOp) -> UOp:
    return UOp(Op.LOAD, at(memory, i))
