"""The report: sums, verdicts, its JSON against the shipped schema, and what is shown of it."""

import json
from dataclasses import replace
from importlib.resources import files
from io import StringIO
from itertools import product
from typing import Any
from xml.etree.ElementTree import fromstring

import jsonschema
import numpy as np
import pytest
from rich.console import Console

from uop.conformance.judging.compare import Counts, Symptom
from uop.conformance.judging.elements import Element, Errors, inputs_at
from uop.conformance.judging.verdict import CaseFailure, Status, Verdict
from uop.conformance.protocol.types import Hello
from uop.conformance.report.ci import junit_text
from uop.conformance.report.format import as_json
from uop.conformance.report.html.page import page
from uop.conformance.report.model import BackendInfo, Conclusion, Failure, KnownFailure, Report
from uop.conformance.report.tally import Tally
from uop.conformance.report.terminal import MOST_CAUSES, MOST_LINES, Log, Screen
from uop.conformance.report.text import rules_text
from uop.conformance.run.commands import more_command
from uop.conformance.run.options import Options
from uop.conformance.suite.case import Batch
from uop.spec.dtype import DTYPES
from uop.spec.ops.names import Op
from uop.spec.text.program import parse

SCHEMA = json.loads(
    files("uop.conformance.report").joinpath("uop-report-1.schema.json").read_text()
)
HELLO = Hello("some", "1", "device", frozenset(), frozenset())
OPTIONS = Options("some")
LARGEST = Element("output 0[3]", ("0x1p+0",), "0x1.8p+0", "0x1p+0 to 0x1.8p+0")
ERRORS = Errors((90, 0, 0, 0, 0, 0, 0, 0, 10, 0), 1.0, LARGEST)
PASSED = Verdict(
    "op/ADD/int8/edges/0@2", Status.PASSED, 2, Counts(100, 100, 90, 95, 1.0), errors=ERRORS
)
FAILED = replace(
    PASSED,
    id="op/ADD/int8/edges/1@2",
    status=Status.FAILED,
    failure=CaseFailure(Symptom.VALUE, "wrong"),
)
KNOWN = replace(FAILED, status=Status.KNOWN)
UNJUDGED = Verdict("op/SIN/float16/edges/1@2", Status.SKIPPED, unjudged="KeyError: 'no'")
SKIPPED = Verdict("op/SIN/float16/edges/0@2", Status.SKIPPED, reason="no float16")
CRASHED = replace(FAILED, id="graph/MIXED/int8/random/0@2", status=Status.CRASHED)
FAILURE = Failure(
    FAILED.id, "result ADD int8", "value", "op", ("ADD",), ("int8",), "wrong", "f/result-ADD.uop"
)


def known(state: str = "known", stale: str = "") -> KnownFailure:
    return KnownFailure("k", "because", "", "", "k.uop", (KNOWN.id,), state, stale)


def report(*verdicts: Verdict, failures: tuple[Failure, ...] = (), **fields: Any) -> Report:
    tally = Tally()
    for verdict in verdicts:
        tally.add(verdict)
    backend = BackendInfo("some", "1", "device")
    return tally.report(backend, "strict", OPTIONS, 1.5, failures, **fields)


def full(verdict: Verdict = PASSED) -> Report:
    """A report with a cell for every op and dtype, all of them failing if that verdict does."""
    ids = (f"op/{op.name}/{dtype}/edges/0@2" for op, dtype in product(Op, DTYPES))
    failures = tuple(
        replace(FAILURE, message="a\nlong " * 100, signature=str(k)) for k in range(20)
    )
    return report(*(replace(verdict, id=id) for id in ids), failures=failures)


@pytest.mark.parametrize(
    ("verdicts", "fields", "conclusion"),
    [
        ([PASSED], {}, Conclusion.CONFORMS),
        ([PASSED, SKIPPED], {}, Conclusion.CONFORMS),
        ([PASSED, FAILED], {}, Conclusion.DOES_NOT),
        ([CRASHED], {}, Conclusion.DOES_NOT),
        ([], {}, Conclusion.INCONCLUSIVE),
        ([SKIPPED], {}, Conclusion.INCONCLUSIVE),
        ([PASSED], {"lost": "gone"}, Conclusion.INCONCLUSIVE),
        ([PASSED, FAILED], {"lost": "gone"}, Conclusion.DOES_NOT),
        ([PASSED], {"missing": ("SIN",)}, Conclusion.INCONCLUSIVE),
        ([PASSED, UNJUDGED], {}, Conclusion.INCONCLUSIVE),
        ([FAILED, UNJUDGED], {}, Conclusion.DOES_NOT),
        ([PASSED, FAILED], {"missing": ("SIN",)}, Conclusion.DOES_NOT),
        ([PASSED, KNOWN], {"known": (known(),)}, Conclusion.CONFORMS),
        ([PASSED, KNOWN], {"known": (known("fixed", "remove"),)}, Conclusion.DOES_NOT),
    ],
)
def test_the_verdict(
    verdicts: list[Verdict], fields: dict[str, Any], conclusion: Conclusion
) -> None:
    assert report(*verdicts, **fields).conclusion is conclusion


def test_sums() -> None:
    found = as_json(report(PASSED, FAILED, SKIPPED, failures=(FAILURE,)))
    summary = found["summary"]
    assert summary == {
        "verdict": "does not conform",
        "interrupted": False,
        "lost": "",
        "open_because": "",
        "programs": 2,
        "checks": 4,
        "elements": 200,
        "measured": 200,
        "constrained_share": 0.95,
        "single_share": 0.9,
        "passed": 1,
        "failed": 1,
        "skipped": 1,
        "crashed": 0,
        "seconds": 1.5,
        "peak_bytes": 0,
        "again": 0,
        "searching": 0.0,
        "untried": [],
        "missing": [],
        "unfit": False,
        "unjudged": {},
        "by_data": {},
        "retried": 0,
        "judge_bytes": 0,
        "judges_replaced": 0,
        "liberties": {},
        "known": 0,
    }
    add, sin = found["cells"]
    assert (add["op"], add["programs"], add["failed"], add["skipped_reason"]) == ("ADD", 2, 1, None)
    assert (sin["op"], sin["programs"], sin["skipped_reason"]) == ("SIN", 0, "no float16")
    assert (add["histogram"], sin["histogram"]) == ([180, 0, 0, 0, 0, 0, 0, 0, 20, 0], [])
    assert (add["largest"]["id"], sin["largest"]) == (PASSED.id, None)
    assert found["cases"] == {"op/ADD/int8/edges": ".F", "op/SIN/float16/edges": "s"}


@pytest.mark.parametrize(
    ("made", "conclusion"),
    [
        (report(PASSED), Conclusion.CONFORMS),
        (report(PASSED, FAILED), Conclusion.DOES_NOT),
        (report(PASSED, CRASHED), Conclusion.DOES_NOT),
        (report(PASSED, lost="gone"), Conclusion.INCONCLUSIVE),
        (report(PASSED, CRASHED, lost="gone"), Conclusion.DOES_NOT),
        (report(PASSED, missing=("ADD",)), Conclusion.INCONCLUSIVE),
        (report(SKIPPED), Conclusion.INCONCLUSIVE),
    ],
)
def test_what_follows_from_verdicts(made: Report, conclusion: Conclusion) -> None:
    assert made.conclusion is conclusion


def test_a_case_that_fails_when_it_is_judged_again_fails_the_run() -> None:
    tally = Tally()
    tally.add(PASSED)
    tally.revise(replace(FAILED, id=PASSED.id))
    assert (tally.counts[Status.PASSED], tally.counts[Status.FAILED]) == (0, 1)
    made = tally.report(BackendInfo("some", "1", "device"), "strict", OPTIONS, 1.5)
    assert made.conclusion is Conclusion.DOES_NOT
    assert made.cells[0].failed == 1


def test_the_order_of_verdicts_does_not_matter() -> None:
    verdicts = [PASSED, FAILED, SKIPPED, replace(SKIPPED, reason="another")]
    assert as_json(report(*verdicts)) == as_json(report(*reversed(verdicts)))


@pytest.mark.parametrize(
    "made", [report(), report(PASSED, FAILED, SKIPPED, CRASHED, failures=(FAILURE,)), full()]
)
def test_the_json_is_as_the_shipped_schema_says(made: Report) -> None:
    found = json.loads(json.dumps(as_json(made), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(found, SCHEMA)


OPTIONAL = {
    "against",
    "composed",
    "tried",
    "unexplained",
    "card",
    "generator",
    "signatures",
    "ledger",
    "origin",
    "others",
    "rules",
    "strength",
    "vote",
}
"""Parts that only some reports have, or none did at first."""
OF_LATER = {
    "by_data",
    "retried",
    "judge_bytes",
    "judges_replaced",
    "measured",
    "variant",
    "tested",
    "quick",
    "unfit",
    "unjudged",
    "note",
    "cases",
    "ordinary",
    "searching",
    "again",
    "liberties",
    "composed",
    "repeats",
    "anew",
    "when",
    "after",
    "same_as",
}
"""Keys that reports of before lack."""


def test_the_schema_names_every_key_of_the_report() -> None:
    found = as_json(report(PASSED, FAILED, failures=(FAILURE,)))
    properties = SCHEMA["properties"]
    assert set(SCHEMA["required"]) == set(properties) - OPTIONAL == set(found) - OPTIONAL
    for part, value in (
        (properties["backend"], found["backend"]),
        (properties["summary"], found["summary"]),
        (properties["cells"]["items"], found["cells"][0]),
        (properties["failures"]["items"], found["failures"][0]),
        (properties["cells"]["items"]["properties"]["largest"], found["cells"][0]["largest"]),
    ):
        assert set(part["properties"]) == set(value)
        assert set(part["required"]) == set(value) - OF_LATER
    assert set(properties["options"]["required"]) <= set(found["options"])


def logged(made: Report, updates: int = 1, tally: Tally | None = None) -> list[str]:
    lines: list[str] = []
    log = Log(lines.append)
    log.started(HELLO, OPTIONS, 10)
    for k in range(updates):
        log.progress(tally or Tally(), 0.3 * k)
    log.finished(made)
    return lines


@pytest.mark.parametrize("made", [report(), full(), full(FAILED)])
def test_a_log_of_any_run_is_short_and_plain(made: Report) -> None:
    lines = logged(made, updates=10_000)
    assert len(lines) <= MOST_LINES
    assert all("\n" not in line and "\x1b" not in line for line in lines)
    assert max(map(len, lines)) <= 200


def test_a_log_shows_the_first_result_at_once_and_the_verdict_after_the_progress() -> None:
    one = Tally()
    one.add(PASSED)
    lines = logged(report(PASSED), tally=one)
    assert "some 1 on device" in lines[0]
    assert "1 programs" in lines[1]
    assert lines[2] == "verdict: some conforms under the profile strict"


def test_a_failure_is_shown_with_the_commands_that_show_it_again() -> None:
    text = "\n".join(logged(report(FAILED, failures=(FAILURE,))))
    assert "does not conform" in text
    assert "uop replay f/result-ADD.uop some" in text
    assert f"uop conform some --seed 0 --case {FAILED.id}" in text


def test_what_was_skipped_is_said() -> None:
    assert "skipped 1: no float16: SIN float16 (1)" in logged(report(PASSED, SKIPPED))


def test_every_reason_is_said_of_one_op_too_and_beside_failures() -> None:
    other = replace(SKIPPED, reason="no sines")
    lines = logged(report(SKIPPED, other, other, FAILED, failures=(FAILURE,)))
    assert lines[lines.index("skipped 3: 2 reasons") + 1 :][:2] == [
        "  2: no sines: SIN float16 (2)",
        "  1: no float16: SIN float16 (1)",
    ]


def test_all_that_a_backend_does_not_support_is_one_line() -> None:
    lacking = [replace(SKIPPED, reason=f"toy does not support {k}") for k in ("SIN", "EXP2, int8")]
    lines = logged(report(PASSED, lacking[0], *lacking))
    skipped = [line for line in lines if line.startswith("skipped")]
    assert skipped == ["skipped 3: toy does not support SIN (2), EXP2 (1), int8 (1)"]


def test_of_very_many_reasons_the_rest_is_counted() -> None:
    skipped = [replace(SKIPPED, reason=f"no {k}") for k in range(25)]
    lines = logged(report(PASSED, *skipped))
    said = lines[lines.index("skipped 25: 25 reasons") + 1 :]
    assert said[4].startswith("  1: no ")
    assert said[5] == "  20: 20 more reasons"


def test_a_reason_is_one_line_with_its_largest_groups() -> None:
    ids = [f"op/{op.name}/int8/edges/0@2" for op in Op for _ in range(1 + (op is Op.WHERE))]
    skipped = [replace(SKIPPED, id=id, reason=f"{'why ' * 40}") for id in ids]
    (line,) = [line for line in logged(report(PASSED, *skipped)) if line.startswith("skipped")]
    assert line.startswith(f"skipped {len(ids)}: why why")
    assert "...: WHERE int8 (2), ADD int8 (1)" in line
    assert line.endswith(" more")
    assert len(line) <= 150


def test_of_nothing_there_is_no_share() -> None:
    assert (
        logged(report(SKIPPED))[3]
        .split("; ")[1]
        .startswith("0 checks, 0 again, - constrained, - single")
    )


def test_a_terminal_shows_the_same_verdict() -> None:
    stream = StringIO()
    screen = Screen(Console(file=stream, force_terminal=True, width=100))
    made = report(PASSED, FAILED, failures=(FAILURE,))
    screen.started(HELLO, OPTIONS, 10)
    screen.progress(Tally(), 1.0)
    screen.failed(FAILED)
    screen.finished(made)
    assert "does not conform" in stream.getvalue()


def test_causes_are_shown_while_a_run_lasts_each_once() -> None:
    lines: list[str] = []
    log, stream = Log(lines.append), StringIO()
    screen = Screen(Console(file=stream, force_terminal=True, width=100))
    others = tuple(replace(FAILURE, signature=f"result ADD {k}") for k in range(99))
    for display in (log, screen):
        display.started(HELLO, OPTIONS, None)
        for causes in ((FAILURE,), (FAILURE, *others)):
            display.explored(causes, 1234)
        display.progress(Tally(), 2.0)
    screen.live.refresh()
    screen.stop()
    shown = [line for line in lines if line.startswith("cause: ")]
    assert shown[0] == f"cause: {FAILURE.signature}: {FAILURE.message}"
    assert len(shown) == len(set(shown)) == MOST_CAUSES
    assert "1,234 points of the spec" in stream.getvalue()
    assert f"times {FAILURE.signature}" in stream.getvalue()


def test_bits_read_as_another_size_have_no_inputs_at_an_element() -> None:
    root = parse("%0 = PARAM [2] {slot=0, dtype=int16}\n%1 = BITCAST %0 {dtype=int8}\n")
    batch = Batch({0: np.array([1, 2], np.int16)})
    assert inputs_at(root, batch, 3) == ()


def test_known_failures_are_told_apart() -> None:
    made = report(PASSED, KNOWN, known=(known(),))
    found = json.loads(json.dumps(as_json(made)))
    jsonschema.validate(found, SCHEMA)
    assert (found["summary"]["known"], found["summary"]["failed"]) == (1, 0)
    assert (found["cells"][0]["known"], found["cells"][0]["failed"]) == (1, 0)
    assert found["cases"] == {"op/ADD/int8/edges": ".K"}
    assert set(found["known"][0]) == set(SCHEMA["properties"]["known"]["items"]["properties"])
    text = "\n".join(logged(made))
    assert "but for 1 known failure" in text
    assert "known failures: 1 line, 1 program failed as they say" in text
    (case,) = fromstring(junit_text(made)).iter("testcase")
    assert case.find("skipped").get("message") == "known failure: because"


def test_a_stale_line_fails_the_run_by_name() -> None:
    made = report(PASSED, known=(known("fixed", "f.toml:5: k passes now: remove this line"),))
    assert logged(made)[2] == "verdict: some fails: f.toml:5: k passes now: remove this line"
    suite = fromstring(junit_text(made))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


@pytest.mark.parametrize(
    ("effort", "more"),
    [
        ("smoke", "uop conform some --effort default"),
        ("default", "uop conform some --effort full"),
        ("full", "uop conform some --effort full --seed 4"),
    ],
)
def test_after_a_run_that_conforms_comes_the_next_effort(effort: str, more: str) -> None:
    assert more_command(Options("some", seed=3, effort=effort)) == more


def test_the_terminal_the_page_and_the_json_tell_the_rules() -> None:
    made = replace(full(), rules={"a/each": 7, "a/b": 2, "b/never": 0})
    (line,) = rules_text(made)
    assert line == "rules: 2 of 3 fired; 2 in fewer than 3 programs: b/never (0), a/b (2)"
    assert as_json(made)["rules"] == made.rules
    jsonschema.validate(as_json(made), SCHEMA)
    assert page(made).count("<code>b/never</code>") == 1
    silent = replace(made, rules=None)
    assert rules_text(silent) == []
    assert "b/never" not in page(silent)
    assert "rules" not in as_json(silent)
