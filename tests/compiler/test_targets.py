"""Targets as data: every dtype is computed natively or emulated, and every op is spelled."""

from __future__ import annotations

import pytest

from uop.compiler.targets.cstyle import c_type, literal
from uop.compiler.targets.cuda import CUDA
from uop.compiler.targets.opencl import OPENCL
from uop.compiler.targets.prelude import HELPERS, used_helpers
from uop.compiler.targets.target import Target
from uop.spec.dtype import DTYPES, DType, Number, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.registry import DECLARATIONS

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
    assert target.ops == {op for op, d in DECLARATIONS.items() if d.is_elementwise or op in SHAPED}


SHAPED = [op for op in DECLARATIONS if op.name == "BITCAST"]


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (dtypes.int32, -5, "(i32)-5"),
        (dtypes.int8, -128, "(i8)(-127 - 1)"),
        (dtypes.uint64, 2**64 - 1, "(u64)18446744073709551615u"),
        (dtypes.float32, 0.5, "0x1.0000000000000p-1f"),
        (dtypes.float64, -0.0, "(-0x0.0p+0)"),
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


def test_helpers_come_after_those_they_call() -> None:
    names = [helper.name for helper in used_helpers("\n".join(f"{name}(x)" for name in HELPERS))]
    assert names == list(HELPERS)
    for helper in HELPERS.values():
        assert all(names.index(called) < names.index(helper.name) for called in helper.calls)
    assert used_helpers("a + b") == []
