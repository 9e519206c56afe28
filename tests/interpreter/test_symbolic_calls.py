"""Called bodies with variables: FUNCTIONs and kernels of all sizes, with numpy as oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    AddrSpace,
    AxisType,
    BufferArg,
    FlipArg,
    GetTupleArg,
    ParamArg,
    RangeArg,
    ReduceArg,
    SpecialArg,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.text.json_form import dumps, loads
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, dims, index_const, param, variable

Inputs = dict[int, np.ndarray[Any, Any]]


def agreed(root: UOp, inputs: Inputs) -> Any:
    """The value of a program; its accepted sets hold it, and the program reads back from text."""
    assert parse(print_program(root)) is root
    assert loads(dumps(root)) is root
    value = evaluate(root, inputs)
    (held,) = value.values() if isinstance(value, dict) else [value]
    (sets,) = accept(root, inputs)
    np.testing.assert_array_equal(sets.lo, held)
    np.testing.assert_array_equal(sets.hi, held)
    return held


def counted(n: int) -> np.ndarray[Any, Any]:
    return np.arange(10, 10 + n, dtype=np.int32)


def called(body: UOp, *arguments: UOp, k: int = 0) -> UOp:
    return UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, *arguments), arg=GetTupleArg(k))


def turned_and_summed() -> UOp:
    x = param(1, (variable(0, 0, 5),), dtypes.int32)
    flipped = UOp(Op.FLIP, x, arg=FlipArg((True,)))
    return UOp(Op.TUPLE, flipped, UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (0,))))


N = variable(3, 0, 4)
X = param(4, (N,), dtypes.int32)


@pytest.mark.parametrize("n", range(5))
def test_a_function_is_called_with_its_sizes(n: int) -> None:
    inputs = {3: np.array(n), 4: counted(n)}
    for k, wanted in ((0, counted(n)[::-1]), (1, counted(n).sum(keepdims=True))):
        found = agreed(called(turned_and_summed(), N, X, k=k), inputs)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("n", range(5))
def test_one_body_is_called_with_two_sizes(n: int) -> None:
    """With a sum of variables, with a number, and inside another body."""
    more = UOp(Op.ADD, N, index_const(1))
    y = param(5, (more,), dtypes.int32)
    twice = called(turned_and_summed(), more, called(turned_and_summed(), more, y))
    three = called(turned_and_summed(), index_const(3), param(6, (3,), dtypes.int32), k=1)
    inner = variable(0, 1, 5)
    outer = UOp(Op.TUPLE, called(turned_and_summed(), inner, param(1, (inner,), dtypes.int32)))
    total = UOp(Op.ADD, UOp(Op.ADD, twice, three), called(outer, more, y))
    found = agreed(total, {3: np.array(n), 5: counted(n + 1), 6: counted(3)})
    np.testing.assert_array_equal(found, counted(n + 1) + 33 + counted(n + 1)[::-1])


def test_an_argument_outside_the_range_of_a_variable_is_refused() -> None:
    with pytest.raises(InvalidError, match=r"FUNCTION\.c2"):
        called(turned_and_summed(), index_const(6), param(4, (6,), dtypes.int32))
    big = variable(3, 0, 9)
    with pytest.raises(InvalidError, match=r"FUNCTION\.c2"):
        called(turned_and_summed(), big, param(4, (big,), dtypes.int32))
    with pytest.raises(InvalidError, match=r"CALL\.c2"):
        UOp(Op.CALL, negated(variable(2, 0, 4), 8), memory(0, 8), memory(1, 8), big)


def memory(slot: int, size: int | UOp) -> UOp:
    return UOp(Op.BUFFER, dims((size,)), arg=BufferArg(slot, dtypes.int32))


def place(slot: int, size: int | UOp) -> UOp:
    return UOp(Op.PARAM, dims((size,)), arg=ParamArg(slot, dtypes.int32, None, AddrSpace.GLOBAL))


def negated(n: UOp, size: int | UOp, *, is_item: bool = False) -> UOp:
    """a[i] = -b[n - 1 - i] for i below the variable."""
    i = (
        UOp(Op.SPECIAL, n, arg=SpecialArg("gidx0"))
        if is_item
        else UOp(Op.RANGE, n, arg=RangeArg(0, AxisType.LOOP))
    )
    back = UOp(Op.SUB, UOp(Op.SUB, n, i), index_const(1))
    read = UOp(Op.NEG, UOp(Op.LOAD, UOp(Op.INDEX, place(1, size), back)))
    effect = UOp(Op.STORE, UOp(Op.INDEX, place(0, size), i), read)
    return UOp(Op.SINK, effect if is_item else UOp(Op.END, effect, i))


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("is_item", [False, True])
def test_a_kernel_is_called_with_its_sizes(n: int, is_item: bool) -> None:
    """As the size of its memory, and as the bound of a loop over larger memory."""
    m = variable(2, 0, 6)
    body = negated(m, m, is_item=is_item)
    root = UOp(Op.SINK, UOp(Op.CALL, body, memory(0, N), memory(1, N), N))
    found = agreed(root, {3: np.array(n), 0: counted(n), 1: counted(n)})
    np.testing.assert_array_equal(found, -counted(n)[::-1])
    body = negated(m, 8, is_item=is_item)
    root = UOp(Op.SINK, UOp(Op.CALL, body, memory(0, 8), memory(1, 8), N))
    found = agreed(root, {3: np.array(n), 0: counted(8), 1: counted(8)})
    np.testing.assert_array_equal(found, [*-counted(n)[::-1], *counted(8)[n:]])


@pytest.mark.parametrize("n", range(5))
def test_a_list_of_instructions_is_called_with_its_sizes(n: int) -> None:
    m = variable(2, 0, 6)
    body = UOp(Op.LINEAR, *negated(m, 8, is_item=True).toposort()[:-1])
    root = UOp(Op.SINK, UOp(Op.CALL, body, memory(0, 8), memory(1, 8), N))
    found = agreed(root, {3: np.array(n), 0: counted(8), 1: counted(8)})
    np.testing.assert_array_equal(found, [*-counted(n)[::-1], *counted(8)[n:]])


def test_a_kernel_is_called_with_a_number() -> None:
    m = variable(2, 0, 6)
    root = UOp(Op.SINK, UOp(Op.CALL, negated(m, m), memory(0, 3), memory(1, 3), index_const(3)))
    np.testing.assert_array_equal(agreed(root, {1: counted(3)}), -counted(3)[::-1])
