"""Edition 2026-07 by hand: axes prepended and removed, shards side by side."""

from __future__ import annotations

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate
from uop.spec.args import AxisType, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.editions import parse, print_program
from uop.spec.editions.july_2026 import LaterAxisType
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param

X = np.arange(6, dtype=np.int32).reshape(2, 3)
PARAM = "%0 = PARAM [2,3] {slot=0, dtype=int32}"
T = param(0, (2, 3), dtypes.int32)


def read(*lines: str) -> UOp:
    return parse("\n".join(("edition 2026-07", *lines)))


def value(u: UOp) -> list[object]:
    return np.asarray(evaluate(u, {0: X})).tolist()


def test_expand_prepends_axes() -> None:
    u = read(PARAM, "%1 = EXPAND %0, [4,1] : int32[4,1,2,3]")
    assert value(u) == np.broadcast_to(X, (4, 1, 2, 3)).tolist()
    assert print_program(u, "2026-07").splitlines()[-1] == (
        "%1 = EXPAND %0, [4,1] : int32[4,1,2,3]"
    )


def test_expand_of_an_inner_axis_is_spelled_by_moving_it_out() -> None:
    thin = UOp(Op.RESHAPE, T, dims((2, 1, 3, 1)))
    u = UOp(Op.EXPAND, thin, dims((2, 5, 3, 4)))
    text = print_program(u, "2026-07")
    assert [line.split()[2] for line in text.splitlines()[1:]] == [
        "PARAM", "RESHAPE", "RESHAPE", "EXPAND", "PERMUTE",
    ]  # fmt: skip
    assert value(parse(text)) == value(u)


@pytest.mark.parametrize(
    ("n", "expected"), [(0, X.tolist()), (1, X.sum(0).tolist()), (2, int(X.sum()))]
)
def test_reduce_removes_the_first_axes(n: int, expected: object) -> None:
    u = read(PARAM, f"%1 = REDUCE %0 {{op=ADD, n={n}}}")
    assert value(u) == expected
    assert parse(print_program(u, "2026-07")) is u
    assert len(print_program(u, "2026-07").splitlines()) == 3


def test_reduce_of_an_inner_axis_is_spelled_by_moving_it_to_the_front() -> None:
    u = UOp(Op.REDUCE, T, arg=ReduceArg(Op.MAX, (1,)))
    again = parse(print_program(u, "2026-07"))
    assert (again.shape, value(again)) == ((2, 1), [[2], [5]])


def test_reduce_of_more_axes_than_there_are_is_refused() -> None:
    with pytest.raises(InvalidError, match=r"REDUCE\.n"):
        read(PARAM, "%1 = REDUCE %0 {op=ADD, n=3}")


SHARD = (
    PARAM,
    "%1 = RANGE 2 {id=0, axis_type=DEVICE}",
    "%2 = INDEX %0, %1 : int32[3]",
)


def test_unshard_puts_the_shards_side_by_side() -> None:
    u = read(*SHARD, "%3 = UNSHARD %2, %1 {axes=(0)} : int32[6]")
    assert value(u) == [0, 1, 2, 3, 4, 5]


def test_unshard_along_two_axes_has_the_ranges_outside() -> None:
    u = read(
        "%0 = PARAM [4,6] {slot=0, dtype=int32}",
        "%1 = RANGE 2 {id=0, axis_type=DEVICE}",
        "%2 = RANGE 3 {id=1, axis_type=DEVICE}",
        "%3 = RESHAPE %0, [2,2,3,2]",
        "%4 = PERMUTE %3 {order=(0,2,1,3)}",
        "%5 = INDEX %4, %1, %2 : int32[2,2]",
        "%6 = UNSHARD %5, %1, %2 {axes=(0,1)} : int32[4,6]",
    )
    whole = np.arange(24, dtype=np.int32).reshape(4, 6)
    assert np.asarray(evaluate(u, {0: whole})).tolist() == whole.tolist()


@pytest.mark.parametrize(
    "line",
    [
        "%3 = UNSHARD %2, %1 {axes=(1)}",
        "%3 = UNSHARD %2, %1 {axes=()}",
        "%3 = UNSHARD %2, %1, %1 {axes=(0,0)}",
        "%3 = UNSHARD %2, 3 {axes=(0)}",
    ],
)
def test_an_unshard_that_does_not_fit_is_refused(line: str) -> None:
    text = (*SHARD, line) if "%1" in line else (*SHARD[:1], "%2 = NEG %0", line)
    with pytest.raises(InvalidError, match="UNSHARD"):
        read(*text)


def test_a_shard_per_value_of_a_loop_is_none() -> None:
    with pytest.raises(InvalidError, match=r"UNSHARD\.range"):
        read(PARAM, "%1 = RANGE 2 {id=0}", "%2 = INDEX %0, %1", "%3 = UNSHARD %2, %1 {axes=(0)}")


def test_the_types_of_a_range_are_those_of_the_core_and_device() -> None:
    later = {t.name: t.value for t in LaterAxisType}
    assert later == {t.name: t.value for t in AxisType} | {"DEVICE": "d"}


def test_a_device_range_is_another_node_than_a_loop() -> None:
    text = "edition 2026-07\n%0 = RANGE 2 {id=0, axis_type=DEVICE}\n"
    u = parse(text)
    assert u is not parse(text.replace("DEVICE", "LOOP"))
    assert parse(print_program(u, "2026-07")) is u
