"""What an op may give for single operands, element by element, by integers and fractions.

Values have keys: an integer or a bool itself, a float its bits or, below zero, one less than minus
the bits of its magnitude. Neighbouring values have neighbouring keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from oracles import budgets, exact

from uop.spec.dtype import DType, Kind, Scalar, dtypes
from uop.spec.latitude import DIV, POW
from uop.spec.ops.names import Op


@dataclass(frozen=True, slots=True)
class Allowed:
    """Keys of the lowest and highest ordinary value, None without one; and the NaNs.

    With `payload` the bits of that NaN and nothing else, with `anything` every value.
    """

    lo: int | None = None
    hi: int | None = None
    nan: bool = False
    payload: int | None = None
    anything: bool = False


ANYTHING = Allowed(anything=True)
A_NAN = Allowed(nan=True)


def key_of(dtype: DType, bits: int) -> int:
    if dtype.is_float:
        sign = dtype.format.sign_bit
        return -1 - (bits ^ sign) if bits & sign else bits
    return int(dtype.decode(bits))


def bits_of(dtype: DType, key: int) -> int:
    if dtype.is_float:
        return key if key >= 0 else (-1 - key) | dtype.format.sign_bit
    return dtype.encode(bool(key) if dtype.kind is Kind.BOOL else key)


def keys_of(dtype: DType) -> range:
    """The keys of all ordinary values."""
    if dtype.is_float:
        last = dtype.format.max_bits + dtype.format.has_inf
        return range(-1 - last, last + 1)
    return range(int(dtype.min), int(dtype.max) + 1)


def copied(dtype: DType, bits: int) -> Allowed:
    """The same bits, of a NaN too."""
    if dtype.is_float and dtype.format.is_nan(bits):
        return Allowed(payload=bits)
    return at(key_of(dtype, bits))


def at(key: int) -> Allowed:
    return Allowed(key, key)


def ordinary(dtype: DType, bits: int | None) -> Allowed:
    """A value by its bits, or any NaN for None."""
    return A_NAN if bits is None else at(key_of(dtype, bits))


def of(op: Op, dtype: DType, *bits: int) -> Allowed:
    """The results of an elementwise op on operands of one dtype; of WHERE the last two."""
    if op is Op.WHERE:
        return copied(dtype, bits[1] if bits[0] else bits[2])
    x = [dtype.decode(b) for b in bits]
    if op in COMPARISONS:
        return _compared(op, *x)
    if dtype.is_float:
        return _of_floats(op, dtype, *map(float, x))
    if dtype.kind is Kind.BOOL:
        return at(int(OF_BOOLS[op](*x)))
    return _of_ints(op, dtype, *map(int, x))


COMPARISONS: dict[Op, Callable[[Scalar, Scalar], bool]] = {
    Op.CMPLT: lambda a, b: a < b,
    Op.CMPGT: lambda a, b: a > b,
    Op.CMPGE: lambda a, b: a >= b,
    Op.CMPLE: lambda a, b: a <= b,
    Op.CMPEQ: lambda a, b: a == b,
    Op.CMPNE: lambda a, b: a != b,
}


def _compared(op: Op, a: Scalar, b: Scalar) -> Allowed:
    if (a != a or b != b) and op in (Op.CMPGE, Op.CMPLE):
        return Allowed(0, 1)
    return at(int(COMPARISONS[op](a, b)))


OF_BOOLS: dict[Op, Callable[..., Scalar]] = {
    **dict.fromkeys((Op.ADD, Op.OR, Op.MAX), lambda a, b: a or b),
    **dict.fromkeys((Op.MUL, Op.AND, Op.MIN), lambda a, b: a and b),
    Op.XOR: lambda a, b: a != b,
    Op.NOT: lambda a: not a,
    Op.MULACC: lambda a, b, c: (a and b) or c,
}
FAR = 1200
THREEFRY = {
    (0, 0): 0x99BA4EFE6B200159,
    (1, 0): 0xC0DE3F32508EFB2C,
    (2**64 - 1, 2**64 - 1): 0xBB002BE71CB996FC,
    (0x85A308D3243F6A88, 0x0370734413198A2E): 0x483DF7A0C4923A9C,
}
"""Published results of the function, which none here computes."""


def _of_ints(op: Op, dtype: DType, *x: int) -> Allowed:
    if op is Op.THREEFRY:
        return at(THREEFRY[x[0], x[1]])
    if op in (Op.IDIV, Op.MOD, Op.CDIV, Op.CMOD) and x[1] == 0:
        return ANYTHING
    if op in (Op.SHL, Op.SHR) and not 0 <= x[1] < dtype.bits:
        return ANYTHING
    result = exact.INTS[op](*x)
    return at(result if dtype.kind is Kind.INDEX else exact.wrapped(dtype, result))


def _of_floats(op: Op, dtype: DType, *x: float) -> Allowed:
    if op in (Op.MAX, Op.MIN):
        return _extreme(op, dtype, x[0], x[1])
    if op is Op.MULACC:
        product = exact.mul(dtype, x[0], x[1])
        rounded = math.nan if product is None else float(dtype.decode(product))
        return ordinary(dtype, exact.add(dtype, rounded, x[2]))
    if op is Op.DIV:
        return _quotient(dtype, x[0], x[1])
    if op is Op.POW:
        return _power(dtype, x[0], x[1])
    if op in budgets.FUNCTIONS:
        return _function(op, dtype, x[0])
    table = exact.UNARY if len(x) == 1 else exact.BINARY
    return ordinary(dtype, table[op](dtype, *x))


def _extreme(op: Op, dtype: DType, a: float, b: float) -> Allowed:
    if a != a or b != b:
        other = next((v for v in (a, b) if v == v), None)
        return A_NAN if other is None else Allowed(*[key_of(dtype, dtype.encode(other))] * 2, True)
    k = [key_of(dtype, dtype.encode(v)) for v in (a, b)]
    if a == b:
        return Allowed(min(k), max(k))
    return at(max(k) if op is Op.MAX else min(k))


def _function(op: Op, dtype: DType, x: float) -> Allowed:
    latitude, function = budgets.FUNCTIONS[op]
    budget = latitude.budget(dtype)
    special = not math.isfinite(x) or x == 0 or (op in (Op.SQRT, Op.LOG2) and x < 0)
    if special or (op is Op.LOG2 and x == 1) or 2 * budget == 1:
        return ordinary(dtype, exact.UNARY[op](dtype, x))
    y = _beyond(x) if op is Op.EXP2 and abs(x) > FAR else budgets.exact(function, x)
    return _budgeted(op, dtype, budget, y)


def _beyond(exponent: float) -> Fraction:
    """What stands for a power of two that overflows or vanishes in every dtype."""
    return Fraction(2) ** (FAR if exponent > 0 else -FAR)


def _budgeted(op: Op, dtype: DType, budget: Fraction, y: Fraction) -> Allowed:
    found = budgets.within(y, budget, dtype)
    lo = found.lo
    if lo is not None and op in (Op.EXP2, Op.SQRT):
        lo = max(lo, 0)
    return Allowed(lo, found.hi, found.nan)


def _power(dtype: DType, x: float, y: float) -> Allowed:
    special = not math.isfinite(x) or not math.isfinite(y) or x in (0, 1) or y == 0
    if special or (x < 0 and y != math.floor(y)):
        return ordinary(dtype, exact.power(dtype, x, y))
    exponent = math.log2(abs(x)) * y
    if abs(exponent) > FAR:
        value = _beyond(exponent)
    else:
        value = budgets.exact(lambda a, b: (a.log() * b).exp(), abs(x), y)
    return _budgeted(Op.POW, dtype, POW.budget(dtype), -value if x < 0 and y % 2 else value)


def _quotient(dtype: DType, x: float, y: float) -> Allowed:
    """The hull of the quotient in its budget and of the products with reciprocals in theirs."""
    if not math.isfinite(x) or not math.isfinite(y) or x == 0 or y == 0:
        return ordinary(dtype, exact.div(dtype, x, y))
    budget, quotient = DIV.budget(dtype), Fraction(x) / Fraction(y)
    if 2 * budget == 1:
        rounded = key_of(dtype, dtype.encode(quotient))
        near, inverse = Allowed(rounded, rounded), dtype.encode(1 / Fraction(y))
        inverses = [key_of(dtype, inverse)]
    else:
        near = _budgeted(Op.DIV, dtype, budget, quotient)
        found = _budgeted(Op.RECIP, dtype, budget, 1 / Fraction(y))
        inverses = [k for k in (found.lo, found.hi) if k is not None]
    ends = [near.lo, near.hi]
    nan = near.nan
    for k in inverses:
        bits = exact.mul(dtype, x, float(dtype.decode(bits_of(dtype, k))))
        nan |= bits is None
        ends.append(None if bits is None else key_of(dtype, bits))
    inside = [k for k in ends if k is not None]
    return Allowed(min(inside), max(inside), nan) if inside else A_NAN


def cast(source: DType, target: DType, bits: int) -> Allowed:
    """A CAST of one value."""
    x = source.decode(bits)
    if source is target:
        return copied(target, bits)
    if target.kind is Kind.BOOL:
        return at(int(x != 0))
    if target.is_float:
        if isinstance(x, float) and (not math.isfinite(x) or x == 0):
            return ordinary(target, exact.rounded(target, x))
        return ordinary(target, exact.rounded(target, Fraction(x)))
    if isinstance(x, float):
        if not math.isfinite(x) or math.trunc(x) not in keys_of(target):
            return ANYTHING
        return at(math.trunc(x))
    return at(int(x) if target is dtypes.index else exact.wrapped(target, int(x)))


def total(dtype: DType, terms: list[float]) -> Allowed:
    """RN(sum - E) to RN(sum + E), E = (n-1) u sum |x|; a zero of either sign."""
    if any(t != t for t in terms) or {math.inf, -math.inf} <= set(terms):
        return A_NAN
    infinite = next((t for t in terms if math.isinf(t)), None)
    if infinite is not None or len(terms) == 1:
        return at(key_of(dtype, dtype.encode(terms[0] if infinite is None else infinite)))
    reals = [Fraction(t) for t in terms]
    error = (len(terms) - 1) * Fraction(2) ** -dtype.format.precision * sum(map(abs, reals))
    return nearest(dtype, sum(reals) - error, sum(reals) + error)


def nearest(dtype: DType, low: Fraction, high: Fraction) -> Allowed:
    """What rounding gives between two reals, zeros of either sign."""
    lo, hi = (exact.rounded(dtype, end) for end in (low, high))
    if lo is None or hi is None:
        raise ValueError("the bounds overflow")
    return Allowed(
        -1 if lo & ~dtype.format.sign_bit == 0 else key_of(dtype, lo),
        0 if hi & ~dtype.format.sign_bit == 0 else key_of(dtype, hi),
    )


def multiplied(dtype: DType, factors: list[float]) -> Allowed:
    """RN(P - E) to RN(P + E), E = |P| ((1+u)^(n-1) - 1), where nothing under- or overflows.

    Never beyond a zero of the sign of P.
    """
    product = math.prod(map(Fraction, factors))
    growth = (1 + Fraction(2) ** -dtype.format.precision) ** (len(factors) - 1)
    ends = [abs(product) * max(2 - growth, Fraction(0)), abs(product) * growth]
    keys = [key_of(dtype, dtype.encode(end)) for end in ends]
    return Allowed(*keys) if product > 0 else Allowed(-1 - keys[1], -1 - keys[0])
