"""The accuracy section: the largest error per op and type, and the share of the allowance used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from uop.conformance.judging.elements import BINS
from uop.conformance.report.html.markup import Html, both, table, tag
from uop.conformance.report.model import Cell, Report

BAR, GAP, HEIGHT = 9, 2, 24
LONG, THICK = 320, 12
NAMES = (
    "as the reference",
    *(f"part {k} of the allowance" for k in range(1, BINS - 1)),
    "outside",
)
"""The names of the histogram bins."""


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
    off = [cell for cell in cells if _is_off(cell)]
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


def _is_off(cell: Cell) -> bool:
    """Whether some result differs from the reference."""
    return cell.max_ulp > 0 or any(cell.histogram[1:])


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
