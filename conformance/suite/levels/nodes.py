"""Build the nodes that programs of every level share: conversions, movements, folds, calls."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec import args
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const
from uop.spec.uop import dims as new_dims


@lru_cache(maxsize=1024)
def _dims(values: Shape) -> UOp:
    return new_dims(values)


def dims(values: Iterable[int]) -> UOp:
    """Return a shape or offset operand; nodes are cached, because programs share few of them."""
    return _dims(tuple(values))


def constant(value: Array, dtype: DType) -> UOp:
    """Return a CONST with the bits of one element."""
    return UOp(Op.CONST, arg=args.ConstArg(int(to_bits(value.reshape(1))[0]), dtype))


def buffer(slot: int, shape: Iterable[int], dtype: DType, device: args.Device = None) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=args.BufferArg(slot, dtype, device))


def cast(u: UOp, dtype: DType) -> UOp:
    return UOp(Op.CAST, u, arg=args.DTypeArg(dtype))


def bitcast(u: UOp, dtype: DType) -> UOp:
    return UOp(Op.BITCAST, u, arg=args.DTypeArg(dtype))


def reshape(u: UOp, shape: Iterable[int]) -> UOp:
    return UOp(Op.RESHAPE, u, dims(shape))


def expand(u: UOp, shape: Iterable[int]) -> UOp:
    return UOp(Op.EXPAND, u, dims(shape))


def copies(u: UOp, n: int) -> UOp:
    """Return n copies of a value along a new first axis."""
    return expand(reshape(u, (1, *u.shape)), (n, *u.shape))


def replicated(u: UOp, axis: int = 0) -> UOp:
    """Return the one value that all positions along an axis hold."""
    return UOp(Op.REPLICATED, u, arg=args.ReplicatedArg((axis,)))


def copied(u: UOp, to: args.Device) -> UOp:
    """Return a copy of a value on another device or other ones."""
    return UOp(Op.LOAD, u, arg=args.LoadArg(to))


def permute(u: UOp, order: Iterable[int]) -> UOp:
    return UOp(Op.PERMUTE, u, arg=args.PermuteArg(tuple(order)))


def flip(u: UOp, flags: Iterable[bool]) -> UOp:
    return UOp(Op.FLIP, u, arg=args.FlipArg(tuple(flags)))


def flip_all(u: UOp) -> UOp:
    return flip(u, (True,) * len(u.shape))


def shrink(u: UOp, offset: Iterable[int], sizes: Iterable[int]) -> UOp:
    return UOp(Op.SHRINK, u, dims(offset), dims(sizes))


def pad(
    u: UOp, before: Iterable[int], sizes: Iterable[int], fill: args.PadFill = args.PadFill.INVALID
) -> UOp:
    return UOp(Op.PAD, u, dims(before), dims(sizes), arg=args.PadArg(fill))


def all_true(shape: Shape) -> UOp:
    return expand(reshape(const(True, dtypes.bool), (1,) * len(shape)), shape)


def inside(padded: UOp) -> UOp:
    """Return where a PAD holds elements of its operand: the same PAD of true, with false around."""
    t, *geometry = padded.src
    return UOp(Op.PAD, all_true(t.shape), *geometry, arg=args.PadArg(args.PadFill.ZERO))


def fold(op: Op, u: UOp, axes: Iterable[int]) -> UOp:
    return UOp(Op.REDUCE, u, arg=args.ReduceArg(op, tuple(axes)))


def outputs(*values: UOp) -> UOp:
    return UOp(Op.TUPLE, *values)


def call(body: Iterable[UOp], *arguments: UOp) -> list[UOp]:
    """Return the values of a FUNCTION with this body."""
    values = outputs(*body)
    function = UOp(Op.FUNCTION, values, *arguments)
    return [member(function, k) for k in range(len(values.src))]


def member(values: UOp, k: int) -> UOp:
    """Return value k of a TUPLE or FUNCTION."""
    return UOp(Op.GETTUPLE, values, arg=args.GetTupleArg(k))


def store(target: UOp, value: UOp, *gate: UOp) -> UOp:
    return UOp(Op.STORE, target, value, *gate)


def after(target: UOp, value: UOp) -> UOp:
    """Return a buffer after a value is stored to it."""
    return UOp(Op.AFTER, target, store(target, value))


def number_of(variable: UOp, turn: int) -> Array:
    """Return the largest, the least or the middle number of a variable, by turns."""
    bounds = args.arg_of(variable, args.ParamArg)
    assert bounds.min is not None
    assert bounds.max is not None
    numbers = bounds.max, bounds.min, (bounds.min + bounds.max) // 2
    return np.asarray(numbers[turn % 3], np.int64)
