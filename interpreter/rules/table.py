"""Hold the numpy rule of each op, and the rule that says where its result is unspecified."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from uop.interpreter.numeric.storage import Array, Mask
from uop.spec.errors import IncompleteError
from uop.spec.ops.names import Op

Rule = Callable[..., Array]
MaskRule = Callable[..., Mask | None]
AnyRule = TypeVar("AnyRule")

MEANING = "a meaning: a numpy rule under @evaluates in interpreter/rules/"


class Rules(dict[Op, Rule]):
    """The rules by op; raises IncompleteError for an op without one."""

    def __missing__(self, op: Op) -> Rule:
        raise IncompleteError(op.name, MEANING)


RULES = Rules()
UNSPECIFIED: dict[Op, MaskRule] = {}


def evaluates(*ops: Op) -> Callable[[Rule], Rule]:
    """Register `rule(u, *operands) -> result` as the meaning of the ops.

    Operands and result are arrays in storage dtype. The result has the broadcast shape of the
    operands; for ()-shaped operands it may be a numpy scalar.
    """
    return registers(RULES, ops)


def unspecified_where(*ops: Op) -> Callable[[MaskRule], MaskRule]:
    """Register `rule(u, *operands) -> mask`, which returns where the result is unspecified.

    The mask broadcasts to the shape of the result; None means nowhere. The rule ignores operands
    that are unspecified themselves.
    """
    return registers(UNSPECIFIED, ops)


def registers(
    table: dict[Op, AnyRule], ops: tuple[Op, ...], kind: str = "rules"
) -> Callable[[AnyRule], AnyRule]:
    """Register a rule of this kind for each of the ops; ValueError for a second one of an op."""

    def register(rule: AnyRule) -> AnyRule:
        for op in ops:
            if op in table:
                raise ValueError(f"two {kind} for {op.name}")
            table[op] = rule
        return rule

    return register
