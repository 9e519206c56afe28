"""Constant folding, by the interpreter. No other module of the compiler imports it."""

from __future__ import annotations

import numpy as np

from uop.compiler.rewrite import RuleSet, rewrites
from uop.interpreter.numeric.storage import constant, np_dtype, to_bits
from uop.interpreter.rules import decomposed, elementwise, extension  # noqa: F401 - enter them
from uop.interpreter.rules.table import RULES, UNSPECIFIED
from uop.spec.args import ConstArg, arg_of
from uop.spec.errors import UndefinedError
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

COMPUTED = (*ELEMENTWISE, Op.BITCAST)
"""The ops that can be folded."""


@rewrites(*COMPUTED)
def fold_constants(u: UOp) -> UOp | None:
    """Compute an op on constants, unless its result is UNSPECIFIED."""
    for s in u.src:
        if s.op is not Op.CONST:
            return None
    if u.shape != ():
        return None
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


FOLD = RuleSet(fold_constants)
