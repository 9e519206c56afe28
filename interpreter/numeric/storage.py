"""Define how numpy stores values: the storage of each dtype, its bits, and the limits of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeGuard

import ml_dtypes
import numpy as np
import numpy.typing as npt

from uop.spec.dtype import DType

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

STORAGE: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint8": np.dtype(np.uint8),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "fp8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "index": np.dtype(np.int64),
}
BITS: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}
MOST_AXES = 60
"""The most axes of a value and the most parallel ranges; numpy has 64, and some ops add a few."""


def holds(shape: Sequence[int], itemsize: int) -> bool:
    """Return whether numpy can have an array of this shape, whose size it counts in 63 bits."""
    return len(shape) <= MOST_AXES and prod(filter(None, shape)) * itemsize < 1 << 63


def is_shape(data: object, itemsize: int) -> TypeGuard[list[int]]:
    """Return whether untrusted data is the shape of an array that numpy can have."""
    if not isinstance(data, list) or not all(type(n) is int and n >= 0 for n in data):
        return False
    return holds(data, itemsize)


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
