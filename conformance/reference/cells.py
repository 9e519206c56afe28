"""Draws what a movement op does: the cells before and after, with a colour for each value."""

from __future__ import annotations

from html import escape
from itertools import accumulate

import numpy as np

from uop.conformance.reference.examples import Example
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.show import word
from uop.interpreter.values import Value
from uop.spec.graph import slots_of
from uop.spec.text.printer import in_place
from uop.spec.uop import UOp

CHARACTER, HEIGHT, GAP, LINE = 7, 26, 12, 22
ARROW = 44
ABSENT = "invalid"


def cells_svg(example: Example) -> str:
    """The operands of the example's node, an arrow, and its value, as SVG.

    A cell of the result has the colour of the cell of the first operand that it comes from, if
    both have one value. An absent cell is empty.
    """
    node = example.op_node
    operands = [_value(s, example) for s in node.src if in_place(s) is None]
    words = [_words(v) for v in (*operands, _value(node, example))]
    moved = dict.fromkeys(words[0].reshape(-1).tolist())
    colors = {w: f"hsl({360 * k // len(moved)} 75% 84%)" for k, w in enumerate(moved)}
    shown = [_grid(array, colors) for array in words]
    gaps = [GAP * 2] * (len(shown) - 2) + [ARROW, 0]
    lefts = [0, *accumulate(w + gap for (_, w, _), gap in zip(shown, gaps, strict=True))]
    height = max(h for _, _, h in shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{lefts[-1] + 2}" height="{height + 2}" '
        f'viewBox="-1 -1 {lefts[-1] + 2} {height + 2}" font-family="monospace" font-size="11">'
    ]
    for (text, _, _), array, left in zip(shown, words, lefts, strict=False):
        shape = ",".join(map(str, array.shape))
        parts.append(f'<g transform="translate({left})"><text y="12">[{shape}]</text>{text}</g>')
    x = lefts[len(operands)] - ARROW
    parts.append(f'<text x="{x + 12}" y="{LINE + 18}" font-size="18">→</text>')
    return "\n".join([*parts, "</svg>", ""])


def _value(u: UOp, example: Example) -> Value:
    """The value of a node of the example."""
    value = evaluate_full(u, {k: a for k, a in example.inputs.items() if k in slots_of(u)})
    assert isinstance(value, Value)
    return value


def _words(value: Value) -> np.ndarray[tuple[int, ...], np.dtype[np.str_]]:
    """The elements as text, in the shape of the value."""
    flat = value.map(lambda a: a.reshape(-1))
    return np.array([word(flat, i) for i in range(value.data.size)]).reshape(value.data.shape)


def _grid(
    words: np.ndarray[tuple[int, ...], np.dtype[np.str_]], colors: dict[str, str]
) -> tuple[str, int, int]:
    """A value as rows of cells, with a gap between the matrices of leading axes; its size."""
    columns = words.shape[-1] if words.ndim else 1
    rows = words.shape[-2] if words.ndim > 1 else 1
    shown = np.where(words == ABSENT, "", words)
    width = max(max(map(len, shown.reshape(-1).tolist())) * CHARACTER + 12, HEIGHT)
    parts, y = [], LINE
    for k, row in enumerate(words.reshape(-1, columns)):
        y += GAP if k and k % rows == 0 else 0
        for j, text in enumerate(row.tolist()):
            dashed = ' stroke-dasharray="3"' if text == ABSENT else ""
            parts.append(
                f'<rect x="{j * width}" y="{y}" width="{width}" height="{HEIGHT}" '
                f'fill="{colors.get(text, "none")}" stroke="#607d8b"{dashed}/>'
            )
            if text != ABSENT:
                middle = f'x="{j * width + width // 2}" y="{y + 17}" text-anchor="middle"'
                parts.append(f"<text {middle}>{escape(text)}</text>")
        y += HEIGHT
    return "".join(parts), width * columns, y
