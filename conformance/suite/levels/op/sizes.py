"""Generate level op, sizes: vectors, workgroups, powers of two, up to six axes, large data.

One op of each way to compute stands for the others: what goes wrong at a size does so for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import prod

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.group import (
    OF_ALL,
    Generated,
    Group,
    copying,
    group,
    program,
    with_data,
)
from uop.conformance.suite.levels.op import movement
from uop.conformance.suite.levels.op.memory import MARKERS
from uop.conformance.suite.levels.op.reduce import largest_last, tame
from uop.conformance.suite.values import draw_bits, draw_mixed, sample
from uop.spec.args import PadFill
from uop.spec.dtype import DTYPES, VALUES, DType, Kind, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, param

VECTORS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17)
"""Sizes around the widths of vectors."""
WORKGROUPS = (31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513)
"""Sizes around those of workgroups and the powers of two between them."""
SIZES = (*VECTORS, *WORKGROUPS, 0, 1023, 1024, 1025)
MOST_AXES = 6
LENGTHS = (2, 3, 1, 2, 3, 2)
LAUNCHES = "launches"
"""The group of grids that exceed a launch of 2^16 work items; a run sends them alone too."""
GRIDS: tuple[Shape, ...] = (
    ((1 << 16) + 1,),
    (3, (1 << 15) + 1),
    ((1 << 15) + 1, 3),
    (7, 97, 101),
    ((1 << 17) - 1,),
)
FEW = 2
"""The sizes of each op in a default run: the dtypes together cover every one."""
LARGE: tuple[Shape, ...] = ((1 << 20,), (1 << 10, 1 << 10), ((1 << 18) + 1, 3), (4, (1 << 17) - 1))


def groups() -> Iterator[Group]:
    for op, (dtype, few) in LAUNCHED.items():
        counts = (few, few + 2, len(GRIDS))
        yield group("op", op, dtype, LAUNCHES, counts, _shaped, GRIDS, KINDS[op][0], few, dtype)
    for k, dtype in enumerate(VALUES):
        for op, (build, usual) in KINDS.items():
            counts = (0, FEW, len(SIZES))
            yield group("op", op, dtype, "sizes", counts, _at_size, build, FEW * k, dtype)
            if op is not Op.REDUCE or not dtype.is_float or dtype.bits >= 32:
                counts = (0, int(usual is dtype), len(LARGE))
                args = (LARGE, build, k, dtype)
                yield replace(group("op", op, dtype, "large", counts, _shaped, *args), shared=True)
        for op, build in RANKED.items():
            if op is not Op.BITCAST or dtype.kind is not Kind.INDEX:
                counts, ranked = (1, 1, 3 * MOST_AXES), (build, ORDER.index(dtype), dtype)
                yield copying(group("op", op, dtype, "ranks", counts, _at_rank, *ranked))


Build = Callable[[DType, Shape, Choices], Generated]


def _at_size(build: Build, first: int, dtype: DType, choices: Choices, index: int) -> Generated:
    """Use a size alone, or as an axis before or after a short one."""
    size = SIZES[(first + index) % len(SIZES)]
    other = choices.between(2, 3)
    return build(dtype, choices.pick(((size,), (size, other), (other, size))), choices)


def _at_rank(build: Build, first: int, dtype: DType, choices: Choices, index: int) -> Generated:
    """Use a rank from none to six; the dtypes together cover every rank. Some shapes are empty."""
    shape = list(shape_of_rank(choices, first + index))
    if shape and index % 3 == 2:
        shape[choices.below(len(shape))] = 0
    return build(dtype, tuple(shape), choices)


def shape_of_rank(choices: Choices, number: int) -> Shape:
    """Return a shape of few elements with as many axes as the number says, from none to six."""
    return tuple(choices.shuffled(LENGTHS)[: number % (MOST_AXES + 1)])


def _shaped(
    shapes: tuple[Shape, ...], build: Build, first: int, dtype: DType, choices: Choices, index: int
) -> Generated:
    return build(dtype, shapes[(first + index) % len(shapes)], choices)


def _added(dtype: DType, shape: Shape, choices: Choices) -> Generated:
    """Add two values, and one that broadcasts along the first axis."""
    a, b, c = (param(slot, s, dtype) for slot, s in enumerate((shape, shape[1:], shape)))
    return with_data(UOp(Op.ADD, UOp(Op.ADD, a, b), c), choices, draw_mixed)


def _folded(dtype: DType, shape: Shape, choices: Choices) -> Generated:
    t = param(0, shape, dtype)
    axes: list[tuple[int, ...]] = [(k,) for k in range(len(shape))] or [()]
    every = range(len(shape))
    whole = [nodes.fold(Op.MAX, t, every)]
    if prod(shape) <= max(SIZES) * 3 or not dtype.is_float:
        whole.append(nodes.fold(Op.ADD, t, every))
    root = nodes.outputs(*(nodes.fold(choices.pick((Op.ADD, Op.MAX)), t, a) for a in axes), *whole)
    return program(root, [largest_last(tame(Op.ADD, dtype, shape, choices))])


def _moved(dtype: DType, shape: Shape, choices: Choices) -> Generated:
    t = param(0, shape, dtype)
    moved = (movement.VIEWS[op](choices, t) for op in (Op.PERMUTE, Op.FLIP, Op.SLICE))
    return with_data(nodes.outputs(*moved), choices, draw_bits)


def _stored(dtype: DType, shape: Shape, choices: Choices) -> Generated:
    """Store into the middle of a buffer, whose edges stay."""
    whole = nodes.buffer(1, (s + 2 for s in shape), dtype)
    target = nodes.shrink(whole, (1,) * len(shape), shape)
    root = UOp(Op.SINK, nodes.store(target, param(0, shape, dtype)))
    return with_data(root, choices, draw_mixed)


def _picked(dtype: DType, shape: Shape, choices: Choices) -> Generated:
    """Select rows by data, as many as there are."""
    if not shape or not shape[0]:
        return _moved(dtype, shape, choices)
    n = shape[0]
    rows = sample(draw_bits, dtypes.int32, n, choices)
    at = UOp(Op.MOD, param(1, (n,), dtypes.int32), const(n, dtypes.int32))
    root = UOp(Op.INDEX, param(0, shape, dtype), at)
    return program(root, [sample(draw_mixed, dtype, shape, choices), rows])


def _stacked(dtype: DType, shape: Shape, choices: Choices) -> Generated:
    """Stack two values without the last axis of the shape; a scalar becomes two elements."""
    root = UOp(Op.STACK, *(param(k, shape[:-1], dtype) for k in range(2)))
    return with_data(root, choices, draw_mixed)


Input = Callable[[Shape], UOp]
Result = Callable[[Choices, Shape, Input], UOp]
"""Makes a value of a shape, or near it, from an input whose shape it chooses."""


def _of_input(result: Result, dtype: DType, shape: Shape, choices: Choices) -> Generated:
    root = result(choices, shape, partial(param, 0, dtype=dtype))
    return program(root, [sample(draw_mixed, dtype, slots_of(root)[0].shape, choices)])


def _shrunk(choices: Choices, shape: Shape, input: Input) -> UOp:
    offset = [choices.below(2) for _ in shape]
    return nodes.shrink(input(tuple(s + 1 for s in shape)), offset, shape)


def _padded(choices: Choices, shape: Shape, input: Input) -> UOp:
    inner = tuple(max(s - 1, 0) for s in shape)
    return nodes.pad(
        input(inner), movement.random_offset(choices, inner, shape), shape, PadFill.ZERO
    )


def _cast(choices: Choices, shape: Shape, input: Input) -> UOp:
    value = input(shape)
    target = dtypes.int32 if value.dtype is dtypes.float32 else dtypes.float32
    return nodes.cast(value, dtypes.int64 if value.dtype.kind is Kind.INDEX else target)


def _bitcast(choices: Choices, shape: Shape, input: Input) -> UOp:
    """Bitcast to an integer and back."""
    value = input(shape)
    bits = next(d for d in UINTS if d.itemsize == value.dtype.itemsize)
    return nodes.bitcast(nodes.bitcast(value, bits), value.dtype)


def _same(op: Op, choices: Choices, shape: Shape, input: Input) -> UOp:
    return UOp(op, input(shape))


KINDS: dict[Op, tuple[Build, DType]] = {
    Op.ADD: (_added, dtypes.bfloat16),
    Op.REDUCE: (_folded, dtypes.int64),
    Op.PERMUTE: (_moved, dtypes.int32),
    Op.STORE: (_stored, dtypes.float64),
    Op.INDEX: (_picked, dtypes.float32),
}
"""Each with the dtype that is large in a default run; a full run has large data of all dtypes."""
LAUNCHED = {Op.ADD: (dtypes.int32, 1), Op.PERMUTE: (dtypes.uint8, 0)}
"""Each with its dtype, and how many of these cases a smoke run has."""
UINTS = tuple(DTYPES[f"uint{bits}"] for bits in (8, 16, 32, 64))
RESULTS: dict[Op, Result] = {
    Op.RESHAPE: lambda choices, shape, input: nodes.reshape(
        input(tuple(choices.shuffled(shape))), shape
    ),
    # About every second axis has size 1.
    Op.EXPAND: lambda choices, shape, input: nodes.expand(
        input(tuple(1 if choices.chance(50) else s for s in shape)), shape
    ),
    Op.SHRINK: _shrunk,
    Op.PAD: _padded,
    Op.FLIP: lambda choices, shape, input: movement.random_flip(choices, input(shape)),
    Op.PERMUTE: lambda choices, shape, input: movement.random_permute(choices, input(shape)),
    Op.REDUCE: lambda choices, shape, input: nodes.fold(
        Op.MAX, input(shape), (choices.below(len(shape)),) if shape else ()
    ),
    Op.REPLICATED: lambda choices, shape, input: nodes.replicated(
        nodes.expand(input((1, *shape[1:])), (3, *shape[1:]))
    ),
    Op.CAST: _cast,
    Op.BITCAST: _bitcast,
    Op.GETTUPLE: lambda choices, shape, input: nodes.call([input(shape)], input(shape))[0],
    Op.AFTER: lambda choices, shape, input: nodes.after(
        nodes.buffer(1, shape, input(()).dtype), input(shape)
    ),
    **{op: partial(_same, op) for op in (Op.LOAD, *MARKERS)},
}
RANKED: dict[Op, Build] = {
    **{op: partial(_of_input, result) for op, result in RESULTS.items()},
    Op.STACK: _stacked,
    Op.STORE: _stored,
    Op.INDEX: _picked,
}
"""How an op that moves data gives a result with any number of axes."""
ORDER = sorted(VALUES, key=lambda dtype: dtype.name not in OF_ALL)
"""Those dtypes first that a smoke run takes: together they cover every rank."""
