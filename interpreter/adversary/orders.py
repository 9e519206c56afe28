"""Fold the terms of a REDUCE in other orders, groupings and widths than the reference does."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.storage import Array
from uop.interpreter.rules.reduce import fold, identity
from uop.interpreter.rules.table import RULES
from uop.spec.dtype import DType
from uop.spec.latitude import MaxNan
from uop.spec.ops.names import Op

Combine = Callable[[Array, Array], Array]


def fold_somehow(
    op: Op, dtype: DType, steps: Array, random: np.random.Generator, max_nan: MaxNan = "either"
) -> Array:
    """Fold the first axis in a random way that a backend may use."""
    if len(steps) < 2 or not dtype.is_float:
        return fold(op, dtype, steps)
    steps = np.ascontiguousarray(random.permutation(steps) if random.random() < 0.7 else steps)
    wide = bool(random.random() < 0.3) and op is not Op.MAX
    # An accumulator wider than float64 is longdouble; where that is no wider, it is legal too.
    storage = steps.dtype if not wide else np.dtype(np.longdouble if dtype.bits == 64 else "f8")
    exact = np.add if op is Op.ADD else np.multiply
    combine = exact if wide else _combine(op, dtype, random, max_nan)
    grouping = GROUPINGS[random.integers(len(GROUPINGS))]
    if random.random() < 0.3:
        start = np.broadcast_to(identity(op, dtype), (1, *steps.shape[1:]))
        steps = np.concatenate([start, steps])
    result = grouping(steps.astype(storage), combine)
    return round_to(result, dtype) if wide else result


def _sequential(steps: Array, combine: Combine) -> Array:
    result = steps[0]
    for step in steps[1:]:
        result = combine(result, step)
    return np.asarray(result)


def _pairwise(steps: Array, combine: Combine) -> Array:
    while len(steps) > 1:
        rest = steps[len(steps) // 2 * 2 :]
        steps = np.concatenate([combine(steps[0:-1:2], steps[1::2]), rest])
    return np.asarray(steps[0])


def _in_lanes(steps: Array, combine: Combine) -> Array:
    """Fold into four partial results side by side and then fold those, as a vector unit does."""
    partial = [_sequential(steps[lane::4], combine) for lane in range(min(4, len(steps)))]
    return _sequential(np.stack(partial), combine)


GROUPINGS = (_sequential, _pairwise, _in_lanes)


def _combine(op: Op, dtype: DType, random: np.random.Generator, max_nan: MaxNan) -> Combine:
    if op is Op.MAX:
        return lambda a, b: maximum_somehow(a, b, random, max_nan)
    node = SimpleNamespace(dtype=dtype)
    return lambda a, b: np.asarray(RULES[op](node, a, b))


def maximum_somehow(
    a: Array, b: Array, random: np.random.Generator, max_nan: MaxNan = "either"
) -> Array:
    """Return a maximum; of two zeros, or a NaN and a number if the knob allows, it is either."""
    first = random.random(np.broadcast_shapes(a.shape, b.shape)) < 0.5
    if max_nan != "either":
        wanted, other = (a, b) if max_nan == "propagate" else (b, a)
        first = (wanted != wanted) | (first & (other == other))
    apart = np.where(a > b, a, b)
    return np.where((a == b) | (a != a) | (b != b), np.where(first, a, b), apart)
