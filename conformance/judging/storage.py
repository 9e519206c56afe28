"""Between numpy arrays and the arrays of `.uop` files."""

from __future__ import annotations

import numpy as np

from uop.conformance.protocol.wire import NAMES
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.text import array as literal
from uop.spec.text.codec import encode_scalar
from uop.spec.text.literal import print_literal


def to_literal(a: Array) -> literal.Array:
    """The array as data of a file."""
    little = a.astype(a.dtype.newbyteorder("<"), copy=False) if a.dtype.kind in "iuf" else a
    return literal.Array(DTYPES[NAMES[a.dtype]], a.shape, np.ascontiguousarray(little).tobytes())


def from_literal(a: literal.Array) -> Array:
    """The data of a file as an array in storage dtype."""
    return np.frombuffer(a.data, np_dtype(a.dtype)).reshape(a.shape)


def spelled(bits: int, dtype: DType) -> str:
    """A value as a `.uop` file spells it; of what is no bool the bits."""
    if dtype is dtypes.bool and bits > 1:
        return f"0x{bits:02x}"
    return print_literal(encode_scalar(bits, dtype))
