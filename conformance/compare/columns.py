"""The backends of a comparison in short: verdict and sums, or why there are none; badges."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from uop.conformance.report.model import Conclusion, Report, counted

LABEL = "uop conformance"
HEADER = ("backend", "verdict", "programs", "failed", "not judged")
NOTE = "profile, or the reason"
COLORS = {"good": "#17693a", "bad": "#b3261e", "open": "#7a5200", "absent": "#59616b"}
CHARACTER, MARGIN = 6.5, 16


@dataclass(frozen=True, slots=True)
class Column:
    """A backend: `verdict` is one short phrase, `kind` is good, bad, open or absent.

    `note` is its profile, or the reason where there is no verdict.
    """

    name: str
    about: str
    verdict: str
    kind: str
    programs: int
    failed: int
    skipped: int
    note: str

    @property
    def numbers(self) -> list[str]:
        """The programs, those that failed and those not judged; empty texts if it is absent."""
        counts = (self.programs, self.failed, self.skipped)
        return ["" if self.kind == "absent" else f"{n:,}" for n in counts]


def columns(report: Report) -> list[Column]:
    """Those that were judged in the order of the comparison, then those that did not start."""
    missing = report.vote.missing if report.vote else ()
    absent = (why.partition(": ") for why in missing)
    return [
        *map(_judged, report.every),
        *(Column(n, "", "not started", "absent", 0, 0, 0, why) for n, _, why in absent),
    ]


def _judged(report: Report) -> Column:
    backend, summary = report.backend, report.summary
    note = f"{report.profile} ({report.profile_from})"
    match summary.verdict:
        case Conclusion.CONFORMS:
            known = f", {counted(summary.known, 'known failure')}" if summary.known else ""
            verdict, kind = f"conforms{known}", "good"
        case Conclusion.DOES_NOT:
            causes = len(report.failures)
            verdict, kind = counted(causes, "cause") if causes else "does not conform", "bad"
        case _:
            verdict, kind, note = "inconclusive", "open", summary.open_because
    if summary.lost:
        note = summary.lost if summary.unfit else f"lost on the way: {summary.lost}"
    elif summary.interrupted:
        note = f"interrupted; {note}"
    if backend.untested and not summary.unfit:
        note = f"{note}; {backend.untested}"
    return Column(
        report.options.backend,
        f"{backend.name} {backend.version} on {backend.device}",
        verdict,
        kind,
        summary.programs,
        summary.wrong + summary.known,
        summary.skipped,
        note,
    )


def badge(column: Column) -> str:
    """The badge as a document of its own, which a page may contain too."""
    left, right = _width(LABEL), _width(column.verdict)
    label = escape(f"{LABEL}: {column.verdict}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}"><title>{label}</title>'
        f'<rect width="{left + right}" height="20" rx="4" fill="#333a43"/>'
        f'<path d="M{left} 0h{right - 4}a4 4 0 0 1 4 4v12a4 4 0 0 1-4 4h{4 - right}z" '
        f'fill="{COLORS[column.kind]}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{_text(LABEL, 0)}{_text(column.verdict, left)}</g></svg>\n"
    )


def _width(text: str) -> int:
    return round(CHARACTER * len(text)) + MARGIN


def _text(text: str, x: int) -> str:
    length = _width(text) - MARGIN
    return f'<text x="{x + MARGIN // 2}" y="14" textLength="{length}">{escape(text)}</text>'
