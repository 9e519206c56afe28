"""Writes a report as JUnit XML: a test case per level, op and dtype, with repros in failures."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from uop.conformance.report.format import failed_ids
from uop.conformance.report.model import (
    SKIPPED,
    Cell,
    Conclusion,
    Failure,
    Report,
    cell_of,
)
from uop.conformance.report.options import Origin
from uop.conformance.run.commands import case_command, repro_command
from uop.conformance.suite.case import FUZZ

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids."""


def junit_text(report: Report) -> str:
    """The XML document: a test suite per backend. An inconclusive run has an error."""
    root = Element(
        "testsuites", name="uop fuzz" if report.options.effort == FUZZ else "uop conform"
    )
    for one in report.every:
        _suite(root, one)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def first_failed(report: Report, cell: Cell) -> str:
    """The id of the first failed case of a cell."""
    return next(id for id in failed_ids(report) if cell_of(id) == cell.place)


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
