"""Programs on several devices, and the law that ties their shards to the whole value."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.tensor.devices import Sharded, are_equal, evaluate_by_devices
from uop.interpreter.values import Value
from uop.spec.args import (
    LoadArg,
    ReduceArg,
    ReplicatedArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims

Shape = tuple[int, ...]


def devices(n: int) -> tuple[str, ...]:
    return tuple(f"D{k}" for k in range(n))


def distinct(shape: Shape, dtype: DType = dtypes.int32) -> Array:
    """Elements that all differ, as far as the dtype allows."""
    count = math.prod(shape)
    return (np.arange(count).reshape(shape) + 3).astype(np_dtype(dtype))


def placed(root: UOp, inputs: dict[int, Array]) -> Sharded:
    result = evaluate_by_devices(root, inputs)
    assert isinstance(result, Sharded)
    return result


def check(root: UOp, inputs: dict[int, Array]) -> Sharded:
    """The law: the shards have the size and place that `axis` says, and make the whole value."""
    result, reference = placed(root, inputs), evaluate_full(root, inputs)
    assert (result.device, result.axis) == (root.device, root.axis)
    n = len(root.device) if isinstance(root.device, tuple) else 1
    assert len(result.parts) == n
    shape = tuple(d // n if a == root.axis else d for a, d in enumerate(root.shape))
    assert all(part.data.shape == shape for part in result.parts)
    assert are_equal(result.whole(), cast(Value, reference))
    return result


def copy(t: UOp, device: str | tuple[str, ...]) -> UOp:
    return UOp(Op.LOAD, t, arg=LoadArg(device))


def reshape(t: UOp, *shape: int) -> UOp:
    return UOp(Op.RESHAPE, t, dims(shape))


def summed(t: UOp, axis: int) -> UOp:
    """The sum along an axis, which is dropped."""
    kept = [d for a, d in enumerate(t.shape) if a != axis]
    return reshape(UOp(Op.REDUCE, t, arg=ReduceArg(Op.ADD, (axis,))), *kept)


def replicated(t: UOp, axis: int) -> UOp:
    kept = [d for a, d in enumerate(t.shape) if a != axis]
    return reshape(UOp(Op.REPLICATED, t, arg=ReplicatedArg((axis,))), *kept)
