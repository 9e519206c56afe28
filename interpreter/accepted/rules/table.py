"""Hold the set rule of each op: its accepted results for operands that are sets."""

from __future__ import annotations

from collections.abc import Callable

from uop.interpreter.accepted.sets import Sets
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
    return _registers(FLOAT_RULES, ops)


def accepts_ints(*ops: Op) -> Callable[[SetRule], SetRule]:
    """Register a rule for operands of any other dtype."""
    return _registers(INT_RULES, ops)


def _registers(table: dict[Op, SetRule], ops: tuple[Op, ...]) -> Callable[[SetRule], SetRule]:
    def register(rule: SetRule) -> SetRule:
        for op in ops:
            if op in table:
                raise ValueError(f"two set rules for {op.name}")
            table[op] = rule
        return rule

    return register
