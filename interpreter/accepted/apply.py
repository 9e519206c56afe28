"""What an elementwise op may return: its set rule, and what all of them have in common."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

# The rules enter their tables on import.
from uop.interpreter.accepted import casts, choices, floats, integers, reals  # noqa: F401
from uop.interpreter.accepted.sets import Sets, nan_alone
from uop.interpreter.accepted.table import FLOAT_RULES, INT_RULES
from uop.interpreter.values import Array, either
from uop.spec.errors import UnsupportedError
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import Node

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
    result = table[u.op](u, profile, *operands)
    if u.op not in CHOOSE_THEIR_MASKS:
        result = replace(
            result,
            any=either(result.any, *(s.any for s in operands)),
            invalid=either(result.invalid, *(s.invalid for s in operands)),
        )
    result = nan_alone(result)
    return result if u.shape else result.map(lambda a: a.reshape(()))


def _broadcast(a: Array, shape: tuple[int, ...]) -> Array:
    return a if a.shape == shape else np.broadcast_to(a, shape)
