"""The matrix section: a mark per op and dtype, in blocks side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from uop.conformance.judging.elements import BINS
from uop.conformance.report.html.markup import Html, both, in_id, table, tag
from uop.conformance.report.model import Cell, CellPlace, Report
from uop.conformance.report.text import COLUMNS
from uop.conformance.suite.case import ALL_LEVELS

BLOCKS = 4
"""The number of tables side by side on a wide screen."""
GROUPS = (*COLUMNS, ("index",), ("other",))
KNOWN = frozenset(name for group in GROUPS for name in group)
FIRST = frozenset(group[0] for group in GROUPS)
"""The first dtype of each group."""
CLASSES = {"failed": "f", "known": "k", "passed": "p", "skipped": "s"}
"""The CSS classes of the states, the most severe first."""
WHOLE = {
    "invalid": "must be rejected",
    "property": "intervals",
    "function": "functions",
    "graph": "graphs",
    "twin": "twins",
    "kernel": "kernels",
    "schedule": "schedules",
    "device": "several devices",
    "cases": "your own cases",
}
"""The titles of the levels of many ops."""
Cells = list[tuple[int, Cell]]
"""Cells with the index of their report."""
Rows = dict[str, dict[str, Cells]]
BAR, GAP, HEIGHT = 9, 2, 24
LONG, THICK = 320, 12
NAMES = (
    "as the reference",
    *(f"part {k} of the allowance" for k in range(1, BINS - 1)),
    "outside",
)
"""The names of the histogram bins."""


def matrix(every: Sequence[Report]) -> Html:
    """The matrix: ops by name, then levels of many ops; for several backends the worst state."""
    ops, whole = _rows(every)
    used = {dtype for row in (*ops.values(), *whole.values()) for dtype in row}
    columns = [name for group in GROUPS for name in group if name in used]
    if not columns:
        return ""
    names = sorted(ops)
    size = max(1, -(-(len(names) + len(whole) + 2) // BLOCKS))
    blocks = [names[k : k + size] for k in range(0, len(names), size)]
    parts = [_table(f"{block[0]} to {block[-1]}", block, ops, columns) for block in blocks]
    if whole:
        levels = [name for name in WHOLE if name in whole]
        levels += sorted(whole.keys() - set(levels))
        last = _table("programs of many ops", levels, whole, columns)
        parts[-1:] = [tag("div", "".join([*parts[-1:], last]))]
    legend = tag(
        "p",
        '<b class="p"></b> as the language says <b class="f"></b> not so: follow it '
        '<b class="k"></b> not so, as is known <b class="s"></b> not judged; blank: the op does '
        "not take the type",
        class_="legend",
    )
    heading = tag("h2", "Every op on every type", id="matrix-title")
    grid = tag("div", "".join(parts), class_="grid")
    head = tag("div", heading + legend, class_="head")
    return tag("section", head + grid, id="matrix", aria_labelledby="matrix-title")


def _rows(every: Sequence[Report]) -> tuple[Rows, Rows]:
    ops: Rows = {}
    whole: Rows = {}
    for number, report in enumerate(every):
        for cell in report.cells:
            rows, name = (ops, cell.op) if cell.level == "op" else (whole, cell.level)
            dtype = cell.dtype if cell.dtype in KNOWN else "other"
            rows.setdefault(name, {}).setdefault(dtype, []).append((number, cell))
    return ops, whole


def _table(caption: str, names: Sequence[str], rows: Rows, columns: Sequence[str]) -> Html:
    head = tag("th", '<span class="hidden">op</span>', scope="col") + "".join(
        tag("th", tag("span", name), scope="col", class_="g" if name in FIRST else "")
        for name in columns
    )
    body = "".join(
        tag(
            "tr",
            tag("th", escape(WHOLE.get(name, name) if name in ALL_LEVELS else name), scope="row")
            + "".join(_cell(name, dtype, rows[name].get(dtype, [])) for dtype in columns),
        )
        for name in names
    )
    title = tag("caption", escape(caption), class_="hidden")
    return tag("table", title + tag("thead", tag("tr", head)) + tag("tbody", body))


def _cell(name: str, dtype: str, cells: Cells) -> Html:
    group = " g" if dtype in FIRST else ""
    if not cells:
        return f'<td class="{group.strip()}"></td>' if group else "<td></td>"
    number, worst = min(cells, key=lambda pair: [*CLASSES].index(pair[1].state))
    programs = sum(cell.programs for _, cell in cells)
    failed = sum(cell.failed for _, cell in cells)
    title = f"{name} {dtype}: {programs:,} programs, {failed:,} failed"
    if worst.state == "skipped":
        title = f"{name} {dtype}: {worst.skipped_reason}"
    inside = worst.state
    if worst.failed:
        inside = tag("a", inside, href=f"#{anchor(number, worst.place)}")
    return f'<td class="{CLASSES[worst.state]}{group}" title="{escape(title)}">{inside}</td>'


def anchor(report: int, place: CellPlace) -> str:
    """The element id of a failed cell in the failures section."""
    return in_id(f"f{report}-{'-'.join(place)}")


def accuracy(report: Report) -> Html:
    """A histogram over all ops, then a row per op and float type."""
    cells = [c for c in report.cells if c.level == "op" and (c.histogram or c.max_ulp)]
    if not cells:
        return ""
    intro = tag(
        "p",
        "Float results may differ from the reference by as much as the language allows. An error "
        "counts the representable values between the two: 1 is the next one. The bars count the "
        "results by the part of the allowance they use: grey the reference itself, then eight "
        "equal parts, red what lies outside. Their scale is logarithmic.",
    )
    total = [sum(part) for part in zip(*(c.histogram for c in cells if c.histogram), strict=True)]
    # Where some result differs from the reference.
    off = [cell for cell in cells if cell.max_ulp > 0 or any(cell.histogram[1:])]
    rest = len(cells) - len(off)
    same = tag("p", f"{rest:,} ops and types gave the reference throughout." if rest else "")
    header = ["op", "type", "largest error", "allowance used", "for", "got", "allowed"]
    largest = table("Largest errors", header, map(_row, off), "wide") if off else ""
    return intro + _whole(total) + largest + same


def _whole(total: Sequence[int]) -> Html:
    if not any(total):
        return ""
    most = math.log1p(max(total))
    rows = [
        [escape(name), f"{n:,}", f"{n / sum(total):.2%}", _bar(k, math.log1p(n) / most)]
        for k, (name, n) in enumerate(zip(NAMES, total, strict=True))
    ]
    header = ["results", "how many", "share", "on a logarithmic scale"]
    return table("All float ops together", header, rows, "counts")


def _row(cell: Cell) -> list[Html]:
    name = escape(cell.op)
    shown = ["", "", ""]
    if (largest := cell.largest) is not None:
        inputs = "<br>".join(map(both, largest.inputs))
        shown = [inputs, both(largest.got), both(largest.accepted)]
    return [
        tag("a", name, href=f"#rule-{cell.op}") if cell.failed else name,
        escape(cell.dtype),
        f"{cell.max_ulp:,.6g}",
        histogram(cell.histogram) if cell.histogram else "",
        *shown,
    ]


def _bar(place: int, length: float) -> Html:
    """A bar for the bin at `place`; `length` is at most 1."""
    inside = f'<rect class="{_kind(place)}" width="{LONG * length:.1f}" height="{THICK}"/>'
    size = f'width="{LONG}" height="{THICK}" viewBox="0 0 {LONG} {THICK}"'
    return f'<svg class="bars" aria-hidden="true" preserveAspectRatio="none" {size}>{inside}</svg>'


def _kind(place: int) -> str:
    """The CSS class of the bin at `place`."""
    return "same" if place == 0 else "out" if place == BINS - 1 else "part"


def histogram(counts: Sequence[int]) -> Html:
    """The histogram as SVG, with a bar per count."""
    most = math.log1p(max(counts, default=0)) or 1.0
    bars = []
    for k, count in enumerate(counts):
        height = max(1.5, HEIGHT * math.log1p(count) / most) if count else 0.6
        kind = _kind(k) if count else "none"
        bars.append(
            f'<rect class="{kind}" x="{k * (BAR + GAP)}" y="{HEIGHT - height:.1f}" width="{BAR}" '
            f'height="{height:.1f}"/>'
        )
    width = len(counts) * (BAR + GAP) - GAP
    label = ", ".join(f"{n:,} {name}" for n, name in zip(counts, NAMES, strict=True) if n)
    return (
        f'<svg class="bars" role="img" aria-label="{escape(label)}" width="{width}" '
        f'height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}"><title>{escape(label)}</title>'
        f"{''.join(bars)}</svg>"
    )
