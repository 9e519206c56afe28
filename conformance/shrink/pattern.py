"""Finds the graph of a repro inside another program, and puts dtypes and values of one into it.

A repro is a pattern: its PARAMs stand for any values, its CONSTs for constants; ops
must be equal, and so must the ops in args. Shapes and dtypes may differ, and so may what a FUNCTION
computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace

import numpy as np

from uop.conformance.shrink.reduce import Candidate
from uop.interpreter.numeric.storage import BITS, Array, from_bits, np_dtype, to_bits
from uop.spec.args import BufferArg, DTypeArg, arg_of
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.graph import slot_of, slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

NEAR_LIMIT = 16
"""An int at most this far from a limit of its dtype becomes one as far from the other's limit."""

NEAR_WIDTH = 2
"""An int at most this far from the width of its dtype, in bits, becomes one as far from the new."""

Match = Mapping[UOp, UOp]
"""The node that each node of a pattern stands for; its shapes stand for themselves."""


def matches(pattern: UOp, nodes: Iterable[UOp]) -> Iterator[Match]:
    """The places among nodes where a pattern occurs."""
    for u in nodes:
        match: dict[UOp, UOp] = {}
        if u.op is pattern.op and _matches(pattern, u, match):
            yield match


def _matches(p: UOp, u: UOp, match: dict[UOp, UOp]) -> bool:
    if p in match:
        return match[p] is u
    match[p] = u
    if is_shape(p):
        return is_shape(u)
    if p.op is Op.FUNCTION:
        return u.op is Op.FUNCTION
    if p.declaration.is_source:
        return p.op is Op.PARAM or p.op is u.op
    return (
        p.op is u.op
        and len(p.src) == len(u.src)
        and _ops_in(p) == _ops_in(u)
        and all(_matches(a, b, match) for a, b in zip(p.src, u.src, strict=True))
    )


def is_shape(u: UOp) -> bool:
    """Whether a node is a constant index, or a STACK of these."""
    constants = u.src if u.op is Op.STACK else (u,)
    return u.dtype is dtypes.index and all(s.op is Op.CONST for s in constants)


def _ops_in(u: UOp) -> list[object]:
    """The type of an arg, and the ops in it: REDUCE by ADD is another op than by MAX."""
    values = [getattr(u.arg, f.name) for f in fields(u.arg)] if u.arg is not None else []
    return [type(u.arg), *(v for v in values if isinstance(v, Op))]


def transplanted(repro: Candidate, match: Match) -> Iterator[Candidate]:
    """The repro with the dtypes and constants of the program in which it occurs.

    Its inputs come in the two ways of `converted`. A step that builds no valid program raises
    UopError.
    """
    new: dict[UOp, UOp] = {}
    for p in repro.root.toposort():
        u = match.get(p, p)
        if p.op is Op.PARAM and p.dtype is not dtypes.index:
            new[p] = param(slot_of(p), p.shape, u.dtype, p.device)
        elif p.op is Op.BUFFER:
            new[p] = UOp(p.op, *p.src, arg=replace(arg_of(p, BufferArg), dtype=u.dtype))
        elif p.op is Op.CONST and p.dtype is not dtypes.index and u.shape == ():
            new[p] = u
        else:
            arg = u.arg if isinstance(u.arg, DTypeArg) else p.arg
            new[p] = UOp(p.op, *(new[s] for s in p.src), arg=arg)
    own = slots_of(repro.root)
    for by_role in (False, True):
        inputs = dict(repro.inputs)
        for slot in own.keys() & inputs.keys():
            p = own[slot]
            inputs[slot] = converted(inputs[slot], p.dtype, new[p].dtype, by_role)
        yield Candidate(new[repro.root], inputs)


def converted(a: Array, old: DType, new: DType, by_role: bool) -> Array:
    """An array as one of another dtype: the same numbers, or numbers of the same role.

    By role an int near a limit of its dtype, or near its width in bits, stays near that, and a
    larger one keeps its share of the range; a float keeps its distance from the ends of the
    exponents and its last bits. A bool is true by role where a number is above the least.
    """
    if old is new:
        return a
    same_kind = old.kind is new.kind
    if by_role and old.is_int and new.is_int:
        flat = [_int_by_role(int(v), old, new) for v in a.reshape(-1).tolist()]
        return np.array(flat, np_dtype(new)).reshape(a.shape)
    if by_role and same_kind and old.is_float:
        bits = [_float_by_role(int(b), old, new) for b in to_bits(a).reshape(-1).tolist()]
        return from_bits(np.array(bits, BITS[new.itemsize]), new).reshape(a.shape)
    with np.errstate(all="ignore"):
        if by_role and new.kind is Kind.BOOL and a.size:
            return np.asarray(a > a.min())
        if new.kind in (Kind.INT, Kind.UINT) and old.is_float:
            finite = np.nan_to_num(a.astype(np.float64), nan=0.0)
            return np.clip(finite, float(new.min), float(new.max) / 2).astype(np_dtype(new))
        return np.asarray(a.astype(np_dtype(new)))


def _int_by_role(value: int, old: DType, new: DType) -> int:
    low, high = int(old.min), int(old.max)
    if high - value <= NEAR_LIMIT:
        return int(new.max) - (high - value)
    if value - low <= NEAR_LIMIT and low:
        return int(new.min) + (value - low)
    if abs(value - old.bits) <= NEAR_WIDTH:
        return new.bits + (value - old.bits)
    if abs(value) <= NEAR_LIMIT:
        return max(value, int(new.min))
    shift = new.bits - old.bits
    scaled = value << shift if shift >= 0 else value >> -shift
    return max(int(new.min), min(int(new.max), scaled))


def _float_by_role(bits: int, old: DType, new: DType) -> int:
    f, g = old.format, new.format
    if f.is_nan(bits):
        return g.nan_bits
    sign = g.sign_bit if bits & f.sign_bit else 0
    exponent = (bits & f.exponent_mask) >> f.fraction_bits
    fraction = bits & f.fraction_mask
    top = f.exponent_mask >> f.fraction_bits
    last = g.exponent_mask >> g.fraction_bits
    if exponent <= f.bias // 2:
        place = exponent
    elif exponent >= top - f.bias // 2:
        place = last - (top - exponent)
    else:
        place = exponent - f.bias + g.bias
    place = max(0, min(last, place))
    return sign | (place << g.fraction_bits) | (fraction & g.fraction_mask)
