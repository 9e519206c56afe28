"""What an elementwise op may return: its set rule, and what all of them have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

# The rules enter their tables on import.
from uop.interpreter.accepted import liberties
from uop.interpreter.accepted.rules import casts, choices, floats, integers, reals  # noqa: F401
from uop.interpreter.accepted.rules.table import FLOAT_RULES, INT_RULES
from uop.interpreter.accepted.sets import Sets, joined, nan_alone, points
from uop.interpreter.numeric.storage import Array, constant
from uop.interpreter.values import Value, either
from uop.spec.args import ConstArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node
from uop.spec.uop import UOp, param

CHOOSE_THEIR_MASKS = frozenset({Op.WHERE, Op.BITCAST})


def elementwise(u: Node, profile: Profile, *operands: Sets) -> Sets:
    """The results of an op for operands taken from sets, whichever element is taken.

    A ()-shaped node is computed as one of shape (1,), for numpy makes scalars of ()-shaped arrays.
    """
    table = FLOAT_RULES if u.src[-1].dtype.is_float else INT_RULES
    if u.op not in table:
        raise UnsupportedError(f"{u.op.name} of {u.src[-1].dtype.name} has no accepted sets")
    shape = u.shape or (1,)
    if u.op is not Op.BITCAST:
        operands = tuple(s.map(lambda a: _broadcast(a, shape)) for s in operands)
    elif not u.shape:
        operands = tuple(s.map(lambda a: a.reshape(1)) for s in operands)
    free = liberties.takes(profile)
    if free:
        operands = tuple(liberties.read(u, profile, operands))
    result = table[u.op](u, profile, *operands)
    if free:
        result = liberties.left(u, profile, result)
        if u.op in profile.decomposed:
            result = _or_decomposed(u, profile, operands, result)
    if u.op not in CHOOSE_THEIR_MASKS:
        result = replace(
            result,
            any=either(result.any, *(s.any for s in operands)),
            invalid=either(result.invalid, *(s.invalid for s in operands)),
        )
    result = nan_alone(result)
    return result if u.shape else result.map(lambda a: a.reshape(()))


def _or_decomposed(u: Node, profile: Profile, operands: Sequence[Sets], own: Sets) -> Sets:
    """What an op or its published decomposition may be; that of a choice is left to its knob."""
    params = [param(k, s.lo.shape, u.src[k].dtype) for k, s in enumerate(operands)]
    written = UOp(u.op, *params).decompose()
    if written is None:
        return own
    done: dict[UOp, Sets] = dict(zip(params, operands, strict=True))
    nodes = (v for v in written.toposort() if v not in done and v.dtype is not dtypes.index)
    for v in nodes:
        if isinstance(v.arg, ConstArg):
            done[v] = points(Value(constant(v.arg.bits, v.dtype)), v.dtype.is_float)
        elif v.declaration.is_elementwise:
            done[v] = elementwise(v, profile, *(done[s] for s in v.src))
        else:
            # A constant at all places stands for itself: it is broadcast where it is used.
            done[v] = done[v.src[0]]
    other = done[written]
    return replace(joined(own, other), any=either(own.any, other.any))


def _broadcast(a: Array, shape: tuple[int, ...]) -> Array:
    return a if a.shape == shape else np.broadcast_to(a, shape)
