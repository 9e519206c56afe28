"""Symbolic sizes: a graph over variables is, once they are bound, the graph of the numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from symbolic_programs import PROGRAMS, M, N, gemm, number, plus, shape, values, windows

from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    DTypeArg,
    FlipArg,
    GetTupleArg,
    ParamArg,
    PermuteArg,
    RangeArg,
    ReduceArg,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError, LackingError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.properties.shape import fixed
from uop.spec.properties.symbolic import bind, trials, variables
from uop.spec.text.json_form import dumps, loads
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, dims, index_const, param, variable

BINDINGS = list(product(range(1, 6), range(4)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bound_graph_is_the_graph_of_the_numbers(name: str) -> None:
    build = PROGRAMS[name]
    symbolic = build(N, M)
    for n, m in BINDINGS:
        bound, numbers = bind(symbolic, {N: n, M: m}), build(n, m)
        assert bound is numbers, (n, m, bound, numbers)


@pytest.mark.parametrize("name", PROGRAMS)
def test_properties_hold_for_all_bindings(name: str) -> None:
    symbolic = PROGRAMS[name](N, M)
    for n, m in BINDINGS:
        for u in symbolic.toposort():
            bound = bind(u, {N: n, M: m})
            assert (bound.dtype, bound.device, bound.addrspace) == (u.dtype, u.device, u.addrspace)
            sizes = (bind(d, {N: n, M: m}) if isinstance(d, UOp) else d for d in u.shape)
            assert bound.shape == tuple(d if isinstance(d, int) else d.arg.value for d in sizes)  # type: ignore[union-attr]
            if u.min_max is None or bound.min_max is None:
                assert u.min_max is bound.min_max
                continue
            assert u.min_max.min <= bound.min_max.min <= bound.min_max.max <= u.min_max.max
            assert u.min_max.may_be_nan or not bound.min_max.may_be_nan


@pytest.mark.parametrize("name", PROGRAMS)
def test_symbolic_programs_read_back(name: str) -> None:
    u = PROGRAMS[name](N, M)
    assert parse(print_program(u)) is u
    assert loads(dumps(u)) is u


def test_the_text_names_variables() -> None:
    lines = print_program(PROGRAMS["pad"](N, M)).splitlines()
    assert lines[0] == "%0 = PARAM [] {slot=0, dtype=index, min=1, max=5} : index[]"
    assert lines[-1].endswith(": int32[expr,4]")
    assert print_program(values(2, N, 4)).splitlines()[-1].endswith(": int32[v0,4]")


def test_a_program_is_evaluated_under_a_binding() -> None:
    for n in range(1, 6):
        x = np.arange(1, n + 1, dtype=np.int32)
        found = evaluate(bind(windows(N, M), {N: n}), {2: x})
        np.testing.assert_array_equal(found, np.cumsum(x).reshape(n, 1))
        np.testing.assert_array_equal(evaluate(windows(N, M), {0: np.array(n), 2: x}), found)


def test_inputs_give_variables_their_numbers() -> None:
    """As sizes, as offsets and as operands; what is left must fit the sizes."""
    u = UOp(
        Op.ADD,
        UOp(Op.SHRINK, values(2, plus(N, M)), shape(M), shape(N)),
        UOp(Op.CAST, M, arg=DTypeArg(dtypes.int32)),
    )
    x = np.arange(10, 15, dtype=np.int32)
    assert evaluate(u, {0: np.array(3), 1: np.array(2), 2: x}).tolist() == [14, 15, 16]  # type: ignore[union-attr]
    with pytest.raises(InvalidError, match=r"INPUT\.c4"):
        evaluate(u, {0: np.array(4), 1: np.array(2), 2: x})
    with pytest.raises(InvalidError, match=r"INPUT\.c5"):
        evaluate(u, {0: np.array(9), 1: np.array(2), 2: x})
    with pytest.raises(InvalidError, match=r"INPUT\.c3"):
        evaluate(u, {0: np.array(3), 2: x})


def test_a_symbolic_dimension_is_its_node() -> None:
    u = gemm(N, M)
    assert u.shape == (N, 1, M)
    assert variables(u) == (N, M)
    assert fixed(bind(u, {N: 2, M: 3})) == (2, 1, 3)
    with pytest.raises(UnsupportedError, match="symbolic sizes"):
        bind(u, {N: 2})
    with pytest.raises(LackingError, match=r"SIZES\.c2"):
        fixed(u)
    assert dims(u.shape).src == (N, index_const(1), M)
    assert "v0, 1, v1" in repr(u)


@pytest.mark.parametrize(
    ("build", "label"),
    [
        (lambda: UOp(Op.ADD, values(2, N), values(3, M)), "ADD.c3"),
        (lambda: UOp(Op.RESHAPE, values(2, N, 4), shape(N, 5)), "RESHAPE.c2"),
        (lambda: UOp(Op.SHRINK, values(2, N), shape(1), shape(N)), "SHRINK.c3"),
        (lambda: values(2, plus(M, -1)), "PARAM.c1"),
        (lambda: UOp(Op.STORE, values(2, N), values(3, N)), "STORE.c4"),
        (lambda: UOp(Op.PERMUTE, values(2, N, M), arg=PermuteArg((0,))), "PERMUTE.c1"),
    ],
)
def test_a_node_that_is_invalid_for_some_binding_is_invalid(
    build: Callable[[], UOp], label: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        build()
    assert caught.value.label == label


def test_what_the_trials_miss_is_found_when_the_variable_is_bound() -> None:
    n = variable(0, 1, 1000)
    u = UOp(Op.SHRINK, values(2, 300), shape(0), shape(UOp(Op.MOD, n, index_const(499))))
    assert bind(u, {n: 300}).shape == (300,)
    with pytest.raises(InvalidError, match=r"SHRINK\.c3"):
        bind(u, {n: 400})


def test_all_bindings_of_short_ranges_are_tried_and_the_ends_of_long_ones() -> None:
    assert len(trials((N, M))) == 20
    long = variable(0, 3, 1 << 40)
    tried = [b[0][1] for b in trials((long,))]
    assert {3, 4, 5, (1 << 40) - 1, 1 << 40} <= set(tried)
    many = [variable(k, 1, 100) for k in range(9)]
    assert [b[0][1] for b in trials(many)] == [1, 100]


def test_what_no_rule_covers_is_named() -> None:
    with pytest.raises(UnsupportedError, match="no rule for BITCAST"):
        UOp(Op.BITCAST, values(2, N), arg=DTypeArg(dtypes.uint8))
    with pytest.raises(UnsupportedError, match="no rule for ADD"):
        UOp(Op.ADD, values(2, plus(N, 2)), values(3, UOp(Op.ADD, index_const(2), N)))
    loop = UOp(Op.RANGE, index_const(4), arg=RangeArg(0))
    for dim in (loop, param(7, (), dtypes.index)):
        with pytest.raises(UnsupportedError, match="expected a CONST as dimension"):
            values(2, dim)


def test_the_axis_of_a_reshape_wants_numbers() -> None:
    even = shape(UOp(Op.MUL, N, index_const(2)), 3)
    shards = UOp(Op.PARAM, even, arg=ParamArg(2, dtypes.int8, ("a", "b")))
    flat = UOp(Op.RESHAPE, shards, shape(UOp(Op.MUL, N, index_const(6))))
    assert UOp(Op.ADD, shards, shards).axis == bind(flat, {N: 3}).axis == 0
    with pytest.raises(LackingError) as caught:
        _ = flat.axis
    assert caught.value.label == "SIZES.c2"


def summed() -> UOp:
    """A FUNCTION's body: the sum of N numbers, and they themselves turned around."""
    n = variable(0, 0, 5)
    x = values(1, n)
    return UOp(
        Op.TUPLE,
        UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (0,))),
        UOp(Op.FLIP, x, arg=FlipArg((True,))),
    )


def element(k: int, *src: UOp) -> UOp:
    return UOp(Op.GETTUPLE, UOp(Op.FUNCTION, *src), arg=GetTupleArg(k))


def test_the_sizes_of_a_called_body_are_those_of_its_arguments() -> None:
    assert element(1, summed(), N, values(2, N)).shape == (N,)
    assert element(0, summed(), N, values(2, N)).shape == (1,)
    more = plus(M, 2)
    assert element(1, summed(), more, values(2, more)).shape == (more,)
    assert element(1, summed(), index_const(3), values(2, 3)).shape == (3,)
    u = element(1, summed(), N, values(2, N))
    assert bind(u, {N: 4}) is element(1, bind(summed(), {variable(0, 0, 5): 4}), *map(number, (4,)),
                                      values(2, 4))  # fmt: skip
    assert parse(print_program(u)) is u
    assert loads(dumps(u)) is u


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ((index_const(6), values(2, 6)), "slot 0: index[] from 6 to 6"),
        ((index_const(2), values(2, 3)), "slot 1: int32[3] for a PARAM of int32[2]"),
        ((N, values(2, 3)), "slot 1: int32[3] for a PARAM of int32[1]"),
        ((values(2, 3), values(4, 3)), "slot 0: int32[3] for a PARAM of index[]"),
        ((N,), "slot 1 of 1 arguments"),
    ],
)
def test_arguments_that_do_not_fit_a_body_with_variables(
    arguments: tuple[UOp, ...], found: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        UOp(Op.FUNCTION, summed(), *arguments)
    assert caught.value.label == "FUNCTION.c2"
    assert found in caught.value.found


def test_data_gives_no_size() -> None:
    read = UOp(Op.CAST, values(7, dtype=dtypes.int8), arg=DTypeArg(dtypes.index))
    data = UOp(Op.MOD, read, index_const(5))
    with pytest.raises(LackingError) as caught:
        UOp(Op.FUNCTION, summed(), data, values(2, 3))
    assert caught.value.label == "SIZES.c1"
    assert caught.value.where.startswith(f"{__file__}:")


def test_bind_checks_the_range() -> None:
    assert UOp(Op.BIND, N, index_const(5)).min_max == index_const(5).min_max
    assert UOp(Op.BIND, N, plus(M, 1)).dtype is dtypes.index
    for value in (0, 6):
        with pytest.raises(InvalidError, match=r"BIND\.c2"):
            UOp(Op.BIND, N, index_const(value))
        with pytest.raises(InvalidError, match=r"BIND\.c2"):
            bind(values(2, N), {N: value})
    with pytest.raises(InvalidError, match=r"BIND\.c2"):
        UOp(Op.BIND, N, M)
    with pytest.raises(InvalidError, match=r"BIND\.c1"):
        UOp(Op.BIND, index_const(1), index_const(1))


def test_a_bound_variable_is_a_size_and_a_number() -> None:
    three = UOp(Op.BIND, N, index_const(3))
    x = values(2, three, 2)
    assert x.shape == (3, 2)
    assert variables(x) == ()
    assert parse(print_program(x)) is x
    assert variables(UOp(Op.ADD, three, M)) == (M,)


def test_a_variable_is_given_a_number_in_its_range() -> None:
    u = UOp(Op.ADD, N, index_const(1))
    assert evaluate(u, {0: np.array(4)}) == 5
    with pytest.raises(InvalidError, match=r"INPUT\.c5"):
        evaluate(u, {0: np.array(6)})
    body = UOp(Op.TUPLE, u)
    UOp(Op.FUNCTION, body, index_const(5))
    with pytest.raises(InvalidError, match=r"FUNCTION\.c2"):
        UOp(Op.FUNCTION, body, index_const(6))
