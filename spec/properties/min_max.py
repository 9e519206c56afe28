"""Rules of min_max: the interval of a node's elements, sound where the published table is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from uop.spec.args import ConstArg, GetTupleArg, PadArg, PadFill, ParamArg, ReduceArg, arg_of
from uop.spec.dtype import Kind, Scalar
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


def of_src(position: int) -> Callable[[Node], Interval | None]:
    @says(f"that of {{src[{position}]}}")
    def min_max(u: Node) -> Interval | None:
        return u.src[position].min_max

    return min_max


def _of(u: Node, position: int) -> Interval:
    """The interval of an operand; a void one has no interval, so the range of its dtype."""
    interval = u.src[position].min_max
    return full(u.src[position].dtype) if interval is None else interval


def const(u: Node) -> Interval:
    """[v, v]."""
    arg = arg_of(u, ConstArg)
    value = arg.value
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
    if len(u.src) > 1:
        return read.join(_of(u, 1))
    return read


def counter(u: Node) -> Interval:
    """RANGE and SPECIAL: [0, n-1]; a bound of 0 runs nothing, so any interval is sound (D-056)."""
    return Interval(0, max(int(_of(u, 0).max) - 1, 0))


@says("[a + b, A + B], unless a sum can leave the dtype: then all of it")
def add(u: Node) -> Interval:
    a, b = _of(u, 0), _of(u, 1)
    if u.dtype.is_float:
        if a.may_be_nan or b.may_be_nan:
            return full(u.dtype)
        return monotone_float(u.dtype, ((a.min, b.min), (a.max, b.max)), lambda x, y: x + y)
    if u.dtype.kind is Kind.BOOL:
        return Interval(a.min or b.min, a.max or b.max)
    return exact_or_range(u.dtype, int(a.min) + int(b.min), int(a.max) + int(b.max))


@says("[a - B, A - b], unless a difference can leave the dtype: then all of it")
def sub(u: Node) -> Interval:
    a, b = _of(u, 0), _of(u, 1)
    if u.dtype.is_float:
        if a.may_be_nan or b.may_be_nan:
            return full(u.dtype)
        return monotone_float(u.dtype, ((a.min, b.max), (a.max, b.min)), lambda x, y: x - y)
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
        if a.may_be_nan or b.may_be_nan:
            return full(u.dtype)
        return monotone_float(u.dtype, corners, lambda x, y: x * y)
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


def idiv(u: Node) -> Interval:
    """Floor division by a positive divisor; for any other divisor the range of the dtype."""
    a, b = _of(u, 0), _of(u, 1)
    if b.min <= 0:
        return full(u.dtype)
    return around(int(x) // int(y) for x, y in product((a.min, a.max), (b.min, b.max)))


def mod(u: Node) -> Interval:
    """[0, B-1] for a positive divisor, or that of a if it is already reduced."""
    a, b = _of(u, 0), _of(u, 1)
    if b.min <= 0:
        return full(u.dtype)
    if a.min >= 0 and a.max < b.min:
        return a
    return Interval(0, int(b.max) - 1)


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


def reinterpreted(u: Node) -> Interval | None:
    """That of T; the range of the dtype if the dtype changes."""
    return u.src[0].min_max if u.dtype is u.src[0].dtype else dtype_range(u.dtype)


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
