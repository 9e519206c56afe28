"""The matrix section: a mark per op and dtype, in blocks side by side."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from uop.conformance.report.html.markup import Html, in_id, tag
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


def matrix(every: Sequence[Report]) -> Html:
    """The matrix: ops by name, then levels of many ops; for several backends the worst state."""
    ops, whole = _rows(every)
    columns = [name for group in GROUPS for name in group if _is_used(name, ops, whole)]
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


def _is_used(dtype: str, *tables: Rows) -> bool:
    return any(dtype in row for rows in tables for row in rows.values())


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
