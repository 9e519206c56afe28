"""The meaning of the extension ops that are evaluated as they stand."""

from __future__ import annotations

import numpy as np

from uop.interpreter.numeric.storage import Array, Mask, from_bits, to_bits
from uop.interpreter.rules.elementwise import idiv
from uop.interpreter.rules.table import Node, evaluates, unspecified_where
from uop.spec.ops.names import Op

EVALUATED = frozenset({Op.CDIV, Op.CMOD, Op.MIN, Op.NOOP, Op.PRECAST, Op.REDUCE})
"""Extension ops with a rule, and the core op that folds with one of them."""


@evaluates(Op.CDIV)
def cdiv(u: Node, a: Array, b: Array) -> Array:
    """What is left without the remainder divides evenly, so the floor is the quotient."""
    return idiv(u, np.subtract(a, np.fmod(a, b)), b)


@evaluates(Op.CMOD)
def cmod(u: Node, a: Array, b: Array) -> Array:
    """The remainder of C, with the sign of the dividend."""
    return np.fmod(a, b)


@unspecified_where(Op.CDIV, Op.CMOD)
def divides_by_zero(u: Node, a: Array, b: Array) -> Mask:
    return np.equal(b, 0)


@evaluates(Op.MIN)
def minimum(u: Node, a: Array, b: Array) -> Array:
    """IEEE 754-2019 minimum: NaN wins, and -0 is below +0."""
    smaller = np.minimum(a, b)
    if not u.dtype.is_float:
        return smaller
    # Equal floats have equal bits but for zeros, where -0 wins: the OR of bits.
    both = from_bits(np.asarray(to_bits(a) | to_bits(b)), u.dtype)
    return np.where(a == b, both, smaller)


@evaluates(Op.NOOP, Op.PRECAST)
def same(u: Node, t: Array) -> Array:
    return t
