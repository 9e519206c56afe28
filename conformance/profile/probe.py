"""A probe: a program on data, and what each answer to it would mean."""

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


@dataclass(frozen=True, slots=True)
class Bits:
    """A value by its bits: of a NaN these bits alone. A float NaN stands for any NaN."""

    bits: int


Given = Number | Bits


@dataclass(frozen=True, slots=True)
class Row:
    """The operands of one element, or all elements of the one operand; what answers mean."""

    values: tuple[Given, ...]
    answers: Mapping[str, Given]


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """A program with one output, its inputs, and for its first elements what answers mean.

    `ended` is the word for a program that a trap or a crash ends, `otherwise` for other values.
    """

    root: UOp
    inputs: Mapping[int, Array]
    answers: tuple[Mapping[str, Given], ...]
    ended: str = ""
    otherwise: str = ""

    def meaning(self, element: int, output: Array) -> str:
        """What an element of the output means; the empty word for none of the answers."""
        bits = int(to_bits(output.reshape(-1)[element : element + 1])[0])
        for word, number in self.answers[element].items():
            if _is(number, bits, self.root.dtype):
                return word
        return self.otherwise

    def asked(self, element: int) -> str:
        """The program as an expression over the data of an element."""
        return _expression(self.root, self.inputs, element, self.root.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Where the spec leaves a choice, and several witnesses of what a backend chooses.

    Of a knob, `declares` gives what a word declares, as text of the knob, and `mixed` what allows
    all of them; a point without a knob is only observed.
    """

    name: str
    witnesses: tuple[Witness, ...]
    knob: str = ""
    declares: Mapping[str, str] = field(default_factory=dict)
    mixed: str = ""


def row(*values: Given, **answers: Given) -> Row:
    """A row whose answers are words; `_` in a word stands for a space."""
    return Row(values, {word.replace("_", " "): number for word, number in answers.items()})


def elementwise(
    build: Callable[..., UOp], dtypes: DType | tuple[DType, ...], *rows: Row
) -> Witness:
    """A program over one PARAM per operand, each row an element of all."""
    count = len(rows[0].values)
    kinds = dtypes if isinstance(dtypes, tuple) else (dtypes,) * count
    params = [param(slot, (len(rows),), kind) for slot, kind in enumerate(kinds)]
    inputs = {slot: data(kind, (r.values[slot] for r in rows)) for slot, kind in enumerate(kinds)}
    return Witness(build(*params), inputs, tuple(r.answers for r in rows))


def whole(build: Callable[[UOp], UOp], dtype: DType, one: Row) -> Witness:
    """A program of one element over a PARAM that holds all values of a row."""
    root = build(param(0, (len(one.values),), dtype))
    return Witness(root, {0: data(dtype, one.values)}, (one.answers,))


def data(dtype: DType, numbers: Iterable[Given]) -> Array:
    """Numbers, each rounded once, in storage dtype."""
    return array(dtype, (bits_of(number, dtype) for number in numbers))


def bits_of(number: Given, dtype: DType) -> int:
    return number.bits if isinstance(number, Bits) else ConstArg.of(number, dtype).bits


def _is(number: Given, bits: int, dtype: DType) -> bool:
    if isinstance(number, float) and number != number:
        found = array(dtype, (bits,))
        return bool((found != found)[0])
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
    """An element of an operand shaped like the result, else its first elements."""
    bits = [int(b) for b in np.asarray(to_bits(a)).reshape(-1)]
    if alike:
        return spelled(bits[element], dtype)
    shown = ", ".join(spelled(b, dtype) for b in bits[:SHOWN])
    return f"[{shown}{', ...' if len(bits) > SHOWN else ''}]"


SHOWN = 4
"""Elements of an operand that are shown."""
