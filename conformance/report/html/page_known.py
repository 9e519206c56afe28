"""The known failures section: expected failures, and stale lines to remove."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from uop.conformance.report.html.markup import Html, block, code, table, tag
from uop.conformance.report.model import SKIPPED, KnownFailure, Report

WORDS = {
    "known": "fails, as expected",
    "fixed": "✕ passes now: remove its line",
    "expired": "✕ expired: mend it, or give it more time",
    "undecided": "✕ its program was not judged: write another one",
    SKIPPED: "skipped",
}
WEB = ("http://", "https://")


def known(report: Report) -> Html:
    """A row for each line of the file, stale ones first."""
    lines = report.known
    if not lines:
        return ""
    intro = (
        "Failures that the adopter of the backend has written down. They do not fail the run, but "
        "a line whose program passes or cannot be judged, or that has expired, does. A cause that "
        "the run was to skip stands here too."
    )
    parts = [tag("p", intro)]
    if stale := report.stale:
        parts += [tag("p", "These lines fail the run:", class_="wrong"), block("\n".join(stale))]
    ordered = sorted(lines, key=lambda line: not line.stale)
    header = ["what fails, and the program that shows it", "state", "reason", "until", "cases"]
    return "".join(parts) + table("Lines of the file", header, map(_row, ordered), "wide known")


def _row(line: KnownFailure) -> Sequence[Html]:
    state = escape(WORDS[line.state])
    return [
        f"{code(line.key)}<br>{tag('small', code(line.repro))}" if line.repro else code(line.key),
        tag("span", state, class_="wrong") if line.stale else state,
        escape(line.reason) + _link(line.link),
        escape(line.expires) or "not limited",
        _cases(line.cases),
    ]


def _link(text: str) -> Html:
    """A link for http(s) addresses; escaped text otherwise."""
    if not text:
        return ""
    shown = tag("a", escape(text), href=text) if text.startswith(WEB) else escape(text)
    return f"<br>{tag('small', shown)}"


def _cases(ids: Sequence[str]) -> Html:
    """The number of cases that a line covers, and their ids."""
    if not ids:
        return "none in this run"
    inside = tag("summary", f"{len(ids):,}") + "<br>".join(map(code, ids))
    return tag("details", inside)
