"""The published min_max table, where it promises too much: a small counterexample for each row."""

from __future__ import annotations

import math

from uop.spec.args import DTypeArg, PadArg, PadFill, RangeArg, SliceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.properties.interval import Interval
from uop.spec.uop import UOp, const, dims, index_const, param


def between(low: int, high: int, dtype: DType) -> UOp:
    """An operand whose interval is [low, high]."""
    return UOp(Op.STACK, const(low, dtype), const(high, dtype))


def test_erratum_a_sum_that_wraps_leaves_the_sum_of_the_ends() -> None:
    u = UOp(Op.ADD, between(100, 127, dtypes.int8), between(100, 127, dtypes.int8))
    published = Interval(200, 254)
    assert dtypes.int8.decode((100 + 100) & 255) == -56 < published.min
    assert u.min_max == Interval(-128, 127)


def test_erratum_a_product_that_wraps_leaves_the_products_of_the_ends() -> None:
    u = UOp(Op.MUL, between(0, 16, dtypes.uint8), between(0, 16, dtypes.uint8))
    assert u.min_max == Interval(0, 255)
    u = UOp(Op.MUL, const(16, dtypes.int8), const(8, dtypes.int8))
    assert dtypes.int8.decode((16 * 8) & 255) == -128
    assert u.min_max == Interval(-128, 127)


def test_erratum_a_cast_wraps_and_does_not_clamp() -> None:
    u = UOp(Op.CAST, const(300, dtypes.int16), arg=DTypeArg(dtypes.uint8))
    clamped = 255
    assert 300 & 255 == 44 != clamped
    assert u.min_max == Interval(0, 255)


def test_erratum_movement_that_fills_is_not_the_interval_of_its_source() -> None:
    seven = UOp(Op.STACK, const(7, dtypes.int8))
    padded = UOp(Op.PAD, seven, dims((0,)), dims((2,)), arg=PadArg(PadFill.ZERO))
    assert padded.min_max == Interval(0, 7)


def test_erratum_a_stack_joins_all_its_sources() -> None:
    assert UOp(Op.STACK, const(1, dtypes.int8), const(9, dtypes.int8)).min_max == Interval(1, 9)


def test_erratum_max_with_a_nan_may_give_the_other_operand() -> None:
    nan = const(math.nan, dtypes.float32)
    low = UOp(Op.STACK, const(-5.0, dtypes.float32), const(-4.0, dtypes.float32))
    found = UOp(Op.MAX, nan, low).min_max
    assert found is not None
    assert found.may_be_nan
    assert found.min <= -5.0


def test_erratum_infinities_have_no_finite_sum_or_product() -> None:
    every = param(0, (2,), dtypes.float32)
    for op in (Op.ADD, Op.MUL):
        found = UOp(op, every, every).min_max
        assert found == Interval(-math.inf, math.inf, may_be_nan=True)
    half = UOp(Op.STACK, const(0.0, dtypes.float32), const(math.inf, dtypes.float32))
    zero = const(0.0, dtypes.float32)
    found = UOp(Op.MUL, half, zero).min_max
    assert found is not None
    assert found.may_be_nan


def test_erratum_a_load_with_alt_may_give_alt() -> None:
    assert UOp(Op.LOAD, const(7, dtypes.int8), const(1, dtypes.int8)).min_max == Interval(1, 7)


def test_erratum_an_empty_range_has_no_last_value() -> None:
    found = UOp(Op.RANGE, index_const(0), arg=RangeArg(0)).min_max
    published = Interval(0, -1)
    assert published.min > published.max
    assert found == Interval(0, 0)


def test_erratum_a_nan_is_no_end_and_differs_from_itself() -> None:
    nan = const(math.nan, dtypes.float32)
    assert nan.min_max == Interval(-math.inf, math.inf, may_be_nan=True)
    assert UOp(Op.CMPNE, nan, nan).min_max == Interval(False, True)
    assert UOp(Op.CMPLT, nan, const(1.0, dtypes.float32)).min_max == Interval(False, True)


def test_erratum_a_slice_may_read_other_elements_than_its_source_has() -> None:
    words = UOp(Op.STACK, const(256, dtypes.uint16), const(257, dtypes.uint16))
    sliced = UOp(Op.SLICE, words, index_const(0), arg=SliceArg(2, dtypes.uint8))
    assert (256).to_bytes(2, "little") == bytes((0, 1))
    assert sliced.min_max == Interval(0, 255)
