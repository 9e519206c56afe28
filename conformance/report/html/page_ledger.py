"""The ledger of a page: how much of the spec a run exercised, and what it left out."""

from __future__ import annotations

from html import escape

from uop.conformance.coverage.ledger import ledger_lines
from uop.conformance.report.html.markup import Html, table, tag
from uop.conformance.report.model import LeftOut, Report


def ledger(report: Report) -> Html:
    """The sums by kind, then what was left out; the evidence of each point stays in the JSON."""
    found = report.ledger
    if found is None:
        return ""
    if not found.total:
        return "".join(tag("p", escape(line)) for line in ledger_lines(found))
    said = f"{found.checked:,} of {found.total:,} points of the language were exercised."
    rows = [
        [escape(name), f"{kind.checked:,} of {kind.total:,}", escape(kind.says)]
        for name, kind in found.kinds.items()
    ]
    sums = table("Points by kind", ["kind", "exercised", "a point is"], rows, "wide")
    rest = "".join(map(_left_out, (*found.unchecked, *found.not_of_runs)))
    return tag("p", said) + sums + rest


def _left_out(left: LeftOut) -> Html:
    return tag(
        "details",
        tag("summary", escape(f"{len(left.points):,}: {left.reason}"))
        + tag("p", escape("; ".join(left.points))),
    )
