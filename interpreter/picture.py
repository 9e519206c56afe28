"""Draw a graph with its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.inputs import Inputs
from uop.interpreter.show import show_value
from uop.interpreter.values import Value
from uop.spec.text.draw import html
from uop.spec.uop import UOp


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
