"""Prints a comparison: a table of backends, the most serious disagreements, the next command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uop.conformance.compare.columns import columns
from uop.conformance.compare.disagreements import Disagreement, disagreements, fail_somewhere
from uop.conformance.compare.files import Files
from uop.conformance.report.html.markup import in_decimals
from uop.conformance.report.html.page_failures import title_of
from uop.conformance.report.model import Report
from uop.conformance.report.text import one_line
from uop.conformance.run.commands import case_command, more_command, uop_command
from uop.conformance.suite.case import ALL_LEVELS

SHOWN = 5
"""The most disagreements on the terminal."""
HEADER = ("backend", "verdict", "programs", "failed", "not judged")


def lines_of(report: Report, files: Files) -> Iterator[str]:
    """The lines; `files` are those that the comparison is written to."""
    shown = columns(report)
    name = max(len(c.name) for c in shown)
    verdict = max(len(c.verdict) for c in shown)
    yield _line(name, verdict, *HEADER)
    for c in shown:
        yield _line(name, verdict, c.name, c.verdict, *c.numbers)
    for c in shown:
        if c.kind in ("open", "absent"):
            yield one_line(f"{c.name}: {c.verdict}: {c.note}")
    found = disagreements(report.every)
    if found:
        yield ""
        yield f"{fail_somewhere(found)}, ordinary values first:"
    for row in found[:SHOWN]:
        yield from _row(row)
    if len(found) > SHOWN:
        yield f"... and {len(found) - SHOWN} more, which --html shows"
    yield f"next: {_next(report, found, files)}"


def _line(name: int, verdict: int, first: str, second: str, *numbers: str) -> str:
    return f"{first:<{name}}  {second:<{verdict}}{''.join(f'{n:>12}' for n in numbers)}".rstrip()


def _row(row: Disagreement) -> Iterator[str]:
    yield one_line(f"{title_of(row.failure)}: {row.outcome}")
    operands = f"for {in_decimals(row.inputs)}, " if row.inputs else ""
    accepted = f"accepted {in_decimals(row.accepted)}" if row.accepted else ""
    if operands or accepted:
        yield "    " + one_line(f"{operands}{accepted}")
    for answer, names in row.groups.items():
        yield "    " + one_line(f"{in_decimals(answer.says)}: {', '.join(names)}")


def _next(report: Report, found: Sequence[Disagreement], files: Files) -> str:
    if files.json is not None and files.html is None:
        return uop_command("compare", files.json, "--html", "matrix.html")
    for row in found:
        if row.failure.level in ALL_LEVELS:
            options = next(r.options for r in report.every if r.options.backend == row.backend)
            return case_command(options, row.failure.id)
    return more_command(report.options)
