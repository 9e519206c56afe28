"""Level op, absent elements: every op on what a PAD leaves empty, and what takes the result.

The PAD stands before each operand in turn. REDUCE must skip what is absent, STORE leave the buffer
as it was, WHERE and LOAD choose something else: a fill by any value shows in one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, data_key
from uop.conformance.suite.levels.group import Group, Program, op_group, program
from uop.conformance.suite.levels.op.elementwise import SHIFTS, operand_dtypes
from uop.conformance.suite.levels.op.memory import buffer
from uop.conformance.suite.levels.op.movement import inside, pad_with
from uop.conformance.suite.levels.op.reduce import fold
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import DTypeArg, FlipArg, GetTupleArg, PadArg, PadFill, PermuteArg
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp, dims, param

SHAPE: Shape = (2, 8)
SIZES: Shape = (3, 24)
"""Of what is padded, and of what becomes of it: its rows are whole elements of the widest dtype."""
OTHER, KEPT = 8, 9
"""Slots of what stands where an element is absent, and of the buffer that is stored to."""

Inputs = dict[int, Array]
Take = Callable[[Choices, UOp, UOp], tuple[UOp, Inputs]]
"""Of a value and where it is there makes a program, and the further inputs of it."""
Way = tuple[int, Take]
"""The operand that is padded, and what takes the result."""
Change = Callable[[UOp], UOp]


def groups() -> Iterator[Group]:
    for declaration in DECLARATIONS.values():
        if declaration.takes_values:
            yield from _of_op(declaration)
    for dtype in values.VALUES:
        for k, (name, change) in enumerate(changes(dtype).items()):
            takes = (_reduced, _stored) if k % 2 else (_stored, _reduced)
            build = partial(_changed, change, takes, dtype)
            yield op_group(Op.PAD, dtype, f"absent-{name}", (0, 1, 4), build)


def _of_op(declaration: OpDef) -> Iterator[Group]:
    """All pairs of an operand and a consumer: over the dtypes first, over each of them in full."""
    ways = [(p, take) for p in range(len(declaration.src)) for take in CONSUMERS]
    count = len(declaration.dtypes)
    few = -(-len(ways) // count)
    for k, dtype in enumerate(declaration.dtypes):
        first = list(dict.fromkeys(ways[(k + n * count) % len(ways)] for n in range(few)))
        order = (*first, *(way for way in ways if way not in first))
        build = partial(padded_operand, declaration, dtype, order)
        yield op_group(declaration.op, dtype, "absent", (0, len(first), len(ways)), build)


def padded_operand(
    declaration: OpDef, dtype: DType, ways: Sequence[Way], choices: Choices, index: int
) -> Program:
    """The op with one operand padded, the others of the same shape."""
    position, take = ways[index]
    dts = operand_dtypes(declaration, dtype)
    padded = pad_with(choices, param(position, SHAPE, dts[position]), PadFill.INVALID)
    operands = [param(k, padded.shape, d) for k, d in enumerate(dts)]
    operands[position] = padded
    shapes = [SHAPE if k == position else padded.shape for k in range(len(dts))]
    data = {k: _data(d, shapes[k], choices) for k, d in enumerate(dts)}
    if declaration.op in SHIFTS:
        data[1] = data[1] % np_dtype(dts[1]).type(dts[0].bits)
    root, more = take(choices, UOp(declaration.op, *operands), inside(padded.src[0], padded))
    return program(root, data | more)


def _changed(
    change: Change, takes: Sequence[Take], dtype: DType, choices: Choices, index: int
) -> Program:
    """What moves or copies absent elements too."""
    before = [choices.below(s - t + 1) for s, t in zip(SIZES, SHAPE, strict=True)]
    padded = UOp(Op.PAD, param(0, SHAPE, dtype), dims(before), dims(SIZES))
    value = change(padded)
    root, more = takes[index % 2](choices, value, value)
    rows = values.draw_within(dtypes.int32, 4, data_key(choices), 0, SIZES[0] - 1)
    data = {0: _data(dtype, SHAPE, choices), 1: _data(dtype, SIZES, choices), 2: rows} | more
    used = slots_of(root)
    return program(root, {slot: a for slot, a in data.items() if slot in used})


def _data(dtype: DType, shape: Shape, choices: Choices) -> Array:
    """Positive, so that no quotient lacks a value, no sum cancels, and zero is not among it."""
    return values.draw_positive(dtype, prod(shape), data_key(choices)).reshape(shape)


def _reduced(choices: Choices, value: UOp, there: UOp) -> tuple[UOp, Inputs]:
    """Folds: a sum shows any fill but 0, a product any but 1."""
    axes = tuple(range(len(value.shape)))[choices.below(2) :]
    # A product of numbers without a width soon has no meaning.
    ops = (Op.ADD,) if value.dtype is dtypes.index else (Op.ADD, Op.MUL)
    return UOp(Op.TUPLE, *(fold(op, value, axes) for op in ops)), {}


def _stored(choices: Choices, value: UOp, there: UOp) -> tuple[UOp, Inputs]:
    target = buffer(KEPT, value.shape, value.dtype)
    root = UOp(Op.SINK, UOp(Op.STORE, target, value))
    return root, {KEPT: _data(value.dtype, value.shape, choices)}


def _chosen(choices: Choices, value: UOp, there: UOp) -> tuple[UOp, Inputs]:
    other = param(OTHER, value.shape, value.dtype)
    root = UOp(Op.WHERE, there, value, other)
    return root, {OTHER: _data(value.dtype, value.shape, choices)}


def _loaded(choices: Choices, value: UOp, there: UOp) -> tuple[UOp, Inputs]:
    """alt stands where the gate is false; as a gate an absent element counts as false."""
    other = param(OTHER, value.shape, value.dtype)
    more = {OTHER: _data(value.dtype, value.shape, choices)}
    if value.dtype is not dtypes.bool:
        return UOp(Op.LOAD, value, other, there), more
    kept = param(KEPT, value.shape, dtypes.int32)
    more = {KEPT: _data(dtypes.int32, value.shape, choices)}
    zero = UOp(Op.XOR, kept, kept)
    return UOp(Op.LOAD, kept, zero, value), more


CONSUMERS: tuple[Take, ...] = (_reduced, _stored, _chosen, _loaded)


def changes(dtype: DType) -> dict[str, Change]:
    """What carries absent elements on, by name, for a value of this dtype."""
    other = param(1, SIZES, dtype)
    plain: dict[str, Change] = {
        "turned": lambda t: UOp(Op.PERMUTE, t, arg=PermuteArg((1, 0))),
        "flipped": lambda t: UOp(Op.FLIP, t, arg=FlipArg((True, True))),
        "reshaped": lambda t: UOp(Op.RESHAPE, t, dims((8, 9))),
        "expanded": _expanded,
        "shrunk": lambda t: UOp(Op.SHRINK, t, dims((1, 5)), dims((2, 17))),
        "padded": lambda t: UOp(Op.PAD, t, dims((1, 0)), dims((4, 25))),
        "zeros": lambda t: UOp(Op.PAD, t, dims((1, 0)), dims((4, 25)), arg=PadArg(PadFill.ZERO)),
        "stacked": lambda t: UOp(Op.STACK, t, other),
        "stacked-last": lambda t: UOp(Op.STACK, other, t),
        "picked": lambda t: UOp(Op.INDEX, t, param(2, (4,), dtypes.int32)),
        "copied": lambda t: UOp(Op.CONTIGUOUS, t),
        "loaded": lambda t: UOp(Op.LOAD, t),
        "unpacked": lambda t: UOp(Op.GETTUPLE, UOp(Op.TUPLE, other, t), arg=GetTupleArg(1)),
        "called": _called,
        "folded": lambda t: fold(Op.MAX, t, (1,)),
        "cast": lambda t: _cast(t, dtypes.int64 if dtype.is_float else dtypes.float32),
    }
    return plain | {
        f"to-{target.name}": partial(_bitcast, target)
        for target in (dtypes.uint8, dtypes.int16, dtypes.uint32, dtypes.uint64)
        if dtype.kind not in (Kind.BOOL, Kind.INDEX) and target is not dtype
    }


def _expanded(t: UOp) -> UOp:
    return UOp(Op.EXPAND, UOp(Op.RESHAPE, t, dims((1, *SIZES))), dims((2, *SIZES)))


def _called(t: UOp) -> UOp:
    body = UOp(Op.TUPLE, UOp(Op.FLIP, param(0, t.shape, t.dtype), arg=FlipArg((False, True))))
    return UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, t), arg=GetTupleArg(0))


def _cast(t: UOp, target: DType) -> UOp:
    return UOp(Op.CAST, t, arg=DTypeArg(target))


def _bitcast(target: DType, t: UOp) -> UOp:
    return UOp(Op.BITCAST, t, arg=DTypeArg(target))
