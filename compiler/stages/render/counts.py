"""Writes indices and sizes in C: their types, names and arithmetic (in render)."""

from __future__ import annotations

from collections.abc import Mapping

from uop.compiler.targets.cstyle import Operation, c_type, fits_int, literal, spell
from uop.spec.args import ConstArg
from uop.spec.dtype import dtypes
from uop.spec.graph import slot_of
from uop.spec.kernel.listing import BLOCK_ENDS, BLOCK_STARTS
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable
from uop.spec.uop import UOp


def param_name(u: UOp) -> str:
    return f"{'v' if is_variable(u) else 'b'}{slot_of(u)}"


def size_text(u: UOp) -> str:
    """A size as one expression of numbers, variables and arithmetic on them."""
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
    """Whether the operator of C computes this arithmetic on indices exactly."""
    if u.op in (Op.IDIV, Op.MOD):
        x, divisor = (s.min_max for s in u.src)
        return x is not None and divisor is not None and x.min >= 0 and divisor.min > 0
    return all(s.dtype is dtypes.index and _fits(s) for s in (u, *u.src))


PRECEDENCE = {Op.ADD: 1, Op.SUB: 1, Op.MUL: 2, Op.IDIV: 2, Op.MOD: 2}
"""How closely the operators of plain arithmetic bind in C."""


def blocks_of(linear: UOp) -> dict[UOp, int]:
    """The loop or branch around each instruction, by a number."""
    found: dict[UOp, int] = {}
    opened, count = [0], 0
    for u in linear.src:
        if u.op in BLOCK_ENDS:
            opened.pop()
        found[u] = opened[-1]
        if u.op in BLOCK_STARTS:
            count += 1
            opened.append(count)
    return found


def written_inside(linear: UOp, block: Mapping[UOp, int]) -> set[UOp]:
    """The indices that are written inside the expression of their only user, the next instruction
    of the same block.
    """
    users: dict[UOp, list[UOp]] = {}
    for u in linear.src:
        for s in u.src:
            users.setdefault(s, []).append(u)
    return {
        u
        for u, (user, *others) in users.items()
        if not others and block.get(u) == block[user] and _fits_inside(u, user, users)
    }


def _fits_inside(u: UOp, user: UOp, users: dict[UOp, list[UOp]]) -> bool:
    if u.op not in PRECEDENCE or u.dtype is not dtypes.index or u.shape or not is_plain(u):
        return False
    while user.dtype is dtypes.index and user.shape and len(users.get(user, ())) == 1:
        (user,) = users[user]
    if user.op is Op.INDEX:
        return user.addrspace is not None and len(users.get(user, ())) == 1
    if user.op not in (*PRECEDENCE, Op.CMPLT, Op.CMPNE) or user.shape:
        return False
    return user.dtype is dtypes.bool or (is_plain(user) and scalar_type(u) == scalar_type(user))


def nested(text: str, op: Op, around: Op, is_right: bool) -> str:
    """An expression as an operand of another op."""
    own, other = PRECEDENCE[op], PRECEDENCE.get(around, 0)
    is_mixed = own == other == PRECEDENCE[Op.MUL] and op is not around
    return f"({text})" if own < other or is_mixed or (own == other and is_right) else text
