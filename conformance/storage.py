"""Between numpy arrays and the arrays of `.uop` files."""

from __future__ import annotations

import numpy as np

from uop.conformance.wire import NAMES
from uop.interpreter.numeric import np_dtype
from uop.interpreter.values import Array
from uop.spec import array as literal
from uop.spec.dtype import DTYPES


def to_literal(a: Array) -> literal.Array:
    """The array as data of a file."""
    little = a.astype(a.dtype.newbyteorder("<"), copy=False) if a.dtype.kind in "iuf" else a
    return literal.Array(DTYPES[NAMES[a.dtype]], a.shape, np.ascontiguousarray(little).tobytes())


def from_literal(a: literal.Array) -> Array:
    """The data of a file as an array in storage dtype."""
    return np.frombuffer(a.data, np_dtype(a.dtype)).reshape(a.shape)
