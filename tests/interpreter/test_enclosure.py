"""Reals as integers of a unit, against fractions; the operands that no approximation decides."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from oracles import exact

from uop.interpreter.accept import accept
from uop.interpreter.numeric.enclosure import (
    REALS,
    Magnitude,
    divided,
    magnitude,
    nearest_bits,
    units,
)
from uop.interpreter.numeric.storage import BITS, from_bits
from uop.spec.dtype import FLOATS, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_bits_of_magnitudes(dtype: DType) -> None:
    form, random = dtype.format, Random(7)
    for _ in range(300):
        exponent = random.randint(form.emin - form.fraction_bits - 3, form.bias)
        unit = max(exponent, form.emin) - form.fraction_bits - 3
        top = 1 << (exponent - unit) if exponent >= unit else 0
        whole = top + random.randrange(top or 8)
        # Half of all are ties or values of the dtype.
        whole &= -8 if random.random() < 0.5 else -1
        value = whole * Fraction(2) ** unit
        assert nearest_bits(Magnitude(whole, unit, exact=True), form) == form.round(value)
        above = value + Fraction(2) ** (unit - 9)
        assert nearest_bits(Magnitude(whole, unit, exact=False), form) == form.round(above)
        bits, rest = divided(whole, unit, form)
        assert form.finite(bits) + rest * Fraction(2) ** unit == value
        assert form.finite(bits + 1) > value


@pytest.mark.parametrize(
    ("op", "point", "expected"),
    [
        (Op.RECIP, (-0.125,), 8),
        (Op.SQRT, (2.25,), Fraction(3, 2)),
        (Op.EXP2, (-3.0,), Fraction(1, 8)),
        (Op.LOG2, (2.0**-70,), 70),
        (Op.POW, (-1.5, 3.0), Fraction(27, 8)),
        (Op.POW, (2.0, -0.5), None),
        (Op.RECIP, (3.0,), None),
        (Op.SIN, (5e-324,), None),
    ],
)
def test_a_dyadic_value_is_exact(
    op: Op, point: tuple[float, ...], expected: Fraction | None
) -> None:
    found = magnitude(op, point, -60)
    assert found.exact is (expected is not None)
    if expected is not None:
        assert found.whole * Fraction(2) ** found.unit == expected


def test_reals_next_to_a_limit_are_told_from_it() -> None:
    tiny = 5e-324
    assert magnitude(Op.SIN, (tiny,), -1074) == Magnitude(0, -1074, exact=False)
    assert magnitude(Op.EXP2, (tiny,), -52) == Magnitude(1 << 52, -52, exact=False)
    assert magnitude(Op.EXP2, (-tiny,), -52) == Magnitude((1 << 52) - 1, -52, exact=False)


@pytest.mark.parametrize("point", [-1.0, math.nan, math.inf])
def test_a_point_without_a_value_is_an_error_and_no_endless_search(point: float) -> None:
    with pytest.raises(ArithmeticError, match=r"^SIN at|^LOG2 at"):
        magnitude(Op.LOG2 if point < 0 else Op.SIN, (point,), -60)


def test_units_of_what_the_approximation_lost() -> None:
    near = np.array([0.0, np.inf, 1.0, 5e-324])
    assert units(near, dtypes.float64).tolist() == [-1077, 967, -56, -1077]


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("op", REALS, ids=lambda op: op.name)
def test_special_operands_have_sets_with_the_reference_in_them(op: Op, dtype: DType) -> None:
    form = dtype.format
    one = dtype.encode(1)
    bits = {*exact.specials(dtype), one - 1, one + 1, form.max_bits // 2, form.max_bits // 5}
    bits |= {b ^ form.sign_bit for b in bits}
    arity = 2 if op is Op.POW else 1
    points = np.array(list(product(sorted(bits), repeat=arity)), BITS[dtype.itemsize]).T
    operands = dict(enumerate(from_bits(np.ascontiguousarray(p), dtype) for p in points))
    size = (points.shape[1],)
    (accepted,) = accept(UOp(op, *(param(k, size, dtype) for k in operands)), operands)
    assert accepted.contains(accepted.value.data).all()
