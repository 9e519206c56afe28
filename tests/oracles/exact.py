"""The meaning of elementwise ops on single elements, by Python integers, fractions and balls.

Results are bit patterns; None stands for any NaN. Nothing here uses numpy or the interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx

from uop.spec.dtype import DType
from uop.spec.ops.names import Op

Bits = int | None


def any_nan(dtype: DType, bits: int) -> Bits:
    """The bits, or None for a NaN of any payload."""
    return None if dtype.format.is_nan(bits) else bits


def rounded(dtype: DType, value: float | Fraction) -> Bits:
    """The bits of a value rounded once to nearest even."""
    return any_nan(dtype, dtype.encode(value))


def add(dtype: DType, x: float, y: float) -> Bits:
    if not math.isfinite(x) or not math.isfinite(y) or x == -y:
        return rounded(dtype, x + y)  # exact: inf, NaN, or a zero of the right sign
    return rounded(dtype, Fraction(x) + Fraction(y))


def sub(dtype: DType, x: float, y: float) -> Bits:
    return add(dtype, x, -y)


def mul(dtype: DType, x: float, y: float) -> Bits:
    if not math.isfinite(x) or not math.isfinite(y) or x == 0 or y == 0:
        return rounded(dtype, x * y)  # exact: inf, NaN, or a zero of the right sign
    return rounded(dtype, Fraction(x) * Fraction(y))


def div(dtype: DType, x: float, y: float) -> Bits:
    if y == 0:
        infinite = math.copysign(math.inf, x) * math.copysign(1.0, y)
        return rounded(dtype, math.nan if x == 0 or math.isnan(x) else infinite)
    if not math.isfinite(x) or not math.isfinite(y) or x == 0:
        return rounded(dtype, x / y)  # exact: inf, NaN, or a zero of the right sign
    return rounded(dtype, Fraction(x) / Fraction(y))


def maximum(dtype: DType, x: float, y: float) -> Bits:
    if math.isnan(x) or math.isnan(y):
        return None
    return rounded(dtype, max(x, y, key=lambda v: (v, math.copysign(1.0, v))))


def recip(dtype: DType, x: float) -> Bits:
    return div(dtype, 1.0, x)


def trunc(dtype: DType, x: float) -> Bits:
    return rounded(dtype, math.copysign(math.trunc(x), x) if math.isfinite(x) else x)


def neg(dtype: DType, x: float) -> Bits:
    return rounded(dtype, -x)


def sqrt(dtype: DType, x: float) -> Bits:
    if x == 0 or math.isnan(x) or x == math.inf:
        return rounded(dtype, x)
    if x < 0:
        return None
    # The integer root of x 4^600 has over 60 bits; a set last bit below stands for what it drops.
    scaled = Fraction(x) * 4**600
    root = math.isqrt(math.floor(scaled))
    return rounded(dtype, Fraction(2 * root + (root * root != scaled), 2**601))


def exp2(dtype: DType, x: float) -> Bits:
    if x == 0:
        return rounded(dtype, 1.0)
    if not math.isfinite(x):
        return rounded(dtype, 0.0 if x < 0 else x)
    return _enclosed(dtype, lambda: arb(2) ** arb(min(max(x, -1200.0), 1200.0)))


def log2(dtype: DType, x: float) -> Bits:
    if x == 0 or x == math.inf:
        return rounded(dtype, math.inf if x else -math.inf)
    if x < 0 or math.isnan(x):
        return None
    return _enclosed(dtype, lambda: arb(x).log_base(2))


def sin(dtype: DType, x: float) -> Bits:
    if x == 0:
        return rounded(dtype, x)
    if not math.isfinite(x):
        return None
    return _enclosed(dtype, lambda: arb(x).sin())


def power(dtype: DType, x: float, y: float) -> Bits:
    """IEEE 754 9.2.1, case by case."""
    if y == 0 or x == 1:
        return rounded(dtype, 1.0)
    if math.isnan(x) or math.isnan(y):
        return None
    odd = math.isfinite(y) and abs(y) % 2 == 1
    if x == 0 or math.isinf(x):
        magnitude = 0.0 if (x == 0) == (y > 0) else math.inf
        return rounded(dtype, math.copysign(magnitude, x if odd else 1.0))
    if math.isinf(y):
        if x == -1:
            return rounded(dtype, 1.0)
        return rounded(dtype, 0.0 if (abs(x) < 1) == (y > 0) else math.inf)
    if x < 0 and y != math.floor(y):
        return None
    sign = -1 if x < 0 and odd else 1
    exponent = math.log2(abs(x)) * y
    if abs(exponent) > 1200:
        return rounded(dtype, sign * Fraction(2) ** (1200 if exponent > 0 else -1200))
    return _enclosed(dtype, lambda: sign * arb(abs(x)) ** arb(y))


UNARY: dict[Op, Callable[[DType, float], Bits]] = {
    Op.RECIP: recip,
    Op.TRUNC: trunc,
    Op.NEG: neg,
    Op.SQRT: sqrt,
    Op.EXP2: exp2,
    Op.LOG2: log2,
    Op.SIN: sin,
}
BINARY: dict[Op, Callable[[DType, float, float], Bits]] = {
    Op.ADD: add,
    Op.SUB: sub,
    Op.MUL: mul,
    Op.DIV: div,
    Op.MAX: maximum,
    Op.POW: power,
}


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


INTS: dict[Op, Callable[..., int]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.MULACC: lambda a, b, c: a * b + c,
    Op.NEG: lambda a: -a,
    Op.TRUNC: lambda a: a,
    Op.MAX: max,
    Op.MIN: min,
    Op.IDIV: lambda a, b: a // b,
    Op.MOD: lambda a, b: a % b,
    Op.CDIV: lambda a, b: _truncated(a, b),
    Op.CMOD: lambda a, b: a - b * _truncated(a, b),
    Op.XOR: lambda a, b: a ^ b,
    Op.OR: lambda a, b: a | b,
    Op.AND: lambda a, b: a & b,
    Op.SHL: lambda a, b: a << b,
    Op.SHR: lambda a, b: a >> b,
}
"""Before they wrap."""


def floor_div(dtype: DType, x: int, y: int) -> int:
    return wrapped(dtype, x // y)


def floor_mod(dtype: DType, x: int, y: int) -> int:
    return wrapped(dtype, x % y)


def wrapped(dtype: DType, value: int) -> int:
    """The integer of a dtype that is congruent to a value modulo 2^bits."""
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.is_signed and low >> (dtype.bits - 1) else low


def specials(dtype: DType) -> list[int]:
    """Bits of the values where float code goes wrong, of both signs."""
    form = dtype.format
    one = dtype.encode(1.0)
    magnitudes = {0, 1, 2, 3, form.fraction_mask, form.fraction_mask + 1, form.fraction_mask + 2}
    magnitudes |= {one - 1, one, one + 1, dtype.encode(0.5), dtype.encode(1.5), dtype.encode(3.0)}
    magnitudes |= {dtype.encode(2.0), dtype.encode(2.5), form.max_bits - 1, form.max_bits}
    magnitudes |= {form.nan_bits, form.sign_bit - 1}
    magnitudes |= {form.inf_bits, form.inf_bits + 1} if form.inf_bits is not None else set()
    return sorted(magnitudes | {m | form.sign_bit for m in magnitudes})


def _enclosed(dtype: DType, ball: Callable[[], arb]) -> Bits:
    precision = 128
    while True:
        with ctx.workprec(precision):
            value = ball()
            low, high = (rounded(dtype, _fraction(end)) for end in (value.lower(), value.upper()))
        if low == high:
            return low
        precision *= 2


def _fraction(exact: arb) -> Fraction:
    mantissa, exponent = exact.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
