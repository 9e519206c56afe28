"""Show values to people: the shortest decimals that identify the bits, words, a drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from uop.interpreter.accepted.result import Accepted, NaN
from uop.interpreter.accepted.sets import intervals
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.inputs import Inputs
from uop.interpreter.numeric.storage import STORED, to_bits
from uop.interpreter.values import Value
from uop.spec.dtype import Kind
from uop.spec.text.codec import encode_scalar
from uop.spec.text.draw import html
from uop.spec.uop import UOp

LONGEST = 256
"""The most elements that are shown in full; of a longer value only the corners are shown."""
WIDTH = 100


def show_value(before: str, value: Value) -> str:
    """Print the elements in nested brackets, aligned after the text `before`.

    An absent element is `invalid`, an open one `unspecified`.
    """
    flat = value.map(lambda a: a.reshape(-1))
    numbers = np.arange(value.data.size).reshape(value.data.shape)
    return before + np.array2string(
        numbers,
        prefix=before,
        separator=", ",
        threshold=LONGEST,
        max_line_width=WIDTH,
        formatter={"int_kind": lambda i: word(flat, int(i))},
    )


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A drawing of a graph with the value of every node, for notebooks."""

    root: UOp
    notes: Mapping[UOp, str]

    def _repr_html_(self) -> str:
        return html(self.root, self.notes)


def show(root: UOp, inputs: Inputs | None = None) -> Picture:
    """Evaluate a graph and draw it with its values."""
    notes: dict[UOp, str] = {}

    def note(u: UOp, value: Value) -> None:
        notes[u] = " ".join(show_value("= ", value).split())

    evaluate_full(root, inputs, note)
    return Picture(root, notes)


def word(value: Value, i: int) -> str:
    """Return one element of a flat value as text."""
    if value.invalid is not None and value.invalid[i]:
        return "invalid"
    if value.unspecified is not None and value.unspecified[i]:
        return "unspecified"
    element = value.data[i]
    if value.data.dtype == np.bool_:
        return str(bool(element)).lower()
    if element != element:
        # The payload of a NaN made by arithmetic is open, so it is not shown.
        if value.free_nan is not None and value.free_nan[i]:
            return "nan"
        bits = int(to_bits(value.data[i : i + 1])[0])
        return str(encode_scalar(bits, STORED[value.data.dtype]))
    return str(element)


def accepted_words(accepted: Accepted, i: int) -> str:
    """Return the accepted values of element i as text: `4`, `-inf, 1.0 or nan`, `anything`."""
    if accepted.any.reshape(-1)[i]:
        return "anything"
    code = NaN(int(np.asarray(accepted.nan).reshape(-1)[i]))
    if code is NaN.MUST:
        return "nan"
    between = " or " if accepted.dtype.kind is Kind.BOOL else " to "
    parts: dict[str, None] = {}
    for part in intervals(accepted.spread):
        ends = [word(Value(np.asarray(end).reshape(-1)), i) for end in (part.lo, part.hi)]
        parts[between.join(dict.fromkeys(ends))] = None
        if code is NaN.EXACT:
            return ends[0]
    *first, last = [*parts, "nan"] if code is NaN.MAY else parts
    return f"{', '.join(first)} or {last}" if first else last
