"""The rules of Fourier transforms: products with matrices of cosines and sines."""

from __future__ import annotations

import numpy as np

from uop.conformance.adapters.onnx.ops.views import axis_of, joined, padded, shrunk, sliding
from uop.conformance.adapters.onnx.rules import constant, count_of, counted, rule
from uop.conformance.adapters.tensors import in_float32
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import PadFill
from uop.spec.frontend.tensor import Tensor


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
    return padded(x, axis, 0, more, PadFill.ZERO) if more > 0 else shrunk(x, axis, 0, n)


def _parts(x: Tensor) -> tuple[Tensor, Tensor | None]:
    return x[..., 0], x[..., 1] if x.shape[-1] == 2 else None


def _product(x: Tensor, axis: int, matrix: Array) -> Tensor:
    """Multiply the rows along an axis by a matrix."""
    order = [*(k for k in range(x.ndim) if k != axis), axis]
    wide = in_float32(lambda t: t @ constant(matrix.astype(np_dtype(t.dtype))), x.permute(order))
    return wide.permute(*range(axis), x.ndim - 1, *range(axis, x.ndim - 1))


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
