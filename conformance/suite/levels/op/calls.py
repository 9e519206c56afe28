"""Generate level op, calls and sources: FUNCTION, TUPLE, GETTUPLE, PARAM, CONST, BINARY."""

from __future__ import annotations

from collections.abc import Iterator

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, words
from uop.conformance.suite.levels.group import Generated, Group, copying, group, program, with_data
from uop.conformance.suite.levels.nodes import bitcast, call, constant, member, outputs, shrink
from uop.conformance.suite.levels.op.movement import random_flip, random_permute, random_reshape
from uop.conformance.suite.values import draw_bits, draw_ordinary, sample
from uop.spec.args import BinaryArg
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, param


def groups() -> Iterator[Group]:
    for dtype in VALUES:
        for op, name, counts, build in KINDS:
            if op is not Op.BINARY or dtype not in (dtypes.bool, dtypes.index):
                yield copying(group("op", op, dtype, name, counts, build, dtype))


def _two_inputs(dtype: DType, shape: Shape) -> tuple[UOp, UOp]:
    return param(0, shape, dtype), param(1, shape, dtype)


def _body(choices: Choices, dtype: DType, shape: Shape) -> list[UOp]:
    """Return values over two PARAMs: one is used twice, one is only moved."""
    a, b = _two_inputs(dtype, shape)
    larger = UOp(Op.MAX, a, random_flip(choices, b))
    picked = UOp(Op.WHERE, UOp(Op.CMPLT, a, b), random_flip(choices, b), larger)
    return [larger, picked, random_reshape(choices, b)]


def _function(dtype: DType, choices: Choices, index: int) -> Generated:
    """Call one function twice with its arguments in both orders; every result is used."""
    shape: Shape = choices.pick(((4, 4), (3, 5), (9,)))
    body = _body(choices, dtype, shape)
    x, y = _two_inputs(dtype, shape)
    root = outputs(*call(body, x, y), *call(body, y, x))
    return with_data(root, choices, draw_ordinary)


def _nested(dtype: DType, choices: Choices, index: int) -> Generated:
    """Call a function that calls another: their PARAMs of one slot are different inputs."""
    shape: Shape = choices.pick(((4, 4), (9,)))
    inner = _body(choices, dtype, shape)
    a, b = _two_inputs(dtype, shape)
    outer = (UOp(Op.MAX, call(inner, b, a)[0], b), a)
    root = outputs(*call(outer, random_flip(choices, a), b))
    return with_data(root, choices, draw_ordinary)


def _tuple(dtype: DType, choices: Choices, index: int) -> Generated:
    """Return several outputs: one that is an input, one without elements, one twice."""
    shape: Shape = choices.pick(((3, 4), (5,), (2, 65)))
    a = param(0, shape, dtype)
    empty = shrink(a, (0,) * len(shape), (0, *shape[1:]))
    moved = random_permute(choices, a)
    root = outputs(a, random_flip(choices, a), moved, empty, moved)
    return with_data(root, choices, draw_bits)


def _gettuple(dtype: DType, choices: Choices, index: int) -> Generated:
    """Select a member of a TUPLE that no function returns."""
    shape: Shape = choices.pick(((3, 4), (5,)))
    a, b = _two_inputs(dtype, shape)
    packed = outputs(random_flip(choices, b), a)
    root = UOp(Op.STACK, member(packed, 1), member(packed, 0))
    return with_data(root, choices, draw_ordinary)


def _param(dtype: DType, choices: Choices, index: int) -> Generated:
    """Return an input as output, with slots that are not dense, for every special value."""
    data = values.specials(dtype)
    n = len(data)
    root = outputs(param(3, (n,), dtype), param(1, (1, n), dtype))
    return program(root, {3: data, 1: sample(draw_bits, dtype, (1, n), choices)})


def _const(dtype: DType, choices: Choices, index: int) -> Generated:
    """Return every special value as a constant, bit by bit."""
    return program(UOp(Op.STACK, *(constant(v, dtype) for v in values.specials(dtype))))


def _binary(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read bytes in the graph as the dtype, and an input."""
    n = choices.between(1, 40)
    raw = words(choices.data_key(), n).tobytes()[: n * dtype.itemsize]
    data = bitcast(UOp(Op.BINARY, arg=BinaryArg(raw)), dtype)
    inputs = param(0, (n,), dtypes.bool), param(1, (n,), dtype)
    root = outputs(UOp(Op.WHERE, inputs[0], data, inputs[1]), data)
    gate = sample(draw_ordinary, dtypes.bool, n, choices)
    return program(root, [gate, sample(draw_bits, dtype, n, choices)])


KINDS = (
    (Op.FUNCTION, "call", (1, 1, 6), _function),
    (Op.FUNCTION, "nested", (0, 1, 3), _nested),
    (Op.TUPLE, "pack", (1, 1, 3), _tuple),
    (Op.GETTUPLE, "unpack", (1, 1, 3), _gettuple),
    (Op.PARAM, "identity", (1, 1, 4), _param),
    (Op.CONST, "specials", (1, 1, 1), _const),
    (Op.BINARY, "bytes", (1, 1, 3), _binary),
)
