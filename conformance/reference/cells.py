"""Draws cells: those before and after a movement op, with a colour for each value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import chain

from uop.conformance.reference.examples import Example
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.show import word
from uop.interpreter.values import Value
from uop.spec.dtype import DType
from uop.spec.graph import slots_of
from uop.spec.text.printer import in_place
from uop.spec.uop import UOp

CHARACTER, HEIGHT, BASE = 7, 24, 16
"""The width of a character, the height of a cell, and where its text stands in it."""
INK, FAINT = "#263238", "#78909c"
CAPTION, GAP, ARROW = 22, 24, 44
ABSENT = "invalid"


def document(width: int, height: int, shapes: Iterable[str]) -> str:
    """The SVG of shapes in a room of this size."""
    size = f'width="{width + 2}" height="{height + 2}" viewBox="-1 -1 {width + 2} {height + 2}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="11">'
    return "\n".join([head, *shapes, "</svg>", ""])


def label(x: int, y: int, text: str, fill: str = FAINT, more: str = "") -> str:
    """A text at a place."""
    return f'<text x="{x}" y="{y}" fill="{fill}"{more}>{escape(text)}</text>'


def cell(x: int, y: int, width: int, text: str, fill: str) -> str:
    """A box with a text; that of an absent element is dashed and empty."""
    dashed = ' stroke-dasharray="3"' if text == ABSENT else ""
    box = f'x="{x}" y="{y}" width="{width}" height="{HEIGHT}"'
    word = "" if text == ABSENT else text
    return f'<rect {box} fill="{fill}" stroke="{FAINT}"{dashed}/>' + label(
        x + width // 2, y + BASE, word, INK, ' text-anchor="middle"'
    )


def cells_svg(example: Example) -> str:
    """The operands of the example's node, an arrow, and its value, as SVG.

    A value that is moved has one colour on both sides; indices and what is left out have none.
    An absent cell is empty.
    """
    node = example.op_node
    operands = [_grid(u, example) for u in node.src if in_place(u) is None]
    result = _grid(node, example)
    sources = chain(*(g.words for g in operands if g.dtype is result.dtype))
    moved = [w for w in dict.fromkeys(sources) if w in result.words]
    colors = {w: f"hsl({360 * k // len(moved)} 75% 84%)" for k, w in enumerate(moved)}
    x, parts = 0, []
    for grid in (*operands, result):
        if grid is result:
            parts.append(label(x - GAP + 10, CAPTION + BASE, "→", INK, ' font-size="18"'))
            x += ARROW - GAP
        known = colors if grid.dtype is result.dtype else {}
        parts.append(f'<g transform="translate({x})">{grid.svg(known)}</g>')
        x += grid.width + GAP
    return document(x - GAP, max(g.height for g in (*operands, result)), parts)


@dataclass(frozen=True, slots=True)
class _Grid:
    """A value as rows of cells, with a gap between the matrices of leading axes."""

    dtype: DType
    shape: tuple[int, ...]
    words: tuple[str, ...]

    @property
    def caption(self) -> str:
        return f"[{','.join(map(str, self.shape))}]"

    @property
    def columns(self) -> int:
        return self.shape[-1] if self.shape else 1

    @property
    def cell(self) -> int:
        """The width of a cell."""
        return max(HEIGHT, *(len(w) * CHARACTER + 12 for w in self.words if w != ABSENT))

    @property
    def width(self) -> int:
        return max(self.cell * self.columns, len(self.caption) * CHARACTER)

    @property
    def height(self) -> int:
        return self.top(len(self.words) // self.columns - 1) + HEIGHT

    def top(self, row: int) -> int:
        """Where a row of cells begins."""
        matrix = row // self.shape[-2] if len(self.shape) > 1 else 0
        return CAPTION + row * HEIGHT + matrix * HEIGHT // 2

    def svg(self, colors: Mapping[str, str]) -> str:
        """The shape, and the cells with the colours of their values."""
        parts = [label(0, 12, self.caption)]
        for k, text in enumerate(self.words):
            row, column = divmod(k, self.columns)
            color = colors.get(text, "none")
            parts.append(cell(column * self.cell, self.top(row), self.cell, text, color))
        return "".join(parts)


def _grid(u: UOp, example: Example) -> _Grid:
    """The value of a node of the example."""
    value = evaluate_full(u, {k: a for k, a in example.inputs.items() if k in slots_of(u)})
    assert isinstance(value, Value)
    flat = value.map(lambda a: a.reshape(-1))
    words = tuple(word(flat, k) for k in range(value.data.size))
    return _Grid(u.dtype, value.data.shape, words)
