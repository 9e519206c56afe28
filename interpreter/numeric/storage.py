"""Define how numpy stores values: the storage of each dtype, its bits, and the limits of shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, TypeGuard

import ml_dtypes
import numpy as np
import numpy.typing as npt

from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.errors import IncompleteError

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

NUMPY_DTYPE = "its numpy dtype: add_storage of interpreter/numeric/storage.py"


class Storage(dict[str, np.dtype[Any]]):
    """The numpy dtype of each dtype, by its name; raises IncompleteError for one without."""

    def __missing__(self, name: str) -> np.dtype[Any]:
        raise IncompleteError(name, NUMPY_DTYPE)


STORAGE = Storage()
STORED: dict[np.dtype[Any], DType] = {}
"""The dtype that a numpy dtype stores; for int64 that is int64, not index."""
BITS: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}
MOST_AXES = 60
"""The most axes of a value, and the most parallel ranges: numpy has 64, and some ops add a few."""


PART = 1 << 16
"""The most elements that an elementwise rule computes at once, so that its temporaries stay small
and in the cache.
"""


def parts(shape: Sequence[int]) -> Iterator[tuple[int | slice, ...]]:
    """Yield the indices of the parts of an array of this shape, of at most PART elements each, in
    row-major order.

    An array that is a single part yields none.
    """
    if prod(shape) <= PART:
        return
    axis = next(k for k in range(len(shape)) if prod(shape[k + 1 :]) <= PART)
    step = PART // prod(shape[axis + 1 :])
    cuts = [slice(start, start + step) for start in range(0, shape[axis], step)]
    for outer in product(*map(range, shape[:axis])):
        for cut in cuts:
            yield *outer, cut


def holds(shape: Sequence[int], itemsize: int) -> bool:
    """Return whether numpy can have an array of this shape, whose size it counts in 63 bits."""
    return len(shape) <= MOST_AXES and prod(filter(None, shape)) * itemsize < 1 << 63


def is_shape(data: object, itemsize: int) -> TypeGuard[list[int]]:
    """Return whether untrusted data is the shape of an array that numpy can have."""
    if not isinstance(data, list) or not all(type(n) is int and n >= 0 for n in data):
        return False
    return holds(data, itemsize)


def add_storage(dtype: DType, storage: npt.DTypeLike) -> None:
    """Register the numpy dtype that stores a dtype; ValueError for one of another size."""
    stored = np.dtype(storage)
    if dtype.kind is not Kind.BOOL and dtype.bits != 8 * stored.itemsize:
        raise ValueError(f"{dtype.name} has {dtype.bits} bits: expected a numpy dtype of as many")
    STORAGE[dtype.name] = stored
    STORED.setdefault(stored, dtype)


def np_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype that stores a dtype; void has none."""
    return STORAGE[dtype.name]


def to_bits(a: Array) -> Array:
    """Return the bit patterns of an array as unsigned integers of its item size, sharing memory."""
    return a.view(BITS[a.dtype.itemsize])


def from_bits(bits: Array, dtype: DType) -> Array:
    """Return the values of bit patterns, sharing memory."""
    return bits.view(STORAGE[dtype.name])


def constant(bits: int, dtype: DType) -> Array:
    """Return a ()-shaped array with the bits of a constant."""
    return from_bits(np.asarray(bits, BITS[dtype.itemsize]), dtype)


add_storage(dtypes.bool, np.bool_)
add_storage(dtypes.int8, np.int8)
add_storage(dtypes.int16, np.int16)
add_storage(dtypes.int32, np.int32)
add_storage(dtypes.int64, np.int64)
add_storage(dtypes.uint8, np.uint8)
add_storage(dtypes.uint16, np.uint16)
add_storage(dtypes.uint32, np.uint32)
add_storage(dtypes.uint64, np.uint64)
add_storage(dtypes.float16, np.float16)
add_storage(dtypes.bfloat16, ml_dtypes.bfloat16)
add_storage(dtypes.float32, np.float32)
add_storage(dtypes.float64, np.float64)
add_storage(dtypes.fp8e4m3, ml_dtypes.float8_e4m3fn)
add_storage(dtypes.fp8e5m2, ml_dtypes.float8_e5m2)
add_storage(dtypes.index, np.int64)
