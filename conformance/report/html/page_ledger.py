"""The ledger of a page: how much of the spec a run exercised, and what it left out."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from uop.conformance.coverage.ledger import ledger_lines
from uop.conformance.protocol.wire import Json
from uop.conformance.report.html.markup import Html, table, tag


def ledger(found: Json) -> Html:
    """The sums by kind, then what was left out; the evidence of each point stays in the JSON."""
    if not found:
        return ""
    if not found["total"]:
        return "".join(tag("p", escape(line)) for line in ledger_lines(found))
    said = f"{found['checked']:,} of {found['total']:,} points of the language were exercised."
    rows = [
        [escape(name), f"{kind['checked']:,} of {kind['total']:,}", escape(kind["says"])]
        for name, kind in found["kinds"].items()
    ]
    sums = table("Points by kind", ["kind", "exercised", "a point is"], rows, "wide")
    rest = _left_out(found["unchecked"]) + _left_out(found["not_of_runs"])
    return tag("p", said) + sums + rest


def _left_out(groups: Sequence[Json]) -> Html:
    return "".join(
        tag(
            "details",
            tag("summary", escape(f"{len(group['points']):,}: {group['reason']}"))
            + tag("p", escape("; ".join(group["points"]))),
        )
        for group in groups
    )
