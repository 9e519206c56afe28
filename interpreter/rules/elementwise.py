"""Define the meaning of the elementwise primitives on numpy arrays.

Floats narrower than 32 bits: numpy and ml_dtypes compute in correctly rounded float32 and then
round to the dtype. The result is correctly rounded, because float32 has at least 2p + 2 bits of
precision for each dtype of precision p.
"""

from __future__ import annotations

import operator

import numpy as np

from uop.interpreter.numeric import conversions
from uop.interpreter.numeric.storage import BITS, Array, Mask, from_bits, np_dtype, to_bits
from uop.interpreter.rules.table import evaluates, unspecified_where
from uop.spec.conditions.clauses import undefined
from uop.spec.dtype import Kind
from uop.spec.ops.names import Op
from uop.spec.registry import Node


@evaluates(Op.ADD)
def add(u: Node, a: Array, b: Array) -> Array:
    """Return the sum; integers wrap, and a bool saturates (OR)."""
    if u.dtype.kind is Kind.INDEX:
        return conversions.index_op(operator.add, a, b)
    return np.add(a, b)


@evaluates(Op.MUL)
def mul(u: Node, a: Array, b: Array) -> Array:
    if u.dtype.kind is Kind.INDEX:
        return conversions.index_op(operator.mul, a, b)
    return np.multiply(a, b)


@evaluates(Op.MAX)
def maximum(u: Node, a: Array, b: Array) -> Array:
    """Return the maximum of IEEE 754-2019: a NaN if either operand is NaN, and +0 above -0."""
    larger = np.maximum(a, b)
    if not u.dtype.is_float:
        return larger
    # Equal floats differ in bits only as zeros. AND of the bits gives +0 unless both are -0.
    both = from_bits(np.asarray(to_bits(a) & to_bits(b)), u.dtype)
    return np.where(a == b, both, larger)


@evaluates(Op.IDIV)
def idiv(u: Node, a: Array, b: Array) -> Array:
    """Return the quotient rounded toward minus infinity.

    Raises UndefinedError where an index quotient leaves the range of index.
    """
    if u.dtype.kind is Kind.INDEX and np.any((a == conversions.INDEX_RANGE[0]) & (b == -1)):
        raise undefined("VALUE.u1", f"{-conversions.INDEX_RANGE[0]}")
    return np.floor_divide(a, b)


@evaluates(Op.MOD)
def mod(u: Node, a: Array, b: Array) -> Array:
    """Return the remainder of the floored quotient, which has the sign of the divisor."""
    return np.remainder(a, b)


@unspecified_where(Op.IDIV, Op.MOD, Op.CDIV, Op.CMOD)
def divides_by_zero(u: Node, a: Array, b: Array) -> Mask:
    return np.equal(b, 0)


@evaluates(Op.SHL)
def shl(u: Node, a: Array, b: Array) -> Array:
    """Return a times 2 to the power b, wrapping."""
    count = _count_or_zero(u, b)
    if u.dtype.kind is Kind.INDEX:
        return conversions.index_op(operator.lshift, a, count)
    return np.left_shift(a, count)


@evaluates(Op.SHR)
def shr(u: Node, a: Array, b: Array) -> Array:
    """Shift right; a signed dtype keeps its sign."""
    return np.right_shift(a, _count_or_zero(u, b))


@unspecified_where(Op.SHL, Op.SHR)
def shifts_too_far(u: Node, a: Array, b: Array) -> Mask | None:
    # As unsigned numbers negative counts are the largest: one pass finds both kinds of bad count.
    if b.size and b.view(BITS[b.dtype.itemsize]).max() < u.dtype.bits:
        return None
    return np.logical_or(b < 0, b >= u.dtype.bits)


@evaluates(Op.XOR)
def xor(u: Node, a: Array, b: Array) -> Array:
    return np.bitwise_xor(a, b)


@evaluates(Op.OR)
def bitwise_or(u: Node, a: Array, b: Array) -> Array:
    return np.bitwise_or(a, b)


@evaluates(Op.AND)
def bitwise_and(u: Node, a: Array, b: Array) -> Array:
    return np.bitwise_and(a, b)


@evaluates(Op.CMPLT)
def cmplt(u: Node, a: Array, b: Array) -> Array:
    """Return a < b; false if either operand is NaN."""
    return np.less(a, b)


@evaluates(Op.CMPNE)
def cmpne(u: Node, a: Array, b: Array) -> Array:
    """Return a != b; true if either operand is NaN."""
    return np.not_equal(a, b)


@evaluates(Op.WHERE)
def where(u: Node, p: Array, a: Array, b: Array) -> Array:
    """Select each element from `a` where `p` is true, else from `b`, bit by bit."""
    return np.where(p, a, b)


@evaluates(Op.RECIP)
def recip(u: Node, a: Array) -> Array:
    return np.reciprocal(a)


@evaluates(Op.TRUNC)
def trunc(u: Node, a: Array) -> Array:
    """Round toward zero and keep the sign of a zero; integers stay as they are."""
    return np.asarray(np.trunc(a)) if u.dtype.is_float else a


@evaluates(Op.CAST)
def cast(u: Node, a: Array) -> Array:
    return conversions.cast(a, u.src[0].dtype, u.dtype)


unspecified_where(Op.CAST)(lambda u, a: conversions.cast_unspecified(a, u.src[0].dtype, u.dtype))


@evaluates(Op.BITCAST)
def bitcast(u: Node, a: Array) -> Array:
    return conversions.bitcast(a, u.dtype)


unspecified_where(Op.BITCAST)(lambda u, a: conversions.bitcast_unspecified(a, u.dtype))


def _count_or_zero(u: Node, b: Array) -> Array:
    storage = np_dtype(u.dtype)
    if b.dtype == storage and u.dtype.kind is not Kind.INDEX:
        # numpy gives 0 or -1 for a count outside the dtype. Those elements are unspecified anyway.
        return b
    inside = np.logical_and(b >= 0, b < u.dtype.bits)
    return np.where(inside, b, b.dtype.type(0)).astype(storage)
