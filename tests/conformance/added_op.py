"""An op from outside: all that a package writes to add ABS to the language."""

from __future__ import annotations

import numpy as np

from uop.compiler.targets.cstyle import SPELLINGS, Operation, c_type
from uop.interpreter.accepted.rules.table import accepts_floats
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.numeric.storage import Array
from uop.interpreter.rules.table import evaluates
from uop.spec.dtype import DTypesOf, Kind
from uop.spec.latitude import Profile
from uop.spec.ops.elementwise import elementwise
from uop.spec.ops.names import Op
from uop.spec.properties.interval import Interval, exact_or_range, full
from uop.spec.registry import Node

ABS = Op("ABS")

CASES = """\
case float32
%0 = PARAM [4] {slot=0, dtype=float32}
%1 = ABS %0
input 0 = [-0x1.8p+0, -0x0p+0, -inf, nan:0x7fc00000]
accept 0 = 0x1.8p+0, 0x0p+0, inf, nan

case int8
%0 = PARAM [2] {slot=0, dtype=int8}
%1 = ABS %0
input 0 = [-128, -7]
expect 0 = [-128, 7]
"""


def interval(u: Node) -> Interval:
    """From the least magnitude to the greatest; that of the lowest integer wraps."""
    known = u.src[0].min_max or full(u.dtype)
    low, high = sorted((abs(known.min), abs(known.max)))
    least = low * 0 if known.min <= 0 <= known.max else low
    if u.dtype.is_float:
        return Interval(least, high, known.may_be_nan)
    return exact_or_range(u.dtype, int(least), int(high))


elementwise(
    ABS,
    ("T",),
    "|x|; the lowest integer stays.",
    DTypesOf(Kind.INT, Kind.UINT, Kind.FLOAT),
    interval=interval,
    cases=CASES,
)


@evaluates(ABS)
def absolute(u: Node, t: Array) -> Array:
    return np.abs(t)


@accepts_floats(ABS)
def accepted(u: Node, profile: Profile, t: Sets) -> Sets:
    """The magnitudes between the least and the greatest one."""
    low, high = np.abs(t.lo), np.abs(t.hi)
    crosses = np.signbit(t.lo) != np.signbit(t.hi)
    least = np.where(crosses, np.zeros_like(low), np.fmin(low, high))
    return Sets(least, np.fmax(low, high), t.nan, t.only)


def spelled(node: Operation) -> str:
    (x,), c = node.args, c_type(node.dtype)
    if node.dtype.is_float:
        bits, sign = f"{c}_to_bits({x})", 1 << (node.dtype.bits - 1)
        return f"bits_to_{c}({bits} & {sign - 1:#x}u)"
    if node.dtype.kind is Kind.UINT:
        return x
    return f"{x} < 0 ? ({c})(0 - (u{max(node.dtype.bits, 32)}){x}) : {x}"


SPELLINGS[ABS] = spelled
