"""Decide budgets by exact magnitudes, where an approximation of the real cannot."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from uop.interpreter.accepted import order
from uop.interpreter.accepted.rules.budget import doubtful
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.numeric.enclosure import (
    HUGE,
    Magnitude,
    divided,
    magnitude,
    units,
    units_in_ulp,
)
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import DType, FloatFormat
from uop.spec.latitude import Ulp
from uop.spec.ops.names import Op


def decided(op: Op, dtype: DType, latitude: Ulp, reals: Array, result: Sets, *x: Array) -> Sets:
    """Return the accepted sets of single operands, exact also at the limits of the budget.

    `reals` approximates the results and `result` is the set that it gives, which may be too wide
    where a float lies next to a limit of the budget. A budget of half an ulp is not recomputed.
    """
    budget = latitude.budget(dtype)
    if 2 * budget == 1:
        return result
    doubt = doubtful(reals, result, float(budget), dtype)
    # A real that overflows every dtype leaves nothing to decide.
    doubt &= np.frexp(reals)[1] < HUGE
    for operand in x:
        doubt &= np.isfinite(operand) & (operand != 0)
    if not doubt.any():
        return result
    near = reals[doubt]
    points = list(zip(*(a[doubt].astype(np.float64).tolist() for a in x), strict=True))
    at = dict(zip(points, units(near, dtype).tolist(), strict=True))
    limits = {p: _limits(magnitude(op, p, unit), budget, dtype.format) for p, unit in at.items()}
    # Far beyond the range a key leaves int64, and numpy would turn all of them into floats.
    last = dtype.format.max_bits
    lowest, highest = np.array([[min(k, last + 1) for k in limits[p]] for p in points]).T
    # The limits of a negative real are those of its magnitude, mirrored.
    minus = np.signbit(near)
    lo, hi = order.keys(result.lo).copy(), order.keys(result.hi).copy()
    for end, k, mirrored in ((lo, lowest, highest), (hi, highest, lowest)):
        in_range = np.where(minus, mirrored, k) <= last
        end[doubt] = np.where(in_range, np.where(minus, -1 - mirrored, k), end[doubt])
    storage = result.lo.dtype
    return Sets(order.unkeys(lo, storage), order.unkeys(hi, storage), result.nan, result.only)


def _limits(y: Magnitude, budget: Fraction, form: FloatFormat) -> tuple[int, int]:
    """Return the keys of the lowest and the highest float in the budget of a magnitude.

    The range of the format is ignored.
    """
    reach = (budget.numerator << units_in_ulp(y.whole, y.unit, form)) // budget.denominator
    highest, _ = divided(y.whole + reach, y.unit, form)
    low = y.whole - reach
    if low > 0 or (low == 0 and not y.exact):
        bits, rest = divided(low, y.unit, form)
        return bits + (rest > 0 or not y.exact), highest
    bits, _ = divided(-low - (not y.exact), y.unit, form)
    return -1 - bits, highest
