"""Constant folding, and values of index arithmetic, by the interpreter.

No other module of the compiler imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from uop.compiler.rewriting.rewrite import rewrites
from uop.interpreter.numeric.storage import Array, constant, np_dtype, to_bits
from uop.interpreter.rules import decomposed, elementwise, extension  # noqa: F401 - enter them
from uop.interpreter.rules.table import RULES, UNSPECIFIED
from uop.spec.args import ConstArg, arg_of
from uop.spec.errors import UndefinedError
from uop.spec.graph import toposort
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

MOST_COMPUTED = 1 << 10
"""The results of the last ops on constants are kept: index arithmetic computes the same ones."""


@rewrites(*ELEMENTWISE, Op.BITCAST)
def fold_constants(u: UOp) -> UOp | None:
    """Compute an op on constants, unless its result is UNSPECIFIED."""
    for s in u.src:
        if s.op is not Op.CONST:
            return None
    return _computed(u) if u.shape == () else None


@lru_cache(MOST_COMPUTED)
def _computed(u: UOp) -> UOp | None:
    operands = [constant(arg_of(s, ConstArg).bits, s.dtype) for s in u.src]
    try:
        with np.errstate(all="ignore"):
            if u.op in UNSPECIFIED and np.any(UNSPECIFIED[u.op](u, *operands)):
                return None
            result = np.asarray(RULES[u.op](u, *operands), np_dtype(u.dtype))
    except UndefinedError:
        # It is undefined only if it runs, and a gate may keep it from running.
        return None
    return UOp(Op.CONST, arg=ConstArg(int(to_bits(result)[()]), u.dtype))


def values_of(root: UOp, known: Mapping[UOp, Array]) -> Array | None:
    """The values of index arithmetic for known values of its counters. None if it depends on
    anything else, or has no value for some of them.
    """
    values: dict[UOp, Array] = dict(known)
    for u in toposort([root], lambda v: () if v in known else v.src):
        if isinstance(u.arg, ConstArg):
            values[u] = np.asarray(constant(u.arg.bits, u.dtype))
        elif u not in values:
            if not (u.op in ELEMENTWISE or u.op is Op.BITCAST) or u.shape != ():
                return None
            operands = [values[s] for s in u.src]
            if u.op in UNSPECIFIED and np.any(UNSPECIFIED[u.op](u, *operands)):
                return None
            values[u] = np.asarray(RULES[u.op](u, *operands))
    return values[root]
