"""Functions on Tensors: new ones, and the elementwise functions of one operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uop.spec.args import DTypeArg
from uop.spec.dtype import DType, Number, dtypes
from uop.spec.frontend.calls import Call, record, stored
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
