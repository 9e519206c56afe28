"""Common tensor functions, composed of movement, elementwise ops and one fold."""

from __future__ import annotations

from uop.spec.frontend.calls import composed
from uop.spec.frontend.tensor import Tensor


@composed("gemm")
def gemm(a: Tensor, b: Tensor) -> Tensor:
    """C[M,N] = A[M,K] @ B[K,N]."""
    (m, k), (_, n) = a.shape, b.shape
    return (a.reshape(m, k, 1) * b.reshape(1, k, n)).sum(1)


@composed("prefix_sum")
def prefix_sum(t: Tensor) -> Tensor:
    """The sums of the first 1, 2, ... elements: sliding windows over T behind absent elements."""
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
