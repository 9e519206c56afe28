"""A report as JUnit XML: a test case per level, op and dtype, repros in the bodies of failures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from uop.conformance.protocol.wire import Json
from uop.conformance.report import cell_of, listed_id
from uop.conformance.report.reading import version_of
from uop.conformance.run.commands import case_command, repro_command

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold."""
FAILED = frozenset("FC")
"""The marks of a case that failed, as in the `cases` of a report."""


def junit_text(report: Json) -> str:
    """The document, a suite per backend. What was inconclusive is an error."""
    root = Element("testsuites", name="uop conform")
    for one in (report, *report.get("others", [])):
        _suite(root, one)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def failures_in(report: Json, cell: Json) -> Iterator[Json]:
    """The causes whose first case lies in a cell."""
    return (f for f in report["failures"] if cell_of(f["id"]) == _place(cell))


def first_failed(report: Json, cell: Json) -> str:
    """The id of the first case of a cell that failed."""
    return next(
        listed_id(name, index, version_of(report))
        for name, marks in report["cases"].items()
        if cell_of(listed_id(name, 0, 1)) == _place(cell)
        for index, mark in enumerate(marks)
        if mark in FAILED
    )


def _suite(root: Element, report: Json) -> None:
    cells, summary = report["cells"], report["summary"]
    twofold = [failure for failure in report["failures"] if failure["level"] == "card"]
    inconclusive = summary["verdict"] == "inconclusive" or summary["interrupted"]
    stale = [known for known in report["known"] if known["stale"]]
    origin = report.get("origin", {})
    places = {"timestamp": origin.get("date"), "hostname": origin.get("host")}
    suite = SubElement(
        root,
        "testsuite",
        {name: _xml(text) for name, text in places.items() if text},
        name=_xml(report["options"]["backend"]),
        tests=str(len(cells) + len(twofold) + len(stale) + inconclusive),
        failures=str(sum(c["failed"] > 0 for c in cells) + len(twofold) + len(stale)),
        errors=str(int(inconclusive)),
        skipped=str(sum(_is_skipped(cell) for cell in cells)),
        time=f"{summary['seconds']:.3f}",
    )
    properties = [(name, origin.get(name)) for name in ("commit", "command") if origin.get(name)]
    if properties:
        listed = SubElement(suite, "properties")
        for name, text in properties:
            SubElement(listed, "property", name=name, value=_xml(text))
    for cell in cells:
        _test(suite, report, cell)
    for failure in twofold:
        test = SubElement(suite, "testcase", classname="card", name=_xml(failure["label"]))
        message, body = _xml(failure["message"]), _xml(_body(report, failure))
        SubElement(test, "failure", message=message, type="card").text = body
    for known in stale:
        test = SubElement(suite, "testcase", classname="known", name=_xml(known["key"]))
        SubElement(test, "failure", message=_xml(known["stale"]), type=known["state"])
    if inconclusive:
        test = SubElement(suite, "testcase", classname="run", name="conclusive")
        why = "interrupted" if summary["interrupted"] else summary["open_because"]
        SubElement(test, "error", message=_xml(why))


def _test(suite: Element, report: Json, cell: Json) -> None:
    name = f"{cell['level']}.{cell['op']}"
    test = SubElement(suite, "testcase", classname=name, name=cell["dtype"])
    if _is_skipped(cell):
        SubElement(test, "skipped", message=_xml(_why_skipped(report, cell)))
    if not cell["failed"]:
        return
    causes = list(failures_in(report, cell))
    said = causes[0]["message"].partition("\n")[0] if causes else first_failed(report, cell)
    message = f"{cell['failed']} of {cell['programs']} programs: {said}"
    kind = causes[0]["label"] if causes else "failed"
    SubElement(test, "failure", message=_xml(message), type=_xml(kind)).text = _xml(
        "\n".join(_body(report, cause) for cause in causes)
        or case_command(report["options"], first_failed(report, cell))
    )


def _body(report: Json, failure: Json) -> str:
    again = repro_command(report["options"], failure["repro"])
    return f"{failure['message']}\n{again}\n\n{failure['text']}"


def _is_skipped(cell: Json) -> bool:
    """Whether nothing of it was judged, or what failed is known."""
    return not cell["programs"] or (cell["known"] > 0 and not cell["failed"])


def _why_skipped(report: Json, cell: Json) -> str:
    """The reasons of the known failures in a cell, else why it was not judged."""
    lines = [known for known in report["known"] if _place(cell) in map(cell_of, known["cases"])]
    known = "; ".join(f"known failure: {line['reason']} {line['link']}".strip() for line in lines)
    return known or cell["skipped_reason"]


def _place(cell: Json) -> tuple[str, str, str]:
    return cell["level"], cell["op"], cell["dtype"]


def _xml(text: str) -> str:
    return NOT_XML.sub("?", text)
