"""Define the meaning of REDUCE: a row-major fold from left to right, rounded at each step."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.rules.table import RULES, evaluates
from uop.spec.args import ReduceArg, arg_of
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import identity_of

if TYPE_CHECKING:
    from uop.spec.uop import UOp

ACCUMULATE = {Op.ADD: np.add, Op.MUL: np.multiply}


def identity(op: Op, dtype: DType) -> Array:
    """Return the result of an empty fold: 0, 1, the lowest or the largest value of the dtype."""
    return np.asarray(identity_of(op, dtype)).astype(np_dtype(dtype))


def neutral(op: Op, dtype: DType) -> Array:
    """Return a term that changes no fold.

    For a float sum it is -0.0, because +0.0 would turn -0.0 into +0.0.
    """
    if op is Op.ADD and dtype.is_float:
        return np.asarray(-0.0).astype(np_dtype(dtype))
    return identity(op, dtype)


@evaluates(Op.REDUCE)
def reduce(u: UOp, t: Array) -> Array:
    """Fold the axes of the arg, which keep size 1."""
    arg = arg_of(u, ReduceArg)
    return fold(arg.op, u.dtype, terms_first(t, arg.axes)).reshape(u.shape)


def terms_first(t: Array, axes: tuple[int, ...]) -> Array:
    """Return an array with all terms on one leading axis, in row-major order.

    The other axes follow.
    """
    others = [axis for axis in range(t.ndim) if axis not in axes]
    kept = [t.shape[axis] for axis in others]
    count = math.prod(t.shape[axis] for axis in axes)
    return t.transpose((*axes, *others)).reshape(count, *kept)


def fold(op: Op, dtype: DType, steps: Array) -> Array:
    """Fold the first axis from left to right."""
    if len(steps) == 0:
        return np.broadcast_to(identity(op, dtype), steps.shape[1:])
    if len(steps) == 1:
        return np.asarray(steps[0])
    if dtype in (dtypes.float32, dtypes.float64) and op in ACCUMULATE:
        # numpy sums by pairs in `reduce`; `accumulate` goes from left to right.
        return np.asarray(ACCUMULATE[op].accumulate(steps, axis=0)[-1])
    if dtype.is_int and op in ACCUMULATE:
        return np.asarray(ACCUMULATE[op].reduce(steps, axis=0, dtype=steps.dtype))
    if dtype.is_int or dtype.kind is Kind.BOOL:
        return _fold_exactly(op, steps)
    result: Array = steps[0]
    node = SimpleNamespace(dtype=dtype)
    for step in steps[1:]:
        result = RULES[op](node, result, step)
    return result


def _fold_exactly(op: Op, steps: Array) -> Array:
    """Fold where no order changes the result: MAX and MIN, and ADD (OR) and MUL (AND) of bools."""
    ufunc = np.maximum if op in (Op.MAX, Op.ADD) else np.minimum
    return np.asarray(ufunc.reduce(steps, axis=0))
