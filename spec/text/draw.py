"""Draws a graph as inline SVG: sources above their users, the root at the bottom.

Shape operands and index constants are written inside their user, as in the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from uop.spec.properties.symbolic import spelled
from uop.spec.text.printer import in_place, print_node
from uop.spec.walk import toposort

if TYPE_CHECKING:
    from uop.spec.uop import UOp

MOST = 200
"""The most nodes that are drawn; of a larger graph those nearest to the root."""
CHARACTER, LINE, PAD, GAP_X, GAP_Y = 7, 15, 8, 18, 34
LONGEST = 40
"""The most characters of a line in a node."""
SWEEPS = 4

COLORS = {
    "source": "#eceff1",
    "movement": "#e3f2e5",
    "reduce": "#fbe4e4",
    "call": "#e1edf9",
    "load": "#f7e9e9",
    "store": "#f2e6f7",
    "ordering": "#efe9e6",
    "elementwise": "#fdf5dc",
    "decomposed": "#fdf5dc",
    "marker": "#fdeadd",
}
OTHER = "#f5f5f5"


def svg(root: UOp, notes: Mapping[UOp, str] | None = None) -> str:
    """The SVG of the graph under a root; `notes` adds a line to a node, for example its value."""
    nodes = _drawn(root)
    boxes = {u: _box(u, (notes or {}).get(u, "")) for u in nodes}
    rows = _rows(nodes)
    _place(rows, boxes)
    left = min(b.x for b in boxes.values())
    width = max(b.x + b.width for b in boxes.values()) - left
    height = max(b.y + b.height for b in boxes.values())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2 * PAD}" '
        f'height="{height + 2 * PAD}" viewBox="{left - PAD} {-PAD} {width + 2 * PAD} '
        f'{height + 2 * PAD}" font-family="monospace" font-size="11">'
    ]
    parts += [_edge(boxes[s], boxes[u]) for u in nodes for s in u.src if s in boxes]
    parts += [_node(u, boxes[u]) for u in nodes]
    return "\n".join([*parts, "</svg>", ""])


def html(root: UOp, notes: Mapping[UOp, str] | None = None) -> str:
    """The HTML for a notebook: the drawing, and the number of nodes it leaves out."""
    total = len(root.toposort())
    hidden = total - len(root.toposort()[-MOST:])
    more = f"<div>and {hidden:,} nodes above</div>" if hidden else ""
    return f"<div>{svg(root, notes)}{more}</div>"


def properties(u: UOp) -> list[tuple[str, str]]:
    """The six derived properties of a node, as text."""
    interval = u.min_max
    return [
        ("dtype", u.dtype.name),
        ("shape", f"[{_sizes(u)}]"),
        ("device", "null" if u.device is None else str(u.device)),
        ("addrspace", "null" if u.addrspace is None else u.addrspace.name),
        ("min_max", "none" if interval is None else f"[{interval.min}, {interval.max}]"),
        ("axis", "null" if u.axis is None else str(u.axis)),
    ]


def _sizes(u: UOp) -> str:
    """The shape, with the formula of a symbolic size."""
    return ",".join(str(spelled(size)) for size in u.shape)


@dataclass(slots=True)
class _Box:
    """A node as a rectangle: its lines of text, size and position."""

    lines: tuple[str, ...]
    width: int
    height: int
    x: int = 0
    y: int = 0

    @property
    def middle(self) -> int:
        return self.x + self.width // 2


def _drawn(root: UOp) -> list[UOp]:
    """The nodes with a box of their own, sources first."""
    nodes = toposort([root], lambda u: [s for s in u.src if in_place(s) is None])
    return nodes[-MOST:]


def _box(u: UOp, note: str) -> _Box:
    operands = [text for s in u.src if (text := in_place(s)) is not None]
    head = " ".join([u.op.name, *operands])
    place = "" if u.addrspace is None else f" &{u.addrspace.name}"
    lines = [head, print_node("", [], u.arg).strip(), f"{u.dtype.name}[{_sizes(u)}]{place}", note]
    kept = tuple(
        line if len(line) <= LONGEST else line[: LONGEST - 1] + "…" for line in lines if line
    )
    width = max(map(len, kept)) * CHARACTER + 2 * PAD
    return _Box(kept, width, len(kept) * LINE + PAD)


def _rows(nodes: list[UOp]) -> list[list[UOp]]:
    """Nodes by their longest path from a source, each source just above its first user."""
    depth: dict[UOp, int] = {}
    for u in nodes:
        depth[u] = 1 + max((depth[s] for s in u.src if s in depth), default=-1)
    users: dict[UOp, int] = {}
    for u in reversed(nodes):
        lowest = users.get(u)
        if lowest is not None:
            depth[u] = max(depth[u], lowest - 1)
        for s in u.src:
            if s in depth:
                users[s] = min(users.get(s, depth[u]), depth[u])
    rows: list[list[UOp]] = [[] for _ in range(1 + max(depth.values()))]
    for u in nodes:
        rows[depth[u]].append(u)
    return [row for row in rows if row]


def _place(rows: list[list[UOp]], boxes: dict[UOp, _Box]) -> None:
    """Place rows below each other, and nodes in a row in the order that keeps edges short."""
    y = 0
    for row in rows:
        for u in row:
            boxes[u].y = y
        y += max(boxes[u].height for u in row) + GAP_Y
        _spread(row, boxes)
    near: dict[UOp, list[UOp]] = {u: [s for s in u.src if s in boxes] for row in rows for u in row}
    for u, sources in list(near.items()):
        for s in sources:
            near[s] = [*near[s], u]
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wish = {
                u: sum(boxes[n].middle for n in near[u]) / len(near[u]) if near[u] else 0
                for u in row
            }
            row.sort(key=lambda u: wish[u])
            _spread(row, boxes)
    _straighten(rows, boxes, near)


def _spread(row: list[UOp], boxes: dict[UOp, _Box]) -> None:
    """Place a row side by side, centred on 0."""
    total = sum(boxes[u].width for u in row) + GAP_X * (len(row) - 1)
    x = -total // 2
    for u in row:
        boxes[u].x = x
        x += boxes[u].width + GAP_X


def _straighten(rows: list[list[UOp]], boxes: dict[UOp, _Box], near: dict[UOp, list[UOp]]) -> None:
    """Move each node below the middle of its sources, as far as its neighbours allow."""
    for row in rows[1:]:
        for u in row:
            above = [boxes[n].middle for n in near[u] if boxes[n].y < boxes[u].y]
            if above:
                boxes[u].x = sum(above) // len(above) - boxes[u].width // 2
        for left, right in pairwise(row):
            least = boxes[left].x + boxes[left].width + GAP_X
            boxes[right].x = max(boxes[right].x, least)


def _edge(source: _Box, user: _Box) -> str:
    x1, y1, x2, y2 = source.middle, source.y + source.height, user.middle, user.y
    bend = (y1 + y2) // 2
    return f'<path d="M{x1},{y1} C{x1},{bend} {x2},{bend} {x2},{y2}" fill="none" stroke="#78909c"/>'


def _node(u: UOp, box: _Box) -> str:
    color = COLORS.get(u.declaration.section, OTHER)
    said = escape("\n".join(f"{name}: {text}" for name, text in properties(u)))
    spans = []
    for k, line in enumerate(box.lines):
        weight = "" if k else ' font-weight="bold"'
        spans.append(f'<tspan x="{box.middle}" dy="{LINE}"{weight}>{escape(line)}</tspan>')
    text = "".join(spans)
    return (
        f'<g><title>{said}</title><rect x="{box.x}" y="{box.y}" width="{box.width}" '
        f'height="{box.height}" rx="4" fill="{color}" stroke="#90a4ae"/>'
        f'<text x="{box.middle}" y="{box.y}" text-anchor="middle" fill="#263238">{text}</text></g>'
    )
