"""Data beside boundaries tells apart what rounds twice, or too early; the oracle is fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from uop.conformance.suite.levels.op.reduce import largest_last
from uop.conformance.suite.values import around_ties, close_to_bounds
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.dtype import FLOATS, DType, dtypes
from uop.spec.ops.names import Op

TWICE = [
    (dtypes.uint64, dtypes.float64, dtypes.float32),
    (dtypes.int64, dtypes.float64, dtypes.float32),
    (dtypes.int32, dtypes.float32, dtypes.bfloat16),
    (dtypes.float64, dtypes.float32, dtypes.bfloat16),
    (dtypes.float64, dtypes.float32, dtypes.float16),
    (dtypes.float32, dtypes.float16, dtypes.fp8e4m3),
]


def exactly(dtype: DType, data: Array) -> list[Fraction]:
    return [Fraction(dtype.decode(int(b))) for b in to_bits(data)]


@pytest.mark.parametrize(("source", "middle", "target"), TWICE, ids=str)
def test_a_cast_that_rounds_twice_is_seen(source: DType, middle: DType, target: DType) -> None:
    found = around_ties(source, target)
    once = [target.encode(v) for v in exactly(source, found)]
    bits = [middle.encode(v) for v in exactly(source, found)]
    twice = [
        target.encode(Fraction(middle.decode(b))) if np.isfinite(middle.decode(b)) else right
        for b, right in zip(bits, once, strict=True)
    ]
    assert once != twice


@pytest.mark.parametrize("source", [dtypes.int64, dtypes.uint64], ids=str)
def test_where_a_float64_ends_a_bit_far_below_a_tie_is_alone_or_in_the_middle(
    source: DType,
) -> None:
    tie = 2**53 + 2**45
    held = set(exactly(source, around_ties(source, dtypes.bfloat16)))
    assert {Fraction(tie + step) for step in (-(2**27), -1, 0, 1, 2**27)} <= held


@pytest.mark.parametrize("target", [dtypes.int32, dtypes.bool, dtypes.index], ids=str)
def test_what_converts_to_no_float_has_no_ties(target: DType) -> None:
    assert len(around_ties(dtypes.float64, target)) == 0


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", [Op.ADD, Op.SUB, Op.MUL, Op.DIV], ids=lambda op: op.name)
def test_results_stand_on_both_sides_of_the_end_of_the_floats(op: Op, dtype: DType) -> None:
    form = dtype.format
    largest = form.finite(form.max_bits)
    end = largest + (largest - form.finite(form.max_bits - 1)) / 2
    meaning = {
        Op.ADD: Fraction.__add__,
        Op.SUB: Fraction.__sub__,
        Op.MUL: Fraction.__mul__,
        Op.DIV: Fraction.__truediv__,
    }[op]
    operands = (exactly(dtype, column) for column in close_to_bounds(op, dtype))
    results = [meaning(a, b) for a, b in zip(*operands, strict=True)]
    assert any(largest / 2 < r < end for r in results)
    assert any(end <= r < 2 * end for r in results)
    if op is not Op.DIV and dtype.bits > 8:
        # Rounding alone decides; of few bits no product is there, and of any no quotient.
        assert any(largest < r < end for r in results)


def test_the_largest_stands_last_and_alone() -> None:
    for given in ([3, 7, 7, 1], [5], [2.5, 0.5]):
        data = largest_last(np.array(given))
        assert sorted(data[:-1]) == sorted(given)[:-1]
        assert all(data[:-1] < data[-1])
    assert largest_last(np.zeros(0)).size == 0
