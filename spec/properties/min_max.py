"""Rules of min_max: the interval of a node's elements, sound where the published table is not."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from uop.spec.args import ConstArg, GetTupleArg, PadArg, PadFill, ParamArg, ReduceArg, arg_of
from uop.spec.dtype import Kind, Scalar
from uop.spec.latitude import SQRT
from uop.spec.ops.names import Op
from uop.spec.properties.interval import (
    Interval,
    around,
    dtype_range,
    exact_or_range,
    full,
    monotone_float,
)
from uop.spec.properties.words import says

if TYPE_CHECKING:
    from uop.spec.registry import Node

BOTH = Interval(False, True)
HALF = Fraction(1, 2)


@says("none: it has no value")
def none(u: Node) -> None:
    """A node without a value."""


@says("all of the dtype")
def range_of_dtype(u: Node) -> Interval | None:
    return dtype_range(u.dtype)


def param(u: Node) -> Interval | None:
    """The range of a variable, else that of the dtype."""
    arg = arg_of(u, ParamArg)
    if arg.min is None or arg.max is None:
        return dtype_range(u.dtype)
    return Interval(arg.min, arg.max)


def _of(u: Node, position: int) -> Interval:
    """The interval of an operand; a void one has no interval, so the range of its dtype."""
    interval = u.src[position].min_max
    return full(u.src[position].dtype) if interval is None else interval


def const(u: Node) -> Interval:
    """[v, v]."""
    value = arg_of(u, ConstArg).value
    if isinstance(value, float) and math.isnan(value):
        return full(u.dtype)
    return Interval(value, value)


@says("[0, 255]")
def binary(u: Node) -> Interval:
    return Interval(0, 255)


def join_all(u: Node) -> Interval | None:
    """STACK: around every operand; without operands the range of the dtype."""
    if not u.src:
        return dtype_range(u.dtype)
    joined = _of(u, 0)
    for position in range(1, len(u.src)):
        joined = joined.join(_of(u, position))
    return joined


def pad(u: Node) -> Interval:
    """That of T, joined with 0 if the fill is ZERO; INVALID elements are no values (D-024)."""
    arg = arg_of(u, PadArg)
    inside = _of(u, 0)
    return inside.join(Interval(0, 0)) if arg.fill is PadFill.ZERO else inside


def load(u: Node) -> Interval:
    """That of the buffer, joined with that of alt."""
    read = _of(u, 0)
    return read.join(_of(u, 1)) if len(u.src) > 1 else read


def counter(u: Node) -> Interval:
    """RANGE and SPECIAL: [0, n-1]; a bound of 0 runs nothing, so any interval is sound (D-056)."""
    return Interval(0, max(int(_of(u, 0).max) - 1, 0))


@says("[a + b, A + B], unless a sum can leave the dtype: then all of it")
def add(u: Node) -> Interval:
    a, b = _of(u, 0), _of(u, 1)
    if u.dtype.is_float:
        return monotone_float(u.dtype, (a, b), ((a.min, b.min), (a.max, b.max)), lambda x, y: x + y)
    if u.dtype.kind is Kind.BOOL:
        return Interval(a.min or b.min, a.max or b.max)
    return exact_or_range(u.dtype, int(a.min) + int(b.min), int(a.max) + int(b.max))


@says("[a - B, A - b], unless a difference can leave the dtype: then all of it")
def sub(u: Node) -> Interval:
    a, b = _of(u, 0), _of(u, 1)
    if u.dtype.is_float:
        return monotone_float(u.dtype, (a, b), ((a.min, b.max), (a.max, b.min)), lambda x, y: x - y)
    return exact_or_range(u.dtype, int(a.min) - int(b.max), int(a.max) - int(b.min))


@says("[-A, -a], unless that can leave the dtype: then all of it")
def neg(u: Node) -> Interval:
    a = _of(u, 0)
    if u.dtype.is_float:
        return Interval(-a.max, -a.min, a.may_be_nan)
    return exact_or_range(u.dtype, -int(a.max), -int(a.min))


def mul(u: Node) -> Interval:
    """[min, max] of products, unless a product can leave the dtype (D-060)."""
    a, b = _of(u, 0), _of(u, 1)
    corners = tuple(product((a.min, a.max), (b.min, b.max)))
    if u.dtype.is_float:
        return monotone_float(u.dtype, (a, b), corners, lambda x, y: x * y)
    if u.dtype.kind is Kind.BOOL:
        return Interval(a.min and b.min, a.max and b.max)
    products = [int(x) * int(y) for x, y in corners]
    return exact_or_range(u.dtype, min(products), max(products))


def maximum(u: Node) -> Interval:
    """[max(a, b), max(A, B)]; around both if one may be NaN: either may be returned (D-033)."""
    a, b = _of(u, 0), _of(u, 1)
    if a.may_be_nan or b.may_be_nan:
        return a.join(b)
    return Interval(max(a.min, b.min), max(a.max, b.max))


def minimum(u: Node) -> Interval:
    """[min(a, b), min(A, B)]; around both if one may be NaN: either may be returned (D-033)."""
    a, b = _of(u, 0), _of(u, 1)
    if a.may_be_nan or b.may_be_nan:
        return a.join(b)
    return Interval(min(a.min, b.min), min(a.max, b.max))


@says("around the quotients of the ends, if the divisor is never 0; else all of the dtype")
def idiv(u: Node) -> Interval:
    a, b = _of(u, 0), _of(u, 1)
    if b.min <= 0 <= b.max:
        return full(u.dtype)
    corners = [int(x) // int(y) for x, y in product((a.min, a.max), (b.min, b.max))]
    return exact_or_range(u.dtype, min(corners), max(corners))


@says("[0, B-1] for a positive divisor and [b+1, 0] for a negative one; that of a if it is reduced")
def mod(u: Node) -> Interval:
    a, b = _of(u, 0), _of(u, 1)
    if b.min <= 0 <= b.max:
        return full(u.dtype)
    if a.is_single and b.is_single:
        return _single(int(a.min) % int(b.min))
    if b.min > 0:
        return a if a.min >= 0 and a.max < b.min else Interval(0, int(b.max) - 1)
    return a if a.max <= 0 and a.min > b.max else Interval(int(b.min) + 1, 0)


def _single(x: Scalar) -> Interval:
    return Interval(x, x)


@says("one value of two; [0, the least maximum] of those that are not negative; else all of it")
def and_(u: Node) -> Interval:
    highest = [int(x.max) for x in (_of(u, 0), _of(u, 1)) if x.min >= 0]
    return _of_bits(u, operator.and_, 0, min(highest, default=None))


@says("one value of two; up to as many bits as both have, if neither is negative; else all of it")
def or_(u: Node) -> Interval:
    a, b = _of(u, 0), _of(u, 1)
    return _of_bits(u, operator.or_, max(int(a.min), int(b.min)), _all_bits(a, b))


@says("one value of two; up to as many bits as both have, if neither is negative; else all of it")
def xor(u: Node) -> Interval:
    return _of_bits(u, operator.xor, 0, _all_bits(_of(u, 0), _of(u, 1)))


def _of_bits(u: Node, combine: Callable[[int, int], int], low: int, high: int | None) -> Interval:
    """One value of two; else the bounds, or all of the dtype where there is no upper one."""
    a, b = _of(u, 0), _of(u, 1)
    scalar = type(u.dtype.min)
    if a.is_single and b.is_single:
        return _single(scalar(combine(int(a.min), int(b.min))))
    return full(u.dtype) if high is None else Interval(scalar(low), scalar(high))


def _all_bits(a: Interval, b: Interval) -> int | None:
    """The highest number of the bits that two intervals need; None if one has negative numbers."""
    if min(a.min, b.min) < 0:
        return None
    return (1 << max(int(a.max), int(b.max)).bit_length()) - 1


@says("around the shifted ends, unless one leaves the dtype: then all of it")
def shl(u: Node) -> Interval:
    corners = [x << count for x, count in _shifts(u)]
    return exact_or_range(u.dtype, min(corners), max(corners)) if corners else full(u.dtype)


@says("around the shifted ends")
def shr(u: Node) -> Interval:
    corners = [x >> count for x, count in _shifts(u)]
    return around(corners) if corners else full(u.dtype)


def _shifts(u: Node) -> list[tuple[int, int]]:
    """The ends of the operand with those of the counts that are defined; none if none is."""
    a, b = _of(u, 0), _of(u, 1)
    counts = max(int(b.min), 0), min(int(b.max), u.dtype.bits - 1)
    return [(int(x), n) for x in (a.min, a.max) for n in counts] if counts[0] <= counts[1] else []


@says("one truth value where that of the operand is known")
def not_(u: Node) -> Interval:
    a = _of(u, 0)
    return Interval(not a.max, not a.min)


@says("around the roots of the ends and what is accepted for them, if none is negative or NaN")
def sqrt(u: Node) -> Interval:
    a, dtype = _of(u, 0), u.dtype
    if a.may_be_nan or a.min < 0:
        return full(dtype)
    # A root in float64, rounded again, is the rounded root: no smaller dtype has half its digits.
    low, high = (dtype.encode(math.sqrt(abs(x))) for x in (a.min, a.max))
    budget = SQRT.budget(dtype)
    steps = 0 if budget <= HALF else math.ceil(budget)
    ends = dtype.decode(max(low - steps, 0)), dtype.decode(high + steps)
    return full(dtype) if any(map(math.isnan, ends)) else Interval(*ends)


@says("one truth value where the intervals decide it, else both")
def cmplt(u: Node) -> Interval:
    a, b = _of(u, 0), _of(u, 1)
    if a.max < b.min and not a.may_be_nan and not b.may_be_nan:
        return Interval(True, True)
    return Interval(False, False) if a.min >= b.max else BOTH


@says("one truth value where the intervals decide it, else both")
def cmpne(u: Node) -> Interval:
    a, b = _of(u, 0), _of(u, 1)
    if a.max < b.min or b.max < a.min:
        return Interval(True, True)
    if a.is_single and b.is_single:
        return Interval(False, False)
    return BOTH


@says("around both branches; that of one where the condition is known")
def where(u: Node) -> Interval:
    p, a, b = _of(u, 0), _of(u, 1), _of(u, 2)
    if p.is_single:
        return a if p.min else b
    return a.join(b)


@says("the ends, truncated")
def trunc(u: Node) -> Interval:
    a = _of(u, 0)

    def toward_zero(x: Scalar) -> Scalar:
        return float(math.trunc(x)) if isinstance(x, float) and math.isfinite(x) else x

    return Interval(toward_zero(a.min), toward_zero(a.max), a.may_be_nan)


@says("that of the same dtype; one value of one, in a dtype of the same size; else all of it")
def reinterpreted(u: Node) -> Interval | None:
    source, interval = u.src[0].dtype, u.src[0].min_max
    if u.dtype is source:
        return interval
    # A zero may be +0 or -0.
    is_known = interval is not None and interval.is_single and interval.min != 0
    if interval is None or not is_known or source.itemsize != u.dtype.itemsize:
        return dtype_range(u.dtype)
    bits = source.encode(interval.min)
    if bits >> u.dtype.bits:
        # No bool.
        return dtype_range(u.dtype)
    value = u.dtype.decode(bits)
    return dtype_range(u.dtype) if math.isnan(value) else _single(value)


def reduce(u: Node) -> Interval | None:
    """Around the elements and the identity of MAX or MIN; of other folds the range of the dtype."""
    arg = arg_of(u, ReduceArg)
    if arg.op is Op.MIN:
        return _of(u, 0).join(Interval(u.dtype.max, u.dtype.max))
    if arg.op is Op.MAX:
        return _of(u, 0).join(Interval(u.dtype.min, u.dtype.min))
    return dtype_range(u.dtype)


def cast(u: Node) -> Interval:
    """That of the operand if the target holds all of it; else the target's range (D-060)."""
    a, target = _of(u, 0), u.dtype
    source = u.src[0].dtype
    if target == source:
        return a
    if target.kind is Kind.BOOL:
        nonzero = a.min > 0 or a.max < 0
        return Interval(nonzero, nonzero or not (a.is_single and a.min == 0))
    if target.is_float:
        rounded = [target.decode(target.encode(x)) for x in (a.min, a.max)]
        if any(math.isnan(x) for x in rounded):
            return full(target)
        return Interval(rounded[0], rounded[1], a.may_be_nan)
    if source.is_float and not (math.isfinite(a.min) and math.isfinite(a.max)):
        return full(target)
    return exact_or_range(target, math.trunc(a.min), math.trunc(a.max))


def gettuple(u: Node) -> Interval | None:
    """That of the element of a TUPLE; for a FUNCTION the range of the dtype."""
    source = u.src[0]
    if source.op is Op.TUPLE:
        return source.src[arg_of(u, GetTupleArg).idx].min_max
    return dtype_range(u.dtype)
