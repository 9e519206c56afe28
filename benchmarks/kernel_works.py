"""What `kernels.py` times: each work as a program, in numpy, and as tinygrad's users write it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from uop.interpreter.numeric.storage import np_dtype
from uop.spec.dtype import DType, dtypes
from uop.spec.frontend.compositions import attention, conv2d, gemm, layer_norm, prefix_sum, softmax
from uop.spec.frontend.tensor import Tensor
from uop.spec.uop import UOp, param

Array = NDArray[Any]
Expression = Callable[..., Any]
EPSILON = 1e-5
TOLERANCE = 1e-4
"""The error, as a share of the largest value, that no order of sums in float32 makes here."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input: random numbers around 0."""

    shape: tuple[int, ...]
    dtype: DType = dtypes.float32

    def data(self, seed: int) -> Array:
        random = np.random.default_rng(seed)
        if self.dtype is dtypes.int8:
            return random.integers(-128, 128, self.shape).astype(np.int8)
        return random.standard_normal(self.shape, np.float32).astype(np_dtype(self.dtype))


@dataclass(frozen=True, slots=True)
class Work:
    """One thing to compute, and how each of those compared is asked for it."""

    name: str
    inputs: tuple[Input, ...]
    ours: Expression
    """From Tensors."""
    numpy: Expression
    """From arrays; from arrays in float64 it is what results are compared with."""
    tinygrad: Expression
    """From its Tensors."""
    flops: int = 0
    """The arithmetic that it asks for; 0 for work that is bound by memory."""
    hand: tuple[int, int, int] | None = None
    """The rows, columns and products of the gemm by hand that does the same."""

    @property
    def is_for_warps(self) -> bool:
        """Whether it is a gemm of float16."""
        return bool(self.flops) and all(i.dtype is dtypes.float16 for i in self.inputs)

    @property
    def root(self) -> UOp:
        params = [param(slot, i.shape, i.dtype) for slot, i in enumerate(self.inputs)]
        root: UOp = self.ours(*map(Tensor, params)).uop
        return root

    @property
    def bytes(self) -> int:
        """The bytes that have to move: each input and the result once."""
        root = self.root
        held = [*((i.shape, i.dtype) for i in self.inputs), (root.shape, root.dtype)]
        return sum(math.prod(shape) * dtype.itemsize for shape, dtype in held)

    def data(self) -> list[Array]:
        return [i.data(seed) for seed, i in enumerate(self.inputs)]

    def differs(self, result: Array, inputs: Sequence[Array]) -> str:
        """Why a result is wrong; empty for a right one: a wrong kernel is not worth its time."""
        if all(not i.dtype.is_float for i in self.inputs):
            expected = self.numpy(*(a.astype(np.int64) for a in inputs))
            return "" if np.array_equal(result, expected) else "wrong integers"
        expected = self.numpy(*(a.astype(np.float64) for a in inputs))
        error = float(np.abs(result - expected).max() / np.abs(expected).max())
        return "" if error < TOLERANCE else f"off by {error:.1e} of the largest value"


def matmul(name: str, m: int, n: int, k: int, dtype: DType = dtypes.float32) -> Work:
    """A gemm; the products in float32, or in int32 for int8."""
    wide = dtypes.int32 if dtype is dtypes.int8 else dtypes.float32
    return Work(
        name,
        (Input((m, k), dtype), Input((k, n), dtype)),
        lambda a, b: gemm(_cast(a, wide), _cast(b, wide)),
        lambda a, b: _widened(a) @ _widened(b),
        lambda a, b: a.cast(wide.name) @ b.cast(wide.name),
        2 * m * n * k,
        (m, n, k) if dtype is dtypes.float32 and m % 8 == n % 32 == 0 else None,
    )


def _cast(t: Tensor, dtype: DType) -> Tensor:
    return t if t.dtype is dtype else t.cast(dtype)


def _widened(a: Array) -> Array:
    return a.astype({"b": np.int32, "e": np.float32}.get(a.dtype.char, a.dtype))


def _transposed(n: int) -> Work:
    return Work(
        f"gemm {n}, a @ b.T",
        (Input((n, n)), Input((n, n))),
        lambda a, b: gemm(a, b.transpose(0, 1)),
        lambda a, b: a @ b.T,
        lambda a, b: a @ b.transpose(),
        2 * n**3,
    )


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return cast(Array, e / e.sum(-1, keepdims=True))


def _layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return cast(Array, centred / np.sqrt(variance + EPSILON) * weight + bias)


def _attention(q: Array, k: Array, v: Array) -> Array:
    return _softmax(q @ k.swapaxes(-2, -1) / math.sqrt(q.shape[-1])) @ v


def _conv2d(x: Array, weight: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (2, 3))
    # Windows as columns of a matrix: what a convolution on top of BLAS does.
    return np.moveaxis(np.tensordot(seen, weight, ((1, 4, 5), (1, 2, 3))), -1, 1)


SIDE = Input((1024, 1024))
LONG = Input((1 << 22,))
HEADS = Input((8, 128, 64))

WORKS = (
    matmul("gemm 512", 512, 512, 512),
    matmul("gemm 1024", 1024, 1024, 1024),
    matmul("gemm 512, int8 to int32", 512, 512, 512, dtypes.int8),
    matmul("gemm 512, float16 to float32", 512, 512, 512, dtypes.float16),
    _transposed(512),
    matmul("gemm 1000 x 1000 x 37", 1000, 1000, 37),
    Work("softmax 1024 x 1024", (SIDE,), softmax, _softmax, lambda x: x.softmax()),
    Work(
        "layer norm 1024 x 1024",
        (SIDE, Input((1024,)), Input((1024,))),
        lambda x, w, b: layer_norm(x, w, b, EPSILON),
        _layer_norm,
        lambda x, w, b: x.layernorm(eps=EPSILON) * w + b,
    ),
    Work("sum of 2^22", (LONG,), lambda x: x.sum(), np.sum, lambda x: x.sum()),
    Work(
        "cumulative sum of 2^16",
        (Input((1 << 16,)),),
        prefix_sum,
        np.cumsum,
        lambda x: x.cumsum(),
    ),
    Work(
        "a * b + 1 of 2^22",
        (LONG, LONG),
        lambda a, b: a * b + 1,
        lambda a, b: a * b + 1,
        lambda a, b: a * b + 1,
    ),
    Work(
        "exp2(sin(a)) of 2^22",
        (LONG,),
        lambda a: a.sin().exp2(),
        lambda a: np.exp2(np.sin(a)),
        lambda a: a.sin().exp2(),
    ),
    Work(
        "conv 3 x 3, 64 x 56 x 56",
        (Input((1, 64, 56, 56)), Input((64, 64, 3, 3))),
        lambda x, w: conv2d(x, w, 1),
        _conv2d,
        lambda x, w: x.conv2d(w, padding=1),
        2 * 64 * 64 * 9 * 56 * 56,
    ),
    Work(
        "attention 8 x 128 x 64",
        (HEADS,) * 3,
        attention,
        _attention,
        lambda q, k, v: q.scaled_dot_product_attention(k, v),
        2 * 2 * 8 * 128 * 128 * 64,
    ),
    Work(
        "transpose 2048 x 2048",
        (Input((2048, 2048)),),
        # Alone it moves nothing: a program may return a view.
        lambda x: x.transpose(0, 1),
        lambda x: x.T.copy(),
        lambda x: x.transpose().contiguous(),
    ),
)
LARGE = (
    matmul("gemm 4096", 4096, 4096, 4096),
    matmul("gemm 4096, float16 to float32", 4096, 4096, 4096, dtypes.float16),
)
"""Work for a GPU alone."""
