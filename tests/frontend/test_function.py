"""The decorator `function` captures a call in one FUNCTION node, in five steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from uop import Op, Tensor, UOp, dtypes, evaluate, function, param
from uop.spec.args import GetTupleArg, ParamArg
from uop.spec.errors import InvalidError
from uop.spec.graph import leaves
from uop.spec.uop import dims


@function
def f(a: Tensor, b: Tensor) -> Tensor:
    return a + b


def call_of(t: Tensor) -> UOp:
    """The FUNCTION behind a result."""
    assert t.uop.op is Op.GETTUPLE
    (call,) = t.uop.src
    assert call.op is Op.FUNCTION
    return call


def test_the_graph_of_the_documents() -> None:
    """Inputs extracted, PARAMs for them, a TUPLE around the body, a GETTUPLE on top."""
    x, y = Tensor([1, 2]), Tensor([10, 20])
    p0, p1 = param(0, (2,), dtypes.int32), param(1, (2,), dtypes.int32)
    body = UOp(Op.TUPLE, UOp(Op.ADD, p0, p1))
    call = UOp(Op.FUNCTION, body, x.uop, y.uop)
    found = f(x, y)
    assert found.uop is UOp(Op.GETTUPLE, call, arg=GetTupleArg(0))
    assert found.tolist() == [11, 22]


def test_one_body_for_all_calls() -> None:
    assert (
        call_of(f(Tensor([1]), Tensor([2]))).src[0] is call_of(f(Tensor([5]), Tensor([6]))).src[0]
    )


def test_inputs_are_extracted_once() -> None:
    x, y = Tensor([1, 2]), Tensor([10, 20])
    call = call_of(f(x, x))
    assert call.src[1:] == (x.uop,)
    assert {u.arg for u in leaves(call.src[0])} == {ParamArg(0, dtypes.int32)}
    nested = function(lambda pair, *, more: pair[0] * pair[1][0] + more["x"])
    found = nested((x, [y]), more={"x": x})
    assert call_of(found).src[1:] == (x.uop, y.uop)
    assert found.tolist() == [11, 42]


def test_an_input_that_the_body_does_not_use_is_one() -> None:
    """It keeps its number, and the inputs behind it have theirs."""
    x, y, z = Tensor([1, 2]), Tensor([10, 20]), Tensor([5, 7])
    call = call_of(function(lambda a, b, c: a - c)(x, y, z))
    assert call.src[1:] == (x.uop, y.uop, z.uop)
    assert {u.arg for u in leaves(call.src[0])} == {ParamArg(k, dtypes.int32) for k in (0, 2)}


def test_a_placeholder_is_like_its_input() -> None:
    arg = ParamArg(9, dtypes.float16, "A")
    x, rows = UOp(Op.PARAM, dims((3,)), arg=arg), UOp(Op.PARAM, dims((2, 3)), arg=arg)
    call = call_of(function(lambda a, b: a * 2 + b)(Tensor(x), Tensor(rows)))
    found = {u for u in leaves(call.src[0]) if u.op is Op.PARAM}
    like = {(u.arg.slot, u.dtype, u.shape, u.device) for u in found}  # type: ignore[union-attr]
    assert like == {(0, dtypes.float16, (3,), "A"), (1, dtypes.float16, (2, 3), "A")}


def test_what_the_body_computes_anew_is_no_input() -> None:
    x = Tensor([1, 2])
    y = x + 1
    body = call_of(function(lambda a, b: (a + 1) * b)(x, y)).src[0]
    other = [Tensor([7, 8]).uop, Tensor([9, 10]).uop]
    assert list(evaluate_again(body, other)) == [72, 90]
    one = Tensor(1)
    body = call_of(function(lambda a, b: (a + 1) * b)(one, x)).src[0]
    assert list(evaluate_again(body, [Tensor(5).uop, x.uop])) == [6, 12]


def evaluate_again(body: UOp, arguments: list[UOp]) -> Any:
    return Tensor(UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, *arguments), arg=GetTupleArg(0))).tolist()


def test_results_keep_their_structure() -> None:
    class Pair(NamedTuple):
        total: Tensor
        rest: list[Tensor]

    @function
    def several(a: Tensor) -> tuple[Tensor, dict[str, Tensor], Pair, int]:
        return a, {"twice": a * 2}, Pair(a.sum(), [a + 1, a + 1]), 7

    plain, named, pair, seven = several(Tensor([1, 2]))
    assert (plain.tolist(), named["twice"].tolist(), seven) == ([1, 2], [2, 4], 7)
    assert (pair.total.item(), [t.tolist() for t in pair.rest]) == (3, [[2, 3], [2, 3]])
    assert len({call_of(t) for t in (plain, named["twice"], pair.total, *pair.rest)}) == 1
    assert isinstance(pair, Pair)


def test_tensors_from_elsewhere_become_inputs() -> None:
    x, weight = Tensor([1, 2]), Tensor([3, 4])
    found = function(lambda a: a * weight + weight)(x)
    call = call_of(found)
    assert call.src[1:] == (x.uop, weight.uop)
    assert {u.op for u in leaves(call.src[0])} == {Op.PARAM}
    assert found.tolist() == [6, 12]


def test_functions_nest() -> None:
    @function
    def outer(a: Tensor, b: Tensor) -> Tensor:
        return f(b, a * a) * f(a, a)

    found = outer(Tensor([2, 3]), Tensor([5, 7]))
    assert found.tolist() == [(5 + 4) * 4, (7 + 9) * 6]

    @function
    def closes_over(a: Tensor) -> Tensor:
        inner: Callable[[Tensor], Tensor] = lambda b: a - b  # noqa: E731
        return function(inner)(a * 3)

    assert closes_over(Tensor([2, 3])).tolist() == [-4, -6]


def test_a_function_is_given_its_arguments_slot_by_slot() -> None:
    a, b = param(4, (2,), dtypes.int32), param(9, (2,), dtypes.int32)
    found = f(Tensor(b), Tensor(a) * 2).uop
    inputs = {4: np.array([1, 2], np.int32), 9: np.array([5, 6], np.int32)}
    np.testing.assert_array_equal(evaluate(found, inputs), [7, 10])


def test_it_runs_once_per_call_and_nothing_is_evaluated() -> None:
    calls: list[Tensor] = []

    @function
    def noted(a: Tensor) -> Tensor:
        """What it says."""
        calls.append(a)
        return a + 1

    noted(Tensor([1]))
    assert [t.uop.op for t in calls] == [Op.PARAM]
    assert noted.__doc__ == "What it says."


def test_a_function_returns_tensors() -> None:
    with pytest.raises(InvalidError, match=r"FUNCTION\.result") as caught:
        function(lambda a: 7)(Tensor([1]))
    assert caught.value.where.startswith(f"{__file__}:")


def test_an_error_inside_names_its_line() -> None:
    with pytest.raises(InvalidError, match=r"ADD\.c3") as caught:
        f(Tensor([1, 2]), Tensor([1, 2, 3]))
    path, _, line = caught.value.where.rpartition(":")
    with open(path) as file:
        assert file.read().splitlines()[int(line) - 1].strip() == "return a + b"
