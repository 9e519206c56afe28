"""Nodes that many passes build: arithmetic on indices, vectors, values of a shape, memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from uop.spec.args import AddrSpace, BufferArg, DTypeArg, PadArg, PadFill
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape, identity_of
from uop.spec.uop import UOp, const, dims, index_const

ZERO = index_const(0)
ONE = index_const(1)
TRUE = const(True, dtypes.bool)
FALSE = const(False, dtypes.bool)
ZERO_FILL = PadArg(PadFill.ZERO)

Index = int | UOp
"""An operand of arithmetic on indices."""


def index(i: Index) -> UOp:
    """An index, or a number as one."""
    return i if isinstance(i, UOp) else index_const(i)


def add(a: Index, b: Index) -> UOp:
    return UOp(Op.ADD, index(a), index(b))


def sub(a: Index, b: Index) -> UOp:
    return UOp(Op.SUB, index(a), index(b))


def mul(a: Index, b: Index) -> UOp:
    return UOp(Op.MUL, index(a), index(b))


def div(a: Index, b: Index) -> UOp:
    return UOp(Op.IDIV, index(a), index(b))


def mod(a: Index, b: Index) -> UOp:
    return UOp(Op.MOD, index(a), index(b))


@cache
def counting(count: int) -> UOp:
    """The vector 0, 1, ..., count - 1."""
    return UOp(Op.STACK, *(index_const(k) for k in range(count)))


def element(u: UOp, *at: int) -> UOp:
    """An element of a value by its numbers."""
    return UOp(Op.INDEX, u, *map(index_const, at))


def as_dtype(u: UOp, dtype: DType) -> UOp:
    """A value as a CAST to a dtype; one that has it stays."""
    return u if u.dtype is dtype else UOp(Op.CAST, u, arg=DTypeArg(dtype))


def bits_as(u: UOp, dtype: DType) -> UOp:
    """The bits of a value as a dtype of the same size."""
    return u if u.dtype is dtype else UOp(Op.BITCAST, u, arg=DTypeArg(dtype))


def identity(op: Op, dtype: DType) -> UOp:
    """The result of a REDUCE over no elements."""
    return const(identity_of(op, dtype), dtype)


def neutral(op: Op, dtype: DType) -> UOp:
    """The value that does not change a REDUCE: for a float sum -0.0, since -0.0 + 0.0 is 0.0."""
    return const(-0.0, dtype) if op is Op.ADD and dtype.is_float else identity(op, dtype)


def reshaped(u: UOp, shape: Iterable[int | UOp]) -> UOp:
    """The elements of a value in another shape."""
    return UOp(Op.RESHAPE, u, dims(shape))


def full(value: UOp, shape: Shape) -> UOp:
    """Broadcast a scalar to a shape."""
    return expand(reshaped(value, (1,) * len(shape)), shape) if shape else value


def expand(u: UOp, shape: Shape) -> UOp:
    """Broadcast to a shape, right-aligned."""
    if u.shape == shape:
        return u
    if len(u.shape) < len(shape):
        u = reshaped(u, (1,) * (len(shape) - len(u.shape)) + u.shape)
    return u if u.shape == shape else UOp(Op.EXPAND, u, dims(shape))


def along(u: UOp, axis: int, shape: Shape) -> UOp:
    """Broadcast to a shape, with the axes of a value from one axis on."""
    rest = len(shape) - axis - len(u.shape)
    return expand(reshaped(u, (1,) * axis + u.shape + (1,) * rest), shape)


def both(a: UOp | None, b: UOp | None) -> UOp | None:
    """AND of two masks; None is true everywhere."""
    if a is None or b is None:
        return b if a is None else a
    return a if a is b else UOp(Op.AND, a, b)


def only_where(mask: UOp | None, condition: UOp) -> UOp:
    """A condition, and false where a mask is: there it may be UNSPECIFIED, as its AND would be."""
    return condition if mask is None else UOp(Op.WHERE, mask, condition, FALSE)


def buffer(slot: int, dtype: DType, size: int, space: AddrSpace) -> UOp:
    """A flat BUFFER of a kernel."""
    return UOp(Op.BUFFER, dims((size,)), arg=BufferArg(slot, dtype, None, space))
