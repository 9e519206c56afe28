"""Writes a report for CI: as JUnit XML, and for GitHub as annotations and a summary in Markdown.

Annotations refer to files of the checkout. Repros are not among them: the text has the case.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from uop.conformance.report.format import first_failed
from uop.conformance.report.model import SKIPPED, Cell, Conclusion, Failure, Report, cell_of
from uop.conformance.report.options import Origin
from uop.conformance.report.terminal import Log
from uop.conformance.report.text import (
    adapter_lines,
    clipped,
    figures_line,
    next_lines,
    verdict_line,
)
from uop.conformance.run.commands import case_command, repro_command
from uop.conformance.suite.case import FUZZ, OWN_ID
from uop.spec.errors import MalformedError
from uop.spec.text.reading import read_bytes

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids."""
MOST = 10
"""The most annotations: GitHub shows no more per step."""
LONGEST = 300
"""The most characters of the text of an annotation."""
FILE_AND_LINE = re.compile(r"(?P<file>.+?):(?P<line>\d+): ")
MARKS = {Conclusion.CONFORMS: "✅", Conclusion.DOES_NOT: "❌", Conclusion.INCONCLUSIVE: "⚠️"}


def junit_text(report: Report) -> str:
    """The XML document: a test suite per backend. An inconclusive run has an error."""
    root = Element(
        "testsuites", name="uop fuzz" if report.options.effort == FUZZ else "uop conform"
    )
    for one in report.every:
        _suite(root, one)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: Element, report: Report) -> None:
    cells, summary = report.cells, report.summary
    twofold = [failure for failure in report.failures if failure.level == "card"]
    inconclusive = report.conclusion is Conclusion.INCONCLUSIVE or summary.interrupted
    stale = [line for line in report.known if line.stale]
    origin = report.origin or Origin()

    def fails(cell: Cell) -> bool:
        return cell.failed > 0 and not _explained_elsewhere(report, cell)

    places = {"timestamp": origin.date, "hostname": origin.host}
    suite = SubElement(
        root,
        "testsuite",
        {name: _xml(text) for name, text in places.items() if text},
        name=_xml(report.options.backend),
        tests=str(len(cells) + len(twofold) + len(stale) + inconclusive),
        failures=str(sum(map(fails, cells)) + len(twofold) + len(stale)),
        errors=str(int(inconclusive)),
        skipped=str(sum(_is_skipped(c) or (c.failed > 0 and not fails(c)) for c in cells)),
        time=f"{summary.seconds:.3f}",
    )
    properties = {"commit": origin.commit, "command": origin.command}
    if any(properties.values()):
        listed = SubElement(suite, "properties")
        for name, text in properties.items():
            if text:
                SubElement(listed, "property", name=name, value=_xml(text))
    for cell in cells:
        _test(suite, report, cell)
    for failure in twofold:
        test = SubElement(suite, "testcase", classname="card", name=_xml(failure.label))
        message, body = _xml(failure.message), _xml(_body(report, failure))
        SubElement(test, "failure", message=message, type="card").text = body
    for line in stale:
        test = SubElement(suite, "testcase", classname="known", name=_xml(line.key))
        SubElement(test, "failure", message=_xml(line.stale), type=line.state)
    if inconclusive:
        test = SubElement(suite, "testcase", classname="run", name="conclusive")
        why = "interrupted" if summary.interrupted else summary.open_because
        SubElement(test, "error", message=_xml(why))


def _test(suite: Element, report: Report, cell: Cell) -> None:
    test = SubElement(suite, "testcase", classname=f"{cell.level}.{cell.op}", name=cell.dtype)
    if _is_skipped(cell):
        SubElement(test, "skipped", message=_xml(_why_skipped(report, cell)))
    if not cell.failed:
        return
    causes = [failure for failure in report.failures if failure.place == cell.place]
    if elsewhere := _explained_elsewhere(report, cell):
        SubElement(test, "skipped", message=_xml(elsewhere))
        return
    detail = causes[0].message.partition("\n")[0] if causes else first_failed(report, cell)
    message = f"{cell.failed} of {cell.programs} programs: {detail}"
    kind = causes[0].label if causes else "failed"
    SubElement(test, "failure", message=_xml(message), type=_xml(kind)).text = _xml(
        "\n".join(_body(report, cause) for cause in causes)
        or case_command(report.options, first_failed(report, cell))
    )


def _explained_elsewhere(report: Report, cell: Cell) -> str:
    """Why a failed cell is no failure of its own: the causes of other cells explain all of it."""
    causes = [failure for failure in report.failures if cell.place in failure.cells]
    is_own = any(failure.place == cell.place for failure in causes)
    if is_own or not causes or any(cell_of(id) == cell.place for id in report.unexplained):
        return ""
    names = "; ".join(f"{cause.signature} ({cause.id})" for cause in causes)
    return f"{cell.failed} of {cell.programs} programs fail by a cause of another cell: {names}"


def _body(report: Report, failure: Failure) -> str:
    again = repro_command(report.options, failure.repro)
    return f"{failure.details}\n{again}\n\n{failure.text}"


def _is_skipped(cell: Cell) -> bool:
    """Whether no program was judged, or all failures are known."""
    return cell.state in ("known", "skipped")


def _why_skipped(report: Report, cell: Cell) -> str:
    """The reasons of the known failures in a cell, else its skip reason."""
    lines = [line for line in report.known if cell.place in map(cell_of, line.cases)]
    known = "; ".join(
        f"skipped cause: {line.key}"
        if line.state == SKIPPED
        else f"known failure: {line.reason} {line.link}".strip()
        for line in lines
    )
    return known or cell.skipped_reason or ""


def _xml(text: str) -> str:
    return NOT_XML.sub("?", text)


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
        rows = (f"| `{name}` | {', '.join(found)} |" for name, found in failing.items())
        lines += ["| op | fails on |", "| --- | --- |", *rows, ""]
    for failure in report.failures[:MOST]:
        lines += ["<details><summary><code>", _plain(failure.signature), "</code></summary>", ""]
        shown = [failure.details, "", failure.text.rstrip()]
        fences = re.findall("`+", "\n".join(shown))
        fence = "`" * max(4, 1 + max(map(len, fences), default=0))
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
    escaped = {k: _escaped(v).replace(":", "%3A").replace(",", "%2C") for k, v in places.items()}
    where = ",".join(f"{k}={v}" for k, v in escaped.items())
    return f"::{kind}{' ' + where if where else ''}::{_escaped(message)}"


def _escaped(text: str) -> str:
    """Text for a workflow command, cut if long."""
    return clipped(text, LONGEST).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _plain(text: str) -> str:
    """Escape the special characters of Markdown."""
    return re.sub(r"([\\`*_<>\[\]|#])", r"\\\1", text)
