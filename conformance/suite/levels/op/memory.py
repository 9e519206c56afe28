"""Level op, memory: LOAD with alt and gate, STORE into views, AFTER, GROUP, SINK, markers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, chance, data_key, pick
from uop.conformance.suite.levels.group import Group, Program, copying_group, program
from uop.conformance.suite.levels.op import movement
from uop.interpreter.numeric.storage import Array
from uop.spec.args import BufferArg, FlipArg, PadFill
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, dims, param

SHAPES: tuple[Shape, ...] = ((3, 4), (7,), (), (2, 3, 2), (0, 3), (1027,))

TARGETS: tuple[movement.View, ...] = (
    movement.shrink,
    movement.permute,
    movement.reshape,
    movement.flip,
)
"""The views through which a STORE reaches its buffer."""


def groups() -> Iterator[Group]:
    for dtype in values.VALUES:
        for op, builders in BUILDERS.items():
            for name, build, counts in builders:
                yield copying_group(op, dtype, name, counts, partial(build, dtype))
        for declaration in DECLARATIONS.values():
            if declaration.section == "marker":
                build = partial(_marker, declaration.op, dtype)
                yield copying_group(declaration.op, dtype, "identity", (1, 1, 3), build)


def buffer(slot: int, shape: Shape, dtype: DType) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtype))


def flip_all(t: UOp) -> UOp:
    return UOp(Op.FLIP, t, arg=FlipArg((True,) * len(t.shape)))


def _data(dtype: DType, shape: Shape, choices: Choices) -> Array:
    draw = pick(choices, (values.draw_mixed, values.draw_bits, values.draw_special))
    return draw(dtype, prod(shape), data_key(choices)).reshape(shape)


def _shape(choices: Choices, index: int) -> Shape:
    return SHAPES[(index + choices.below(2)) % len(SHAPES)]


def _marker(op: Op, dtype: DType, choices: Choices, index: int) -> Program:
    """First on every special value."""
    shape = _shape(choices, index) if index else values.specials(dtype).shape
    data = _data(dtype, shape, choices) if index else values.specials(dtype)
    return program(UOp(op, UOp(op, movement.flip(choices, param(0, shape, dtype)))), [data])


def _load(dtype: DType, choices: Choices, index: int) -> Program:
    """Of every special value, then of a buffer: a copy."""
    data = _data(dtype, _shape(choices, index), choices) if index else values.specials(dtype)
    source = buffer(0, data.shape, dtype) if index % 2 else param(0, data.shape, dtype)
    return program(UOp(Op.LOAD, source), [data])


def _load_gated(dtype: DType, choices: Choices, index: int) -> Program:
    """alt stands where the gate is false, nowhere without one; a gate is an input or computed."""
    shape = _shape(choices, index)
    source = buffer(0, shape, dtype) if index % 2 else param(0, shape, dtype)
    alt = param(1, shape, dtype)
    data = [_data(dtype, shape, choices), _data(dtype, shape, choices)]
    if index % 3 == 2:
        return program(UOp(Op.LOAD, source, alt), data)
    gate = param(2, shape, dtypes.bool)
    data.append(_data(dtypes.bool, shape, choices))
    if chance(choices, 50):
        gate = UOp(Op.CMPNE, gate, flip_all(gate))
    return program(UOp(Op.LOAD, source, alt, gate), data)


def _buffer(dtype: DType, choices: Choices, index: int) -> Program:
    """Contents that were there, read whole, and through two views."""
    shape = _shape(choices, index)
    source = buffer(0, shape, dtype)
    views = list(movement.VIEWS.values())
    view = pick(choices, views)(choices, pick(choices, views)(choices, source))
    root = UOp(Op.TUPLE, UOp(Op.CONTIGUOUS, source), UOp(Op.CONTIGUOUS, view))
    return program(root, [_data(dtype, shape, choices)])


def _store(dtype: DType, choices: Choices, index: int) -> Program:
    """A whole buffer that nothing was in before, or one with a gate that leaves elements alone.

    First every special value.
    """
    shape = _shape(choices, index) if index else values.specials(dtype).shape
    target, value = buffer(1, shape, dtype), param(0, shape, dtype)
    data = {0: _data(dtype, shape, choices) if index else values.specials(dtype)}
    if index % 2:
        gate = param(2, shape, dtypes.bool)
        data |= {1: _data(dtype, shape, choices), 2: _data(dtypes.bool, shape, choices)}
        return program(UOp(Op.SINK, UOp(Op.STORE, target, value, gate)), data)
    return program(UOp(Op.SINK, UOp(Op.STORE, target, value)), data)


def _store_view(dtype: DType, choices: Choices, index: int) -> Program:
    """Through one or two views; what they do not reach stays."""
    shape: Shape = pick(choices, ((3, 4), (7,), (2, 3, 2), (4, 33)))
    target = TARGETS[index % len(TARGETS)](choices, buffer(1, shape, dtype))
    if chance(choices, 60):
        target = pick(choices, TARGETS)(choices, target)
    value = param(0, target.shape, dtype)
    data = {0: _data(dtype, target.shape, choices), 1: _data(dtype, shape, choices)}
    return program(UOp(Op.SINK, UOp(Op.STORE, target, value)), data)


def _store_absent(dtype: DType, choices: Choices, index: int) -> Program:
    """Absent elements of the value leave the buffer as it was."""
    shape: Shape = pick(choices, ((3, 4), (7,), (2, 3, 2)))
    value = movement.pad_with(choices, param(0, shape, dtype), PadFill.INVALID)
    data = {0: _data(dtype, shape, choices), 1: _data(dtype, value.shape, choices)}
    target = buffer(1, value.shape, dtype)
    return program(UOp(Op.SINK, UOp(Op.STORE, target, value)), data)


def _after(dtype: DType, choices: Choices, index: int) -> Program:
    """Write, then write over a part, then read: the order decides."""
    shape: Shape = pick(choices, ((3, 4), (7,), (2, 3, 2)))
    old = buffer(1, shape, dtype)
    first = UOp(Op.AFTER, old, UOp(Op.STORE, old, param(0, shape, dtype)))
    part = movement.shrink(choices, first)
    second = UOp(Op.AFTER, first, UOp(Op.STORE, part, param(2, part.shape, dtype)))
    data = {0: _data(dtype, shape, choices), 1: _data(dtype, shape, choices)}
    data[2] = _data(dtype, part.shape, choices)
    if index % 2:
        copy = buffer(3, shape, dtype)
        flipped = movement.flip(choices, second)
        return program(UOp(Op.SINK, UOp(Op.STORE, copy, flipped)), data)
    return program(UOp(Op.SINK, second), data)


def _read_modify_write(dtype: DType, choices: Choices, index: int) -> Program:
    """A value that reads the buffer it is stored to is complete before the write."""
    shape: Shape = pick(choices, ((7,), (3, 4), (16,)))
    target = buffer(0, shape, dtype)
    flipped = flip_all(target)
    value = UOp(Op.MAX, target, flipped) if index % 2 else flipped
    data = values.draw_ordinary(dtype, prod(shape), data_key(choices)).reshape(shape)
    return program(UOp(Op.SINK, UOp(Op.STORE, target, value)), [data])


def _group(dtype: DType, choices: Choices, index: int) -> Program:
    """Two effects in no order, on two buffers."""
    shape = _shape(choices, index)
    value = param(0, shape, dtype)
    stores = [
        UOp(Op.STORE, buffer(1, shape, dtype), value),
        UOp(Op.STORE, buffer(2, shape, dtype), movement.flip(choices, value)),
    ]
    return program(UOp(Op.SINK, UOp(Op.GROUP, *stores)), [_data(dtype, shape, choices)])


def _sink(dtype: DType, choices: Choices, index: int) -> Program:
    """Several effects, one of which reads what another has written."""
    shape = _shape(choices, index)
    one, two = buffer(1, shape, dtype), buffer(2, shape, dtype)
    first = UOp(Op.STORE, one, param(0, shape, dtype))
    value = movement.flip(choices, UOp(Op.AFTER, one, first))
    root = UOp(Op.SINK, first, UOp(Op.STORE, two, value))
    return program(root, [_data(dtype, shape, choices)])


Counts = tuple[int, int, int]
Build = Callable[[DType, Choices, int], Program]

BUILDERS: dict[Op, tuple[tuple[str, Build, Counts], ...]] = {
    Op.LOAD: (("copy", _load, (1, 1, 6)), ("gated", _load_gated, (1, 3, 6))),
    Op.BUFFER: (("contents", _buffer, (1, 1, 4)),),
    Op.STORE: (
        ("whole", _store, (1, 2, 6)),
        ("view", _store_view, (1, 4, 12)),
        ("absent", _store_absent, (0, 1, 3)),
        ("in-place", _read_modify_write, (0, 2, 4)),
    ),
    Op.AFTER: (("chain", _after, (1, 2, 6)),),
    Op.GROUP: (("two", _group, (1, 1, 3)),),
    Op.SINK: (("several", _sink, (1, 1, 3)),),
}
