"""Level op, calls and sources: FUNCTION, TUPLE, GETTUPLE, PARAM, CONST, BINARY."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, between, data_key, pick, words
from uop.conformance.suite.levels.group import Group, Program, copying_group, program
from uop.conformance.suite.levels.op.elementwise import constant
from uop.conformance.suite.levels.op.movement import flip, permute, reshape
from uop.interpreter.numeric.storage import Array
from uop.spec.args import BinaryArg, DTypeArg, GetTupleArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, dims, param


def groups() -> Iterator[Group]:
    for dtype in values.VALUES:
        yield copying_group(Op.FUNCTION, dtype, "call", (1, 2, 6), partial(_function, dtype))
        yield copying_group(Op.FUNCTION, dtype, "nested", (0, 1, 3), partial(_nested, dtype))
        yield copying_group(Op.TUPLE, dtype, "pack", (1, 1, 3), partial(_tuple, dtype))
        yield copying_group(Op.GETTUPLE, dtype, "unpack", (1, 1, 3), partial(_gettuple, dtype))
        yield copying_group(Op.PARAM, dtype, "identity", (1, 1, 4), partial(_param, dtype))
        yield copying_group(Op.CONST, dtype, "specials", (1, 1, 1), partial(_const, dtype))
        if dtype not in (dtypes.bool, dtypes.index):
            yield copying_group(Op.BINARY, dtype, "bytes", (1, 1, 3), partial(_binary, dtype))


def _body(choices: Choices, dtype: DType, shape: Shape) -> list[UOp]:
    """Values over two PARAMs; one is used twice, one is only moved."""
    a, b = param(0, shape, dtype), param(1, shape, dtype)
    larger = UOp(Op.MAX, a, flip(choices, b))
    picked = UOp(Op.WHERE, UOp(Op.CMPLT, a, b), flip(choices, b), larger)
    return [larger, picked, reshape(choices, b)]


def _two(dtype: DType, shape: Shape, choices: Choices) -> list[Array]:
    draw = values.draw_ordinary
    return [draw(dtype, prod(shape), data_key(choices)).reshape(shape) for _ in range(2)]


def _function(dtype: DType, choices: Choices, index: int) -> Program:
    """One function called twice with its arguments in both orders; every returned value is used."""
    shape: Shape = pick(choices, ((4, 4), (3, 5), (9,)))
    body = UOp(Op.TUPLE, *_body(choices, dtype, shape))
    x, y = param(0, shape, dtype), param(1, shape, dtype)
    calls = [UOp(Op.FUNCTION, body, x, y), UOp(Op.FUNCTION, body, y, x)]
    outputs = [
        UOp(Op.GETTUPLE, call, arg=GetTupleArg(k)) for call in calls for k in range(len(body.src))
    ]
    return program(UOp(Op.TUPLE, *outputs), _two(dtype, shape, choices))


def _nested(dtype: DType, choices: Choices, index: int) -> Program:
    """A function that calls another: their PARAMs of one slot are different inputs."""
    shape: Shape = pick(choices, ((4, 4), (9,)))
    inner = UOp(Op.TUPLE, *_body(choices, dtype, shape))
    a, b = param(0, shape, dtype), param(1, shape, dtype)
    call = UOp(Op.FUNCTION, inner, b, a)
    outer = UOp(Op.TUPLE, UOp(Op.MAX, UOp(Op.GETTUPLE, call, arg=GetTupleArg(0)), b), a)
    root = UOp(Op.FUNCTION, outer, flip(choices, a), b)
    returned = [UOp(Op.GETTUPLE, root, arg=GetTupleArg(k)) for k in range(2)]
    return program(UOp(Op.TUPLE, *returned), _two(dtype, shape, choices))


def _tuple(dtype: DType, choices: Choices, index: int) -> Program:
    """Several outputs: one that is an input, one of no elements, one twice."""
    shape: Shape = pick(choices, ((3, 4), (5,), (2, 65)))
    a = param(0, shape, dtype)
    empty = UOp(Op.SHRINK, a, dims((0,) * len(shape)), dims((0, *shape[1:])))
    moved = permute(choices, a)
    root = UOp(Op.TUPLE, a, flip(choices, a), moved, empty, moved)
    data = values.draw_bits(dtype, prod(shape), data_key(choices)).reshape(shape)
    return program(root, [data])


def _gettuple(dtype: DType, choices: Choices, index: int) -> Program:
    """Of a TUPLE that is no function's."""
    shape: Shape = pick(choices, ((3, 4), (5,)))
    a, b = param(0, shape, dtype), param(1, shape, dtype)
    packed = UOp(Op.TUPLE, flip(choices, b), a)
    both = [UOp(Op.GETTUPLE, packed, arg=GetTupleArg(k)) for k in (1, 0)]
    return program(UOp(Op.STACK, *both), _two(dtype, shape, choices))


def _param(dtype: DType, choices: Choices, index: int) -> Program:
    """An input that is the output, slots that are not dense, every special value."""
    data = values.specials(dtype)
    n = len(data)
    root = UOp(Op.TUPLE, param(3, (n,), dtype), param(1, (1, n), dtype))
    other = values.draw_bits(dtype, n, data_key(choices)).reshape(1, n)
    return program(root, {3: data, 1: other})


def _const(dtype: DType, choices: Choices, index: int) -> Program:
    """Every special value as a constant, bit by bit."""
    return program(UOp(Op.STACK, *(constant(v, dtype) for v in values.specials(dtype))))


def _binary(dtype: DType, choices: Choices, index: int) -> Program:
    """Bytes in the graph, read as the dtype, beside an input."""
    n = between(choices, 1, 40)
    raw = words(data_key(choices), n).tobytes()[: n * dtype.itemsize]
    data = UOp(Op.BITCAST, UOp(Op.BINARY, arg=BinaryArg(raw)), arg=DTypeArg(dtype))
    chosen = UOp(Op.WHERE, param(0, (n,), dtypes.bool), data, param(1, (n,), dtype))
    gate = values.draw_ordinary(dtypes.bool, n, data_key(choices))
    return program(
        UOp(Op.TUPLE, chosen, data), [gate, values.draw_bits(dtype, n, data_key(choices))]
    )
