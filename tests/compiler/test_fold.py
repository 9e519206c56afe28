"""Constant folding: the exact values, and what is left to run time."""

from __future__ import annotations

from fractions import Fraction

import pytest

from uop.compiler.rewriting.fold import fold_constants
from uop.compiler.rewriting.rewrite import RuleSet, rewrite
from uop.spec.args import ConstArg, DTypeArg
from uop.spec.dtype import DTYPES, FLOATS, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param

FOLD = RuleSet(fold_constants)


def bits(value: int, dtype: DType) -> UOp:
    return UOp(Op.CONST, arg=ConstArg(value, dtype))


def test_narrow_integers_wrap() -> None:
    def u8(value: int) -> UOp:
        return const(value, dtypes.uint8)

    total = UOp(Op.IDIV, UOp(Op.ADD, u8(200), u8(100)), u8(2))
    assert rewrite(total, FOLD) is u8(22)
    lowest = const(-128, dtypes.int8)
    assert rewrite(UOp(Op.IDIV, lowest, const(-1, dtypes.int8)), FOLD) is lowest
    assert rewrite(UOp(Op.MOD, const(-7, dtypes.int8), const(3, dtypes.int8)), FOLD) is const(
        2, dtypes.int8
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_floats_round_once(dtype: DType) -> None:
    values = [dtype.decode(dtype.encode(x)) for x in (1.0, 3.0, 0.1, -0.7, 5.5, 1 / 3)]
    for a in values:
        for b in values:
            for op, exact in (
                (Op.ADD, Fraction(a) + Fraction(b)),
                (Op.MUL, Fraction(a) * Fraction(b)),
            ):
                folded = rewrite(UOp(op, const(a, dtype), const(b, dtype)), FOLD)
                expected = const(exact, dtype)
                # An exact zero of a sum of opposites is +0.
                assert folded is expected, (op, a, b)


def test_bit_copies_keep_a_payload() -> None:
    nan = bits(0x7FC12345, dtypes.float32)
    chosen = UOp(Op.WHERE, const(True, dtypes.bool), nan, const(1.0, dtypes.float32))
    assert rewrite(chosen, FOLD) is nan
    as_int = UOp(Op.BITCAST, nan, arg=DTypeArg(dtypes.uint32))
    assert rewrite(as_int, FOLD) is const(0x7FC12345, dtypes.uint32)
    minus_zero = bits(1 << 31, dtypes.float32)
    assert rewrite(UOp(Op.NEG, minus_zero), FOLD) is const(0.0, dtypes.float32)


@pytest.mark.parametrize("name", [d.name for d in FLOATS])
def test_every_pattern_of_a_constant_survives(name: str) -> None:
    dtype = DTYPES[name]
    for pattern in (0, 1, dtype.format.sign_bit, dtype.format.nan_bits, dtype.format.max_bits):
        u = UOp(Op.CAST, bits(pattern, dtype), arg=DTypeArg(dtype))
        assert rewrite(u, FOLD) is bits(pattern, dtype)


@pytest.mark.parametrize(
    "left",
    [
        UOp(Op.IDIV, const(7, dtypes.int32), const(0, dtypes.int32)),
        UOp(Op.MOD, const(7, dtypes.index), const(0, dtypes.index)),
        UOp(Op.SHL, const(7, dtypes.int32), const(32, dtypes.uint8)),
        UOp(Op.CAST, const(300.0, dtypes.float32), arg=DTypeArg(dtypes.uint8)),
        UOp(Op.CAST, const(float("nan"), dtypes.float64), arg=DTypeArg(dtypes.int64)),
        UOp(Op.MUL, const(1 << 40, dtypes.index), const(1 << 40, dtypes.index)),
        UOp(Op.ADD, param(0, (), dtypes.int32), const(1, dtypes.int32)),
    ],
    ids=lambda u: u.op.name,
)
def test_what_has_no_value_or_is_no_constant_is_left_to_run_time(left: UOp) -> None:
    assert rewrite(left, FOLD) is left
