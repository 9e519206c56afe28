"""Writes a report for GitHub: short annotations, and a job summary in Markdown with the rest.

Annotations refer to files of the checkout. Repros are not among them: the text has the case.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from uop.conformance.report.model import Conclusion, Failure, Report
from uop.conformance.report.terminal import Log
from uop.conformance.report.text import (
    adapter_lines,
    clipped,
    figures_line,
    next_lines,
    verdict_line,
)
from uop.conformance.run.commands import repro_command
from uop.conformance.suite.case import OWN_ID
from uop.spec.errors import MalformedError
from uop.spec.text.reading import read_bytes

MOST = 10
"""The most annotations: GitHub shows no more per step."""
LONGEST = 300
"""The most characters of the text of an annotation."""
FILE_AND_LINE = re.compile(r"(?P<file>.+?):(?P<line>\d+): ")
MARKS = {Conclusion.CONFORMS: "✅", Conclusion.DOES_NOT: "❌", Conclusion.INCONCLUSIVE: "⚠️"}


class GitHub(Log):
    """The plain log, then workflow commands; the Markdown is appended to `summary`, if set."""

    def __init__(self, write: Callable[[str], None], summary: Path | None) -> None:
        super().__init__(write)
        self.summary = summary

    def finished(self, report: Report) -> None:
        super().finished(report)
        for line in commands(report):
            self.write(line)
        if self.summary is None:
            return
        try:
            with self.summary.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(markdown(report))
        except OSError as error:
            # The summary is optional: the job already has the log.
            self.write(_command("warning", f"no summary of the job: {error.strerror}"))


def commands(report: Report) -> list[str]:
    """An `::error` for each cause and each stale line, of which the last says how many are more; a
    single one for an inconclusive run.
    """
    if report.conclusion is Conclusion.INCONCLUSIVE:
        return [_command("error", verdict_line(report), title="inconclusive")]
    lines = [
        _command(
            "error",
            f"{f.message.partition(chr(10))[0]}\n{repro_command(report.options, f.repro)}",
            **_place_of_case(report, f),
            title=f"{f.id}: {f.signature}",
        )
        for f in report.failures
    ]
    lines += [
        _command("error", stale, **_place_of_line(stale), title="known failure")
        for stale in report.stale
    ]
    more = len(lines) - MOST
    if more > 0:
        said = f"{more + 1} more, in the summary and the report"
        return [*lines[: MOST - 1], _command("notice", said)]
    return lines


def markdown(report: Report) -> str:
    """The summary: verdict, failing cells, causes (ten with repros), stale lines, next steps."""
    lines = [f"## {MARKS[report.conclusion]} {_plain(verdict_line(report))}", ""]
    lines += [_plain(figures_line(report)), ""]
    failing = defaultdict(list)
    for cell in report.cells:
        if cell.failed:
            failing[f"{cell.level} {cell.op}"].append(
                f"{cell.dtype} ({cell.failed}/{cell.programs})"
            )
    if failing:
        rows = [(f"`{name}`", ", ".join(found)) for name, found in failing.items()]
        lines += _table(("op", "fails on"), rows)
    for failure in report.failures[:MOST]:
        lines += ["<details><summary><code>", _plain(failure.signature), "</code></summary>", ""]
        shown = [failure.details, "", failure.text.rstrip()]
        fence = _fence("\n".join(shown))
        lines += [f"{fence}text", *shown, fence, "</details>", ""]
    rest = [f"{failure.id}: {failure.signature}" for failure in report.failures[MOST:]]
    lines += [f"- {_plain(line)}" for line in [*rest, *report.stale]]
    lines += [f"- {_plain(line)}" for line in [*adapter_lines(report), *next_lines(report)]]
    return "\n".join(lines) + "\n"


def _place_of_case(report: Report, failure: Failure) -> dict[str, str]:
    """The position of a user's case in the checkout; empty for a case of the suite."""
    own, folder = OWN_ID.fullmatch(failure.id), report.options.folder
    if own is None or folder is None:
        return {}
    path = folder / own["file"] if folder.is_dir() else folder
    name = own["group"].removeprefix(f"{own['file']}/")
    opening = re.compile(rf"\s*case\s+{re.escape(name)}\s*(;.*)?")
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, MalformedError):
        return {}
    lines = enumerate(text.splitlines(), 1)
    return _place(path, next((n for n, line in lines if opening.fullmatch(line)), 1))


def _place_of_line(stale: str) -> dict[str, str]:
    """The position of a known failure, which its message starts with."""
    position = FILE_AND_LINE.match(stale)
    return _place(Path(position["file"]), int(position["line"])) if position else {}


def _place(path: Path, line: int) -> dict[str, str]:
    """The position of an annotation; empty if the file is not in the checkout."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or ".").resolve()
    full = path.resolve()
    if not full.is_file() or not full.is_relative_to(root):
        return {}
    return {"file": full.relative_to(root).as_posix(), "line": str(line)}


def _command(kind: str, message: str, **places: str) -> str:
    """A workflow command with escaped text."""
    where = ",".join(f"{k}={_property(clipped(v, LONGEST))}" for k, v in places.items())
    return f"::{kind}{' ' + where if where else ''}::{_escaped(clipped(message, LONGEST))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *rows)]
    return [*lines, ""]


def _fence(text: str) -> str:
    """A code fence that is longer than any in the text."""
    return "`" * max(4, 1 + max(map(len, re.findall("`+", text)), default=0))


def _plain(text: str) -> str:
    """Escape the special characters of Markdown."""
    return re.sub(r"([\\`*_<>\[\]|#])", r"\\\1", text)
