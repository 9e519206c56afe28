"""The builder of libraries with the functions of the Python array API standard, 2023.12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import Inputs
from uop.conformance.adapters.builder import Builder
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import DType
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape

FUNCTIONS: Mapping[Op, str] = {
    **{Op.ADD: "add", Op.SUB: "subtract", Op.MUL: "multiply", Op.DIV: "divide"},
    **{Op.NEG: "negative", Op.MAX: "maximum", Op.MIN: "minimum", Op.TRUNC: "trunc"},
    **{Op.IDIV: "floor_divide", Op.MOD: "remainder", Op.NOT: "logical_not", Op.WHERE: "where"},
    **{Op.XOR: "bitwise_xor", Op.OR: "bitwise_or", Op.AND: "bitwise_and"},
    **{Op.SHL: "bitwise_left_shift", Op.SHR: "bitwise_right_shift"},
    **{Op.CMPLT: "less", Op.CMPLE: "less_equal", Op.CMPGT: "greater", Op.CMPGE: "greater_equal"},
    **{Op.CMPEQ: "equal", Op.CMPNE: "not_equal", Op.SQRT: "sqrt", Op.SIN: "sin", Op.LOG2: "log2"},
    **{Op.POW: "pow"},
}
OPTIONAL: Mapping[Op, str] = {Op.EXP2: "exp2", Op.CMOD: "fmod"}
"""Functions that the standard lacks, and many libraries have."""
FOLDS: Mapping[Op, str] = {Op.ADD: "sum", Op.MUL: "prod", Op.MAX: "max", Op.MIN: "min"}


class ArrayBuilder(Builder[Any]):
    """Computes at once, on the inputs of one run, by a module of the library."""

    ops = frozenset({*FUNCTIONS, *OPTIONAL, Op.CAST})

    def __init__(self, library: ModuleType, inputs: Inputs) -> None:
        self.library, self.inputs = library, inputs

    def param(self, slot: int, dtype: DType, shape: Shape) -> Any:
        return self.library.asarray(self.inputs[slot])

    def const(self, value: Array, dtype: DType) -> Any:
        return self.library.asarray(value)

    def broadcast(self, x: Any, shape: Shape) -> Any:
        return self.library.broadcast_to(x, shape)

    def reshape(self, x: Any, shape: Shape) -> Any:
        return self.library.reshape(x, shape)

    def permute(self, x: Any, order: Sequence[int]) -> Any:
        return self.library.permute_dims(x, tuple(order))

    def flip(self, x: Any, axes: Sequence[int]) -> Any:
        return self.library.flip(x, axis=tuple(axes))

    def pad(self, x: Any, before: Sequence[int], after: Sequence[int]) -> Any:
        for axis, counts in enumerate(zip(before, after, strict=True)):
            shapes = ((*x.shape[:axis], n, *x.shape[axis + 1 :]) for n in counts)
            low, high = (self.library.zeros(shape, dtype=x.dtype) for shape in shapes)
            x = self.library.concat([low, x, high], axis=axis)
        return x

    def shrink(self, x: Any, start: Sequence[int], stop: Sequence[int]) -> Any:
        return x[tuple(map(slice, start, stop))]

    def reduce(self, op: Op, x: Any, axes: Sequence[int]) -> Any:
        fold = getattr(self.library, FOLDS[op])
        typed = {"dtype": x.dtype} if op in (Op.ADD, Op.MUL) else {}
        return fold(x, axis=tuple(axes), keepdims=True, **typed)

    def stack(self, xs: Sequence[Any]) -> Any:
        return self.library.stack(xs)

    def bitcast(self, x: Any, dtype: DType, shape: Shape) -> Any:
        """The standard has none: by numpy."""
        data = np.frombuffer(np.asarray(x).tobytes(), np_dtype(dtype), prod(shape))
        return self.library.asarray(data.reshape(shape))

    def elementwise(self, op: Op, dtype: DType, xs: Sequence[Any]) -> Any:
        if op is Op.CAST:
            return self.library.astype(xs[0], np_dtype(dtype))
        if DECLARATIONS[op].is_shift:
            xs = xs[0], self.library.astype(xs[1], xs[0].dtype)
        return getattr(self.library, {**FUNCTIONS, **OPTIONAL}[op])(*xs)

    def take(self, x: Any, axis: int, index: Any) -> Any:
        return self.library.take(x, index, axis=axis)
