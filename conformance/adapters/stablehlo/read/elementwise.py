"""The rules of ops on elements: those that are an op of ours, and compositions of the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import invert

import numpy as np

from uop.conformance.adapters.stablehlo.read.rules import (
    RULES,
    Call,
    Rule,
    constant,
    positions,
    rule,
)
from uop.conformance.adapters.stablehlo.write import DIRECTIONS, SAME
from uop.conformance.adapters.tensors import along, ceil, floor, in_float32, nearest_even, sign_of
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS

BITWISE = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def _same(op: Op, call: Call) -> Tensor:
    """An op of ours, which may be declared on fewer dtypes: a power of integers has no image."""
    dtype = call.inputs[-1].dtype
    if dtype not in (*DECLARATIONS[op].dtypes,):
        raise UnsupportedError(f"of {dtype.name}")
    return Tensor.of(op, *call.inputs)


def _composed(apply: Callable[..., Tensor], call: Call) -> Tensor:
    return apply(*call.inputs)


@rule("remainder")
def remainder(call: Call) -> Tensor:
    if call.dtype.is_float:
        raise UnsupportedError(f"of {call.dtype.name}")
    return Tensor.of(Op.CMOD, *call.inputs)


@rule("compare")
def compare(call: Call) -> Tensor:
    attributes = call.op.attributes
    a, b = call.inputs
    if call.has("compare_type") and "TOTALORDER" in str(attributes["compare_type"]):
        raise UnsupportedError("in total order")
    direction = call.library.stablehlo.ComparisonDirectionAttr(
        attributes["comparison_direction"]
    ).value
    return Tensor.of({name: op for op, name in DIRECTIONS.items()}[direction], a, b)


@rule("bitcast_convert")
def bitcast_convert(call: Call) -> Tensor:
    """An element of another size gets or loses the last axis."""
    x, dtype = call.inputs[0], call.dtype
    if x.dtype is dtype:
        return x
    if dtype.itemsize < x.dtype.itemsize:
        x = x.reshape(*x.shape, 1)
    return x.bitcast(dtype).reshape(call.shape)


@rule("constant")
def read_constant(call: Call) -> Tensor:
    array = call.library.elements(call.op.attributes["value"], call.dtype, call.shape)
    return constant(array, call.dtype)


@rule("iota")
def iota(call: Call) -> Tensor:
    axis = call.number("iota_dimension")
    return along(positions(call.shape[axis], call.dtype), axis, len(call.shape)).expand(call.shape)


@rule("shift_left", "shift_right_logical", "shift_right_arithmetic")
def shift(call: Call) -> Tensor:
    """A count of all bits or more leaves what fills: copies of the sign, or zeros."""
    x, count = call.inputs
    bits, name = x.dtype.bits, call.op.name.removeprefix("stablehlo.")
    unsigned, signed = BITWISE[x.dtype.itemsize], getattr(dtypes, f"int{bits}")
    inside = count.bitcast(unsigned) < bits
    if name == "shift_right_arithmetic":
        return (x.bitcast(signed) >> inside.where(count, bits - 1)).bitcast(x.dtype)
    count = inside.where(count, 0)
    if name == "shift_left":
        return inside.where(x << count, 0)
    return inside.where((x.bitcast(unsigned) >> count).bitcast(x.dtype), 0)


@rule("popcnt")
def popcnt(call: Call) -> Tensor:
    """The sum of the bits, which get an axis of their own."""
    return (_shifted(call.inputs[0]) & 1).sum(-1).bitcast(call.dtype)


@rule("count_leading_zeros")
def count_leading_zeros(call: Call) -> Tensor:
    """How many of the shifts by 0, 1, ... leave nothing."""
    shifted = _shifted(call.inputs[0])
    return (shifted == 0).cast(shifted.dtype).sum(-1).bitcast(call.dtype)


def _shifted(x: Tensor) -> Tensor:
    bits = x.bitcast(BITWISE[x.dtype.itemsize])
    return bits.reshape(*x.shape, 1) >> positions(x.dtype.bits, bits.dtype)


@rule("if", "case")
def choose(call: Call) -> list[Tensor]:
    """All branches are computed: they have no effects. The last one is for any other index."""
    which = call.inputs[0]
    *branches, results = (call.run(region.blocks[0], []) for region in call.op.regions)
    for k, branch in reversed([*enumerate(branches)]):
        is_chosen = which if which.dtype is dtypes.bool else which == k
        results = [is_chosen.where(a, b) for a, b in zip(branch, results, strict=True)]
    return results


def nearest_away(x: Tensor) -> Tensor:
    """The nearest integer, of two the one away from zero."""
    t = x.trunc()
    return (abs(x - t) >= 0.5).where(t + sign_of(x), t)


def log_plus_one(x: Tensor) -> Tensor:
    """log(u) x / (u - 1) of u = 1 + x: the quotient corrects the rounding of u (W. Kahan)."""
    u = x + 1
    exact = u - 1 == x
    return (u == 1).where(x, exact.where(u.log(), u.log() * x / (u - 1)))


def exponential_minus_one(x: Tensor) -> Tensor:
    """(u - 1) x / log(u) of u = exp(x): the quotient corrects the rounding of u (W. Kahan)."""
    u = x.exp()
    return (u == 1).where(x, (abs(x) > 1).where(u - 1, (u - 1) * x / u.log()))


def tanh(x: Tensor) -> Tensor:
    """-t / (t + 2) of t = exp(-2|x|) - 1, which does not overflow, with the sign of x."""
    t = exponential_minus_one(abs(x) * -2)
    size = -t / (t + 2)
    return (x < 0).where(-size, (x > 0).where(size, x))


def cosine(x: Tensor) -> Tensor:
    """The sine of pi/2 - |x|, which is accurate where the cosine is small."""
    high = float(np.asarray(math.pi / 2).astype(np_dtype(x.dtype)))
    return (Tensor(high, x.dtype) - abs(x) + math.cos(high)).sin()


def cbrt(x: Tensor) -> Tensor:
    size = abs(x) ** (1 / 3)
    return (x < 0).where(-size, (x > 0).where(size, x))


PLACED: dict[str, Rule] = {
    "convert": lambda call: call.inputs[0].cast(call.dtype),
    "divide": lambda call: Tensor.of(Op.DIV if call.dtype.is_float else Op.CDIV, *call.inputs),
    "get_dimension_size": lambda call: Tensor(
        call.inputs[0].shape[call.number("dimension")], call.dtype
    ),
    "optimization_barrier": lambda call: [*call.inputs],
}
"""What depends on the attributes or the type of an op, in one expression."""
FLOATS: dict[str, Callable[..., Tensor]] = {
    "cbrt": cbrt,
    "ceil": ceil,
    "cosine": cosine,
    "exponential": Tensor.exp,
    "exponential_minus_one": exponential_minus_one,
    "floor": floor,
    "log": Tensor.log,
    "log_plus_one": log_plus_one,
    "logistic": lambda x: ((-x).exp() + 1).recip(),
    "round_nearest_afz": nearest_away,
    "round_nearest_even": nearest_even,
    "rsqrt": lambda x: x.sqrt().recip(),
    "tan": lambda x: x.sin() / cosine(x),
    "tanh": tanh,
}
"""Compositions of ops on floats."""
PLAIN: dict[str, Callable[..., Tensor]] = {
    "abs": abs,
    "chlo.square": lambda x: x * x,
    "clamp": lambda low, x, high: Tensor.of(Op.MIN, x.maximum(low), high),
    "is_finite": lambda x: x - x == 0,
    "not": invert,
    "sign": sign_of,
}
"""Compositions of ops on any dtype."""
# The rules above, PLACED and PLAIN come before the plain image of an op.
RULES.update(
    {
        **{name: partial(_same, op) for op, name in SAME.items() if name not in RULES},
        **PLACED,
        **{name: partial(_composed, partial(in_float32, apply)) for name, apply in FLOATS.items()},
        **{name: partial(_composed, apply) for name, apply in PLAIN.items()},
    }
)
