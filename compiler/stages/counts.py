"""Writes indices and sizes in C: their types, names and arithmetic (in render)."""

from __future__ import annotations

from uop.compiler.targets.cstyle import Operation, c_type, fits_int, literal, spell
from uop.spec.args import ConstArg
from uop.spec.dtype import dtypes
from uop.spec.graph import slot_of
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable
from uop.spec.uop import UOp


def param_name(u: UOp) -> str:
    return f"{'v' if is_variable(u) else 'b'}{slot_of(u)}"


def size_text(u: UOp) -> str:
    """A size as one expression: numbers, variables and the arithmetic on them."""
    if isinstance(u.arg, ConstArg):
        return literal(u.arg.dtype, u.arg.bits)
    if is_variable(u):
        return param_name(u)
    args = tuple(f"({size_text(s)})" for s in u.src)
    return spell(Operation(u.op, u.dtype, tuple(s.dtype for s in u.src), args))


def scalar_type(u: UOp) -> str:
    """The C type of a scalar: an index that fits into 32 bits takes no more."""
    return "i32" if u.dtype is dtypes.index and _fits(u) else c_type(u.dtype)


def counter_type(u: UOp) -> str:
    """The C type of a SPECIAL or RANGE, which counts up to its bound."""
    return "i32" if _fits(u.src[0]) else "i64"


def _fits(u: UOp) -> bool:
    return u.min_max is not None and fits_int(int(u.min_max.min), int(u.min_max.max))


def is_plain(u: UOp) -> bool:
    """Whether the operator of C gives the result of arithmetic on indices."""
    if u.op in (Op.IDIV, Op.MOD):
        x, divisor = (s.min_max for s in u.src)
        return x is not None and divisor is not None and x.min >= 0 and divisor.min > 0
    return all(s.dtype is dtypes.index and _fits(s) for s in (u, *u.src))
