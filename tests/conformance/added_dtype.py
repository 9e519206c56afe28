"""A dtype from outside: all that a package writes to add float8_e3m4 to the language."""

from __future__ import annotations

import ml_dtypes

from uop.interpreter.numeric.storage import add_storage
from uop.spec.dtype import DType, FloatFormat, Kind

FLOAT8_E3M4 = DType("float8_e3m4", Kind.FLOAT, 8, FloatFormat(3, 4))
add_storage(FLOAT8_E3M4, ml_dtypes.float8_e3m4)
