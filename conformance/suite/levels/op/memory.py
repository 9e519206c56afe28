"""Generate level op: memory (LOAD, STORE, STAGE, AFTER, GROUP, SINK), calls, and sources."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count, product

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, words
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.group import Generated, Group, copying, group, program, with_data
from uop.conformance.suite.levels.kernel.scalar import Memory
from uop.conformance.suite.levels.op import movement
from uop.conformance.suite.values import draw_bits, draw_mixed, draw_ordinary, draw_special, sample
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AxisType, BinaryArg, PadFill, PtrAddArg, RangeArg, Unit
from uop.spec.dtype import DTYPES, VALUES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, index_const, param

SHAPES: tuple[Shape, ...] = ((3, 4), (7,), (), (2, 3, 2), (0, 3), (1027,))
FEW_SHAPES: tuple[Shape, ...] = ((3, 4), (7,), (2, 3, 2))
TARGETS = (
    movement.random_shrink,
    movement.random_permute,
    movement.random_reshape,
    movement.random_flip,
)
"""The views through which a STORE reaches its buffer."""
STAGED = tuple(DTYPES[name] for name in ("int32", "float32", "uint8"))
MARKERS = tuple(op for op, d in DECLARATIONS.items() if d.section == "marker")


def groups() -> Iterator[Group]:
    for dtype in VALUES:
        for op, name, counts, build in KINDS:
            yield copying(group("op", op, dtype, name, counts, build, dtype))
        for op in MARKERS:
            yield copying(group("op", op, dtype, "identity", (1, 1, 3), _marker, op, dtype))
        if dtype is not dtypes.index:
            yield group("op", Op.BITCAST, dtype, "memory", (1, 1, 6), _bits, dtype)
    for dtype in STAGED:
        yield group("op", Op.STAGE, dtype, "ids", (1, 2, 20), _staged, dtype)
        yield group("op", Op.AFTER, dtype, "slices", (1, 2, 12), _slices, dtype)
    for dtype in VALUES:
        for op, name, counts, build in SOURCES:
            if op is not Op.BINARY or dtype not in (dtypes.bool, dtypes.index):
                yield copying(group("op", op, dtype, name, counts, build, dtype))


def _data(dtype: DType, shape: Shape, choices: Choices) -> Array:
    return sample(choices.pick((draw_mixed, draw_bits, draw_special)), dtype, shape, choices)


def _shape(choices: Choices, index: int) -> Shape:
    return SHAPES[(index + choices.below(2)) % len(SHAPES)]


def _edges_first(dtype: DType, choices: Choices, index: int) -> Array:
    """Return every special value in the first program, then random data of any shape."""
    return _data(dtype, _shape(choices, index), choices) if index else values.specials(dtype)


def _marker(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    data = _edges_first(dtype, choices, index)
    return program(
        UOp(op, UOp(op, movement.random_flip(choices, param(0, data.shape, dtype)))), [data]
    )


def _bits(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read memory as integers of its size or as bytes, moved; or write a part of it so."""
    data = _edges_first(dtype, choices, index).reshape(-1)
    to = DTYPES["uint8" if index % 4 > 1 else f"uint{8 * dtype.itemsize}"]
    location = nodes.bitcast(nodes.buffer(0, data.shape, dtype), to)
    # A byte other than 0 and 1 is no bool.
    if index % 2 == 0 or dtype is dtypes.bool:
        return program(UOp(Op.LOAD, nodes.flip_all(location)), [data])
    part = movement.random_shrink(choices, location)
    value = _data(to, part.shape, choices)
    return program(UOp(Op.SINK, nodes.store(part, param(1, part.shape, to))), [data, value])


def _load(dtype: DType, choices: Choices, index: int) -> Generated:
    data = _edges_first(dtype, choices, index)
    source = nodes.buffer(0, data.shape, dtype) if index % 2 else param(0, data.shape, dtype)
    return program(UOp(Op.LOAD, source), [data])


def _load_gated(dtype: DType, choices: Choices, index: int) -> Generated:
    """Load with alt: with a gate that is an input or computed, or without a gate."""
    shape = _shape(choices, index)
    source = nodes.buffer(0, shape, dtype) if index % 2 else param(0, shape, dtype)
    alt = param(1, shape, dtype)
    data = [_data(dtype, shape, choices), _data(dtype, shape, choices)]
    if index % 3 == 2:
        return program(UOp(Op.LOAD, source, alt), data)
    gate = param(2, shape, dtypes.bool)
    data.append(_data(dtypes.bool, shape, choices))
    if choices.chance(50):
        gate = UOp(Op.CMPNE, gate, nodes.flip_all(gate))
    return program(UOp(Op.LOAD, source, alt, gate), data)


def _buffer(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read old contents whole, and through two views."""
    shape = _shape(choices, index)
    source = nodes.buffer(0, shape, dtype)
    views = list(movement.VIEWS.values())
    view = choices.pick(views)(choices, choices.pick(views)(choices, source))
    root = nodes.outputs(UOp(Op.CONTIGUOUS, source), UOp(Op.CONTIGUOUS, view))
    return program(root, [_data(dtype, shape, choices)])


def _store(dtype: DType, choices: Choices, index: int) -> Generated:
    """Store a whole new buffer, or one whose gate leaves elements alone."""
    value = _edges_first(dtype, choices, index)
    data, gate = {0: value}, []
    if index % 2:
        gate = [param(2, value.shape, dtypes.bool)]
        data |= {k: _data(d, value.shape, choices) for k, d in ((1, dtype), (2, dtypes.bool))}
    stored = nodes.store(nodes.buffer(1, value.shape, dtype), param(0, value.shape, dtype), *gate)
    return program(UOp(Op.SINK, stored), data)


def _store_view(dtype: DType, choices: Choices, index: int) -> Generated:
    """Store through one or two views; what they do not reach stays."""
    shape: Shape = choices.pick((*FEW_SHAPES, (4, 33)))
    target = TARGETS[index % len(TARGETS)](choices, nodes.buffer(1, shape, dtype))
    if choices.chance(60):
        target = choices.pick(TARGETS)(choices, target)
    root = UOp(Op.SINK, nodes.store(target, param(0, target.shape, dtype)))
    return program(root, [_data(dtype, s, choices) for s in (target.shape, shape)])


def _store_absent(dtype: DType, choices: Choices, index: int) -> Generated:
    """Store a value whose absent elements leave the buffer as it was."""
    shape = choices.pick(FEW_SHAPES)
    value = movement.random_pad(choices, param(0, shape, dtype), PadFill.INVALID)
    root = UOp(Op.SINK, nodes.store(nodes.buffer(1, value.shape, dtype), value))
    return program(root, [_data(dtype, s, choices) for s in (shape, value.shape)])


def _after(dtype: DType, choices: Choices, index: int) -> Generated:
    """Write, then write over a part, then read: the order decides."""
    shape = choices.pick(FEW_SHAPES)
    first = nodes.after(nodes.buffer(1, shape, dtype), param(0, shape, dtype))
    part = movement.random_shrink(choices, first)
    second = UOp(Op.AFTER, first, nodes.store(part, param(2, part.shape, dtype)))
    data = [_data(dtype, s, choices) for s in (shape, shape, part.shape)]
    if index % 2:
        second = nodes.store(nodes.buffer(3, shape, dtype), movement.random_flip(choices, second))
    return program(UOp(Op.SINK, second), data)


def _slices(dtype: DType, choices: Choices, index: int) -> Generated:
    """Store into two slices of a buffer, one after the other; the slices overlap."""
    effects, slots = [], count()
    for columns in range(1, 5):
        n = choices.between(5, 9)
        target = nodes.buffer(next(slots), (n, columns), dtype)
        for start in choices.shuffled(range(3))[:2]:
            size = choices.between(3, n - start)
            part = nodes.shrink(target, (start, 0), (size, columns))
            effect = nodes.store(part, param(next(slots), part.shape, dtype))
            target = UOp(Op.AFTER, target, effect)
        effects.append(effect)
    return with_data(UOp(Op.SINK, *effects), choices, draw_mixed)


def _read_modify_write(dtype: DType, choices: Choices, index: int) -> Generated:
    """Store a value that reads the same buffer: it is complete before the write."""
    shape: Shape = choices.pick(((7,), (3, 4), (16,)))
    target = nodes.buffer(0, shape, dtype)
    flipped = nodes.flip_all(target)
    value = UOp(Op.MAX, target, flipped) if index % 2 else flipped
    return with_data(UOp(Op.SINK, nodes.store(target, value)), choices, draw_ordinary)


def _effects(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    """Run two effects: of a GROUP in no order; of a SINK the second reads what the first wrote."""
    shape = _shape(choices, index)
    value, (one, two) = param(0, shape, dtype), (nodes.buffer(k, shape, dtype) for k in (1, 2))
    first = nodes.store(one, value)
    read = value if op is Op.GROUP else UOp(Op.AFTER, one, first)
    root = UOp(op, first, nodes.store(two, movement.random_flip(choices, read)))
    return program(root if op is Op.SINK else UOp(Op.SINK, root), [_data(dtype, shape, choices)])


def _staged(dtype: DType, choices: Choices, index: int) -> Generated:
    """Store what is read along loops, half of equal lengths: ids have another order than axes."""
    sizes = [3, 3, 3] if index % 2 == 0 else [choices.between(2, 4) for _ in range(3)]
    kinds = (AxisType.LOOP, AxisType.GLOBAL)
    ids = choices.shuffled(range(5))
    loops = [
        UOp(Op.RANGE, index_const(n), arg=RangeArg(id, choices.pick(kinds)))
        for id, n in zip(ids, sizes, strict=False)
    ]
    order = choices.shuffled(range(3))
    t = param(0, tuple(sizes[k] for k in order), dtype)
    element = UOp(Op.INDEX, t, *(loops[k] for k in order))
    return with_data(UOp(Op.STAGE, element, *loops), choices, draw_ordinary, draw_bits)


def _pointers(dtype: DType, choices: Choices, index: int) -> Generated:
    """Add up two offsets in elements and in bytes, in each order."""
    memory, found = Memory(0, choices.between(9, 13), dtype), []
    for units in product(Unit, repeat=2):
        location = memory.param
        for unit in units:
            step = choices.between(1, 4) * (dtype.itemsize if unit is Unit.BYTES else 1)
            location = UOp(Op.PTRADD, location, index_const(step), arg=PtrAddArg(unit))
        found.append(UOp(Op.NOOP, location))
    return with_data(nodes.outputs(*found), choices, draw_bits)


KINDS = (
    (Op.LOAD, "copy", (1, 1, 6), _load),
    (Op.LOAD, "gated", (1, 2, 6), _load_gated),
    (Op.BUFFER, "contents", (1, 1, 4), _buffer),
    (Op.STORE, "whole", (1, 1, 6), _store),
    (Op.STORE, "view", (1, 2, 12), _store_view),
    (Op.STORE, "absent", (0, 1, 3), _store_absent),
    (Op.STORE, "in-place", (1, 1, 4), _read_modify_write),
    (Op.AFTER, "chain", (1, 1, 6), _after),
    (Op.GROUP, "two", (1, 1, 3), partial(_effects, Op.GROUP)),
    (Op.SINK, "several", (1, 1, 3), partial(_effects, Op.SINK)),
    (Op.PTRADD, "offsets", (1, 1, 3), _pointers),
)


# Calls and sources.


def _two_inputs(dtype: DType, shape: Shape) -> tuple[UOp, UOp]:
    return param(0, shape, dtype), param(1, shape, dtype)


def _body(choices: Choices, dtype: DType, shape: Shape) -> list[UOp]:
    """Return values over two PARAMs: one is used twice, one is only moved."""
    a, b = _two_inputs(dtype, shape)
    larger = UOp(Op.MAX, a, movement.random_flip(choices, b))
    picked = UOp(Op.WHERE, UOp(Op.CMPLT, a, b), movement.random_flip(choices, b), larger)
    return [larger, picked, movement.random_reshape(choices, b)]


def _function(dtype: DType, choices: Choices, index: int) -> Generated:
    """Call one function twice with its arguments in both orders; every result is used."""
    shape: Shape = choices.pick(((4, 4), (3, 5), (9,)))
    body = _body(choices, dtype, shape)
    x, y = _two_inputs(dtype, shape)
    root = nodes.outputs(*nodes.call(body, x, y), *nodes.call(body, y, x))
    return with_data(root, choices, draw_ordinary)


def _nested(dtype: DType, choices: Choices, index: int) -> Generated:
    """Call a function that calls another: their PARAMs of one slot are different inputs."""
    shape: Shape = choices.pick(((4, 4), (9,)))
    inner = _body(choices, dtype, shape)
    a, b = _two_inputs(dtype, shape)
    outer = (UOp(Op.MAX, nodes.call(inner, b, a)[0], b), a)
    root = nodes.outputs(*nodes.call(outer, movement.random_flip(choices, a), b))
    return with_data(root, choices, draw_ordinary)


def _tuple(dtype: DType, choices: Choices, index: int) -> Generated:
    """Return several outputs: one that is an input, one without elements, one twice."""
    shape: Shape = choices.pick(((3, 4), (5,), (2, 65)))
    a = param(0, shape, dtype)
    empty = nodes.shrink(a, (0,) * len(shape), (0, *shape[1:]))
    moved = movement.random_permute(choices, a)
    root = nodes.outputs(a, movement.random_flip(choices, a), moved, empty, moved)
    return with_data(root, choices, draw_bits)


def _gettuple(dtype: DType, choices: Choices, index: int) -> Generated:
    """Select a member of a TUPLE that no function returns."""
    shape: Shape = choices.pick(((3, 4), (5,)))
    a, b = _two_inputs(dtype, shape)
    packed = nodes.outputs(movement.random_flip(choices, b), a)
    root = UOp(Op.STACK, nodes.member(packed, 1), nodes.member(packed, 0))
    return with_data(root, choices, draw_ordinary)


def _param(dtype: DType, choices: Choices, index: int) -> Generated:
    """Return an input as output, with slots that are not dense, for every special value."""
    data = values.specials(dtype)
    n = len(data)
    root = nodes.outputs(param(3, (n,), dtype), param(1, (1, n), dtype))
    return program(root, {3: data, 1: sample(draw_bits, dtype, (1, n), choices)})


def _const(dtype: DType, choices: Choices, index: int) -> Generated:
    """Return every special value as a constant, bit by bit."""
    return program(UOp(Op.STACK, *(nodes.constant(v, dtype) for v in values.specials(dtype))))


def _binary(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read bytes in the graph as the dtype, and an input."""
    n = choices.between(1, 40)
    raw = words(choices.data_key(), n).tobytes()[: n * dtype.itemsize]
    data = nodes.bitcast(UOp(Op.BINARY, arg=BinaryArg(raw)), dtype)
    inputs = param(0, (n,), dtypes.bool), param(1, (n,), dtype)
    root = nodes.outputs(UOp(Op.WHERE, inputs[0], data, inputs[1]), data)
    gate = sample(draw_ordinary, dtypes.bool, n, choices)
    return program(root, [gate, sample(draw_bits, dtype, n, choices)])


SOURCES = (
    (Op.FUNCTION, "call", (1, 1, 6), _function),
    (Op.FUNCTION, "nested", (0, 1, 3), _nested),
    (Op.TUPLE, "pack", (1, 1, 3), _tuple),
    (Op.GETTUPLE, "unpack", (1, 1, 3), _gettuple),
    (Op.PARAM, "identity", (1, 1, 4), _param),
    (Op.CONST, "specials", (1, 1, 1), _const),
    (Op.BINARY, "bytes", (1, 1, 3), _binary),
)
