"""Writes a comparison: JSON, HTML, Markdown, badges, and lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from uop.conformance.checks import require_files
from uop.conformance.compare.columns import HEADER, NOTE, badge, columns
from uop.conformance.compare.disagreements import Disagreement, disagreements, fail_somewhere
from uop.conformance.compare.matrix import MARKS, Choice, choices, matrix
from uop.conformance.compare.page import page
from uop.conformance.protocol.untrusted import in_one_line
from uop.conformance.report.files import in_names, write_file
from uop.conformance.report.format import report_text
from uop.conformance.report.html.markup import in_decimals, shortened
from uop.conformance.report.html.page_cells import WHOLE
from uop.conformance.report.html.page_failures import title_of
from uop.conformance.report.model import Report
from uop.conformance.report.text import one_line
from uop.conformance.run.commands import case_command, compare_command, more_command, uop_command
from uop.conformance.suite.case import ALL_LEVELS

MOST_ROWS = 60
"""The most disagreements with their programs; the page of HTML has more."""
FENCE = "~~~~~~"
"""Longer than what the text of a program has in a row."""
SHOWN = 5
"""The most disagreements on the terminal."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the forms of a comparison are written; None for those that are not."""

    json: Path | None = None
    html: Path | None = None
    markdown: Path | None = None
    badges: Path | None = None
    """A folder, with a file NAME.svg for each backend."""

    def require(self) -> None:
        """OptionError where one of them cannot be written."""
        a_badge = None if self.badges is None else self.badges / "badge.svg"
        require_files(self.json, self.html, self.markdown, a_badge)

    def write(self, report: Report) -> list[str]:
        """Write them independently; returns error messages."""
        forms = ((self.json, report_text), (self.html, page), (self.markdown, markdown))
        problems = [write_file(path, form(report)) for path, form in forms if path is not None]
        if self.badges is not None:
            for column in columns(report):
                path = self.badges / f"{in_names(column.name)}.svg"
                problems.append(write_file(path, badge(column)))
        return [problem for problem in problems if problem]


def markdown(report: Report) -> str:
    """The page: verdicts, matrix, choices, and the programs on which backends differ."""
    shown, rows = columns(report), disagreements(report.every)
    names = [one.options.backend for one in report.every]
    legend = ", ".join(f"{mark} {state}" for state, mark in MARKS.items())
    table = [[c.name, c.verdict, *c.numbers, c.note] for c in shown]
    squares = matrix(report.every).items()
    command = compare_command([c.name for c in shown], report.options)
    parts = [
        "# Backends side by side\n\nEach is judged by the executable specification of the UOp "
        f"language. Made by:\n\n{_block(command)}",
        _table([*HEADER, NOTE], table),
        f"## Every op on every backend\n\n{legend}; with the number of programs, or of those that "
        "fail.\n\n" + _table(["op", *names],
                             [[WHOLE.get(n, n), *(s.text for s in row)] for n, row in squares]),
        *_choices(names, choices(report.every)),
        *_rows(rows),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _choices(names: Sequence[str], found: Sequence[Choice]) -> Iterator[str]:
    if found:
        rows = [[f"{'≠ ' * choice.differs}{choice.name}", *choice.observed] for choice in found]
        head = "## What each chooses where the specification is open"
        legend = "≠ marks differences, ? what was not observed."
        yield f"{head}\n\n{legend}\n\n{_table(['choice', *names], rows)}"


def _rows(rows: Sequence[Disagreement]) -> Iterator[str]:
    if rows:
        yield f"## {fail_somewhere(rows)}\n\nOrdinary values first."
    for row in rows[:MOST_ROWS]:
        failure = row.failure
        operands = f"For {in_decimals(row.inputs)}: " if row.inputs else ""
        accepted = f"accepted {in_decimals(row.accepted)}. " if row.accepted else ""
        answers = [[in_decimals(a.says), ", ".join(names)] for a, names in row.groups.items()]
        yield "\n\n".join(
            [
                f"### {_cell(title_of(failure))}",
                _cell(f"{operands}{accepted}{row.outcome}"),
                _table(["gives", "backends"], answers),
                _block(failure.text),
            ]
        )
    if len(rows) > MOST_ROWS:
        yield f"and {len(rows) - MOST_ROWS:,} more"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    """Text in one line that is no markup: a backend may name itself anything."""
    plain = in_one_line(text)
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#&~" else c for c in plain)


def _block(text: str) -> str:
    safe = shortened(text).replace(FENCE, FENCE[1:])
    return f"{FENCE}text\n{safe}\n{FENCE}"


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
