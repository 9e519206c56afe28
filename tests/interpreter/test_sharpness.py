"""Budgets are sharp: the outermost value inside one is accepted, the next one outside is not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from uop.interpreter.accept import accept
from uop.interpreter.accepted import order
from uop.interpreter.numeric import np_dtype
from uop.interpreter.values import Array
from uop.spec.dtype import FLOATS, DType, floor_log2
from uop.spec.latitude import Ulp
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, param

REALS: dict[Op, Callable[[arb], arb]] = {
    Op.EXP2: lambda x: (x * arb.const_log2()).exp(),
    Op.LOG2: lambda x: x.log() / arb.const_log2(),
    Op.SIN: lambda x: x.sin(),
    Op.SQRT: lambda x: x.sqrt(),
    Op.RECIP: lambda x: 1 / x,
}
# Around a quarter turn the sine is next to 1, where the ulp changes.
OPERANDS = (0.3, 1.0, 2.0, 3.0, 0.75, np.pi / 2, 3 * np.pi / 2, 1.5, 2.0**-5, 5.25)


def real(op: Op, x: float) -> Fraction:
    with ctx.workprec(300):
        mantissa, exponent = REALS[op](arb(x)).mid().man_exp()
    found = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    if found == 0:
        return found
    unit = Fraction(2) ** (floor_log2(abs(found)) - 100)
    short = round(found / unit) * unit
    # What agrees with a number of 100 bits that far is it: a power of two, a root of a square.
    return short if abs(found - short) < unit / 2**150 else found


def is_inside(v: Fraction, y: Fraction, budget: Fraction, dtype: DType) -> bool:
    exponent = max(floor_log2(abs(y)), dtype.format.emin)
    # 300 bits tell all these reals from the limits, but those that lie on one.
    excess = abs(v - y) - budget * Fraction(2) ** (exponent - dtype.format.fraction_bits)
    return excess <= Fraction(2) ** (exponent - 200)


def value(a: Array) -> Fraction:
    return Fraction(float(a[0]))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("op", REALS, ids=lambda op: op.name)
def test_the_next_value_outside_a_budget_is_refused(op: Op, dtype: DType) -> None:
    latitude = DECLARATIONS[op].latitude
    assert isinstance(latitude, Ulp)
    budget = latitude.budget(dtype)
    for x in OPERANDS:
        operand = np.asarray([x]).astype(np_dtype(dtype))
        y = real(op, float(operand[0]))
        if y == 0 or (op is Op.SQRT and y == 1):
            continue
        (accepted,) = accept(UOp(op, param(0, (1,), dtype)), {0: operand})
        if accepted.nan[0] or not np.isfinite(accepted.hi.astype(np.float64)).all():
            continue
        for end, outwards in ((accepted.lo, -1), (accepted.hi, 1)):
            next_one = order.stepped(end, outwards)
            assert accepted.contains(end).all()
            assert not accepted.contains(next_one).any()
            nearest = budget == Fraction(1, 2)
            assert is_inside(value(end), y, budget, dtype), (x, end)
            assert nearest or not is_inside(value(next_one), y, budget, dtype), (x, next_one)
