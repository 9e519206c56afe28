"""Draws the pictures of docs: cells of movement ops, graphs, iteration spaces, devices, lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import chain, product

import numpy as np

from uop.compiler.pipeline import lower
from uop.conformance.reference.examples import Example
from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.interpreter.kernel.fragments import LaneMap, fragments_of
from uop.interpreter.numeric.storage import Array
from uop.interpreter.show import word
from uop.interpreter.values import Value
from uop.spec.args import AxisType, RangeArg, WmmaArg, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.frontend import collectives
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import kernels, slots_of
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.text.draw import svg
from uop.spec.text.printer import in_place
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, index_const, param

PICTURES = "stories/pictures"
"""The folder of the pictures in docs/."""
WIDTH, GAP, HEAD = 40, 14, 86
"""The width of a cell, the space between grids, and the space for the name of a row."""
COLORS = (
    "#e1edf9", "#fdf5dc", "#e3f2e5", "#fbe4e4", "#f2e6f7", "#fdeadd", "#eceff1", "#e0f2f1",
)  # fmt: skip

Row = tuple[str, Sequence[tuple[str, int]]]
"""The name of a row, and its cells: what stands in one, and the number of its colour."""


def pictures() -> dict[str, str]:
    """Every picture by its path in docs/."""
    of_stories = _programs("uop.conformance.reference", "stories")
    total = of_stories["sum"]
    drawn = {
        "sum": svg(total),
        "sum-rangeify": svg(_kernel(total, "rangeify")),
        "sum-select": svg(_kernel(total, "select")),
        "softmax": svg(_programs("uop.examples", "softmax")[""]),
        "matmul": svg(_programs("uop.examples", "gemm")[""]),
        "shift": svg(of_stories["shift"]),
        "ranges": grids(_ranges()),
        "optimizations": grids(_optimizations()),
        "collectives": grids(_collectives()),
        "lanes": grids(_lanes()),
    }
    return {f"{PICTURES}/{name}.svg": text for name, text in drawn.items()}


def grids(parts: Iterable[tuple[str, Sequence[Row]]]) -> str:
    """The SVG of grids below each other, each under its title."""
    shapes: list[str] = []
    y, width = 0, 0
    for title, rows in parts:
        y += HEIGHT
        shapes.append(label(0, y - 8, title, more=' font-weight="bold"'))
        width = max(width, len(title) * CHARACTER)
        for name, cells in rows:
            shapes.append(label(0, y + BASE, name))
            shapes += [
                cell(HEAD + k * WIDTH, y, WIDTH, text, COLORS[color % len(COLORS)])
                for k, (text, color) in enumerate(cells)
            ]
            width = max(width, HEAD + len(cells) * WIDTH)
            y += HEIGHT
        y += GAP
    return document(width, y, shapes)


def _programs(package: str, name: str) -> dict[str, UOp]:
    """The programs of a file by their ids; that of an only one is empty."""
    text = files(package).joinpath(f"{name}.uop").read_text("utf-8")
    return {case.id: case.root for case in parse_file(text).cases if case.root is not None}


def _kernel(root: UOp, stage: str) -> UOp:
    """The only kernel of a program, as a stage leaves it."""
    (kernel,) = kernels(lower(root, stage, optimizations=()))
    return kernel


STEPS = 8
"""The iterations of each RANGE in the picture of axis types."""


def _ranges() -> list[tuple[str, list[Row]]]:
    """For each kind of axis type which worker runs which iteration, at which step."""
    each = [*range(STEPS)]
    return [
        ("LOOP, REDUCE: one work item, a step each", _space([[k] for k in each])),
        ("GLOBAL, LOCAL, WARP, THREAD: a work item each", _space([each], by_item=True)),
        ("UPCAST, UNROLL: one work item, one step with 8 values", _space([each])),
        ("GROUP_REDUCE of 4: each item folds two, then adds what another one has", _group(4)),
    ]


def _group(items: int) -> list[Row]:
    """A fold that work items share: each folds its part, then half of them combine pairs."""
    rows: list[Row] = []
    for k in range(items):
        folded = [(str(j), k) for j in range(k, STEPS, items)]
        rows.append((f"item {k}", [*folded, (f"+{k ^ 1}", k), *([("+2", k)] if k == 0 else [])]))
    return rows


def _space(steps: Sequence[Sequence[int]], *, by_item: bool = False) -> list[Row]:
    """A column for each step, a row for each work item, or for each value of the only one."""
    rows = max(map(len, steps))
    name = "item" if by_item else "value"
    return [
        (
            f"{name} {k}" if rows > 1 else "item 0",
            [(str(step[k]), step[k] if by_item else 0) for step in steps if k < len(step)],
        )
        for k in range(rows)
    ]


SHAPE = (4, 8)
"""The outputs in the picture of the optimizations."""
SEQUENCES = (
    "",
    "SPLIT(1, 4, UPCAST)",
    "SPLIT(0, 2, UPCAST); SPLIT(2, 4, UPCAST)",
    "SPLIT(1, 4, LOCAL)",
    "SWAP(0, 1)",
)


def _optimizations() -> list[tuple[str, list[Row]]]:
    """Which work item of which group computes which output, and as which of its values."""
    root = UOp(Op.NEG, param(0, SHAPE, dtypes.int32))
    return [(text or "no optimization", _outputs(root, text)) for text in SEQUENCES]


def _outputs(root: UOp, text: str) -> list[Row]:
    """The outputs by the place to which each iteration of the kernel stores: `3.1` is value 1 of
    work item 3, or work item 1 of group 3.
    """
    sequence = parse_optimizations(text)
    (kernel,) = kernels(lower(root, "optimize", optimizations=[sequence]))
    (store,) = (u for u in kernel.toposort() if u.op is Op.STORE)
    ranges = sorted(
        (u for u in kernel.toposort() if u.op is Op.RANGE), key=lambda u: arg_of(u, RangeArg).id
    )
    bounds = [_number(r.src[0]) for r in ranges]
    cells: dict[int, tuple[str, int]] = {}
    for at in product(*map(range, bounds)):
        outer = inner = 0
        for r, n, k in zip(ranges, bounds, at, strict=True):
            if arg_of(r, RangeArg).axis_type in (AxisType.UPCAST, AxisType.LOCAL):
                inner = inner * n + k
            else:
                outer = outer * n + k
        place = store.src[0].src[1].substitute(dict(zip(ranges, map(index_const, at), strict=True)))
        cells[_number(place)] = (f"{outer}.{inner}", outer)
    rows, columns = SHAPE
    return [(f"row {i}", [cells[i * columns + j] for j in range(columns)]) for i in range(rows)]


def _number(u: UOp) -> int:
    return int(np.asarray(evaluate(u)))


DEVICES = ("A", "B")


def _collectives() -> list[tuple[str, list[Row]]]:
    """What each device holds before and after each collective, computed by the interpreter."""
    data = np.array([1, 2, 10, 20], np.int32)
    whole, split = (Tensor(param(0, (4,), dtypes.int32, where)) for where in ("A", DEVICES))
    made = {
        "before, on one device": whole,
        "broadcast": collectives.broadcast(whole, DEVICES),
        "scatter": collectives.scatter(whole, DEVICES),
        "before, in two shards": split,
        "gather to A": collectives.gather(split, "A"),
        "reduce to A": collectives.reduce(split, "A"),
        "allgather": collectives.allgather(split),
        "reduce_scatter": collectives.reduce_scatter(split),
        "allreduce": collectives.allreduce(split),
    }
    return [(name, _held(t, data)) for name, t in made.items()]


def _held(t: Tensor, data: Array) -> list[Row]:
    """The elements that each device holds of a value; a sum has a colour of its own."""
    values = np.asarray(evaluate(t.uop, {0: data})).tolist()
    devices = t.device if isinstance(t.device, tuple) else (t.device,)
    count = len(values) // (len(devices) if t.axis is not None else 1)
    held = {
        device: values[k * count :][:count] if t.axis is not None else values
        for k, device in enumerate(devices)
    }
    origin = {1: 0, 2: 0, 10: 1, 20: 1}
    return [(f"device {d}", [(str(v), origin.get(v, 2)) for v in held.get(d, [])]) for d in DEVICES]


def _lanes() -> list[tuple[str, list[Row]]]:
    """The lane and the element in it of each place of the three matrices of m16n8k16."""
    maps = fragments_of(WmmaArg(16, 8, 16, dtypes.float16, dtypes.float32))
    return [
        ("A, 16 by 16: lane.element", _lane_rows(maps.a)),
        ("B, 16 by 8", _lane_rows(maps.b)),
        ("acc, 16 by 8", _lane_rows(maps.acc)),
    ]


def _lane_rows(lanes: LaneMap) -> list[Row]:
    """The places of a matrix; a colour for each four lanes."""
    rows = zip(lanes.lane.tolist(), lanes.element.tolist(), strict=True)
    return [
        (f"row {i}", [(f"{lane}.{element}", lane // 4) for lane, element in zip(*row, strict=True)])
        for i, row in enumerate(rows)
    ]


CHARACTER, HEIGHT, BASE = 7, 24, 16
"""The width of a character, the height of a cell, and where its text stands in it."""
INK, FAINT = "#263238", "#78909c"
CAPTION, APART, ARROW = 22, 24, 44
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
            parts.append(label(x - APART + 10, CAPTION + BASE, "→", INK, ' font-size="18"'))
            x += ARROW - APART
        known = colors if grid.dtype is result.dtype else {}
        parts.append(f'<g transform="translate({x})">{grid.svg(known)}</g>')
        x += grid.width + APART
    return document(x - APART, max(g.height for g in (*operands, result)), parts)


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
    value = evaluate_full(u, {k: a for k, a in example.inputs.items() if k in slots_of(u)})
    assert isinstance(value, Value)
    flat = value.map(lambda a: a.reshape(-1))
    words = tuple(word(flat, k) for k in range(value.data.size))
    return _Grid(u.dtype, value.data.shape, words)
