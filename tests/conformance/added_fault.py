"""Faulty backends: in the op of `added_op`, and in the dtype of `added_dtype`."""

from __future__ import annotations

from typing import Any

import numpy as np

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.protocol.types import Hello
from uop.interpreter.numeric.storage import from_bits, to_bits
from uop.interpreter.rules.table import RULES
from uop.spec.ops.names import Op


class Faulty(InterpreterBackend):
    """A negation does not clear the sign of -0.0."""

    def hello(self) -> Hello:
        def negated(u: object, t: Any) -> Any:
            return np.where(t < 0, np.negative(t), t)

        RULES[Op["ABS"]] = negated
        return super().hello()


class Truncating(InterpreterBackend):
    """A CAST to float8_e3m4 rounds toward zero."""

    def hello(self) -> Hello:
        rounded = RULES[Op.CAST]

        def truncated(u: Any, t: Any) -> Any:
            nearest = rounded(u, t)
            if u.dtype.name != "float8_e3m4":
                return nearest
            away = np.abs(nearest.astype(np.float64)) > np.abs(t.astype(np.float64))
            return from_bits(to_bits(nearest) - away, u.dtype)

        RULES[Op.CAST] = truncated
        return super().hello()
