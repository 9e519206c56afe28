"""The rules of products: matrices, sums over letters, convolutions, Fourier, quantised numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from uop.conformance.adapters.onnx.library import dtype_of
from uop.conformance.adapters.onnx.ops.elementwise import between, converted
from uop.conformance.adapters.onnx.ops.reduce import dropped
from uop.conformance.adapters.onnx.ops.views import (
    Frame,
    Spatial,
    axis_of,
    joined,
    over_channels,
    picked,
    positions,
    sliding,
    windows,
    with_pads,
)
from uop.conformance.adapters.onnx.rules import constant, count_of, counted, rule
from uop.conformance.adapters.tensors import (
    in_float32,
    moved,
    nearest_even,
    padded,
    shrunk,
    with_gaps,
)
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import PadFill
from uop.spec.dtype import dtypes
from uop.spec.errors import MalformedError, UnsupportedError
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op


@rule("MatMul")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    return in_float32(lambda a, b: a @ b, a, b)


@rule("Gemm")
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,  # noqa: N803 - names of ONNX
    transB: int = 0,  # noqa: N803
) -> Tensor:
    """`broadcast` is of versions before 7, where c may always be broadcast here."""
    product = matmul(a.T if transA else a, b.T if transB else b)
    product = product if alpha == 1 else product * alpha
    if c is None:
        return product
    return product + (c if beta == 1 else c * beta)


@rule("Einsum")
def einsum(*tensors: Tensor, equation: str) -> Tensor:
    """Every letter is an axis of one product, which is summed over those that the result lacks."""
    terms, arrow, result = equation.replace(" ", "").partition("->")
    pairs = [*zip(terms.split(","), tensors, strict=True)]
    dots = max(t.ndim - len(term.replace("...", "")) for term, t in pairs)
    names = [_letters(term, t.ndim - len(term.replace("...", ""))) for term, t in pairs]
    result = _letters(result, dots)
    if not arrow:
        flat = "".join(names)
        result = "".join(sorted(c for c in {*flat} if flat.count(c) == 1 or c.isdigit()))
    order = result + "".join(sorted({*"".join(names)} - {*result}))
    product = _spread(tensors[0], names[0], order)
    for t, name in zip(tensors[1:], names[1:], strict=True):
        product = product * _spread(t, name, order)
    gone = [*range(len(result), len(order))]
    return dropped(product.reduce(Op.ADD, gone), gone) if gone else product


def _letters(term: str, dots: int) -> str:
    """One letter an axis; those of an ellipsis are digits, aligned at the right."""
    return term.replace("...", "".join(str(9 - k) for k in reversed(range(dots))))


def _spread(t: Tensor, name: str, order: str) -> Tensor:
    """A Tensor with the axes in this order, of size 1 where it has none; a repeated letter keeps
    its diagonal.
    """
    for letter in sorted(set(name)):
        while name.count(letter) > 1:
            a, b = name.index(letter), name.rindex(letter)
            diagonal = positions(t, a) == positions(t, b)
            t = dropped(diagonal.where(t, full((), 0, t.dtype)).reduce(Op.ADD, b), [b])
            name = name[:b] + name[b + 1 :]
    t = t.permute([name.index(letter) for letter in order if letter in name])
    sizes = iter(t.shape)
    return t.reshape([next(sizes) if letter in name else 1 for letter in order])


@rule("Conv", about=Spatial)
def conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, about: Spatial, group: int = 1
) -> Tensor:
    frame = about.frame(x.shape[2:], weight.shape[2:])
    return in_float32(lambda x, w: convolved(x, w, frame, group), x, weight) + (
        0 if bias is None else over_channels(bias, x.ndim)
    )


def convolved(x: Tensor, weight: Tensor, frame: Frame, group: int) -> Tensor:
    """Correlate x (N, C, ...) with weight (M, C / group, ...)."""
    n, c = x.shape[:2]
    m, each, *sizes = weight.shape
    if each * group != c or m % group:
        raise MalformedError(f"{c} channels in {group} groups of {each}")
    seen = windows(with_pads(x, frame, PadFill.ZERO), sizes, frame.strides, frame.dilations)
    counts = seen.shape[2 : 2 + len(sizes)]
    s = len(sizes)
    # (N, group, 1, C / group, counts..., sizes...) times (group, M / group, C / group, 1..., sizes)
    seen = seen.reshape(n, group, 1, each, *counts, *sizes)
    kernels = weight.reshape(group, m // group, each, *[1] * s, *sizes)
    axes = [3, *range(4 + s, 4 + 2 * s)]
    return (seen * kernels).reduce(Op.ADD, axes).reshape(n, m, *counts)


@rule("ConvTranspose", about=Spatial)
def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    about: Spatial,
    group: int = 1,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
) -> Tensor:
    """Correlation of x, with zeros between its elements, with the reversed kernel."""
    c, each, *sizes = weight.shape
    s = len(sizes)
    steps, gaps = about.steps(s), about.gaps(s)
    more = [*(output_padding or [0] * s)]
    spans = [(k - 1) * d for k, d in zip(sizes, gaps, strict=True)]
    if output_shape is None and about.auto_pad.startswith("SAME"):
        output_shape = [n * step for n, step in zip(x.shape[2:], steps, strict=True)]
    before, after = about.sides(s)
    if output_shape is not None:
        wide = [
            (n - 1) * step + span + 1 + extra
            for n, step, span, extra in zip(x.shape[2:], steps, spans, more, strict=True)
        ]
        before, after = about.cut([w - out for w, out in zip(wide, output_shape, strict=True)])
    kernels = weight.reshape(group, c // group, each, *sizes).flip(range(3, 3 + s))
    kernels = kernels.permute(0, 2, 1, *range(3, 3 + s)).reshape(each * group, c // group, *sizes)
    frame = Frame(
        tuple(sizes),
        (1,) * s,
        tuple(gaps),
        tuple(span - b for span, b in zip(spans, before, strict=True)),
        tuple(span - a + extra for span, a, extra in zip(spans, after, more, strict=True)),
        (0,) * s,
    )
    apart = [0, 0, *(step - 1 for step in steps)]
    y = in_float32(lambda x, w: convolved(with_gaps(x, apart), w, frame, group), x, kernels)
    return y if bias is None else y + over_channels(bias, x.ndim)


@rule("Det")
def determinant(x: Tensor) -> Tensor:
    """By the cofactors of the first row, for matrices of at most 4 rows."""
    size = x.shape[-1]
    if size > 4:
        raise UnsupportedError(f"a matrix of {size} rows: expected at most 4")
    return _cofactors(x)


def _cofactors(x: Tensor) -> Tensor:
    size = x.shape[-1]
    if size == 1:
        return x[..., 0, 0]
    terms = []
    for k in range(size):
        minor = picked(x[..., 1:, :], x.ndim - 1, [j for j in range(size) if j != k])
        term = x[..., 0, k] * _cofactors(minor)
        terms.append(-term if k % 2 else term)
    return reduce(add, terms)


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
    wide = x.cast(kind) / _along(scale.cast(kind), x, axis, block_size)
    if target.is_float:
        return converted(wide, target, bool(saturate))
    whole = nearest_even(wide.cast(dtypes.float32))
    if zero is not None:
        whole = whole + _along(zero.cast(dtypes.float32), x, axis, block_size)
    return between(whole, min=target.min, max=target.max).cast(target)


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
        wide = wide - _along(zero.cast(dtypes.float32), x, axis, block_size)
    return (wide * _along(scale.cast(dtypes.float32), x, axis, block_size)).cast(result)


def _along(scale: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
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
    return wide if zero is None else wide - _along(zero.cast(dtypes.int32), x, axis, 0)


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
    scale = _along(x_scale * w_scale, total, 1, 0)
    return quantize(total.cast(dtypes.float32) * scale, y_scale, y_zero)


@rule("DFT", since=20, known=(1, 2))
def dft(
    x: Tensor,
    length: Array | None = None,
    axis: Array | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Tensor:
    at = axis_of(-2 if axis is None else int(axis.item()), x.ndim)
    wanted = None if length is None else int(length.item())
    if inverse and onesided:
        return real_inverse(x, at, wanted)
    return transformed(x, at, wanted or x.shape[at], inverse, onesided)


@rule("DFT", since=17, known=(1,))
def dft_attribute(
    x: Tensor, length: Array | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return dft(x, length, np.asarray(axis), inverse=inverse, onesided=onesided)


def transformed(x: Tensor, axis: int, n: int, inverse: int = 0, onesided: int = 0) -> Tensor:
    """x (..., 1 or 2) along an axis, cut or filled with zeros to n elements."""
    x = _resized(x, axis, n)
    bins = n // 2 + 1 if onesided else n
    count_of(n * bins)
    angles = 2 * np.pi / n * (np.outer(counted(n), counted(bins)) % n)
    c, s = np.cos(angles), np.sin(angles) * (-1 if inverse else 1)
    scale = 1 / n if inverse else 1.0
    real, imaginary = _parts(x)
    a, b = _product(real, axis, c * scale), _product(real, axis, s * -scale)
    if imaginary is not None:
        a = a + _product(imaginary, axis, s * scale)
        b = b + _product(imaginary, axis, c * scale)
    return joined([t.reshape(*t.shape, 1) for t in (a, b)], a.ndim)


def real_inverse(x: Tensor, axis: int, length: int | None) -> Tensor:
    """The real signal whose transform has this first half."""
    n = length or 2 * (x.shape[axis] - 1)
    bins = n // 2 + 1
    count_of(n * bins)
    real, imaginary = _parts(_resized(x, axis, bins))
    # Every bin but the first, and the last of an even number, stands for two.
    twice = np.where((counted(bins) == 0) | (2 * counted(bins) == n), 1, 2)[:, None] / n
    angles = 2 * np.pi / n * (np.outer(counted(bins), counted(n)) % n)
    y = _product(real, axis, np.cos(angles) * twice)
    if imaginary is not None:
        y = y - _product(imaginary, axis, np.sin(angles) * twice)
    return y.reshape(*y.shape, 1)


def _resized(x: Tensor, axis: int, n: int) -> Tensor:
    more = n - x.shape[axis]
    return padded(x, axis, 0, more) if more > 0 else shrunk(x, axis, 0, n)


def _parts(x: Tensor) -> tuple[Tensor, Tensor | None]:
    return x[..., 0], x[..., 1] if x.shape[-1] == 2 else None


def _product(x: Tensor, axis: int, matrix: Array) -> Tensor:
    """Multiply the rows along an axis by a matrix."""
    rows, last = moved(x, axis, x.ndim - 1), x.ndim - 1
    wide = in_float32(lambda t: t @ constant(matrix.astype(np_dtype(t.dtype))), rows)
    return moved(wide, last, axis)


@rule("STFT", known=(1, 3))
def stft(
    x: Tensor,
    step: Array,
    window: Tensor | None = None,
    length: Array | None = None,
    *,
    onesided: int = 1,
) -> Tensor:
    """The transforms of frames of x (batch, time, 1 or 2)."""
    size = x.shape[1] if window is None else window.size
    size = size if length is None else int(length.item())
    frames = sliding(x, 1, size, int(step.item()))
    # (batch, frame, 1 or 2, time)
    if window is not None:
        frames = frames * window
    return transformed(frames.permute(0, 1, 3, 2), 2, size, onesided=onesided)
