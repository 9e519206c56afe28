"""The ledger section: how much of the spec the run covered, and what it left out."""

from __future__ import annotations

from html import escape

from uop.conformance.coverage.ledger import ledger_lines
from uop.conformance.report.html.markup import Html, table, tag
from uop.conformance.report.model import LeftOut, Report


def ledger(report: Report) -> Html:
    """The totals by kind, then the uncovered points; only the JSON has the evidence of points."""
    totals = report.ledger
    if totals is None:
        return ""
    if not totals.total:
        return "".join(tag("p", escape(line)) for line in ledger_lines(totals))
    intro = f"{totals.checked:,} of {totals.total:,} points of the language were exercised."
    rows = [
        [escape(name), f"{kind.checked:,} of {kind.total:,}", escape(kind.says)]
        for name, kind in totals.kinds.items()
    ]
    sums = table("Points by kind", ["kind", "exercised", "a point is"], rows, "wide")
    rest = "".join(map(_left_out, (*totals.unchecked, *totals.not_of_runs)))
    return tag("p", intro) + sums + rest


def _left_out(left: LeftOut) -> Html:
    return tag(
        "details",
        tag("summary", escape(f"{len(left.points):,}: {left.reason}"))
        + tag("p", escape("; ".join(left.points))),
    )
