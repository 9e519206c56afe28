"""Applies one op to values: its result, the rule for it, and the accepted set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as _repr

import numpy as np

from uop.conformance.reference.examples import usual_dtype
from uop.conformance.reference.words import decisions_of
from uop.conformance.suite.levels.op.elementwise import operand_dtypes
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array
from uop.interpreter.rules.table import RULES
from uop.interpreter.show import accepted_words, show_value
from uop.interpreter.values import Value
from uop.spec.args import DTypeArg
from uop.spec.documents.rows import rows_of
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, MalformedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.registry import OpDef
from uop.spec.text.expression import read_expression
from uop.spec.uop import UOp, dims, param

INVALID = "invalid"
"""The word for an absent operand."""


@dataclass(frozen=True, slots=True)
class Call:
    """An op over PARAMs that hold the values, its result and its accepted set."""

    words: tuple[str, ...]
    root: UOp
    inputs: Mapping[int, Array]
    value: Value
    accepted: Accepted

    @property
    def result(self) -> str:
        """`IDIV(-7, 2) : int8 = -4`."""
        head = f"{self.root.op.name}({', '.join(self.words)}) : {self.root.dtype.name}"
        shape = f"[{','.join(map(str, self.root.shape))}]" if self.root.shape else ""
        return show_value(f"{head}{shape} = ", self.value)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The rule, the constraints that hold, the readings and rows, and the accepted set."""
        declaration = self.root.declaration
        rows = rows_of(self.root.op.name)
        own = [row.id for row in rows if row.id.endswith(f"/{self.root.op.name}")]
        lines = [("meaning", declaration.doc), ("rule", rule_name(self.root.op))]
        lines += [("holds", f"{c.label} {c.title}") for c in declaration.constraints]
        lines += [("reading", f"{n} {title}") for n, title in decisions_of(rows)]
        lines += [("row", id) for id in own]
        if declaration.undefined:
            lines.append(("no value", declaration.undefined))
        return [*lines, ("accepted", self.accepted_text)]

    @property
    def accepted_text(self) -> str:
        if self.value.invalid is not None and bool(self.value.invalid.all()):
            return "anything: the element is absent"
        count = self.value.data.size
        return ", ".join(accepted_words(self.accepted, i) for i in range(count))


def rule_name(op: Op) -> str:
    """The function of the interpreter that evaluates an op."""
    rule = RULES.get(op)
    return "the operand itself" if rule is None else f"{rule.__module__}.{rule.__qualname__}"


def call(declaration: OpDef, words: Sequence[str], dtype: DType | None, to: DType | None) -> Call:
    """Evaluate an op on values written as in an expression; `invalid` is an absent one.

    InvalidError where a constraint is broken, MalformedError for a word that is not a value,
    UnsupportedError for an op that takes more than values.
    """
    arg = _arg(declaration, to)
    chosen = dtype or _own_dtype(declaration, words)
    kinds = _operand_dtypes(declaration, chosen, len(words))
    arrays = [_array(word, d) for word, d in zip(words, kinds, strict=True)]
    operands = [
        _operand(k, array, d, word == INVALID)
        for k, (array, d, word) in enumerate(zip(arrays, kinds, words, strict=True))
    ]
    try:
        root = UOp(declaration.op, *operands, arg=arg)
    except InvalidError as error:
        # The error must not show a line of this file as the user's.
        raise InvalidError(error.label, error.title, error.node, error.found) from None
    inputs = dict(enumerate(arrays))
    value = evaluate_full(root, inputs)
    assert isinstance(value, Value)
    return Call(tuple(words), root, inputs, value, accept(root, inputs)[0])


def _arg(declaration: OpDef, to: DType | None) -> DTypeArg | None:
    if declaration.arg is DTypeArg:
        if to is None:
            raise UnsupportedError(f"{declaration.op.name} needs a target dtype: --to DTYPE")
        return DTypeArg(to)
    if declaration.takes_values or declaration.section == "marker":
        return None
    raise UnsupportedError(
        f"{declaration.op.name} takes more than values; ask `uop eval`, which takes every op: "
        "uop eval 'reduce(max, [1, nan])'"
    )


def _own_dtype(declaration: OpDef, words: Sequence[str]) -> DType:
    """The dtype of the words themselves, as far as the op takes it."""
    present = [word for word in words if word != INVALID]
    own = [_read(word).dtype for word in present if "(" in word]
    kinds = own or [_read(word).dtype for word in present]
    joined = next((d for d in kinds if d.is_float), kinds[-1] if kinds else dtypes.int32)
    # An integer without a dtype may be any number; constraints judge one with a dtype.
    if declaration.dtypes and joined is dtypes.int32 and joined not in declaration.dtypes:
        return usual_dtype(declaration)
    return joined


def _read(word: str) -> UOp:
    try:
        return read_expression(word)
    except MalformedError as error:
        raise MalformedError(f"{_repr(word)}: {error}") from None


def _operand_dtypes(declaration: OpDef, dtype: DType, count: int) -> Sequence[DType]:
    """A dtype for each word; the constraints of the op report those that do not fit."""
    if declaration.arg is None and dtype in declaration.dtypes and count == len(declaration.src):
        return operand_dtypes(declaration, dtype)
    return (dtype,) * count


def _array(word: str, dtype: DType) -> Array:
    if word == INVALID:
        return _array("false" if dtype is dtypes.bool else "0", dtype)
    try:
        value = evaluate_full(read_expression(f"{dtype.name}({word})"))
    except MalformedError as error:
        raise MalformedError(f"{_repr(word)} as {dtype.name}: {error.message}") from None
    assert isinstance(value, Value)
    return np.asarray(value.data)


def _operand(slot: int, array: Array, dtype: DType, absent: bool) -> UOp:
    """A PARAM; for an absent value the absent element that a PAD adds to it."""
    value = param(slot, array.shape, dtype)
    if not absent:
        return value
    row = UOp(Op.RESHAPE, value, dims((1,)))
    beside = UOp(Op.SHRINK, UOp(Op.PAD, row, dims((0,)), dims((2,))), dims((1,)), dims((1,)))
    return UOp(Op.RESHAPE, beside, dims(()))
