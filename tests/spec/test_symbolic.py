"""Symbolic sizes: a graph over variables is, once they are bound, the graph of the numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    BufferArg,
    DTypeArg,
    FlipArg,
    GetTupleArg,
    PadArg,
    PadFill,
    ParamArg,
    PermuteArg,
    RangeArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, LackingError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import bind, trials, variables
from uop.spec.text.json_form import dumps, loads
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const, dims, index_const, param

Size = Any
Program = Callable[[Size, Size], UOp]


def variable(slot: int, low: int, high: int) -> UOp:
    return UOp(Op.PARAM, dims(()), arg=ParamArg(slot, dtypes.index, min=low, max=high))


N, M = variable(0, 1, 5), variable(1, 0, 3)


def number(size: Size) -> UOp:
    return size if isinstance(size, UOp) else index_const(size)


def shape(*sizes: Size) -> UOp:
    return UOp(Op.STACK, *map(number, sizes))


def plus(a: Size, b: Size) -> Size:
    return a + b if isinstance(a, int) else UOp(Op.ADD, a, number(b))


def times(a: Size, b: Size) -> Size:
    return a * b if isinstance(a, int) else UOp(Op.MUL, a, number(b))


def values(slot: int, *sizes: Size, dtype: DType = dtypes.int32) -> UOp:
    return UOp(Op.PARAM, shape(*sizes), arg=ParamArg(slot, dtype))


def gemm(n: Size, m: Size) -> UOp:
    a = UOp(Op.RESHAPE, values(2, n, 3), shape(n, 3, 1))
    b = UOp(Op.RESHAPE, values(3, 3, m), shape(1, 3, m))
    return UOp(Op.REDUCE, UOp(Op.MUL, a, b), arg=ReduceArg(Op.ADD, (1,)))


def windows(n: Size, m: Size) -> UOp:
    """A sum of all that stands before, by padding, tiling and trimming."""
    x = UOp(
        Op.PAD,
        values(2, n),
        shape(plus(n, -1)),
        shape(plus(times(n, 2), -1)),
        arg=PadArg(PadFill.ZERO),
    )
    wide = plus(times(n, 2), -1)
    x = UOp(Op.EXPAND, UOp(Op.RESHAPE, x, shape(1, wide)), shape(plus(n, 1), wide))
    x = UOp(Op.RESHAPE, x, shape(times(plus(n, 1), wide)))
    x = UOp(Op.SHRINK, x, shape(0), shape(times(times(n, 2), n)))
    x = UOp(Op.RESHAPE, x, shape(n, times(n, 2)))
    x = UOp(Op.SHRINK, x, shape(0, 0), shape(n, n))
    return UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (1,)))


def stored(n: Size, m: Size) -> UOp:
    b = UOp(Op.BUFFER, shape(n, m), arg=BufferArg(4, dtypes.int32))
    return UOp(Op.SINK, UOp(Op.STORE, b, UOp(Op.NEG, values(2, n, m))))


def packed(n: Size, m: Size) -> UOp:
    both = UOp(Op.TUPLE, values(2, n), values(3, m, n))
    return UOp(Op.GETTUPLE, both, arg=GetTupleArg(1))


def counted(n: Size, m: Size) -> UOp:
    """The variable as a number too."""
    return UOp(Op.ADD, values(2, n, dtype=dtypes.index), number(plus(n, 1)))


PROGRAMS: dict[str, Program] = {
    "param": lambda n, m: values(2, n, m, 4),
    "permute": lambda n, m: UOp(Op.PERMUTE, values(2, n, m, 4), arg=PermuteArg((2, 0, 1))),
    "flip": lambda n, m: UOp(Op.FLIP, values(2, n, m), arg=FlipArg((True, False))),
    "reshape": lambda n, m: UOp(Op.RESHAPE, values(2, n, m, 4), shape(times(m, 2), n, 2)),
    "expand": lambda n, m: UOp(Op.EXPAND, values(2, 1, m), shape(n, m)),
    "pad": lambda n, m: UOp(Op.PAD, values(2, n, 2), shape(m, 1), shape(plus(n, 3), 4)),
    "shrink": lambda n, m: UOp(Op.SHRINK, values(2, plus(n, m)), shape(m), shape(n)),
    "shrink at a variable": lambda n, m: UOp(Op.SHRINK, values(2, 7), shape(m), shape(2)),
    "index": lambda n, m: UOp(Op.INDEX, values(2, 3, n, m), index_const(1), values(3, 4)),
    "stack": lambda n, m: UOp(Op.STACK, values(2, n, m), values(3, n, m)),
    "replicated": lambda n, m: UOp(Op.REPLICATED, values(2, n, 2), arg=ReplicatedArg((0,))),
    "slice": lambda n, m: UOp(Op.SLICE, values(2, 8), number(m), arg=SliceArg(5, dtypes.int32)),
    "cast": lambda n, m: UOp(Op.CAST, values(2, n, m), arg=DTypeArg(dtypes.float16)),
    "bitcast": lambda n, m: UOp(Op.BITCAST, values(2, n, m), arg=DTypeArg(dtypes.float32)),
    "reduce": lambda n, m: UOp(Op.REDUCE, values(2, n, m), arg=ReduceArg(Op.MAX, (1,))),
    "broadcast": lambda n, m: UOp(Op.MAX, values(2, n, 1, m), values(3, 1, m)),
    "where": lambda n, m: UOp(
        Op.WHERE, values(2, n, dtype=dtypes.bool), values(3, n), const(1, dtypes.int32)
    ),
    "marker": lambda n, m: UOp(Op.CONTIGUOUS, values(2, n)),
    "gemm": gemm,
    "windows": windows,
    "stored": stored,
    "packed": packed,
    "counted": counted,
}
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
            sizes = (bind(d, {N: n, M: m}) if isinstance(d, UOp) else d for d in u.sizes)
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


def test_without_a_binding_there_is_no_shape() -> None:
    u = gemm(N, M)
    assert u.sizes == (N, 1, M)
    assert variables(u) == (N, M)
    for use in (lambda: u.shape, lambda: bind(u, {N: 2})):
        with pytest.raises(UnsupportedError, match="symbolic sizes"):
            use()
    with pytest.raises(AttributeError):
        u.size  # type: ignore[attr-defined] # noqa: B018
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


def test_n_devices_and_called_bodies_want_numbers() -> None:
    body = UOp(Op.TUPLE, values(2, N))
    with pytest.raises(LackingError) as caught:
        UOp(Op.FUNCTION, body, index_const(2), const(0, dtypes.int8), values(4, 2))
    assert (caught.value.label, caught.value.node) == ("SIZES.c1", "FUNCTION")
    assert caught.value.found == "variables in slots 0"
    assert caught.value.where.startswith(f"{__file__}:")
    even = shape(UOp(Op.MUL, N, index_const(2)), 3)
    shards = UOp(Op.PARAM, even, arg=ParamArg(2, dtypes.int8, ("a", "b")))
    total = UOp(Op.ADD, shards, shards)
    assert bind(total, {N: 3}).axis == 0
    with pytest.raises(LackingError) as caught:
        _ = total.axis
    assert caught.value.label == "SIZES.c2"


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
