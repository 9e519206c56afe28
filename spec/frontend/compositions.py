"""Common tensor functions, composed of movement, elementwise ops and one fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uop.spec.args import DTypeArg, PadFill
from uop.spec.dtype import DType, Number, dtypes
from uop.spec.frontend.calls import Call, composed, record, stored
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.text.literal import Word
from uop.spec.uop import UOp, const, dims


def full(shape: Sequence[int], value: Number | Tensor, dtype: DType | None = None) -> Tensor:
    """A Tensor of this shape with this value everywhere."""
    element = Tensor(value.operand if isinstance(value, Tensor) else value, dtype)
    filled = element.expand(*shape)
    # The shape is an input in a trace. Without axes it has no element, and no dtype of its own.
    sizes = [const(size, dtypes.int32) for size in filled.shape]
    sized = UOp(Op.STACK, *sizes) if sizes else UOp(Op.CAST, dims(()), arg=DTypeArg(dtypes.int32))
    record(sized, Call("storage", (), stored(list(filled.shape), sized)))
    inputs, named = (sized, element.operand), Word(filled.dtype.name)
    record(filled.operand, Call("fill", inputs, {"dtype": named}))
    return filled


def ones(shape: Sequence[int], dtype: DType = dtypes.float32) -> Tensor:
    return full(shape, 1, dtype)


def zeros(shape: Sequence[int], dtype: DType = dtypes.float32) -> Tensor:
    return full(shape, 0, dtype)


from_dlpack = Tensor.from_dlpack


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent, with a small relative error for all x."""
    return _tensor(x).tanh()


def sigmoid(x: Any) -> Tensor:
    """1 / (1 + exp(-x))."""
    return _tensor(x).sigmoid()


def relu(x: Any) -> Tensor:
    """max(x, 0)."""
    return _tensor(x).relu()


def exp(x: Any) -> Tensor:
    return _tensor(x).exp()


def log(x: Any) -> Tensor:
    return _tensor(x).log()


def sqrt(x: Any) -> Tensor:
    return _tensor(x).sqrt()


def sin(x: Any) -> Tensor:
    return _tensor(x).sin()


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)


@composed("gemm")
def gemm(a: Tensor, b: Tensor) -> Tensor:
    """C[M,N] = A[M,K] @ B[K,N]."""
    (m, k), (_, n) = a.shape, b.shape
    return (a.reshape(m, k, 1) * b.reshape(1, k, n)).sum(1)


@composed("prefix_sum")
def prefix_sum(t: Tensor) -> Tensor:
    """The sums of the first 1, 2, ... elements: sliding windows over T, padded in front."""
    n = t.shape[0]
    x = t.pad((n - 1, 0))
    # Copies of x cut into rows one element longer than x: each row starts one element later.
    x = x.reshape(1, 2 * n - 1).expand(n + 1, 2 * n - 1)
    x = x.reshape((n + 1) * (2 * n - 1)).shrink_to(2 * n * n)
    x = x.reshape(n, 2 * n).shrink_to(n, n)
    return x.sum(-1)


@composed("arange")
def arange(n: int) -> Tensor:
    """0, 1, ..., n-1 as int32."""
    return prefix_sum(Tensor(1).reshape(1).expand(n)) - 1


@composed("gather")
def gather(t: Tensor, idx: Tensor) -> Tensor:
    """T[idx[i]], by a one-hot mask along the axis and a sum."""
    k = t.shape[0]
    pos = arange(k).reshape(k, 1)
    mask = (pos == idx.reshape(1, -1)).cast(t.dtype)
    return (t.reshape(k, 1) * mask).sum(0)


@composed("scatter_add")
def scatter_add(t: Tensor, idx: Tensor, val: Tensor) -> Tensor:
    """T with val[i] added to T[idx[i]]."""
    k, d = t.shape[0], idx.shape[0]
    pos = arange(k).reshape(k, 1)
    mask = (pos == idx.reshape(1, d)).cast(t.dtype)
    return t + (mask * val.reshape(1, d)).sum(1)


softmax, layer_norm = Tensor.softmax, Tensor.layer_norm


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
