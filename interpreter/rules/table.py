"""The table of meanings: one numpy rule per op, and where its result is unspecified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from uop.interpreter.numeric.storage import Array, Mask
from uop.spec.dtype import DType
from uop.spec.errors import IncompleteError
from uop.spec.ops.names import Op


class Node(Protocol):
    """What a rule may ask of the node it evaluates."""

    @property
    def dtype(self) -> DType: ...

    @property
    def src(self) -> Sequence[Node]: ...

    @property
    def arg(self) -> object: ...


Rule = Callable[..., Array]
MaskRule = Callable[..., Mask | None]
AnyRule = TypeVar("AnyRule", Rule, MaskRule)

MEANING = "a meaning: a numpy rule under @evaluates in interpreter/rules/"


class Rules(dict[Op, Rule]):
    """The meanings by op. IncompleteError for an op without one."""

    def __missing__(self, op: Op) -> Rule:
        raise IncompleteError(op.name, MEANING)


RULES = Rules()
UNSPECIFIED: dict[Op, MaskRule] = {}


def evaluates(*ops: Op) -> Callable[[Rule], Rule]:
    """Makes `rule(u, *operands) -> result` the meaning of the ops, on arrays in storage dtype.

    The result has the broadcast shape of the operands; of ()-shaped operands it may be a numpy
    scalar.
    """
    return _registers(RULES, ops)


def unspecified_where(*ops: Op) -> Callable[[MaskRule], MaskRule]:
    """Makes `rule(u, *operands) -> mask` say which elements of the result the spec leaves open.

    The mask broadcasts to the shape of the result; None means nowhere. Operands that are open
    themselves are not its concern.
    """
    return _registers(UNSPECIFIED, ops)


def _registers(table: dict[Op, AnyRule], ops: tuple[Op, ...]) -> Callable[[AnyRule], AnyRule]:
    def register(rule: AnyRule) -> AnyRule:
        for op in ops:
            if op in table:
                raise ValueError(f"two rules for {op.name}")
            table[op] = rule
        return rule

    return register
