"""Budgets of ulps by their definition: reals by arb, limits by fractions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from uop.spec.dtype import DType, FloatFormat, floor_log2
from uop.spec.latitude import EXP2, LOG2, RECIP, SIN, SQRT, Ulp
from uop.spec.ops.names import Op

TWO = Fraction(2)
FUNCTIONS: dict[Op, tuple[Ulp, Callable[[arb], arb]]] = {
    Op.EXP2: (EXP2, lambda x: (x * arb.const_log2()).exp()),
    Op.LOG2: (LOG2, lambda x: x.log() / arb.const_log2()),
    Op.SIN: (SIN, lambda x: x.sin()),
    Op.SQRT: (SQRT, lambda x: x.sqrt()),
    Op.RECIP: (RECIP, lambda x: 1 / x),
}


@dataclass(frozen=True, slots=True)
class Expected:
    """Keys of the lowest and the highest accepted float; whether NaN stands for an infinity."""

    lo: int | None
    hi: int | None
    nan: bool


def within(y: Fraction, budget: Fraction, dtype: DType) -> Expected:
    """The floats v with |v - y| <= budget ulp(y), by the definition."""
    form = dtype.format
    exponent = max(floor_log2(abs(y)), form.emin) if y else form.emin
    reach = budget * TWO ** (exponent - form.precision + 1)
    return between(y - reach, y + reach, dtype)


def between(low: Fraction, high: Fraction, dtype: DType) -> Expected:
    """The floats between two reals; infinity from the threshold of rounding to it on."""
    form = dtype.format
    largest = form.finite(form.max_bits)
    edge = largest + (largest - form.finite(form.max_bits - 1)) / 2
    if form.has_inf:
        return Expected(-key_below(-low, form, edge) - 1, key_below(high, form, edge), nan=False)
    none = low > edge or high < -edge
    lo, hi = max(low, -edge), min(high, edge)
    return Expected(
        None if none else -key_below(-lo, form, edge) - 1,
        None if none else key_below(hi, form, edge),
        high > edge or low < -edge,
    )


def key_below(real: Fraction, form: FloatFormat, edge: Fraction) -> int:
    """The key of the highest float accepted below a real; beyond the edge that of infinity."""
    if real < 0:
        return -key_above(-real, form, edge) - 1
    if form.has_inf and real >= edge:
        return form.max_bits + 1
    bits = min(form.round(min(real, form.finite(form.max_bits))), form.max_bits)
    return bits - 1 if form.finite(bits) > real else bits


def key_above(real: Fraction, form: FloatFormat, edge: Fraction) -> int:
    """The magnitude of the lowest float accepted above a positive real."""
    if form.has_inf and real >= edge:
        return form.max_bits + 1
    if real >= form.finite(form.max_bits):
        return form.max_bits
    bits = form.round(real)
    return bits + 1 if form.finite(bits) < real else bits


def exact(function: Callable[..., arb], *x: float) -> Fraction:
    """The value to 2600 bits; if it agrees that far with a dyadic of 100 bits it is that."""
    with ctx.workprec(2600):
        mantissa, exponent = function(*(arb(v) for v in x)).mid().man_exp()
    value = Fraction(int(mantissa)) * TWO ** int(exponent)
    if value == 0:
        return value
    unit = TWO ** (floor_log2(abs(value)) - 100)
    short = round(value / unit) * unit
    return short if abs(value - short) < unit / TWO**2400 else value
