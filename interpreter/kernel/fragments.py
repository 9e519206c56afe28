"""Map matrix elements to lanes: the work item of a warp, and the element in its fragment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from uop.interpreter.numeric.storage import Array
from uop.spec.args import WmmaArg
from uop.spec.conditions.clauses import lacking
from uop.spec.dtype import DType, dtypes

Formula = Callable[[Array, Array], tuple[Array, Array]]
"""Maps row and column of a matrix to a lane and the element in that lane."""


@dataclass(frozen=True, slots=True)
class LaneMap:
    """The lane of each place of a matrix, and the element in the fragment of that lane."""

    lane: Array
    element: Array

    @classmethod
    def of(cls, rows: int, columns: int, formula: Formula) -> LaneMap:
        row, column = np.indices((rows, columns))
        return cls(*formula(row, column))

    def gather(self, fragments: Array) -> Array:
        """Return the matrix of fragments, whose last two axes are lane and element."""
        return np.asarray(fragments[..., self.lane, self.element])

    def scatter(self, matrix: Array) -> Array:
        """Return the fragments of a matrix: the inverse of `gather`."""
        lanes, elements = int(self.lane.max()) + 1, int(self.element.max()) + 1
        fragments = np.empty((*matrix.shape[:-2], lanes, elements), matrix.dtype)
        fragments[..., self.lane, self.element] = matrix
        return fragments


@dataclass(frozen=True, slots=True)
class Fragments:
    """The lane maps of one instruction."""

    a: LaneMap
    b: LaneMap
    acc: LaneMap


def fragments_of(arg: WmmaArg) -> Fragments:
    """Return the lane maps of a WMMA; raise LackingError if they are unknown."""
    formulas = _FORMULAS.get((arg.m, arg.n, arg.k, arg.dtype_in))
    if formulas is None or arg.dtype_out not in _RESULTS[arg.dtype_in]:
        shape = f"m{arg.m}n{arg.n}k{arg.k}"
        found = f"no lane map of WMMA {shape} {arg.dtype_in.name} to {arg.dtype_out.name}"
        raise lacking("WMMA.n1", found)
    a, b = formulas
    return Fragments(
        LaneMap.of(arg.m, arg.k, a), LaneMap.of(arg.k, arg.n, b), LaneMap.of(arg.m, arg.n, _acc)
    )


def _acc(row: Array, column: Array) -> tuple[Array, Array]:
    """Place two neighbours of a row in one lane, and rows 8 apart in the same lane."""
    return column // 2 + row % 8 * 4, column % 2 + row // 8 * 2


PAIRS: tuple[Formula, Formula] = (
    lambda row, k: (k // 2 % 4 + row % 8 * 4, k % 2 + row // 8 * 2 + k // 8 * 4),
    lambda k, column: (k // 2 % 4 + column * 4, k % 2 + k // 8 * 2),
)
WORDS: tuple[Formula, Formula] = (
    lambda row, k: (k % 4 + row % 8 * 4, k // 4 * 2 + row // 8),
    lambda k, column: (k % 4 + column * 4, k // 4),
)
BYTES: tuple[Formula, Formula] = (
    lambda row, k: (k // 4 % 4 + row % 8 * 4, k % 4 + row // 8 * 4 + k // 16 * 8),
    lambda k, column: (k // 4 % 4 + column * 4, k % 4 + k // 16 * 4),
)
"""The places of A and of B: a lane has 4 bytes side by side."""

_FORMULAS: dict[tuple[int, int, int, DType], tuple[Formula, Formula]] = {
    (16, 8, 16, dtypes.float16): PAIRS,
    (16, 8, 16, dtypes.bfloat16): PAIRS,
    (16, 8, 8, dtypes.float16): PAIRS,
    (16, 8, 8, dtypes.float32): WORDS,
    (16, 8, 32, dtypes.fp8e4m3): BYTES,
    (16, 8, 32, dtypes.fp8e5m2): BYTES,
}
_RESULTS: dict[DType, tuple[DType, ...]] = {
    dtypes.float16: (dtypes.float32, dtypes.float16),
    dtypes.bfloat16: (dtypes.float32,),
    dtypes.float32: (dtypes.float32,),
    dtypes.fp8e4m3: (dtypes.float32,),
    dtypes.fp8e5m2: (dtypes.float32,),
}
SHAPES = tuple(
    WmmaArg(m, n, k, dtype_in, dtype_out)
    for m, n, k, dtype_in in _FORMULAS
    for dtype_out in _RESULTS[dtype_in]
)
"""The lane maps of every instruction with known ones."""
