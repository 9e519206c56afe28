"""The rules of quantised numbers: scales, zero points, and products of small integers."""

from __future__ import annotations

from uop.conformance.adapters.onnx.dtypes import dtype_of
from uop.conformance.adapters.onnx.ops.elementwise import clip, converted
from uop.conformance.adapters.onnx.ops.frame import Spatial
from uop.conformance.adapters.onnx.ops.matrix import convolved
from uop.conformance.adapters.onnx.ops.views import axis_of, over_channels, shrunk
from uop.conformance.adapters.onnx.rules import rule
from uop.conformance.adapters.tensors import nearest_even
from uop.spec.dtype import DType, dtypes
from uop.spec.frontend.functions import full
from uop.spec.frontend.tensor import Tensor


@rule("QuantizeLinear", since=10)
def quantize(
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Tensor:
    named = dtype_of(output_dtype) if output_dtype else dtypes.uint8
    target = zero.dtype if zero is not None else named
    kind = dtype_of(precision) if precision else scale.dtype
    if not kind.is_float:
        kind = dtypes.float32
    wide = x.cast(kind) / _spread(scale.cast(kind), x, axis, block_size)
    if target.is_float:
        return converted(wide, target, bool(saturate))
    whole = nearest_even(wide.cast(dtypes.float32))
    if zero is not None:
        whole = whole + _spread(zero.cast(dtypes.float32), x, axis, block_size)
    return saturated(whole, target)


def saturated(x: Tensor, dtype: DType) -> Tensor:
    """Whole floats as integers; those outside become the nearest bound."""
    low, high = full((), dtype.min, x.dtype), full((), dtype.max, x.dtype)
    return clip(x, low, high).cast(dtype)


@rule("DequantizeLinear", since=10)
def dequantize(
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    result = dtype_of(output_dtype) if output_dtype else scale.dtype
    wide = x.cast(dtypes.float32)
    if zero is not None:
        wide = wide - _spread(zero.cast(dtypes.float32), x, axis, block_size)
    return (wide * _spread(scale.cast(dtypes.float32), x, axis, block_size)).cast(result)


def _spread(scale: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """A scale or zero point for each element: one of all, of a row, or of a block of a row."""
    if scale.size == 1:
        return scale.reshape()
    at = axis_of(axis, x.ndim)
    if scale.ndim == 1 and not block:
        return scale.reshape([-1 if k == at else 1 for k in range(x.ndim)])
    apart = scale.reshape(*scale.shape[: at + 1], 1, *scale.shape[at + 1 :])
    wide = apart.expand(*scale.shape[: at + 1], block, *scale.shape[at + 1 :])
    flat = wide.reshape(*scale.shape[:at], -1, *scale.shape[at + 1 :])
    return shrunk(flat, at, 0, x.shape[at])


def centred(x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """x - zero as int32; a vector of zeros is along an axis."""
    wide = x.cast(dtypes.int32)
    return wide if zero is None else wide - _spread(zero.cast(dtypes.int32), x, axis, 0)


@rule("MatMulInteger")
def matmul_integer(
    a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    return centred(a, a_zero, -2) @ centred(b, b_zero, -1)


@rule("QLinearMatMul")
def quantised_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
) -> Tensor:
    product = centred(a, a_zero, -2) @ centred(b, b_zero, -1)
    scale = a_scale.cast(dtypes.float32) * b_scale.cast(dtypes.float32)
    return quantize(product.cast(dtypes.float32) * scale, y_scale.cast(dtypes.float32), y_zero)


@rule("ConvInteger", about=Spatial)
def conv_integer(
    x: Tensor,
    weight: Tensor,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
    *,
    about: Spatial,
    group: int = 1,
) -> Tensor:
    """A pad stands for the zero point."""
    frame = about.frame(x.shape[2:], weight.shape[2:])
    return convolved(centred(x, x_zero, 1), centred(weight, w_zero, 0), frame, group)


@rule("QLinearConv", about=Spatial)
def quantised_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    weight: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    bias: Tensor | None = None,
    *,
    about: Spatial,
    group: int = 1,
) -> Tensor:
    frame = about.frame(x.shape[2:], weight.shape[2:])
    total = convolved(centred(x, x_zero, 1), centred(weight, w_zero, 0), frame, group)
    if bias is not None:
        total = total + over_channels(bias, x.ndim)
    scale = _spread(x_scale * w_scale, total, 1, 0)
    return quantize(total.cast(dtypes.float32) * scale, y_scale, y_zero)
