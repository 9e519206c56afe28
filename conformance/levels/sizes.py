"""Level op, sizes: around one, vectors, workgroups, powers of two, in up to six axes; large ones.

One op of each way to compute stands for the others: what goes wrong at a size does so for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod

from uop.conformance import values
from uop.conformance.choices import Choices, between, data_key, pick, shuffled
from uop.conformance.levels.group import Group, Program, op_group, program
from uop.conformance.levels.memory import buffer
from uop.conformance.levels.movement import flip, part, permute
from uop.conformance.levels.reduce import fold, largest_last, tame
from uop.interpreter.values import Array
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, dims, param

VECTORS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17)
"""Around the widths of vectors."""
WORKGROUPS = (31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513)
"""Around the sizes of workgroups and the powers of two between them."""
SIZES = (*VECTORS, *WORKGROUPS, 0, 1023, 1024, 1025)
MOST_AXES = 6
FEW = 3
"""Sizes of each kind that a usual run takes: the dtypes together see every one."""
LARGE: tuple[Shape, ...] = ((1 << 20,), (1 << 10, 1 << 10), ((1 << 18) + 1, 3), (4, (1 << 17) - 1))


def groups() -> Iterator[Group]:
    for k, dtype in enumerate(values.VALUES):
        for op, build in KINDS.items():
            sizes = partial(_at_size, build, FEW * k, dtype)
            yield op_group(op, dtype, "sizes", (0, FEW, len(SIZES)), sizes)
            ranks = partial(_at_rank, build, dtype)
            yield op_group(op, dtype, "ranks", (0, 1, 3 * MOST_AXES), ranks)
            if op is not Op.REDUCE or not dtype.is_float or dtype.bits >= 32:
                large, usual = partial(_large, build, k, dtype), int(USUAL[op] is dtype)
                yield op_group(op, dtype, "large", (0, usual, len(LARGE)), large)


Build = Callable[[DType, Shape, Choices], Program]


def _at_size(build: Build, first: int, dtype: DType, choices: Choices, index: int) -> Program:
    """A size alone, or as an axis before or behind a short one."""
    size = SIZES[(first + index) % len(SIZES)]
    other = between(choices, 2, 3)
    return build(dtype, pick(choices, ((size,), (size, other), (other, size))), choices)


def _at_rank(build: Build, dtype: DType, choices: Choices, index: int) -> Program:
    """From no axis to six, long, short, of one element and of none."""
    rank = (index + choices.below(MOST_AXES + 1)) % (MOST_AXES + 1)
    lengths = shuffled(choices, [2, 3, 1, 5, 2, 4])[:rank]
    if rank and index % 3 == 2:
        lengths[choices.below(rank)] = 0
    return build(dtype, tuple(lengths), choices)


def _large(build: Build, first: int, dtype: DType, choices: Choices, index: int) -> Program:
    return build(dtype, LARGE[(first + index) % len(LARGE)], choices)


def _computed(dtype: DType, shape: Shape, choices: Choices) -> Program:
    """Element by element, of a value and of one that broadcasts along the first axis."""
    root = UOp(Op.ADD, param(0, shape, dtype), param(1, shape[1:], dtype))
    return program(root, [_mixed(dtype, shape, choices), _mixed(dtype, shape[1:], choices)])


def _folded(dtype: DType, shape: Shape, choices: Choices) -> Program:
    """Along each axis and along all."""
    t = param(0, shape, dtype)
    axes: list[tuple[int, ...]] = [(k,) for k in range(len(shape))] or [()]
    every = tuple(range(len(shape)))
    whole = [fold(Op.MAX, t, every)]
    if prod(shape) <= max(SIZES) * 3 or not dtype.is_float:
        whole.append(fold(Op.ADD, t, every))
    root = UOp(Op.TUPLE, *(fold(pick(choices, (Op.ADD, Op.MAX)), t, a) for a in axes), *whole)
    data = largest_last(tame(Op.ADD, dtype, prod(shape), data_key(choices)))
    return program(root, [data.reshape(shape)])


def _moved(dtype: DType, shape: Shape, choices: Choices) -> Program:
    """In another order, backwards, and from somewhere inside."""
    t = param(0, shape, dtype)
    root = UOp(Op.TUPLE, permute(choices, t), flip(choices, t), part(choices, t))
    return program(root, [values.draw_bits(dtype, prod(shape), data_key(choices)).reshape(shape)])


def _stored(dtype: DType, shape: Shape, choices: Choices) -> Program:
    """Into the middle of a buffer: its edges stay."""
    whole = buffer(1, tuple(s + 2 for s in shape), dtype)
    target = UOp(Op.SHRINK, whole, dims((1,) * len(shape)), dims(shape))
    root = UOp(Op.SINK, UOp(Op.STORE, target, param(0, shape, dtype)))
    return program(root, [_mixed(dtype, shape, choices), _mixed(dtype, whole.shape, choices)])


def _picked(dtype: DType, shape: Shape, choices: Choices) -> Program:
    """Rows by data, as many as there are."""
    if not shape or not shape[0]:
        return _moved(dtype, shape, choices)
    n = shape[0]
    rows = values.draw_bits(dtypes.int32, n, data_key(choices))
    at = UOp(Op.MOD, param(1, (n,), dtypes.int32), const(n, dtypes.int32))
    root = UOp(Op.INDEX, param(0, shape, dtype), at)
    return program(root, [_mixed(dtype, shape, choices), rows])


def _mixed(dtype: DType, shape: Shape, choices: Choices) -> Array:
    return values.draw_mixed(dtype, prod(shape), data_key(choices)).reshape(shape)


KINDS: dict[Op, Build] = {
    Op.ADD: _computed,
    Op.REDUCE: _folded,
    Op.PERMUTE: _moved,
    Op.STORE: _stored,
    Op.INDEX: _picked,
}
USUAL = {
    Op.ADD: dtypes.bfloat16,
    Op.REDUCE: dtypes.int64,
    Op.PERMUTE: dtypes.int32,
    Op.STORE: dtypes.float64,
    Op.INDEX: dtypes.float32,
}
"""The dtype of which each is large in a usual run; a full one has all of them."""
