"""Prints a comparison: a table of backends, the most serious disagreements, the next command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from uop.conformance.compare.columns import columns
from uop.conformance.compare.disagreements import Disagreement, disagreements
from uop.conformance.report.html.markup import in_decimals
from uop.conformance.report.html.page_failures import title_of
from uop.conformance.report.model import Report, counted
from uop.conformance.report.text import one_line
from uop.conformance.run.commands import case_command, uop_command
from uop.conformance.suite.case import ALL_LEVELS

SHOWN = 5
"""The most disagreements on the terminal."""
HEADER = ("backend", "verdict", "programs", "failed", "not judged")


def lines_of(report: Report, json: Path | None) -> Iterator[str]:
    """The lines; `json` is the file that the comparison is written to, if any."""
    rows = [
        (c.name, f"{c.verdict}: {c.note}", "", "", "")
        if c.kind == "absent"
        else (c.name, c.verdict, f"{c.programs:,}", f"{c.failed:,}", f"{c.skipped:,}")
        for c in columns(report)
    ]
    name, verdict = (
        max(map(len, part)) for part in zip(HEADER[:2], *(r[:2] for r in rows if r[2]), strict=True)
    )
    for first, second, *numbers in (HEADER, *rows):
        yield one_line(
            f"{first:<{name}}  {second:<{verdict}}" + "".join(f"{n:>11}" for n in numbers)
        )
    found = disagreements(report.every)
    if found:
        yield ""
        yield f"they differ on {counted(len(found), 'program')}, ordinary values first:"
    for row in found[:SHOWN]:
        yield from _row(row)
    if len(found) > SHOWN:
        yield f"... and {len(found) - SHOWN} more: --html has all"
    yield f"next: {_next(report, found, json)}"


def _row(row: Disagreement) -> Iterator[str]:
    vote = row.vote
    odd = f": {', '.join(vote.odd)}" if vote.odd else ""
    yield one_line(f"{title_of(row.failure)}; {vote.verdict}{odd}")
    operands = f"for {in_decimals(row.inputs)}, " if row.inputs else ""
    accepted = f"accepted {in_decimals(row.accepted)}" if row.accepted else ""
    if operands or accepted:
        yield one_line(f"    {operands}{accepted}")
    for name, answer in row.answers.items():
        yield one_line(f"    {name}: {in_decimals(answer.says)}")


def _next(report: Report, found: list[Disagreement], json: Path | None) -> str:
    if json is not None:
        return uop_command("compare", json, "--html", "matrix.html")
    for row in found:
        if row.failure.level in ALL_LEVELS:
            options = next(r.options for r in report.every if r.options.backend == row.backend)
            return case_command(options, row.failure.id)
    return "uop compare ... --json matrix.json --html matrix.html"
