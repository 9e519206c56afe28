"""Hold the set rule of each op: its accepted results for operands that are sets."""

from __future__ import annotations

from collections.abc import Callable

from uop.interpreter.accepted.sets import Sets
from uop.interpreter.rules.table import registers
from uop.spec.ops.names import Op

# rule(u, profile, *operands) on sets in storage dtype, of at least one dimension. A rule ignores
# the masks `any` and `invalid` of its operands: `apply.elementwise` carries them over.
SetRule = Callable[..., Sets]

ACCEPTED_SET = (
    "a set of accepted floats, as its latitude is not EXACT: a rule under @accepts_floats in "
    "interpreter/accepted/rules/"
)

FLOAT_RULES: dict[Op, SetRule] = {}
INT_RULES: dict[Op, SetRule] = {}


def accepts_floats(*ops: Op) -> Callable[[SetRule], SetRule]:
    """Register a rule for operands of a float dtype."""
    return registers(FLOAT_RULES, ops, "set rules")


def accepts_ints(*ops: Op) -> Callable[[SetRule], SetRule]:
    """Register a rule for operands of any other dtype."""
    return registers(INT_RULES, ops, "set rules")


def accepts(*ops: Op) -> Callable[[SetRule], SetRule]:
    """Register a rule for operands of all dtypes."""
    return lambda rule: accepts_floats(*ops)(accepts_ints(*ops)(rule))
