"""Runs numpy as a backend: a control, and the smallest adapter of a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import Inputs, LibraryBackend, Run
from uop.conformance.adapters.builder import Builder
from uop.conformance.adapters.walk import build, values_of
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import VALUES, DType
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp

UFUNCS: Mapping[Op, Any] = {
    **{Op.ADD: np.add, Op.MUL: np.multiply, Op.MAX: np.maximum, Op.MIN: np.minimum},
    **{Op.SUB: np.subtract, Op.NEG: np.negative, Op.DIV: np.divide, Op.TRUNC: np.trunc},
    **{Op.IDIV: np.floor_divide, Op.MOD: np.remainder, Op.CMOD: np.fmod, Op.NOT: np.logical_not},
    **{Op.SHL: np.left_shift, Op.SHR: np.right_shift, Op.XOR: np.bitwise_xor},
    **{Op.OR: np.bitwise_or, Op.AND: np.bitwise_and, Op.WHERE: np.where},
    **{Op.CMPLT: np.less, Op.CMPNE: np.not_equal, Op.CMPEQ: np.equal, Op.CMPGT: np.greater},
    **{Op.CMPGE: np.greater_equal, Op.CMPLE: np.less_equal, Op.SQRT: np.sqrt, Op.SIN: np.sin},
    **{Op.EXP2: np.exp2, Op.LOG2: np.log2, Op.POW: np.power, Op.CAST: None},
}


class NumpyBuilder(Builder[Array]):
    """Computes at once on the inputs of one run."""

    ops = frozenset(UFUNCS)

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs

    def param(self, slot: int, dtype: DType, shape: Shape) -> Array:
        return self.inputs[slot]

    def const(self, value: Array, dtype: DType) -> Array:
        return value

    def broadcast(self, x: Array, shape: Shape) -> Array:
        return np.broadcast_to(x, shape)

    def reshape(self, x: Array, shape: Shape) -> Array:
        return x.reshape(shape)

    def permute(self, x: Array, order: Sequence[int]) -> Array:
        return x.transpose(order)

    def flip(self, x: Array, axes: Sequence[int]) -> Array:
        return np.flip(x, tuple(axes))

    def pad(self, x: Array, before: Sequence[int], after: Sequence[int]) -> Array:
        return np.pad(x, [*zip(before, after, strict=True)])

    def shrink(self, x: Array, start: Sequence[int], stop: Sequence[int]) -> Array:
        return x[tuple(map(slice, start, stop))]

    def reduce(self, op: Op, x: Array, axes: Sequence[int]) -> Array:
        folded: Array = UFUNCS[op].reduce(x, axis=tuple(axes), dtype=x.dtype, keepdims=True)
        return folded

    def stack(self, xs: Sequence[Array]) -> Array:
        return np.stack(xs)

    def bitcast(self, x: Array, dtype: DType, shape: Shape) -> Array:
        return np.frombuffer(x.tobytes(), np_dtype(dtype)).reshape(shape)

    def elementwise(self, op: Op, dtype: DType, xs: Sequence[Array]) -> Array:
        if op is Op.CAST:
            return xs[0].astype(np_dtype(dtype))
        if op in (Op.SHL, Op.SHR):
            xs = xs[0], xs[1].astype(xs[0].dtype)
        return np.asarray(UFUNCS[op](*xs))

    def take(self, x: Array, axis: int, index: Array) -> Array:
        return np.take(x, index, axis)


class NumpyBackend(LibraryBackend):
    """numpy, op by op."""

    name, distribution, builder, dtypes = "numpy", "numpy", NumpyBuilder, frozenset(VALUES)

    def start(self) -> str:
        np.seterr(all="ignore")
        return "CPU"

    def compiled(self, root: UOp) -> Run:
        values = values_of(root)
        return lambda inputs: build(values, NumpyBuilder(inputs))
