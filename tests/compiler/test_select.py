"""select: registers, work items, and only what the target has."""

from __future__ import annotations

import pytest

from uop.compiler.pipeline import compile
from uop.compiler.stages.select.stage import selected_for
from uop.compiler.targets.opencl import OPENCL
from uop.spec.args import AddrSpace, BufferArg, DTypeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import PassError
from uop.spec.kernel.forms import verify
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param


def selected(root: UOp) -> list[UOp]:
    """The nodes of all kernels."""
    return compile(root).stages["select"].toposort()


def test_small_floats_are_rounded_at_every_node() -> None:
    x, y = param(0, (5,), dtypes.float16), param(1, (5,), dtypes.float16)
    nodes = selected(UOp(Op.MUL, UOp(Op.ADD, x, y), y))
    arithmetic = [u for u in nodes if u.op in (Op.ADD, Op.MUL) and u.dtype.is_float]
    assert [u.dtype for u in arithmetic] == [dtypes.float32] * 2
    narrowed = [u for u in nodes if u.op is Op.CAST and u.dtype is dtypes.float16]
    assert [u.src[0] for u in narrowed] == arithmetic
    # What the second one reads is what the first one rounded.
    assert arithmetic[1].src[0] == UOp(Op.CAST, narrowed[0], arg=DTypeArg(dtypes.float32))


def test_bit_copies_of_small_floats_stay_copies() -> None:
    p, x = param(0, (5,), dtypes.bool), param(1, (5,), dtypes.bfloat16)
    assert not any(u.op is Op.CAST for u in selected(UOp(Op.WHERE, p, x, const(1.0, x.dtype))))


def test_a_fused_op_of_two_roundings_is_two_ops() -> None:
    x = param(0, (5,), dtypes.float32)
    nodes = selected(UOp(Op.MULACC, x, x, x))
    arithmetic = [u.op for u in nodes if u.dtype is dtypes.float32 and u.declaration.is_elementwise]
    assert arithmetic == [Op.MUL, Op.ADD]


def test_a_fold_is_a_loop_over_a_register() -> None:
    x = param(0, (4, 5, 6), dtypes.int32)
    nodes = selected(UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (0, 2))))
    (register,) = (u for u in nodes if u.op is Op.BUFFER and u.addrspace is AddrSpace.REG)
    assert isinstance(register.arg, BufferArg)
    ends = [u for u in nodes if u.op is Op.END]
    assert [e.src[1].src[0].arg.value for e in ends] == [6, 4]  # type: ignore[union-attr]
    (item,) = (u for u in nodes if u.op is Op.SPECIAL)
    assert item.src[0].arg.value == 5  # type: ignore[union-attr]


def test_output_ranges_are_digits_of_the_work_item() -> None:
    x = param(0, (4, 5, 6), dtypes.int32)
    nodes = selected(UOp(Op.NEG, x))
    # A copy in order: the digits join again, and nothing is divided.
    assert not any(u.op in (Op.IDIV, Op.MOD, Op.RANGE) for u in nodes)


def test_constants_are_folded() -> None:
    x = param(0, (4,), dtypes.uint8)
    big = UOp(Op.ADD, const(200, dtypes.uint8), const(100, dtypes.uint8))
    nodes = selected(UOp(Op.ADD, x, big))
    assert const(44, dtypes.uint8) in nodes
    assert sum(u.op is Op.ADD and u.dtype is dtypes.uint8 for u in nodes) == 1


@pytest.mark.parametrize("op", [Op.ADD, Op.MULACC])
def test_what_the_target_lacks_breaks_the_form(op: Op) -> None:
    one = const(1.0, dtypes.float16 if op is Op.ADD else dtypes.float32)
    register = BufferArg(0, one.dtype, None, AddrSpace.REG)
    place = UOp(Op.INDEX, UOp(Op.BUFFER, dims((1,)), arg=register), const(0, dtypes.index))
    lacking = UOp(op, *(one for _ in range(2 if op is Op.ADD else 3)))
    body = UOp(Op.SINK, UOp(Op.STORE, place, lacking))
    with pytest.raises(PassError, match="select: opencl has every op on its dtypes"):
        verify(UOp(Op.SINK, UOp(Op.CALL, body)), selected_for(OPENCL))
