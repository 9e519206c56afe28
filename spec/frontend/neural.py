"""Layers of neural networks, built from Tensors."""

from __future__ import annotations

from uop.spec.args import PadFill
from uop.spec.frontend.calls import composed
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op


@composed("softmax")
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x - max x) divided by its sum along an axis."""
    e = (x - x.reduce(Op.MAX, axis)).exp()
    return e / e.reduce(Op.ADD, axis)


@composed("layer_norm")
def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Normalise the last axis to mean 0 and variance 1, then scale by weight and add bias."""
    n = x.shape[-1]
    centred = x - x.reduce(Op.ADD, -1) / n
    variance = (centred * centred).reduce(Op.ADD, -1) / n
    return centred / (variance + epsilon).sqrt() * weight + bias


@composed("attention")
def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(d)) V over the last two axes."""
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return softmax(scores) @ value


@composed("windows")
def windows(x: Tensor, kh: int, kw: int) -> Tensor:
    """All kh x kw windows of the last two axes: (..., H, W) -> (..., H-kh+1, W-kw+1, kh, kw)."""
    r = x.ndim - 2
    rest = range(r)
    wide = _sliding(x, kw).permute(*rest, r + 1, r + 2, r)
    return _sliding(wide, kh).permute(*rest, r + 3, r + 1, r + 2, r)


@composed("conv2d")
def conv2d(x: Tensor, weight: Tensor, padding: int = 0) -> Tensor:
    """Correlate x (N, C, H, W), padded with zeros, with weight (O, C, kh, kw)."""
    sides = (padding, padding)
    x = x.pad((0, 0), (0, 0), sides, sides, fill=PadFill.ZERO)
    (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
    seen = windows(x, kh, kw).permute(0, 2, 3, 1, 4, 5)
    seen = seen.reshape(n, 1, h - kh + 1, w - kw + 1, c, kh, kw)
    return (seen * weight.reshape(1, o, 1, 1, c, kh, kw)).sum((-3, -2, -1))


def _sliding(x: Tensor, k: int) -> Tensor:
    """The windows of k elements of the last axis, as columns: (..., n) -> (..., k, n-k+1)."""
    *rest, n = x.shape
    # Copies of x cut into rows one element longer than x: row j starts at element j.
    copies = x.reshape(*rest, 1, n).expand(*rest, k + 1, n).reshape(*rest, (k + 1) * n)
    rows = copies.shrink_to(*rest, k * (n + 1)).reshape(*rest, k, n + 1)
    return rows.shrink_to(*rest, k, n - k + 1)
