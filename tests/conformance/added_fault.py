"""A backend with a fault in the op of `added_op`: a negation does not clear the sign of -0.0."""

from __future__ import annotations

from typing import Any

import numpy as np

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.protocol.types import Hello
from uop.interpreter.rules.table import RULES
from uop.spec.ops.names import Op


class Faulty(InterpreterBackend):
    def hello(self) -> Hello:
        def negated(u: object, t: Any) -> Any:
            return np.where(t < 0, np.negative(t), t)

        RULES[Op["ABS"]] = negated
        return super().hello()
