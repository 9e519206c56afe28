"""The backends of a comparison in short: verdict and sums, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass, fields

from uop.conformance.report.model import Conclusion, Report, counted
from uop.conformance.report.options import ReportedOptions, in_words
from uop.conformance.run.commands import uop_command

OPTIONS = {
    "levels": "--level",
    "ops": "--op",
    "dtypes": "--dtype",
    "skip_ops": "--skip-op",
    "skip_dtypes": "--skip-dtype",
    "seed": "--seed",
    "examples": "--examples",
    "effort": "--effort",
    "seconds": "--time",
}
"""The options of the command line that choose the cases, by their fields."""


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
    causes: int
    skipped: int
    note: str


def columns(report: Report) -> list[Column]:
    """Those that were judged in the order of the comparison, then those that did not start."""
    missing = report.vote.missing if report.vote else ()
    absent = (why.partition(": ") for why in missing)
    return [
        *map(_judged, report.every),
        *(Column(n, "", "not started", "absent", 0, 0, 0, 0, why) for n, _, why in absent),
    ]


def compare_command(report: Report) -> str:
    """The command that judges all of them again."""
    plain = {one.name: one.default for one in fields(ReportedOptions)}
    chosen = {o: getattr(report.options, n) for n, o in OPTIONS.items()
              if getattr(report.options, n) != plain[n]}  # fmt: skip
    words = [w for option, value in chosen.items() for w in (option, in_words(value))]
    return uop_command("compare", *(column.name for column in columns(report)), *words)


def _judged(report: Report) -> Column:
    backend, summary = report.backend, report.summary
    note = f"{report.profile} ({report.profile_from})"
    match summary.verdict:
        case Conclusion.CONFORMS:
            verdict, kind = "conforms", "good"
            verdict += f", {summary.known:,} known failures" if summary.known else ""
        case Conclusion.DOES_NOT:
            causes = len(report.failures)
            verdict, kind = counted(causes, "cause") if causes else "does not conform", "bad"
        case _:
            verdict, kind, note = "inconclusive", "open", summary.open_because
    if summary.lost:
        note = f"lost on the way: {summary.lost}"
    elif summary.interrupted:
        note = f"interrupted; {note}"
    return Column(
        report.options.backend,
        f"{backend.name} {backend.version} on {backend.device}",
        verdict,
        kind,
        summary.programs,
        summary.wrong + summary.known,
        len(report.failures),
        summary.skipped,
        note,
    )
