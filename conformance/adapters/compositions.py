"""Ops that a library lacks, composed of ops that it has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache

from uop.spec.args import DTypeArg
from uop.spec.dtype import DType, Number, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.latitude import Quotient, Ulp
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, param

COMPUTED = ELEMENTWISE | {Op.CDIV, Op.CMOD}
"""The elementwise ops, with those of the extension."""
GUARDED = "guarded"
"""The tag of a division whose divisor is neither 0 nor -1."""
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def composed(u: UOp, ops: Collection[Op], partial: Collection[Op]) -> UOp | None:
    """An elementwise node over others that the library may have; None for one that it has.

    UnsupportedError where there is no composition.
    """
    is_copy = u.op is Op.CAST or (u.op is Op.TRUNC and not u.dtype.is_float)
    if is_copy and u.dtype is u.src[0].dtype:
        return u.src[0]
    if u.op in partial:
        return None if u.tag == GUARDED else guarded(u)
    if u.op in ops:
        return None
    if u.op in COMPOSITIONS:
        return COMPOSITIONS[u.op](u)
    latitude = u.declaration.latitude
    # The published decompositions of EXP2, LOG2, SIN, SQRT and POW have errors of their own.
    is_exact = not isinstance(latitude, Ulp) or isinstance(latitude, Quotient)
    if is_exact and (made := u.decompose()) is not None and made is not u:
        return made
    raise UnsupportedError(f"the library has no {u.op.name}, and it is no composition of others")


@cache
def compositions(ops: frozenset[Op], partial: frozenset[Op]) -> Mapping[Op, frozenset[Op]]:
    """By elementwise op of which others a library with `ops` and `partial` gets it.

    An op that it has itself is there without others; one that it cannot have is missing.
    """
    native = ops | partial
    found = {op: frozenset[Op]() for op in Op if op in ops}
    missing = [op for op in Op if op in COMPUTED - ops]
    steps = {op: step for op in missing if (step := _step(op, ops, partial)) is not None}
    while ready := [op for op in steps if op not in found and steps[op] <= found.keys() | partial]:
        for op in ready:
            parts = steps[op] & native
            found[op] = parts.union(*(found[part] for part in steps[op] - native))
    return found


def _step(op: Op, ops: frozenset[Op], partial: frozenset[Op]) -> frozenset[Op] | None:
    """The ops of the first composition of an op; None without one."""
    try:
        made = composed(_sample(op), ops, partial)
    except UnsupportedError:
        return None
    return None if made is None else frozenset(u.op for u in made.toposort()) & COMPUTED


def _sample(op: Op) -> UOp:
    """A node of an op on a dtype where its composition has all its parts."""
    declaration = DECLARATIONS[op]
    if op is Op.CAST:
        return UOp(op, param(0, (), dtypes.int32), arg=DTypeArg(dtypes.float32))
    allowed = tuple(declaration.dtypes)
    dtype = next((d for d in (dtypes.float32, dtypes.int32) if d in allowed), allowed[0])
    kinds = [dtypes.bool if name == "P" else dtype for name in declaration.src]
    operands = [param(slot, (), kind) for slot, kind in enumerate(kinds)]
    return UOp(op, *operands)


def like(u: UOp, value: Number) -> UOp:
    """A constant of the dtype of a node; elementwise ops broadcast it."""
    return const(value, u.dtype)


def guarded(u: UOp) -> UOp:
    """A division by 1 where the divisor is 0 or -1; of -1 the quotient is the negated value."""
    a, b = u.src
    is_zero = UOp(Op.CMPEQ, b, like(b, 0))
    if not u.dtype.is_signed and u.dtype is not dtypes.index:
        return UOp(u.op, a, UOp(Op.WHERE, is_zero, like(b, 1), b), tag=GUARDED)
    is_negative = UOp(Op.CMPEQ, b, like(b, -1))
    safe = UOp(Op.WHERE, UOp(Op.OR, is_zero, is_negative), like(b, 1), b)
    divided = UOp(u.op, a, safe, tag=GUARDED)
    if u.op in (Op.CMOD, Op.MOD):
        return divided
    return UOp(Op.WHERE, is_negative, UOp(Op.NEG, a), divided)


def _floored(u: UOp) -> UOp:
    """IDIV and MOD by those that truncate: one less where the signs of remainder and divisor
    differ.
    """
    a, b = u.src
    quotient, rest = UOp(Op.CDIV, a, b), UOp(Op.CMOD, a, b)
    if not u.dtype.is_signed and u.dtype is not dtypes.index:
        return quotient if u.op is Op.IDIV else rest
    result, step = (quotient, like(a, -1)) if u.op is Op.IDIV else (rest, b)
    is_negative = UOp(Op.CMPLT, rest, like(a, 0))
    differ = UOp(Op.CMPNE, is_negative, UOp(Op.CMPLT, b, like(a, 0)))
    is_low = UOp(Op.AND, UOp(Op.CMPNE, rest, like(a, 0)), differ)
    return UOp(Op.WHERE, is_low, UOp(Op.ADD, result, step), result)


def _threefry(u: UOp) -> UOp:
    """Threefry 2x32 in 20 rounds (Salmon et al., SC 2011), as `uop explain THREEFRY` has it."""
    (x0, x1), (key0, key1) = _words(u.src[0]), _words(u.src[1])
    parity = UOp(Op.XOR, UOp(Op.XOR, key0, key1), like(key0, PARITY))
    keys = (key1, parity, key0)
    x0, x1 = UOp(Op.ADD, x0, keys[2]), UOp(Op.ADD, x1, keys[0])
    for group in range(5):
        for count in ROTATIONS[group % 2]:
            x0 = UOp(Op.ADD, x0, x1)
            x1 = UOp(Op.XOR, _rotated(x1, count), x0)
        x0 = UOp(Op.ADD, x0, keys[group % 3])
        x1 = UOp(Op.ADD, UOp(Op.ADD, x1, keys[(group + 1) % 3]), like(x1, group + 1))
    high = UOp(Op.SHL, _cast(x1, dtypes.uint64), const(32, dtypes.uint64))
    return UOp(Op.OR, high, _cast(x0, dtypes.uint64))


def _words(x: UOp) -> tuple[UOp, UOp]:
    """The low and the high half of a uint64."""
    high = UOp(Op.SHR, x, like(x, 32))
    return _cast(x, dtypes.uint32), _cast(high, dtypes.uint32)


def _cast(x: UOp, dtype: DType) -> UOp:
    return UOp(Op.CAST, x, arg=DTypeArg(dtype))


def _rotated(x: UOp, count: int) -> UOp:
    return UOp(Op.OR, UOp(Op.SHL, x, like(x, count)), UOp(Op.SHR, x, like(x, 32 - count)))


COMPOSITIONS: Mapping[Op, Callable[[UOp], UOp]] = {
    Op.IDIV: _floored,
    Op.MOD: _floored,
    Op.RECIP: lambda u: UOp(Op.DIV, like(u, 1), u.src[0]),
    Op.THREEFRY: _threefry,
}
