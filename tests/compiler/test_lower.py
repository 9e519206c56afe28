"""Lowering of one element: which address is read, under which gate, and without recursion."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uop.compiler.rewriting.rewrite import Rewriter
from uop.compiler.rewriting.simplify import SIMPLIFY
from uop.compiler.stages.rangeify.lower import LOWER, Lowering
from uop.spec.args import (
    AddrSpace,
    AxisType,
    ConstArg,
    DTypeArg,
    FlipArg,
    GetAddrArg,
    ParamArg,
    PermuteArg,
    ReduceArg,
)
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

X = param(0, (2, 3, 4), dtypes.int32)


def reads(tensor: UOp, at: tuple[int, ...]) -> list[int]:
    """The addresses that an element reads, at a constant index."""
    lowering = Lowering(lambda u: u if u.op is Op.PARAM else None, Rewriter(SIMPLIFY))
    scalar = lowering.element(tensor, tuple(map(index_const, at)))
    loads = [u for u in scalar.toposort() if u.op is Op.LOAD]
    assert all(len(u.src) == 1 for u in loads)
    addresses = [u.src[0].src[1].arg for u in loads]
    return [int(arg.value) for arg in addresses if isinstance(arg, ConstArg)]


def address(*at: int) -> int:
    return int(np.ravel_multi_index(at, X.shape))


@pytest.mark.parametrize(
    ("view", "at", "read"),
    [
        # A 3-cycle: its inverse is another one.
        (UOp(Op.PERMUTE, X, arg=PermuteArg((2, 0, 1))), (3, 1, 2), address(1, 2, 3)),
        (UOp(Op.FLIP, X, arg=FlipArg((False, True, True))), (1, 0, 1), address(1, 2, 2)),
        (UOp(Op.RESHAPE, X, dims((4, 6))), (3, 1), 19),
        (UOp(Op.RESHAPE, X, dims((2, 12))), (1, 5), 17),
        (UOp(Op.RESHAPE, X, dims((2, 1, 3, 4))), (1, 0, 2, 3), 23),
        (UOp(Op.SHRINK, X, dims((0, 1, 2)), dims((2, 2, 2))), (1, 1, 0), address(1, 2, 2)),
        (UOp(Op.PAD, X, dims((1, 2, 0)), dims((4, 6, 4))), (2, 3, 1), address(1, 1, 1)),
        (UOp(Op.INDEX, X, index_const(1), dims((2, 0))), (1, 3), address(1, 0, 3)),
        (UOp(Op.STACK, UOp(Op.NEG, X), X), (1, 0, 2, 2), address(0, 2, 2)),
    ],
    ids=lambda x: x.op.name if isinstance(x, UOp) else None,
)
def test_a_view_reads_the_element_it_shows(view: UOp, at: tuple[int, ...], read: int) -> None:
    assert reads(view, at) == [read]


def test_outside_a_pad_nothing_is_read() -> None:
    padded = UOp(Op.PAD, X, dims((1, 2, 0)), dims((4, 6, 4)))
    assert reads(padded, (0, 3, 1)) == []


def test_what_is_read_under_a_gate_has_it_as_its_own() -> None:
    lowering = Lowering(lambda u: u if u.op is Op.PARAM else None, Rewriter(SIMPLIFY))
    i = lowering.range(6, AxisType.LOOP)
    row = param(0, (4,), dtypes.int32)
    padded = UOp(Op.PAD, UOp(Op.ADD, row, const(1, dtypes.int32)), dims((1,)), dims((6,)))
    scalar = lowering.element(padded, (i,))
    (load,) = (u for u in scalar.toposort() if u.op is Op.LOAD)
    assert scalar.op is Op.WHERE
    assert load.src[2] is scalar.src[0]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 4), max_size=4), st.data())
def test_a_reshaped_index_is_the_same_element(shape: list[int], data: st.DataObject) -> None:
    flat = prod(shape)
    factors = [d for d in range(1, flat + 1) if flat % d == 0]
    first = data.draw(st.sampled_from(factors))
    second = data.draw(st.sampled_from([d for d in factors if flat // first % d == 0]))
    to = tuple(data.draw(st.permutations([first, second, flat // first // second, 1])))
    lowering = Lowering(lambda u: None, Rewriter(SIMPLIFY))
    for at in itertools.product(*map(range, shape)):
        there = lowering.reshaped(tuple(map(index_const, at)), tuple(shape), to)
        position = np.ravel_multi_index(at, shape) if shape else 0
        assert there == tuple(map(index_const, np.unravel_index(position, to)))


def test_each_element_is_lowered_once() -> None:
    wide = X
    for _ in range(60):
        wide = UOp(Op.ADD, wide, wide)
    lowering = Lowering(lambda u: u if u.op is Op.PARAM else None, Rewriter(SIMPLIFY))
    assert len(lowering.element(wide, tuple(map(index_const, (0, 0, 0)))).toposort()) < 80


def test_depth_needs_no_stack() -> None:
    deep = X
    for k in range(10_000):
        deep = UOp(Op.NEG, deep) if k % 2 else UOp(Op.FLIP, deep, arg=FlipArg((True, False, True)))
    lowering = Lowering(lambda u: u if u.op is Op.PARAM else None, Rewriter(SIMPLIFY))
    lowering.element(deep, tuple(map(index_const, (1, 2, 3))))


MEMORY = UOp(Op.PARAM, dims((3,)), arg=ParamArg(2, dtypes.int32, None, AddrSpace.GLOBAL))
FIRING: dict[str, UOp] = {
    "permute_into_index": UOp(Op.PERMUTE, X, arg=PermuteArg((2, 0, 1))),
    "flip_into_index": UOp(Op.FLIP, X, arg=FlipArg((True, False, False))),
    "reshape_into_index": UOp(Op.RESHAPE, X, dims((24,))),
    "expand_into_index": UOp(Op.EXPAND, param(1, (1, 3), dtypes.int32), dims((2, 3))),
    "shrink_into_index": UOp(Op.SHRINK, X, dims((0, 1, 0)), dims((2, 2, 4))),
    "pad_as_validity": UOp(Op.PAD, X, dims((0, 1, 0)), dims((2, 5, 4))),
    "index_by_elements": UOp(Op.INDEX, X, index_const(1)),
    "stack_as_choice": UOp(Op.STACK, X, UOp(Op.NEG, X)),
    "bitcast_as_bits": UOp(Op.BITCAST, X, arg=DTypeArg(dtypes.uint8)),
    "reduce_over_ranges": UOp(Op.REDUCE, X, arg=ReduceArg(Op.MAX, (1,))),
    "load_where_gate": UOp(Op.LOAD, X, X, UOp(Op.CMPNE, X, X)),
    "address_in_memory": UOp(Op.GETADDR, MEMORY, arg=GetAddrArg("cpu")),
    "drop_marker": UOp(Op.DETACH, X),
    "compute_on_elements": UOp(Op.NEG, X),
    "keep_number": const(3, dtypes.int32),
    "load_from_memory": X,
    "empty_as_zero": UOp(Op.SHRINK, X, dims((0, 0, 0)), dims((2, 0, 4))),
}


@pytest.mark.parametrize("rule", LOWER)
def test_each_rule_is_seen_with_the_tensor_and_its_scalar(rule: str) -> None:
    tensor = FIRING[rule]
    seen: list[tuple[str, UOp, UOp]] = []
    lowering = Lowering(
        lambda u: u if u.op is Op.PARAM else None,
        Rewriter(SIMPLIFY),
        lambda name, before, after: seen.append((name, before, after)),
    )
    scalar = lowering.element(tensor, tuple(lowering.range(d, AxisType.LOOP) for d in tensor.shape))
    assert seen[-1] == (rule, tensor, scalar)
    assert all(after.shape == () and after.dtype is before.dtype for _, before, after in seen)
