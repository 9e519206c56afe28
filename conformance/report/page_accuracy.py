"""The accuracy of a page: the largest error per op and type, how much of the allowance is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from uop.conformance.elements import BINS
from uop.conformance.report.markup import Html, both, table, tag
from uop.conformance.wire import Json

BAR, GAP, HEIGHT = 9, 2, 24
NAMES = (
    "as the reference",
    *(f"part {k} of the allowance" for k in range(1, BINS - 1)),
    "outside",
)
"""What each count of a histogram is of."""


def accuracy(report: Json) -> Html:
    """A histogram over all ops, then a row per op and float type."""
    cells = [c for c in report["cells"] if c["level"] == "op" and (c["histogram"] or _is_off(c))]
    if not cells:
        return ""
    said = tag(
        "p",
        "Float results may differ from the reference by as much as the language allows. An error "
        "counts the representable values between the two: 1 is the next one. The bars count the "
        "results by the part of the allowance they use: grey the reference itself, then eight "
        "equal parts, red what lies outside. Their scale is logarithmic.",
    )
    total = [
        sum(part) for part in zip(*(c["histogram"] for c in cells if c["histogram"]), strict=True)
    ]
    rows = [_row(cell) for cell in cells]
    header = ["op", "type", "largest error", "allowance used", "at input", "got", "allowed"]
    return said + _whole(total) + table("Largest errors", header, rows, "wide")


def _whole(total: Sequence[int]) -> Html:
    if not any(total):
        return ""
    rows = [[name, f"{n:,}", f"{n / sum(total):.2%}"] for name, n in zip(NAMES, total, strict=True)]
    counts = table("All float ops together", ["results", "how many", "share"], rows)
    picture = tag("figure", histogram(total, 4))
    return tag("div", counts + picture, class_="pair")


def _row(cell: Json) -> list[Html]:
    largest = cell["largest"] or {"inputs": [], "got": "", "accepted": ""}
    return [
        tag("a", escape(cell["op"]), href=f"#rule-{cell['op']}") if cell["failed"] else cell["op"],
        escape(cell["dtype"]),
        f"{cell['max_ulp']:,.6g}",
        histogram(cell["histogram"]) if cell["histogram"] else "",
        "<br>".join(map(both, largest["inputs"])),
        both(largest["got"]) if largest["got"] else "",
        both(largest["accepted"]) if largest["accepted"] else "",
    ]


def _is_off(cell: Json) -> bool:
    return bool(cell["max_ulp"])


def histogram(counts: Sequence[int], scale: int = 1) -> Html:
    """A bar per count."""
    most = math.log1p(max(counts, default=0)) or 1.0
    bars = []
    for k, count in enumerate(counts):
        height = max(1.5, HEIGHT * math.log1p(count) / most) if count else 0.6
        kind = "same" if k == 0 else "out" if k == len(counts) - 1 else "part"
        kind = kind if count else "none"
        bars.append(
            f'<rect class="{kind}" x="{k * (BAR + GAP)}" y="{HEIGHT - height:.1f}" width="{BAR}" '
            f'height="{height:.1f}"/>'
        )
    width = len(counts) * (BAR + GAP) - GAP
    label = ", ".join(f"{n:,} {name}" for n, name in zip(counts, NAMES, strict=True) if n)
    return (
        f'<svg class="bars" role="img" aria-label="{escape(label)}" width="{width * scale}" '
        f'height="{HEIGHT * scale}" viewBox="0 0 {width} {HEIGHT}"><title>{escape(label)}</title>'
        f"{''.join(bars)}</svg>"
    )
