"""The device card section: what the spec leaves open, and what the backend does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from html import escape

from uop.conformance.profile.card import Observation
from uop.conformance.profile.free import FREE
from uop.conformance.report.html.markup import Html, block, code, in_decimals, table, tag
from uop.conformance.report.model import Report
from uop.spec.latitude import KNOBS
from uop.spec.text.profile_text import knob_values

HEADER = ("point", "the language allows", "observed", "evidence")


def card(report: Report) -> Html:
    """The observations of knobs, then the others; empty without a card."""
    if not report.card:
        return ""
    intro = tag(
        "p",
        "Small programs show what the backend does where the language leaves a choice. It was "
        f"judged by the profile {code(report.profile)}, {report.profile_from}.",
    )
    # Contradicting choices fail only under an observed profile.
    failed = {failure.signature for failure in report.failures}
    knobs = [entry for entry in report.card if entry.knob]
    free = [entry for entry in report.card if not entry.knob]
    rows = [[code(e.point), escape(FREE.get(e.point, "")), *_seen(e, failed)] for e in free]
    parts = [table("Choices that a profile names", HEADER, _of_knobs(knobs, failed), "wide card")]
    return intro + "".join(parts) + table("What else is open", HEADER, rows, "wide card")


def _of_knobs(entries: Sequence[Observation], failed: Collection[str]) -> Iterator[Sequence[Html]]:
    """A row per observation; the first of each knob has the description of the knob."""
    explained: set[str] = set()
    for entry in entries:
        words = "" if entry.knob in explained else _knob(entry.knob)
        explained.add(entry.knob)
        yield [code(entry.point), words, *_seen(entry, failed)]


def _knob(name: str) -> Html:
    if name not in KNOBS:
        return ""
    return f"{escape(KNOBS[name])}<br>{tag('small', escape(knob_values(name)))}"


def _seen(entry: Observation, failed: Collection[str]) -> tuple[Html, Html]:
    """The observed choice with its knob value, and the evidence."""
    observed = tag("strong", escape(entry.observed))
    if entry.declares:
        declared = code(f"{entry.knob}={entry.declares}")
        observed += f"<br>{tag('small', declared)}"
    if f"card {entry.point}" in failed:
        observed += f"<br>{tag('span', '✕ two things at once', class_='wrong')}"
    shown = entry.conflict or entry.evidence[:1]
    lines = "<br>".join(code(in_decimals(line)) for line in shown)
    rest = len(entry.evidence) - len(shown)
    if rest > 0:
        title = tag("summary", f"and {rest} more; all of them, exactly")
        lines += tag("details", title + block("\n".join(entry.evidence)))
    return observed, lines
