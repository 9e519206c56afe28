"""Define the meaning of the decomposed ops by their semantics, not by their decomposition."""

from __future__ import annotations

import operator

import numpy as np

from uop.interpreter.numeric import conversions, transcendental
from uop.interpreter.numeric.storage import Array
from uop.interpreter.rules.elementwise import add, mul
from uop.interpreter.rules.table import evaluates
from uop.spec.dtype import Kind
from uop.spec.ops.names import Op
from uop.spec.registry import Node

THREEFRY_PARITY = np.uint32(0x1BD11BDA)
THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@evaluates(Op.NEG)
def neg(u: Node, a: Array) -> Array:
    if u.dtype.kind is Kind.INDEX:
        return conversions.index_op(operator.sub, np.zeros_like(a), a)
    return np.negative(a)


@evaluates(Op.SUB)
def sub(u: Node, a: Array, b: Array) -> Array:
    if u.dtype.kind is Kind.INDEX:
        return conversions.index_op(operator.sub, a, b)
    return np.subtract(a, b)


@evaluates(Op.DIV)
def div(u: Node, a: Array, b: Array) -> Array:
    """Return the correctly rounded quotient."""
    return np.divide(a, b)


@evaluates(Op.CMPGT)
def cmpgt(u: Node, a: Array, b: Array) -> Array:
    return np.greater(a, b)


@evaluates(Op.CMPGE)
def cmpge(u: Node, a: Array, b: Array) -> Array:
    """Return a >= b; false if either operand is NaN."""
    return np.greater_equal(a, b)


@evaluates(Op.CMPLE)
def cmple(u: Node, a: Array, b: Array) -> Array:
    """Return a <= b; false if either operand is NaN."""
    return np.less_equal(a, b)


@evaluates(Op.CMPEQ)
def cmpeq(u: Node, a: Array, b: Array) -> Array:
    return np.equal(a, b)


@evaluates(Op.NOT)
def logical_not(u: Node, a: Array) -> Array:
    return np.logical_not(a)


@evaluates(Op.EXP2)
def exp2(u: Node, a: Array) -> Array:
    return transcendental.rounded(Op.EXP2, u.dtype, a)


@evaluates(Op.LOG2)
def log2(u: Node, a: Array) -> Array:
    return transcendental.rounded(Op.LOG2, u.dtype, a)


@evaluates(Op.SIN)
def sin(u: Node, a: Array) -> Array:
    return transcendental.rounded(Op.SIN, u.dtype, a)


@evaluates(Op.SQRT)
def sqrt(u: Node, a: Array) -> Array:
    return np.sqrt(a)


@evaluates(Op.POW)
def pow_(u: Node, a: Array, b: Array) -> Array:
    """Return x to the power y, correctly rounded, with the special cases of IEEE 754-2019 9.2.1."""
    return transcendental.rounded(Op.POW, u.dtype, a, b)


@evaluates(Op.MULACC)
def mulacc(u: Node, a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded after the product and after the sum."""
    return add(u, np.asarray(mul(u, a, b)), c)


@evaluates(Op.THREEFRY)
def threefry(u: Node, x: Array, key: Array) -> Array:
    """Compute 20 rounds of Threefry 2x32; the low halves of `x` and `key` are the first words."""
    x0, x1 = _words(x)
    key0, key1 = _words(key)
    schedule = (key1, key0 ^ key1 ^ THREEFRY_PARITY, key0)
    x0, x1 = x0 + schedule[2], x1 + schedule[0]
    for group in range(5):
        for distance in THREEFRY_ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = _rotated(x1, distance) ^ x0
        x0 = x0 + schedule[group % 3]
        x1 = x1 + schedule[(group + 1) % 3] + np.uint32(group + 1)
    return (x1.astype(np.uint64) << np.uint64(32)) | x0.astype(np.uint64)


def _words(a: Array) -> tuple[Array, Array]:
    return a.astype(np.uint32), (a >> np.uint64(32)).astype(np.uint32)


def _rotated(a: Array, distance: int) -> Array:
    return (a << np.uint32(distance)) | (a >> np.uint32(32 - distance))
