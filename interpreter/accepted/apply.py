"""Compute the accepted results of an elementwise op: its set rule, and what all ops share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from operator import itemgetter
from typing import cast

import numpy as np

# The rules enter their tables on import.
from uop.interpreter.accepted import liberties, order, sets
from uop.interpreter.accepted.rules import choices, floats, integers, reals  # noqa: F401
from uop.interpreter.accepted.rules.table import ACCEPTED_SET, FLOAT_RULES, INT_RULES, SetRule
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.numeric.storage import Mask, constant, parts
from uop.interpreter.tensor import masks
from uop.interpreter.values import Value, either
from uop.spec.args import ConstArg
from uop.spec.dtype import dtypes
from uop.spec.errors import IncompleteError
from uop.spec.latitude import Exact, Profile
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Node
from uop.spec.uop import UOp, param

MOST_COMBINATIONS = 25
"""The most pairs of intervals of two operands; beyond it the gaps of the operands count
as filled.
"""


def elementwise(u: Node, profile: Profile, *operands: Sets) -> Sets:
    """Return the accepted results of an op, for all elements of the sets of its operands.

    A ()-shaped node is computed with shape (1,), because numpy turns ()-shaped arrays into scalars.
    """
    rule = rule_of(u.op, u.src[-1].dtype.is_float)
    shape = u.shape or (1,)
    if u.op is not Op.BITCAST:
        operands = tuple(
            s.map(lambda a: a if a.shape == shape else np.broadcast_to(a, shape)) for s in operands
        )
    elif not u.shape:
        operands = tuple(s.map(lambda a: a.reshape(1)) for s in operands)
    cuts = list(parts(shape)) if u.op is not Op.BITCAST else []
    if cuts:
        done = [
            _taken(rule, u, profile, [s.map(itemgetter(cut)) for s in operands]) for cut in cuts
        ]
        flat = sets.together([s.map(np.ravel) for s in done], np.concatenate)
        result = flat.map(lambda a: a.reshape(shape))
    else:
        result = _taken(rule, u, profile, operands)
    if u.op not in (Op.WHERE, Op.BITCAST):
        result = replace(
            result,
            any=either(result.any, *(s.any for s in operands)),
            invalid=either(result.invalid, *(s.invalid for s in operands)),
        )
    result = sets.nan_alone(result)
    return result if u.shape else result.map(lambda a: a.reshape(()))


def _taken(rule: SetRule, u: Node, profile: Profile, operands: Sequence[Sets]) -> Sets:
    """The results of a rule, with the liberties of a profile."""
    if not liberties.is_relaxed(profile):
        return _applied(rule, u, profile, operands)
    operands = tuple(liberties.read(u, profile, operands))
    result = _applied(rule, u, profile, operands)
    result = liberties.relaxed(u, profile, operands, result)
    if u.op in profile.decomposed:
        result = _or_decomposed(u, profile, operands, result)
    return result


def _applied(rule: SetRule, u: Node, profile: Profile, operands: Sequence[Sets]) -> Sets:
    """Apply a rule, which knows no gaps, to each combination of the intervals of the operands."""
    if u.op is Op.WHERE or (u.op is Op.BITCAST and u.dtype.itemsize > u.src[0].dtype.itemsize):
        return rule(u, profile, *operands)
    sources = zip(operands, u.src, strict=False)
    parts = [sets.intervals(s) if v.dtype.is_float else sets.numbers(s) for s, v in sources]
    if not 1 < prod(map(len, parts)) <= MOST_COMBINATIONS:
        return rule(u, profile, *operands)
    results = [rule(u, profile, *combination) for combination in product(*parts)]
    opened = either(*(r.any for r in results))
    return replace(sets.united(*results), any=opened, invalid=results[0].invalid)


def rule_of(op: Op, on_floats: bool) -> SetRule:
    """Return the set rule of an op; without a rule an exact op follows the reference.

    Raises IncompleteError for an op on floats that has latitude and no rule.
    """
    rule = (FLOAT_RULES if on_floats else INT_RULES).get(op)
    if rule is None and on_floats and not isinstance(DECLARATIONS[op].latitude, Exact):
        raise IncompleteError(op.name, ACCEPTED_SET)
    return rule or _of_reference


def _of_reference(u: Node, profile: Profile, *operands: Sets) -> Sets:
    """Return the results of an exact op without a rule.

    These are the reference on single operands, and anything on others.
    """
    wide = np.logical_or.reduce([~_is_known(s) for s in operands])
    value = masks.elementwise(cast(UOp, u), *(Value(s.lo) for s in operands))
    result = sets.points(value, u.dtype.is_float)
    return replace(result, any=either(result.any, sets.somewhere(wide)))


def _is_known(s: Sets) -> Mask:
    """Return where a set holds one value whose bits are known."""
    point = order.same_bits(s.lo, s.hi)
    if s.nan is None:
        return point
    return np.asarray(point & ~s.nan if s.exact is None else point & (s.exact | ~s.nan))


def _or_decomposed(u: Node, profile: Profile, operands: Sequence[Sets], own: Sets) -> Sets:
    """Join the results of an op with those of its published decomposition.

    Where a knob gives a choice, the knob decides, not the decomposition.
    """
    params = [param(k, s.lo.shape, u.src[k].dtype) for k, s in enumerate(operands)]
    written = UOp(u.op, *params).decompose()
    if written is None:
        return own
    done: dict[UOp, Sets] = dict(zip(params, operands, strict=True))
    nodes = (v for v in written.toposort() if v not in done and v.dtype is not dtypes.index)
    for v in nodes:
        if isinstance(v.arg, ConstArg):
            done[v] = sets.points(Value(constant(v.arg.bits, v.dtype)), v.dtype.is_float)
        elif v.declaration.is_elementwise:
            done[v] = elementwise(v, profile, *(done[s] for s in v.src))
        else:
            # A constant that is the same everywhere is one element: it broadcasts where it is used.
            done[v] = done[v.src[0]]
    other = done[written]
    return replace(sets.united(own, other), any=either(own.any, other.any))
