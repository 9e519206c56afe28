"""Define the meaning of the extension ops that are evaluated without decomposition."""

from __future__ import annotations

import numpy as np

from uop.interpreter.numeric.storage import Array, from_bits, to_bits
from uop.interpreter.rules.elementwise import idiv
from uop.interpreter.rules.table import evaluates
from uop.spec.ops.names import Op
from uop.spec.registry import Node


@evaluates(Op.CDIV)
def cdiv(u: Node, a: Array, b: Array) -> Array:
    """Return the quotient rounded toward zero.

    The dividend minus its remainder is divisible, so the floored quotient is exact.
    """
    return idiv(u, np.subtract(a, np.fmod(a, b)), b)


@evaluates(Op.CMOD)
def cmod(u: Node, a: Array, b: Array) -> Array:
    """Return the remainder of C, which has the sign of the dividend."""
    return np.fmod(a, b)


@evaluates(Op.MIN)
def minimum(u: Node, a: Array, b: Array) -> Array:
    """Return the minimum of IEEE 754-2019: a NaN if either operand is NaN, and -0 below +0."""
    smaller = np.minimum(a, b)
    if not u.dtype.is_float:
        return smaller
    # Equal floats differ in bits only as zeros. OR of the bits gives -0 if either one is -0.
    both = from_bits(np.asarray(to_bits(a) | to_bits(b)), u.dtype)
    return np.where(a == b, both, smaller)


@evaluates(Op.NOOP, Op.PRECAST)
def same(u: Node, t: Array) -> Array:
    return t
