"""Constant folding: the interpreter computes what has only constant operands. Nothing else here
calls it.
"""

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
"""The ops that depend on nothing but their operands."""


@rewrites(*COMPUTED)
def fold_constants(u: UOp) -> UOp | None:
    """An op on constants is the constant that the interpreter computes, unless the spec leaves it
    open.
    """
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
        # It has no meaning only if it runs: a gate may keep it from running.
        return None
    return UOp(Op.CONST, arg=ConstArg(int(to_bits(result)[()]), u.dtype))


FOLD = RuleSet(fold_constants)
