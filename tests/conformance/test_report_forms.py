"""Reports in the forms of others: JUnit XML, annotations and summaries of GitHub, files."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from reports import (
    CRASHED,
    FAILED,
    FAILURE,
    OPTIONS,
    PASSED,
    SKIPPED,
    TEXT,
    failing,
    full,
    report,
    tally_of,
)

from uop.conformance.checks import KNOWN_FILE
from uop.conformance.protocol.types import Hello
from uop.conformance.report.ci import MOST, GitHub, commands, junit_text, markdown
from uop.conformance.report.files import write_reports, write_repros
from uop.conformance.report.format import as_json
from uop.conformance.report.html.page import page
from uop.conformance.report.model import Failure, KnownFailure, Report
from uop.conformance.report.text import summary
from uop.conformance.report.vote import polled
from uop.conformance.suite.case import FUZZ

HELLO = Hello("some", "1", "device", frozenset(), frozenset())
FULL = Path("/dev/full")
ODD = 'a\x00\x1b[0m\ud800<&]]>\ufffe"'
KNOWN = KnownFailure("a", "old", "", "", "a.uop", (), "known", "")
JUNIT = {
    "testsuites": ({"name", "tests", "failures", "errors", "time", "disabled"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "classname", "time", "status", "assertions"},
        {"skipped", "failure", "error", "system-out", "system-err"},
    ),
    "skipped": ({"type", "message"}, set()),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
}
"""The elements that the schema of Jenkins knows: their attributes and what they may hold."""


def test_junit_has_a_test_case_per_cell() -> None:
    (suite,) = ElementTree.fromstring(junit_text(failing()))
    found = {(t.get("classname"), t.get("name")): t for t in suite}
    assert list(found) == [("graph.MIXED", "int8"), ("op.EXP2", "float32"), ("op.SIN", "float16")]
    failure = found["op.EXP2", "float32"].find("failure")
    assert failure is not None
    assert failure.get("message") == f"1 of 2 programs: {FAILURE.message}"
    assert TEXT in str(failure.text)
    assert "uop replay uop-failures/result-EXP2-float32.uop some" in str(failure.text)
    skipped = found["op.SIN", "float16"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "no float16"
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "2", "errors": "0", "skipped": "1"}


def test_junit_of_a_cell_without_a_cause_names_the_first_case() -> None:
    (suite,) = ElementTree.fromstring(junit_text(report(CRASHED)))
    assert f"--case {CRASHED.id}" in str(suite[0][0].text)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (report(), "nothing was checked"),
        (report(PASSED, lost="it is gone"), "it is gone"),
        (report(PASSED, interrupted=True), "interrupted"),
    ],
)
def test_junit_of_a_run_that_says_nothing_is_not_green(made, said) -> None:
    (suite,) = ElementTree.fromstring(junit_text(made))
    error = suite[-1].find("error")
    assert error is not None
    assert (suite.get("errors"), error.get("message")) == ("1", said)


def test_junit_has_a_suite_per_backend_and_no_character_that_xml_forbids() -> None:
    odd = replace(FAILURE, message="a\x00\x1b[0m\ud800<&]]>", text="\x08\ufffe")
    poll = polled([report(FAILED, failures=(odd,)), report(PASSED, backend="b")])
    found = ElementTree.fromstring(junit_text(poll))
    assert [suite.get("name") for suite in found] == ["some", "b"]


def test_each_command_can_be_copied_into_a_shell() -> None:
    backend, repro = "command:./a worker 'x y'", "a folder/result EXP2.uop"
    caused = report(FAILED, failures=(replace(FAILURE, repro=repro),), backend=backend)
    uncaused, right = report(FAILED, backend=backend), report(PASSED, backend=backend)
    again = ["conform", backend, "--seed", "0", "--case", FAILED.id]
    more, replay = ["conform", backend, "--effort", "full"], ["replay", repro, backend]
    for form in (junit_text, page):
        told = [words for made in (caused, uncaused) for words in typed(form(made))]
        assert told[0] == replay
        assert again in told
        assert {tuple(words) for words in told} <= {tuple(again), tuple(replay)}
    assert more in typed(page(right))
    lines = [summary(made, 60) for made in (caused, right)]
    assert typed("\n".join(lines[0] + lines[1])) == [replay, again, more]


def test_of_a_backend_that_was_lost_the_next_command_shows_where() -> None:
    """Not with all effort: it would be lost where it was."""
    for changes, command in (
        ({}, "uop conform some --profile strict"),
        ({"profile": "ftz=yes", "timeout": 2.0}, "uop conform some --profile ftz=yes --timeout 2"),
        ({"cases": (FAILED.id,)}, f"uop conform some --seed 0 --case {FAILED.id} --profile strict"),
        ({"backend": "command:./w 'a b' -v"}, "uop worker check -- ./w 'a b' -v"),
        ({"backend": "command:./w", "timeout": 0.5}, "uop worker check --timeout 0.5 -- ./w"),
    ):
        options = replace(OPTIONS, **changes)
        made = replace(report(PASSED, lost="it hangs"), options=options)
        assert summary(made, 60)[-1] == f"next: {command}"
        assert unescape(page(made)).count(command) == 1
        wrong = replace(report(FAILED, failures=(FAILURE,), lost="it hangs"), options=options)
        assert f"--case {FAILED.id}" in summary(wrong, 60)[-1]


def test_a_failure_is_told_with_the_inputs_of_its_element() -> None:
    said = summary(report(FAILED, failures=(FAILURE,)), 60)
    message = f"for 0x0p+0: {FAILURE.message}"
    assert f"FAILED {FAILURE.id} [{FAILURE.signature}]: {message}" in said
    without = replace(FAILURE, values=(replace(FAILURE.values[0], inputs=()),))
    said = summary(report(FAILED, failures=(without,)), 60)
    assert f"FAILED {FAILURE.id} [{FAILURE.signature}]: {FAILURE.message}" in said


def test_a_command_judges_by_what_the_run_was_asked_to() -> None:
    options = replace(OPTIONS, backend="command:./w")
    plain = ["conform", "command:./w", "--effort", "full"]
    for changes, words in (
        ({}, []),
        ({"profile": "strict"}, ["--profile", "strict"]),
        ({"profile": "max_nan=number ftz=yes"}, ["--profile", "max_nan=number ftz=yes"]),
        ({"timeout": 31536000.0}, ["--timeout", "31536000"]),
        ({"timeout": 0.5}, ["--timeout", "0.5"]),
        ({"known": KNOWN_FILE}, []),
        ({"known": Path("a b.toml")}, ["--known", "a b.toml"]),
    ):
        made = replace(report(PASSED), options=replace(options, **changes))
        assert typed("\n".join(summary(made, 60))) == [[*plain, *words]]
        assert typed(page(made)) == [[*plain, *words]]
        wrong = replace(report(FAILED), options=made.options)
        again = ["conform", "command:./w", "--seed", "0", "--case", FAILED.id, *words]
        assert again in typed(junit_text(wrong))


def typed(text: str) -> list[list[str]]:
    """The commands about a backend in a text, as a shell takes them apart."""
    lines = re.findall(r"\buop ((?:replay|conform) [^<\n]*?command:[^\n<]*)", text)
    return [shlex.split(unescape(line)) for line in lines]


def test_junit_is_as_the_schema_of_jenkins_has_it() -> None:
    odd = Failure(ODD, ODD, ODD, "op", (ODD,), (ODD,), ODD, ODD, ODD)
    stale = KnownFailure(ODD, ODD, ODD, ODD, ODD, (ODD,), "fixed", ODD)
    for made in (
        failing(),
        report(PASSED, lost=ODD),
        report(replace(SKIPPED, reason=ODD), backend=ODD, failures=(odd,), known=(stale,)),
        report(FAILED, failures=(replace(odd, id=FAILED.id, level="card"),), interrupted=True),
    ):
        root = ElementTree.fromstring(junit_text(made))
        for element in root.iter():
            attributes, children = JUNIT[element.tag]
            assert set(element.keys()) <= attributes
            assert {child.tag for child in element} <= children
            assert len(element) <= 1 or element.tag in ("testsuites", "testsuite")
        for suite in root:
            tests = list(suite)
            assert suite.get("name")
            assert len({(t.get("classname"), t.get("name")) for t in tests}) == len(tests)
            for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                assert int(suite.get(name, "")) == sum(t.find(tag) is not None for t in tests)
            assert int(suite.get("tests", "")) == len(tests)


def test_github_tells_the_case_of_each_cause_and_what_shows_it_again() -> None:
    """The repro is on the machine of the job, and in no checkout."""
    (line,) = commands(report(FAILED, failures=(FAILURE,)))
    head = f"::error title={FAILURE.id}%3A result EXP2 float32::"
    assert line.startswith(head + "output 0[] is 0x1p+1")
    assert line.endswith("%0Auop replay uop-failures/result-EXP2-float32.uop some")
    assert "\n" not in line
    # Its program is in the summary.
    assert "%0 = PARAM" in markdown(report(FAILED, failures=(FAILURE,)))


@pytest.mark.parametrize("long", ["a line of words " * 500, "x\n" * 5000, "%" * 5000])
def test_an_annotation_is_short(long: str) -> None:
    wrong = replace(FAILURE, message=long, signature=long, text=long)
    stale = replace(KNOWN, state="fixed", stale=f"k.toml:5: {long}")
    for line in commands(report(FAILED, failures=(wrong,), known=(stale,))):
        *head, text = line.split("::")
        title = head[-1].partition("title=")[2]
        for part in (text, title):
            assert len(part.replace("%25", "%").replace("%0A", "\n").replace("%3A", ":")) <= 300


def test_github_shows_no_more_than_it_takes_and_an_inconclusive_run_as_an_error() -> None:
    found = commands(full(FAILED))
    assert len(found) == MOST
    assert found[-1] == "::notice::11 more, in the summary and the report"
    summary = markdown(full(FAILED))
    assert summary.count("<details>") == MOST
    assert summary.count(f"- {FAILURE.id}: ") == len(full(FAILED).failures) - MOST
    assert commands(report())[0].startswith("::error title=inconclusive::")
    assert commands(report(PASSED)) == []


def test_github_gets_the_lines_of_known_failures_that_fail_the_run() -> None:
    """Else a job fails without a word on why."""
    made = report(PASSED, known=(KNOWN, replace(KNOWN, state="fixed", stale="k.toml:5: gone")))
    assert commands(made) == ["::error title=known failure::k.toml:5: gone"]
    assert "- k.toml:5: gone" in markdown(made)


def test_github_marks_lines_of_files_that_are_in_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    made = report(PASSED, known=(replace(KNOWN, state="fixed", stale="k.toml:5: gone"),))
    assert commands(made) == ["::error title=known failure::k.toml:5: gone"]
    (below / "k.toml").write_text("known = []\n")
    place = "file=below/k.toml,line=5"
    assert commands(made) == [f"::error {place},title=known failure::k.toml:5: gone"]
    # Another checkout, or none of its files.
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "elsewhere"))
    assert commands(made) == ["::error title=known failure::k.toml:5: gone"]


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("; a comment\n\ncase one\n%0 = ...\n case  two ; behind\n", "file=mine/a.uop,line=5,"),
        ("%0 = PARAM []\n", "file=mine/a.uop,line=1,"),
        (None, ""),
    ],
)
def test_github_marks_a_case_of_the_adopter(
    file: str | None, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    Path("mine").mkdir()
    if file is not None:
        Path("mine/a.uop").write_text(file)
    own = replace(FAILURE, id="cases/a.uop/two", level="cases")
    made = report(FAILED, failures=(own,))
    made = replace(made, options=replace(made.options, folder=Path("mine")))
    (line,) = commands(made)
    assert line.startswith(f"::error {place}title=cases/a.uop/two%3A result EXP2 float32::")


def test_parts_of_a_command_cannot_end_it() -> None:
    odd = replace(FAILURE, signature="a:b,c%\nd", repro="x,line=9:\n.uop", message="::stop\r\n")
    (line,) = commands(report(FAILED, failures=(odd,)))
    assert f"title={FAILURE.id}%3A a%3Ab%2Cc%25%0Ad::" in line
    assert not {"\n", "\r"} & set(line)


def test_github_gets_a_summary_that_is_appended(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    lines: list[str] = []
    display = GitHub(lines.append, summary)
    display.started(HELLO, OPTIONS, 4)
    display.progress(tally_of(PASSED, FAILED), 1.0)
    display.finished(failing())
    text = summary.read_text()
    assert text.startswith("before\n## ❌ some does not conform")
    assert "| `op EXP2` | float32 (1/2) |" in text
    assert TEXT.strip() in text
    assert any(line.startswith("verdict: some does not conform") for line in lines)
    assert any(line.startswith("::error title=") for line in lines)


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_summary_that_cannot_be_written_costs_nothing_else() -> None:
    lines: list[str] = []
    display = GitHub(lines.append, FULL)
    display.started(HELLO, OPTIONS, 1)
    display.finished(report(PASSED))
    assert lines[-1] == "::warning::no summary of the job: No space left on device"
    assert any("conforms" in line for line in lines)


def test_a_summary_shows_text_as_it_is() -> None:
    made = report(PASSED, lost="<b> *x* | `y`", backend="some_one")
    assert "\\<b\\> \\*x\\* \\| \\`y\\`" in markdown(made)


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    found = failing()
    paths = [tmp_path / "new" / name for name in ("r.json", "r.xml", "r.html")]
    assert write_reports(found, *paths) == []
    assert json.loads(paths[0].read_text()) == json.loads(json.dumps(as_json(found)))
    assert write_repros((FAILURE, replace(FAILURE, repro=str(tmp_path / "a.uop")))[1:]) == []
    assert (tmp_path / "a.uop").read_text() == TEXT
    assert sorted(path.name for path in paths[0].parent.iterdir()) == ["r.html", "r.json", "r.xml"]


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_full_disk_costs_one_file_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.json").symlink_to(FULL)
    html = tmp_path / "r.html"
    found = write_reports(failing(), tmp_path / "r.json", FULL, html)
    names = (tmp_path / "r.json", FULL)
    assert found == [f"cannot write {name}: No space left on device" for name in names]
    assert html.read_text().endswith("</html>\n")
    assert FULL.is_char_device()


def test_a_place_that_cannot_be_written_to_is_named_and_the_old_report_stays(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("old")
    found = write_reports(failing(), tmp_path / "file" / "r.json")
    assert len(found) == 1
    assert found[0].startswith(f"cannot write {tmp_path}/file/r.json: ")
    assert (tmp_path / "file").read_text() == "old"


def test_what_a_backend_printed_need_not_be_text(tmp_path: Path) -> None:
    odd = replace(FAILURE, message="\ud800", text="\udcff", repro=str(tmp_path / "a.uop"))
    paths = [tmp_path / name for name in ("r.json", "r.xml", "r.html")]
    made = report(FAILED, SKIPPED, failures=(odd,))
    assert write_reports(made, *paths) + write_repros(made.failures) == []


def test_a_cell_that_fails_by_the_cause_of_another_is_skipped_in_junit() -> None:
    half = replace(FAILED, id="op/EXP2/float16/edges/1@2")
    cause = replace(FAILURE, cases=(FAILED.id, half.id))
    made = report(FAILED, half, failures=(cause,))
    (suite,) = ElementTree.fromstring(junit_text(made))
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "1")
    by_dtype = {case.get("name"): case for case in suite.iter("testcase")}
    assert by_dtype["float32"].find("failure") is not None
    skipped = by_dtype["float16"].find("skipped")
    assert skipped is not None
    assert f"{FAILURE.signature} ({FAILED.id})" in str(skipped.get("message"))
    # Without an explanation of all its programs it is a failure of its own.
    open_one = replace(made, unexplained=(half.id,))
    (suite,) = ElementTree.fromstring(junit_text(open_one))
    assert (suite.get("failures"), suite.get("skipped")) == ("2", "0")


@pytest.mark.parametrize("form", [page, junit_text])
@pytest.mark.parametrize("explained", [True, False])
def test_a_fuzz_run_that_keeps_no_marks_names_the_failing_program(
    form: Callable[[Report], str], explained: bool
) -> None:
    """The cause is of another cell, or was not found."""
    made = report(PASSED, CRASHED, failures=(FAILURE,) if explained else ())
    options = replace(made.options, effort=FUZZ)
    cause = tuple(replace(f, cases=(f.id, CRASHED.id)) for f in made.failures)
    left = () if explained else (CRASHED.id,)
    fuzzed = replace(made, options=options, cases={}, failures=cause, unexplained=left)
    assert CRASHED.id in form(fuzzed) or (explained and FAILURE.signature in form(fuzzed))
