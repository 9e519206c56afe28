"""Level op, sizes: around one, vectors, workgroups, powers of two, in up to six axes; large ones.

One op of each way to compute stands for the others: what goes wrong at a size does so for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, between, chance, data_key, pick, shuffled
from uop.conformance.suite.levels.group import (
    OF_ALL,
    Group,
    Program,
    copying_group,
    op_group,
    program,
)
from uop.conformance.suite.levels.op.memory import buffer
from uop.conformance.suite.levels.op.movement import flip, part, permute
from uop.conformance.suite.levels.op.reduce import fold, largest_last, tame
from uop.interpreter.numeric.storage import Array
from uop.spec.args import DTypeArg, GetTupleArg, PadArg, PadFill, ReplicatedArg
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, const, dims, param

VECTORS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17)
"""Around the widths of vectors."""
WORKGROUPS = (31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513)
"""Around the sizes of workgroups and the powers of two between them."""
SIZES = (*VECTORS, *WORKGROUPS, 0, 1023, 1024, 1025)
MOST_AXES = 6
LENGTHS = (2, 3, 1, 2, 3, 2)
FEW = 3
"""Sizes of each kind that a usual run takes: the dtypes together see every one."""
LARGE: tuple[Shape, ...] = ((1 << 20,), (1 << 10, 1 << 10), ((1 << 18) + 1, 3), (4, (1 << 17) - 1))


def groups() -> Iterator[Group]:
    for k, dtype in enumerate(values.VALUES):
        for op, build in KINDS.items():
            sizes = partial(_at_size, build, FEW * k, dtype)
            yield op_group(op, dtype, "sizes", (0, FEW, len(SIZES)), sizes)
            if op is not Op.REDUCE or not dtype.is_float or dtype.bits >= 32:
                large, usual = partial(_large, build, k, dtype), int(USUAL[op] is dtype)
                group = op_group(op, dtype, "large", (0, usual, len(LARGE)), large)
                yield replace(group, shared=True)
        for op, build in RANKED.items():
            if op not in OF_BITS or dtype.kind is not Kind.INDEX:
                ranks = partial(_at_rank, build, ORDER.index(dtype), dtype)
                yield copying_group(op, dtype, "ranks", (1, 2, 3 * MOST_AXES), ranks)


Build = Callable[[DType, Shape, Choices], Program]


def _at_size(build: Build, first: int, dtype: DType, choices: Choices, index: int) -> Program:
    """A size alone, or as an axis before or behind a short one."""
    size = SIZES[(first + index) % len(SIZES)]
    other = between(choices, 2, 3)
    return build(dtype, pick(choices, ((size,), (size, other), (other, size))), choices)


def _at_rank(build: Build, first: int, dtype: DType, choices: Choices, index: int) -> Program:
    """From no axis to six, which the first programs of the dtypes see all; of no element too."""
    shape = list(shape_of_rank(choices, first + index))
    if shape and index % 3 == 2:
        shape[choices.below(len(shape))] = 0
    return build(dtype, tuple(shape), choices)


def shape_of_rank(choices: Choices, number: int) -> Shape:
    """A shape of few elements with as many axes as the number says, from none to six in turn."""
    return tuple(shuffled(choices, LENGTHS)[: number % (MOST_AXES + 1)])


def _large(build: Build, first: int, dtype: DType, choices: Choices, index: int) -> Program:
    return build(dtype, LARGE[(first + index) % len(LARGE)], choices)


def _computed(dtype: DType, shape: Shape, choices: Choices) -> Program:
    """Element by element, of two values and of one that broadcasts along the first axis."""
    given = [param(slot, s, dtype) for slot, s in enumerate((shape, shape[1:], shape))]
    root = UOp(Op.ADD, UOp(Op.ADD, *given[:2]), given[2])
    return program(root, [_mixed(dtype, u.shape, choices) for u in given])


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


def _folded_once(choices: Choices, shape: Shape, given: Input) -> UOp:
    """Along one axis."""
    axes = (choices.below(len(shape)),) if shape else ()
    return fold(Op.MAX, given(shape), axes)


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


def _made(make: Make, dtype: DType, shape: Shape, choices: Choices) -> Program:
    """A value of a shape out of one input."""
    root = make(choices, shape, partial(param, 0, dtype=dtype))
    shape_of_input = slots_of(root)[0].shape
    return program(root, {0: _mixed(dtype, shape_of_input, choices)})


Input = Callable[[Shape], UOp]
Make = Callable[[Choices, Shape, Input], UOp]
"""Makes a value of a shape, or near it, from an input whose shape it chooses."""


def _reshaped(choices: Choices, shape: Shape, given: Input) -> UOp:
    return UOp(Op.RESHAPE, given(tuple(shuffled(choices, shape))), dims(shape))


def _expanded(choices: Choices, shape: Shape, given: Input) -> UOp:
    """Every second axis or so was of size 1."""
    return UOp(Op.EXPAND, given(tuple(1 if chance(choices, 50) else s for s in shape)), dims(shape))


def _shrunk(choices: Choices, shape: Shape, given: Input) -> UOp:
    offset = tuple(choices.below(2) for _ in shape)
    return UOp(Op.SHRINK, given(tuple(s + 1 for s in shape)), dims(offset), dims(shape))


def _padded(choices: Choices, shape: Shape, given: Input) -> UOp:
    inner = tuple(max(s - 1, 0) for s in shape)
    offset = tuple(choices.below(s - t + 1) for s, t in zip(shape, inner, strict=True))
    return UOp(Op.PAD, given(inner), dims(offset), dims(shape), arg=PadArg(PadFill.ZERO))


def _replicated(choices: Choices, shape: Shape, given: Input) -> UOp:
    copies = UOp(Op.EXPAND, given((1, *shape[1:])), dims((3, *shape[1:])))
    return UOp(Op.REPLICATED, copies, arg=ReplicatedArg((0,)))


def _turned(choices: Choices, shape: Shape, given: Input) -> UOp:
    return flip(choices, given(shape))


def _permuted(choices: Choices, shape: Shape, given: Input) -> UOp:
    return permute(choices, given(shape))


def _as_it_is(op: Op, choices: Choices, shape: Shape, given: Input) -> UOp:
    return UOp(op, given(shape))


def _cast(choices: Choices, shape: Shape, given: Input) -> UOp:
    value = given(shape)
    target = dtypes.int32 if value.dtype is dtypes.float32 else dtypes.float32
    if value.dtype.kind is Kind.INDEX:
        target = dtypes.int64
    return UOp(Op.CAST, value, arg=DTypeArg(target))


def _bitcast(choices: Choices, shape: Shape, given: Input) -> UOp:
    """To bits as an integer, and back."""
    value = given(shape)
    same = next(d for d in UINTS if d.itemsize == value.dtype.itemsize)
    return UOp(Op.BITCAST, UOp(Op.BITCAST, value, arg=DTypeArg(same)), arg=DTypeArg(value.dtype))


def _called(choices: Choices, shape: Shape, given: Input) -> UOp:
    value = given(shape)
    body = UOp(Op.TUPLE, param(0, shape, value.dtype))
    return UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, value), arg=GetTupleArg(0))


def _after(choices: Choices, shape: Shape, given: Input) -> UOp:
    value = given(shape)
    target = buffer(1, shape, value.dtype)
    return UOp(Op.AFTER, target, UOp(Op.STORE, target, value))


def _stacked(dtype: DType, shape: Shape, choices: Choices) -> Program:
    """The last axis is the new one but for its length; a scalar becomes two elements."""
    members = [param(k, shape[:-1], dtype) for k in range(2)]
    return program(UOp(Op.STACK, *members), [_mixed(dtype, shape[:-1], choices) for _ in members])


KINDS: dict[Op, Build] = {
    Op.ADD: _computed,
    Op.REDUCE: _folded,
    Op.PERMUTE: _moved,
    Op.STORE: _stored,
    Op.INDEX: _picked,
}
MARKERS = tuple(op for op, d in DECLARATIONS.items() if d.section == "marker")
UINTS = tuple(DTYPES[f"uint{bits}"] for bits in (8, 16, 32, 64))
MAKES: dict[Op, Make] = {
    Op.RESHAPE: _reshaped,
    Op.EXPAND: _expanded,
    Op.SHRINK: _shrunk,
    Op.PAD: _padded,
    Op.FLIP: _turned,
    Op.PERMUTE: _permuted,
    Op.REDUCE: _folded_once,
    Op.REPLICATED: _replicated,
    Op.CAST: _cast,
    Op.BITCAST: _bitcast,
    Op.GETTUPLE: _called,
    Op.AFTER: _after,
    Op.LOAD: partial(_as_it_is, Op.LOAD),
    **{op: partial(_as_it_is, op) for op in MARKERS},
}
RANKED: dict[Op, Build] = {
    **{op: partial(_made, make) for op, make in MAKES.items()},
    Op.STACK: _stacked,
    Op.STORE: _stored,
    Op.INDEX: _picked,
}
"""How an op that moves data gives a result with any number of axes."""
ORDER = sorted(values.VALUES, key=lambda dtype: dtype.name not in OF_ALL)
"""Those dtypes first that a smoke run takes: together they see every rank."""
OF_BITS = frozenset({Op.BITCAST})
USUAL = {
    Op.ADD: dtypes.bfloat16,
    Op.REDUCE: dtypes.int64,
    Op.PERMUTE: dtypes.int32,
    Op.STORE: dtypes.float64,
    Op.INDEX: dtypes.float32,
}
"""The dtype of which each is large in a usual run; a full one has all of them."""
