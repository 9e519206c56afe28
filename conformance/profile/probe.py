"""Defines probes: programs on data whose results show what a backend chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from uop.conformance.judging.storage import spelled
from uop.conformance.suite.values import array
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.args import ConstArg, ParamArg, ReduceArg
from uop.spec.dtype import DType, Number, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

NAN = float("nan")
SHOWN = 4
"""The most elements of an operand that an expression shows."""


@dataclass(frozen=True, slots=True)
class Bits:
    """A value by its bits. As an answer it matches these bits only; a float nan matches any NaN."""

    bits: int


Operand = Number | Bits


@dataclass(frozen=True, slots=True)
class Row:
    """The operands of one element, or all elements of one operand; the answers by word."""

    values: tuple[Operand, ...]
    answers: Mapping[str, Operand]


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """A program with one output, its inputs, and the known answers by word for its first elements.

    `ended` is the word for a trap or a crash, `otherwise` the word for other values.
    """

    root: UOp
    inputs: Mapping[int, Array]
    answers: tuple[Mapping[str, Operand], ...]
    ended: str = ""
    otherwise: str = ""

    def meaning(self, element: int, output: Array) -> str:
        """The word for an element of the output; `otherwise` if no answer matches."""
        bits = int(to_bits(output.reshape(-1)[element : element + 1])[0])
        for word, number in self.answers[element].items():
            if _is(number, bits, self.root.dtype):
                return word
        return self.otherwise

    def expression(self, element: int) -> str:
        """The program as an expression over the inputs of an element."""
        return _expression(self.root, self.inputs, element, self.root.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A choice that the spec leaves open, with programs that show what a backend chooses.

    A probe of a knob maps each word to a value of the knob in `declares`; the value `mixed` allows
    all of them. A probe without a knob is only observed.
    """

    name: str
    witnesses: tuple[Witness, ...]
    knob: str = ""
    declares: Mapping[str, str] = field(default_factory=dict)
    mixed: str = ""


def row(*values: Operand, **answers: Operand) -> Row:
    """A row whose answers are keyword arguments; `_` in a word stands for a space."""
    return Row(values, {word.replace("_", " "): number for word, number in answers.items()})


def elementwise(build: Op | Callable[..., UOp], dtype: DType, *rows: Row) -> Witness:
    """A program with one PARAM per operand; each row is one element of each."""
    columns = list(zip(*(r.values for r in rows), strict=True))
    params = [param(slot, (len(rows),), dtype) for slot in range(len(columns))]
    inputs = {slot: data(dtype, column) for slot, column in enumerate(columns)}
    root = UOp(build, *params) if isinstance(build, Op) else build(*params)
    return Witness(root, inputs, tuple(r.answers for r in rows))


def whole(build: Callable[[UOp], UOp], dtype: DType, one: Row) -> Witness:
    """A program with one result element and one PARAM, which holds the values of the row."""
    root = build(param(0, (len(one.values),), dtype))
    return Witness(root, {0: data(dtype, one.values)}, (one.answers,))


def data(dtype: DType, numbers: Iterable[Operand]) -> Array:
    """Numbers, each rounded once, in storage dtype."""
    return array(dtype, (bits_of(number, dtype) for number in numbers))


def bits_of(number: Operand, dtype: DType) -> int:
    return number.bits if isinstance(number, Bits) else ConstArg.of(number, dtype).bits


def _is(number: Operand, bits: int, dtype: DType) -> bool:
    if isinstance(number, float) and number != number:
        value = array(dtype, (bits,))
        return bool((value != value)[0])
    return bits_of(number, dtype) == bits


def _expression(u: UOp, inputs: Mapping[int, Array], element: int, shape: tuple[int, ...]) -> str:
    if u.op is Op.CONST and isinstance(u.arg, ConstArg):
        return f"const {spelled(u.arg.bits, u.dtype)}"
    if isinstance(u.arg, ParamArg):
        return _operand(inputs[u.arg.slot], u.dtype, element, u.shape == shape)
    operands = [s for s in u.src if s.dtype is not dtypes.index]
    inside = ", ".join(_expression(s, inputs, element, shape) for s in operands)
    named = u.op.name + (f" {u.arg.op.name}" if isinstance(u.arg, ReduceArg) else "")
    to = f" to {u.dtype.name}" if u.op is Op.CAST else ""
    return f"{named}({inside}{to})"


def _operand(a: Array, dtype: DType, element: int, alike: bool) -> str:
    """The element of an operand shaped like the result (`alike`), else the first elements."""
    bits = [int(b) for b in np.asarray(to_bits(a)).reshape(-1)]
    if alike:
        return spelled(bits[element], dtype)
    shown = ", ".join(spelled(b, dtype) for b in bits[:SHOWN])
    return f"[{shown}{', ...' if len(bits) > SHOWN else ''}]"
