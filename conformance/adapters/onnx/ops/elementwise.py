"""The rules of arithmetic, comparisons and logic, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add, invert, neg

from uop.conformance.adapters.onnx.library import dtype_of
from uop.conformance.adapters.onnx.rules import rule
from uop.conformance.adapters.tensors import ceil, floor, in_float32, nearest_even, sign_of
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op

BINARY = {
    "Add": Op.ADD,
    "Sub": Op.SUB,
    "Mul": Op.MUL,
    "And": Op.AND,
    "Or": Op.OR,
    "Xor": Op.XOR,
    "BitwiseAnd": Op.AND,
    "BitwiseOr": Op.OR,
    "BitwiseXor": Op.XOR,
    "Equal": Op.CMPEQ,
    "Less": Op.CMPLT,
    "LessOrEqual": Op.CMPLE,
    "Greater": Op.CMPGT,
    "GreaterOrEqual": Op.CMPGE,
}
FOLDED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Max": Tensor.maximum,
    "Min": lambda a, b: Tensor.of(Op.MIN, a, b),
    "Sum": add,
}
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Identity": lambda x: x,
    "Neg": neg,
    "Not": invert,
    "BitwiseNot": invert,
    "Reciprocal": Tensor.recip,
    "Sqrt": Tensor.sqrt,
    "Relu": Tensor.relu,
    "Abs": lambda x: x if not x.dtype.is_signed and not x.dtype.is_float else abs(x),
    "IsNaN": lambda x: x != x,
    "Floor": floor,
    "Ceil": ceil,
    "Sign": sign_of,
    "Round": nearest_even,
}


def enter_binary(name: str, apply: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Enter an op that broadcasts. Before version 7 an attribute says to which axis."""

    rule(name)(partial(from_axis, apply))
    rule(name, since=7)(apply)


def from_axis(
    apply: Callable[[Tensor, Tensor], Tensor],
    a: Tensor,
    b: Tensor,
    *,
    axis: int | None = None,
    broadcast: int = 0,
    consumed_inputs: Sequence[int] | None = None,
) -> Tensor:
    """An op on b, whose first axis is this one of a."""
    if broadcast and axis is not None:
        b = b.reshape(*b.shape, *[1] * (a.ndim - axis - b.ndim))
    return apply(a, b)


def binary(op: Op, a: Tensor, b: Tensor) -> Tensor:
    return Tensor.of(op, a, b)


def folded(combine: Callable[[Tensor, Tensor], Tensor], *tensors: Tensor) -> Tensor:
    return reduce(combine, tensors)


def div(a: Tensor, b: Tensor) -> Tensor:
    return a / b if a.dtype.is_float else Tensor.of(Op.CDIV, a, b)


@rule("Mod")
def mod(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    """Floats: a - b * trunc(a / b), the sign of a. Integers: MOD has the sign of b."""
    if not a.dtype.is_float:
        return Tensor.of(Op.CMOD if fmod else Op.MOD, a, b)
    wide = a.dtype if a.dtype.bits >= 32 else dtypes.float32
    x, y = a.cast(wide), b.cast(wide)
    # inf * 0 is no number.
    whole = (abs(x) < math.inf) & (abs(y) == math.inf)
    rest = whole.where(x, x - y * (x / y).trunc())
    if not fmod:
        rest = ((rest != 0) & ((rest < 0) ^ (y < 0))).where(rest + y, rest)
    return rest.cast(a.dtype)


def power(a: Tensor, b: Tensor) -> Tensor:
    """Integers by repeated squaring over the bits of the exponent; else in floats."""
    if a.dtype.is_float:
        return a ** b.cast(a.dtype)
    if b.dtype.is_float:
        return (a.cast(dtypes.float64) ** b.cast(dtypes.float64)).cast(a.dtype)
    result, square = full((), 1, a.dtype), a
    for bit in range(a.dtype.bits.bit_length() - 1):
        chosen = (b >> bit) & 1
        result = result * (chosen != 0).where(square, 1)
        square = square * square
    return result


@rule("BitShift")
def bit_shift(a: Tensor, b: Tensor, *, direction: str) -> Tensor:
    """A count below 0, or of all bits, leaves what fills: copies of the sign to the left, or 0."""
    bits = a.dtype.bits
    inside = (b >= 0) & (b < bits)
    if direction == "RIGHT" and a.dtype.is_signed:
        return a >> inside.where(b, bits - 1)
    count = inside.where(b, 0)
    return inside.where(a << count if direction == "LEFT" else a >> count, 0)


@rule("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    none = full(x.shape, False, dtypes.bool)
    if not x.dtype.format.has_inf:
        return none
    above = x == math.inf if detect_positive else none
    return above | (x == -math.inf) if detect_negative else above


@rule("Mean")
def mean(*tensors: Tensor) -> Tensor:
    return folded(add, *tensors) / len(tensors)


rule("Where")(Tensor.where)


@rule("Clip", since=11)
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    if low is not None:
        x = x.maximum(low)
    return x if high is None else Tensor.of(Op.MIN, x, high)


@rule("Clip", since=6)
def between(x: Tensor, *, min: float = -math.inf, max: float = math.inf) -> Tensor:
    return clip(x, full((), min, x.dtype), full((), max, x.dtype))


@rule("Cast")
def cast(x: Tensor, *, to: int, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return converted(x, dtype_of(to), bool(saturate))


def converted(x: Tensor, dtype: DType, saturate: bool) -> Tensor:
    """x in a dtype; `saturate` is for 8-bit floats alone."""
    if saturate and dtype.is_float and dtype.bits == 8 and x.dtype.is_float:
        most = float(dtype.format.finite(dtype.format.max_bits))
        x = in_float32(lambda w: (w != w).where(w, between(w, min=-most, max=most)), x)
    return x.cast(dtype)


@rule("BitCast")
def bit_cast(x: Tensor, *, to: int) -> Tensor:
    dtype = dtype_of(to)
    if x.dtype is dtypes.bool and dtype.bits == 8:
        # Here a bool has one bit, in ONNX it is stored as 0 or 1.
        x = x.cast(dtypes.uint8)
    if dtype.bits != x.dtype.bits:
        raise UnsupportedError(f"{x.dtype.name} to {dtype.name}: expected as many bits")
    return x.bitcast(dtype)


@rule("Dropout", since=7, moved=("ratio",))
@rule("Dropout", since=12, known=(1, 2))
def dropout(
    x: Tensor,
    ratio: Array | None = None,
    training: Array | None = None,
    *,
    seed: int = 0,
    outputs: int,
) -> list[Tensor]:
    """x itself outside of training."""
    if training is not None and training.item() and (ratio is None or ratio.item() != 0):
        raise UnsupportedError("training draws random numbers")
    return [x, full(x.shape, True, dtypes.bool)][:outputs]


for name, op in BINARY.items():
    enter_binary(name, partial(binary, op))
enter_binary("Div", div)
enter_binary("Pow", power)
for name, apply in UNARY.items():
    rule(name)(apply)
for name, combine in FOLDED.items():
    rule(name)(partial(folded, combine))
