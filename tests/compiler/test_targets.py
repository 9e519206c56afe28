"""Targets as data: every dtype is computed natively or emulated, and every op is spelled."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from uop.compiler.pipeline import compile
from uop.compiler.targets.c import CTarget
from uop.compiler.targets.cstyle import c_type, literal
from uop.compiler.targets.cuda import CUDA
from uop.compiler.targets.opencl import OPENCL
from uop.compiler.targets.prelude import all_helpers, used_helpers
from uop.compiler.targets.target import Target
from uop.spec.args import ReduceArg
from uop.spec.dtype import DTYPES, DType, Number, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, param

EVERY = pytest.mark.parametrize("target", [OPENCL, CUDA], ids=lambda t: t.name)


@EVERY
def test_every_dtype_is_native_or_emulated(target: Target) -> None:
    values = set(DTYPES.values()) - {dtypes.void}
    assert target.native | set(target.emulated) == values
    assert not target.native & set(target.emulated)
    assert set(target.emulated.values()) <= target.native
    with pytest.raises(UnsupportedError, match="void"):
        target.computes_as(dtypes.void)


@EVERY
def test_emulation_has_digits_to_spare(target: Target) -> None:
    """With 2 p + 2 digits a correctly rounded result rounds once more without harm."""
    for small, wide in target.emulated.items():
        assert wide.format.precision >= 2 * small.format.precision + 2
        assert wide.format.emin <= small.format.emin


@EVERY
def test_every_elementwise_op_is_spelled(target: Target) -> None:
    elementwise = {op for op, d in DECLARATIONS.items() if d.is_elementwise}
    assert target.ops == elementwise | {Op.BITCAST, Op.MIN}


@EVERY
def test_a_minimum_is_one_comparison(target: Target) -> None:
    """Not the complement of the maximum of complements, as the spec decomposes it."""
    numbers = [param(k, (4, 4), dtypes.int32) for k in range(2)]
    halves = [param(k, (4, 4), dtypes.float16) for k in range(2)]
    folded = UOp(Op.REDUCE, numbers[0], arg=ReduceArg(Op.MIN, (1,)))
    for root in (UOp(Op.MIN, *numbers), UOp(Op.MIN, *halves), folded):
        source = compile(root, target).source
        assert re.search(r"min_i32\(t|(t\d) < (t\d) \? \1 : \2", source)
        assert not any(text in source for text in ("max", "^", "= -t"))


def test_a_target_without_it_decomposes_a_minimum() -> None:
    target = replace(OPENCL, ops=OPENCL.ops - {Op.MIN})
    numbers = param(0, (4, 4), dtypes.int32)
    folded = UOp(Op.REDUCE, numbers, arg=ReduceArg(Op.MIN, (1,)))
    for root in (UOp(Op.MIN, numbers, numbers), folded):
        source = compile(root, target).source
        assert "max_i32(" in source
        assert "min" not in source


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (dtypes.int32, -5, "(i32)-5"),
        (dtypes.int8, -128, "(i8)(-127 - 1)"),
        (dtypes.uint64, 2**64 - 1, "(u64)18446744073709551615u"),
        (dtypes.float32, 0.5, "0.5f"),
        (dtypes.float64, -0.0, "(-0.0)"),
        (dtypes.float32, float("inf"), "bits_to_f32(0x7f800000u)"),
        (dtypes.bfloat16, 1, "(u16)16256u"),
        (dtypes.bool, True, "(u8)1u"),
    ],
    ids=str,
)
def test_literals(dtype: DType, value: Number, text: str) -> None:
    assert literal(dtype, dtype.encode(value)) == text


def test_a_type_is_as_wide_in_c_as_in_memory() -> None:
    for dtype in set(DTYPES.values()) - {dtypes.void}:
        assert int(c_type(dtype)[1:]) == 8 * dtype.itemsize


@pytest.mark.parametrize("target", [OPENCL, CUDA], ids=lambda target: target.name)
def test_helpers_come_after_those_they_call(target: CTarget) -> None:
    own = target.dialect.helpers
    helpers = all_helpers(own)
    names = [h.name for h in used_helpers("\n".join(f"{name}(x)" for name in helpers), own)]
    assert names == list(helpers)
    for helper in helpers.values():
        assert all(names.index(called) < names.index(helper.name) for called in helper.calls)
    assert used_helpers("a + b", own) == []
