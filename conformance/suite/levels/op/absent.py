"""Generate level op, absent elements: every op on a PAD with absent elements, and consumers.

Each operand in turn is a PAD. REDUCE must skip what is absent, STORE leave the buffer as it was,
WHERE and LOAD select something else: a fill by any value shows in one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.op.elementwise import operand_dtypes, taking_values
from uop.conformance.suite.levels.op.movement import random_offset, random_pad
from uop.conformance.suite.values import draw_positive, draw_within, sample
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import PadFill
from uop.spec.dtype import VALUES, DType, Kind, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp, param

SHAPE: Shape = (2, 8)
SIZES: Shape = (3, 24)
"""Shapes of the padded value and of the PAD; its rows are whole elements of the widest dtype."""
OTHER, KEPT = 8, 9
"""Slots of the value in place of absent elements, and of the buffer that is stored to."""

Consumer = Callable[[Choices, UOp, UOp], tuple[UOp, dict[int, Array]]]
"""Makes a program of a value and of where it is present, and returns its further inputs too."""
Way = tuple[int, Consumer]
"""The operand that is padded, and what consumes the result."""


def groups() -> Iterator[Group]:
    for declaration in taking_values():
        yield from _of_op(declaration)
    for dtype in VALUES:
        for k, (name, change) in enumerate(changes(dtype).items()):
            consumers = (_folded, _stored) if k % 2 else (_stored, _folded)
            args = (change, consumers, dtype)
            yield group("op", Op.PAD, dtype, f"absent-{name}", (0, 1, 4), _changed, *args)


def _of_op(declaration: OpDef) -> Iterator[Group]:
    """Yield all pairs of an operand and a consumer: over all dtypes first, then for each."""
    ways = [(p, consumer) for p in range(len(declaration.src)) for consumer in CONSUMERS]
    count = len(declaration.dtypes)
    few = -(-len(ways) // count)
    for k, dtype in enumerate(declaration.dtypes):
        first = list(dict.fromkeys(ways[(k + n * count) % len(ways)] for n in range(few)))
        order = (*first, *(way for way in ways if way not in first))
        args = (declaration, dtype, order)
        counts = (0, len(first), len(ways))
        yield group("op", declaration.op, dtype, "absent", counts, padded_operand, *args)


def padded_operand(
    declaration: OpDef, dtype: DType, ways: Sequence[Way], choices: Choices, index: int
) -> Generated:
    """Apply the op to one padded operand; the others have the same shape."""
    position, consumer = ways[index]
    dts = operand_dtypes(declaration, dtype)
    padded = random_pad(choices, param(position, SHAPE, dts[position]), PadFill.INVALID)
    inputs = [param(k, padded.shape, d) for k, d in enumerate(dts)]
    inputs[position] = padded.src[0]
    data = positive(declaration.op, inputs, choices)
    operands = (padded if u is padded.src[0] else u for u in inputs)
    root, more = consumer(choices, UOp(declaration.op, *operands), nodes.inside(padded))
    return program(root, dict(enumerate(data)) | more)


def positive(op: Op, inputs: Sequence[UOp], choices: Choices) -> list[Array]:
    """Return positive data: quotients have values, sums do not cancel, no fill is among it."""
    data = [_data(u, choices) for u in inputs]
    if DECLARATIONS[op].is_shift:
        value, count = (u.dtype for u in inputs)
        data[1] = data[1] % np_dtype(count).type(value.bits)
    return data


def _changed(
    change: Callable[[UOp], UOp],
    consumers: Sequence[Consumer],
    dtype: DType,
    choices: Choices,
    index: int,
) -> Generated:
    """Apply an op that moves or copies absent elements, and a consumer of the result."""
    t = param(0, SHAPE, dtype)
    value = change(nodes.pad(t, random_offset(choices, SHAPE, SIZES), SIZES))
    root, more = consumers[index % 2](choices, value, value)
    rows = sample(draw_within(0, SIZES[0] - 1), dtypes.int32, 4, choices)
    data = [_data(u, choices) for u in (t, param(1, SIZES, dtype))]
    return program(root, dict(enumerate([*data, rows])) | more)


def _data(u: UOp, choices: Choices) -> Array:
    return sample(draw_positive, u.dtype, u.shape, choices)


def _folded(choices: Choices, value: UOp, present: UOp) -> tuple[UOp, dict[int, Array]]:
    """Fold: a sum shows any fill but 0, a product any but 1."""
    axes = range(choices.below(2), len(value.shape))
    # A product of numbers without a width soon has no meaning.
    ops = (Op.ADD,) if value.dtype is dtypes.index else (Op.ADD, Op.MUL)
    return nodes.outputs(*(nodes.fold(op, value, axes) for op in ops)), {}


def _stored(choices: Choices, value: UOp, present: UOp) -> tuple[UOp, dict[int, Array]]:
    root = UOp(Op.SINK, nodes.store(nodes.buffer(KEPT, value.shape, value.dtype), value))
    return root, {KEPT: _data(value, choices)}


def _selected(choices: Choices, value: UOp, present: UOp) -> tuple[UOp, dict[int, Array]]:
    other = param(OTHER, value.shape, value.dtype)
    return UOp(Op.WHERE, present, value, other), {OTHER: _data(value, choices)}


def _loaded(choices: Choices, value: UOp, present: UOp) -> tuple[UOp, dict[int, Array]]:
    """Load: alt where the gate is false; as a gate an absent element counts as false."""
    other = param(OTHER, value.shape, value.dtype)
    data = _data(value, choices)
    if value.dtype is not dtypes.bool:
        return UOp(Op.LOAD, value, other, present), {OTHER: data}
    kept = param(KEPT, value.shape, dtypes.int32)
    root = UOp(Op.LOAD, kept, UOp(Op.XOR, kept, kept), value)
    return root, {KEPT: _data(kept, choices)}


CONSUMERS: tuple[Consumer, ...] = (_folded, _stored, _selected, _loaded)


def changes(dtype: DType) -> dict[str, Callable[[UOp], UOp]]:
    """Return, by name, the ops whose result has absent elements too, for values of this dtype."""
    other = param(1, SIZES, dtype)
    changes: dict[str, Callable[[UOp], UOp]] = {
        "turned": lambda t: nodes.permute(t, (1, 0)),
        "flipped": lambda t: nodes.flip(t, (True, True)),
        "reshaped": lambda t: nodes.reshape(t, (8, 9)),
        "expanded": lambda t: nodes.copies(t, 2),
        "shrunk": lambda t: nodes.shrink(t, (1, 5), (2, 17)),
        "padded": lambda t: nodes.pad(t, (1, 0), (4, 25)),
        "zeros": lambda t: nodes.pad(t, (1, 0), (4, 25), PadFill.ZERO),
        "stacked": lambda t: UOp(Op.STACK, t, other),
        "stacked-last": lambda t: UOp(Op.STACK, other, t),
        "picked": lambda t: UOp(Op.INDEX, t, param(2, (4,), dtypes.int32)),
        "copied": lambda t: UOp(Op.CONTIGUOUS, t),
        "loaded": lambda t: UOp(Op.LOAD, t),
        "unpacked": lambda t: nodes.member(nodes.outputs(other, t), 1),
        "called": lambda t: nodes.call([nodes.flip(param(0, SIZES, dtype), (False, True))], t)[0],
        "folded": lambda t: nodes.fold(Op.MAX, t, (1,)),
        "cast": lambda t: nodes.cast(t, dtypes.int64 if dtype.is_float else dtypes.float32),
    }
    for target in (dtypes.uint8, dtypes.int16, dtypes.uint32, dtypes.uint64):
        if dtype.kind not in (Kind.BOOL, Kind.INDEX) and target is not dtype:
            changes[f"to-{target.name}"] = partial(nodes.bitcast, dtype=target)
    return changes
