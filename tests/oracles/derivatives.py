"""Derivatives that share nothing with the gradient rules: dual numbers, exact or in balls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq
from oracles.field import Dual, Elements, Field, elements, evaluate_over

from uop.spec.uop import UOp

HALF_ULP = arb(2) ** -53
SMALLEST = arb(2) ** -1075


def fraction(x: Any) -> Fraction:
    return Fraction(x)


def ball(x: Any) -> Any:
    value = Fraction(x)
    return arb(fmpq(value.numerator, value.denominator))


def rounded_ball(x: Any) -> Any:
    """Everything that a correctly rounded float64 operation with a result in x may give."""
    return x + arb(0, (abs(x) * HALF_ULP + SMALLEST).upper())


EXACT = Field(fraction)
ENCLOSED = Field(lambda x: rounded_ball(ball(x)), rounded_ball)
"""Holds the exact values, and those that float64 gives: constants may have been rounded too."""


def partials(
    number: Callable[[Any], Any], loss: UOp, inputs: Mapping[UOp, Any], target: UOp
) -> Elements:
    """d loss / d each element of a leaf, by one run with dual numbers for each element."""
    field = Field(lambda x: Dual(number(x), number(0)))
    found = np.empty(target.shape, object)
    for where in np.ndindex(target.shape):
        given = {
            u: elements(v, (lambda x: Dual(number(x), number(0))) if u.dtype.is_float else int)
            for u, v in inputs.items()
        }
        given[target][where] = Dual(given[target][where].x, number(1))
        found[where] = evaluate_over(field, loss, given)[()].d
    return found
