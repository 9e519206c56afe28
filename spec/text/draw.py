"""Draws a graph as inline SVG: sources above their users, the root at the bottom.

Shape operands and index constants are written inside their user, as in the text. A long edge goes
between the boxes of the rows on its way; edges of one source share that way. An instruction that a
LINEAR lists has no edge to it if another one uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from itertools import chain
from typing import TYPE_CHECKING

from uop.spec.graph import toposort
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import spelled
from uop.spec.text.printer import in_place, print_node

if TYPE_CHECKING:
    from uop.spec.uop import UOp

MOST = 500
"""The most nodes that are drawn; of a larger graph those nearest to the root."""
CHARACTER, LINE, PAD, GAP_X, GAP_Y = 7, 15, 8, 18, 34
LONGEST = 40
"""The most characters of a line in a node."""
SWEEPS = 8
"""The number of passes that improve the order of the rows, down and up in turn."""

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
    boxes = {u: _box(u, (notes or {}).get(u, "")) for u in _drawn(root)}
    rows = _rows(boxes)
    _place(rows)
    placed = [box for row in rows for box in row]
    left = min(b.x for b in placed)
    width = max(b.x + b.width for b in placed) - left
    height = rows[-1][0].end
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2 * PAD}" '
        f'height="{height + 2 * PAD}" viewBox="{left - PAD} {-PAD} {width + 2 * PAD} '
        f'{height + 2 * PAD}" font-family="monospace" font-size="11">'
    ]
    parts += [_edge(above, box) for box in placed for above in box.above]
    parts += [_node(u, box) for u, box in boxes.items()]
    return "\n".join([*parts, "</svg>", ""])


def html(root: UOp, notes: Mapping[UOp, str] | None = None) -> str:
    """The HTML for a notebook: the drawing, and the number of nodes it leaves out."""
    hidden = max(len(root.toposort()) - MOST, 0)
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


@dataclass(slots=True, eq=False)
class _Box:
    """A node as a rectangle, or, without text, a point where an edge passes a row."""

    lines: tuple[str, ...] = ()
    width: int = 0
    height: int = 0
    x: int = 0
    y: int = 0
    end: int = 0
    """The end of its row."""
    above: list[_Box] = field(default_factory=list)
    """The boxes in the row above that its edges come from; `below` are those that they go to."""
    below: list[_Box] = field(default_factory=list)

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


def _rows(boxes: dict[UOp, _Box]) -> list[list[_Box]]:
    """The boxes by their longest path from a source, each source just above its first user, and
    the points in between.
    """
    sources = {u: [s for s in u.src if s in boxes] for u in boxes}
    users = Counter(s for u in boxes if u.op is not Op.LINEAR for s in set(u.src))
    for u in boxes:
        if u.op is Op.LINEAR:
            sources[u] = [s for s in sources[u] if not users[s]]
    depth: dict[UOp, int] = {}
    for u in boxes:
        depth[u] = 1 + max((depth[s] for s in sources[u]), default=-1)
    first: dict[UOp, int] = {}
    for u in reversed(boxes):
        depth[u] = max(depth[u], first.get(u, 0) - 1)
        for s in sources[u]:
            first[s] = min(first.get(s, depth[u]), depth[u])
    rows: list[list[_Box]] = [[] for _ in range(1 + max(depth.values()))]
    for u, box in boxes.items():
        rows[depth[u]].append(box)
    # The last box of the way down from a source: where a user further down goes on from.
    ways = {u: (depth[u], box) for u, box in boxes.items()}
    for u in sorted(boxes, key=depth.__getitem__):
        for s in sources[u]:
            row, last = ways[s]
            for passed in rows[row + 1 : depth[u]]:
                last, above = _Box(), last
                _join(above, last)
                passed.append(last)
            ways[s] = (depth[u] - 1, last)
            _join(last, boxes[u])
    return rows


def _join(above: _Box, below: _Box) -> None:
    above.below.append(below)
    below.above.append(above)


def _place(rows: list[list[_Box]]) -> None:
    """Place rows below each other, and boxes in a row where that keeps edges short and apart."""
    y = 0
    for row in rows:
        height = max(box.height for box in row)
        for box in row:
            box.y, box.end = y, y + height
        y += height + GAP_Y
        _settle(row, [0.0] * len(row))
    turns = [rows, rows[::-1]] * (SWEEPS // 2)
    for number, turn in enumerate(turns):
        for row in turn:
            near = {box: box.below if number % 2 else box.above for box in row}
            wishes = {box: _middle(box, boxes) for box, boxes in near.items()}
            row.sort(key=wishes.__getitem__)
            _settle(row, [wishes[box] for box in row])
    for row in chain(*turns[:2]):
        _settle(row, [_middle(box, box.above + box.below) for box in row])


def _middle(box: _Box, near: list[_Box]) -> float:
    return sum(b.middle for b in near) / len(near) if near else box.middle


def _settle(row: list[_Box], wishes: list[float]) -> None:
    """Put boxes in this order with their middles as near to the wished places as there is room: by
    least squares, joining neighbours that would overlap.
    """
    offset, groups = 0.0, list[tuple[float, int]]()
    offsets = []
    for box, wish in zip(row, wishes, strict=True):
        offset += box.width / 2
        offsets.append(offset)
        total, count = wish - offset, 1
        while groups and groups[-1][0] / groups[-1][1] > total / count:
            before, size = groups.pop()
            total, count = total + before, count + size
        groups.append((total, count))
        offset += box.width / 2 + GAP_X
    shifts = [total / count for total, count in groups for _ in range(count)]
    for box, start, shift in zip(row, offsets, shifts, strict=True):
        box.x = round(start + shift - box.width / 2)


def _edge(above: _Box, box: _Box) -> str:
    """Straight down to the end of the row, as its other boxes may be higher, then to the next."""
    x1, x2, bend = above.middle, box.middle, (above.end + box.y) // 2
    curve = f"V{above.end} C{x1},{bend} {x2},{bend} {x2},{box.y}"
    path = f"M{x1},{above.y + above.height} {curve}"
    return f'<path d="{path}" fill="none" stroke="#78909c"/>'


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
