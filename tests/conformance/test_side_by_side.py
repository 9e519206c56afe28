"""Backends side by side: states of ops, choices, programs on which they differ, every form."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files as resources
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from comparisons import MISSING, TRIED, everything, failing, ran, seen
from reports import CRASHED, FAILED, FAILURE, PASSED, SKIPPED, TEXT, WRONG, damaged, report

from uop.conformance.checks import OptionError
from uop.conformance.compare.columns import badge, columns
from uop.conformance.compare.disagreements import Answer, disagreements
from uop.conformance.compare.files import Files, lines_of, markdown
from uop.conformance.compare.gather import compared, without_times
from uop.conformance.compare.matrix import MARKS, NOT_SEEN, Square, State, choices, matrix
from uop.conformance.compare.page import page
from uop.conformance.judging.lowering import LEAVES_OUT
from uop.conformance.judging.verdict import Status
from uop.conformance.report.format import as_json, parse_report, read_report, report_text
from uop.conformance.report.model import Report, VoteOutcome
from uop.conformance.report.options import Origin
from uop.conformance.run.commands import compare_command
from uop.spec.errors import UopError

SCHEMA = resources("uop.conformance.report").joinpath("uop-report-1.schema.json")


def states(*every: Report) -> dict[str, list[State]]:
    return {name: [square.state for square in row] for name, row in matrix(every).items()}


def test_each_state_of_an_op() -> None:
    *judged, lost = everything().every
    assert states(*judged, lost)["EXP2"] == [
        State.CONFORMS,
        State.FAILS,
        State.LIBERTY,
        State.COMPOSED,
        State.NOT_JUDGED,
    ]
    assert states(*judged, lost)["SIN"] == [
        State.NOT_JUDGED,
        State.NOT_JUDGED,
        State.NOT_SUPPORTED,
        State.NOT_JUDGED,
        State.NOT_JUDGED,
    ]
    assert matrix(judged)["EXP2"][1].text == "✕ 1/2"
    assert matrix(judged)["EXP2"][1].why == "1 of 2 programs fail, on float32"
    assert matrix([lost, *judged])["EXP2"][0].why == "it is gone"
    assert matrix(judged)["SIN"][2] == Square(State.NOT_SUPPORTED, 0, 0, "no float16")
    assert set(MARKS) == set(State)


def test_an_op_that_a_backend_does_not_list_is_not_supported() -> None:
    cos = replace(PASSED, id="op/SQRT/float32/edges/0@2")
    (row,) = [row for name, row in matrix([report(cos), ran(PASSED)]).items() if name == "SQRT"]
    assert (row[1].state, row[1].why) == (State.NOT_SUPPORTED, "the backend does not list it")
    left = replace(SKIPPED, reason=f"the run{LEAVES_OUT}float16")
    assert states(ran(left))["SIN"] == [State.NOT_JUDGED]


def test_a_known_failure_is_a_failure_and_the_levels_come_last() -> None:
    known = replace(FAILED, status=Status.KNOWN, failure=None)
    found = states(ran(known, CRASHED), ran(PASSED))
    assert found == {
        "EXP2": [State.FAILS, State.CONFORMS],
        "graph": [State.FAILS, State.NOT_JUDGED],
    }


def test_what_backends_choose_is_compared() -> None:
    cards = [
        (seen("max_nan", "the NaN", "propagate"), seen("ftz", "kept"), seen("", "kept")),
        (seen("max_nan", "number", "number"), seen("ftz", "kept"), seen("", "quiet")),
        (seen("max_nan", "number and NaN", "either", ok=False), seen("wmma", "no", "false")),
    ]
    made = [ran(PASSED, name=str(k), card=card) for k, card in enumerate(cards)]
    made.append(ran(PASSED, name="3", profile="ftz=float16"))
    by_name = {choice.name: choice for choice in choices(made)}
    assert by_name["max_nan"].observed == ("propagate", "number", "number and NaN", NOT_SEEN)
    assert by_name["ftz"].observed == ("strict", "strict", NOT_SEEN, "float16 (declared)")
    assert by_name["wmma"].observed[2] == "strict"
    assert by_name["NaN payload"].observed == ("kept", "quiet", NOT_SEEN, NOT_SEEN)
    assert {name for name, choice in by_name.items() if choice.differs} == {
        "max_nan",
        "ftz",
        "NaN payload",
    }
    assert by_name["ftz"].usual == "strict"


def test_causes_of_one_signature_or_case_are_one_disagreement() -> None:
    elsewhere = replace(FAILURE, id="op/EXP2/float16/a/0@2", signature="x", cases=("b", FAILED.id))
    more = replace(FAILURE, signature="result SIN", ops=("SIN",), id="op/SIN/float32/a/0@2")
    made = [
        failing(),
        failing("same"),
        failing("explains", failures=(elsewhere,)),
        failing("two", failures=(FAILURE, replace(FAILURE, signature="result EXP2 float32 #2"))),
        failing("apart", failures=(more,)),
    ]
    found = disagreements(made)
    assert [list(row.causes) for row in found] == [
        ["explains", "some", "same", "two"],
        ["two"],
        ["apart"],
    ]


def test_the_worst_come_first() -> None:
    wide = ("op/A/int8/a/0@2", "op/B/int8/a/0@2")
    causes = (
        replace(FAILURE, signature="result inaccurate", label="ulp", ordinary=True, ops=("C",)),
        replace(FAILURE, signature="result special", ops=("D",)),
        replace(FAILURE, signature="crash", ops=("E",)),
        replace(FAILURE, signature="result large", ordinary=True, ops=("F",), text=3 * TEXT),
        replace(FAILURE, signature="result narrow", ordinary=True, ops=("A",)),
        replace(FAILURE, signature="result wide", ordinary=True, ops=("B",), cases=wide),
    )
    found = disagreements([failing(failures=causes)])
    assert [row.failure.signature for row in found] == [
        *("result wide", "result narrow", "result large", "crash", "result special"),
        "result inaccurate",
    ]


def test_what_each_backend_gives_on_a_program() -> None:
    wrong = replace(TRIED, status=Status.FAILED, gives="0x1p+1")
    own = replace(
        FAILURE,
        text=f"another\n{TEXT}\n%9",
        values=(replace(WRONG, got="0x1p+7"),),
        id="op/A/b/c/0@2",
    )
    made = [
        failing(),
        ran(PASSED, name="tried", tried=(TRIED,)),
        ran(PASSED, name="wrong", tried=(wrong,)),
        ran(
            PASSED, name="without", tried=(replace(TRIED, status=Status.SKIPPED, gives="no EXP2"),)
        ),
        failing("own", failures=(own,)),
        ran(replace(FAILED, status=Status.PASSED, failure=None), name="by its cases"),
        ran(FAILED, name="fails by its cases"),
        ran(name="not run"),
    ]
    (row,) = disagreements(made)
    assert {name: answer.says for name, answer in row.answers.items()} == {
        "some": "0x1p+1",
        "tried": "0x1p+0 (accepted)",
        "wrong": "0x1p+1",
        "without": "not supported: no EXP2",
        "own": "0x1p+7, on op/A/b/c/0@2",
        "by its cases": "accepted",
        "fails by its cases": "failed",
        "not run": "not run",
    }
    groups = {answer.says: names for answer, names in row.groups.items()}
    assert next(iter(groups.items())) == ("0x1p+1", ["some", "wrong"])
    assert list(groups.items())[-2:] == [
        ("not supported", ["without"]),
        ("not run", ["not run"]),
    ]
    assert row.fails == ["some", "wrong", "own", "fails by its cases"]
    assert (row.inputs, row.accepted) == ("0x0p+0", "0x1p+0")
    assert row.outcome.startswith("4 of 6 backends fail; no majority: some, wrong, own")


def test_the_votes_count_what_came() -> None:
    fails = replace(TRIED, status=Status.FAILED, gives="0x1p+1")
    alike = [failing(), ran(name="b", tried=(fails,)), ran(name="c", tried=(fails,))]
    (row,) = disagreements(alike)
    assert row.vote.verdict is VoteOutcome.SUSPECT
    (row,) = disagreements([failing(), *(ran(name=n, tried=(TRIED,)) for n in "bc")])
    assert (row.vote.verdict, row.vote.odd) == (VoteOutcome.ODD, ("some",))
    assert compared([failing(), ran(name="b", tried=(TRIED,))]).vote is not None


def test_a_status_that_says_all_needs_no_value() -> None:
    assert Answer(Status.CRASHED, "").says == "crashed"
    assert Answer(Status.PASSED, "").says == "accepted"


def test_every_form_names_every_backend_and_what_differs() -> None:
    made = everything()
    for text in (page(made), markdown(made), "\n".join(lines_of(made, Files()))):
        for said in ("interpreter", "some", "liberal", "adapter", "gone", "no such library"):
            assert said in text, said
        for said in ("odd one out: some", "not started", "1 cause", "it is gone"):
            assert said in text, said
    html = page(made)
    assert 'href="#d0">✕ 1/2</a>' in html
    assert 'id="d0"' in html
    assert "x * x, strict 1" in html
    assert "composed of MUL, ADD" in html
    assert "a &lt;b&gt;|`c`" in html
    assert "%1 = EXP2 %0" in html
    assert f"uop conform some --seed 0 --case {FAILURE.id}" in html
    assert "a \\<b\\>\\|\\`c\\`" in markdown(made)


def test_the_page_is_whole_and_loads_nothing() -> None:
    html = page(everything())
    assert not re.search(r"<script|<link(?! rel=\"icon\" href=\"data:,\")|<img|@import|url\(", html)
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)
    body = html.partition("<body>")[2]
    ElementTree.fromstring("<body>" + body.replace("<br>", "<br/>").removesuffix("</html>\n"))
    assert len(re.findall("<tr>", markdown(everything()))) == 0


def test_equal_reports_give_equal_files(tmp_path: Path) -> None:
    """Without times, hosts and paths of machines; and what is written is read to the same."""
    a, b = (
        replace(
            failing(),
            origin=Origin(date, "host"),
            summary=replace(failing().summary, seconds=seconds, peak_bytes=3),
        )
        for date, seconds in (("2030-01-01", 1.0), ("2031-01-01", 2.0))
    )
    one, other = (compared([without_times(r), without_times(ran(name="b"))]) for r in (a, b))
    assert report_text(one) == report_text(other)
    assert page(one) == page(other)
    jsonschema.validate(json.loads(report_text(everything())), json.loads(SCHEMA.read_text()))
    read = parse_report(report_text(everything()), "matrix.json")
    for form in (page, markdown, report_text):
        assert form(read) == form(everything())


def test_a_large_comparison_stays_small() -> None:
    """Ten backends of a hundred ops, each with sixty causes of its own."""
    ids = [f"op/OP{k}/float32/edges/0@2" for k in range(100)]
    verdicts = [replace(FAILED, id=id) for id in ids]
    causes = [
        replace(FAILURE, signature=f"s{k}", ops=(f"OP{k}",), text=FAILURE.text + "; x" * 10_000)
        for k in range(60)
    ]
    every = [
        report(
            *verdicts,
            backend=str(n),
            failures=tuple(replace(c, signature=f"{c.signature} {n}", id=f"op/OP{k}/int8/{n}/0@2")
                           for k, c in enumerate(causes)),
        )
        for n in range(10)
    ]  # fmt: skip
    made = compared(every)
    assert len(page(made)) < 1_000_000
    assert "600 programs fail on some of them" in page(made)
    assert "and 400 more" in page(made)
    assert len(markdown(made)) < 500_000


def test_a_badge_is_an_image_of_its_own() -> None:
    shown = columns(everything())
    drawn = [ElementTree.fromstring(badge(column)) for column in shown]
    titles = [svg.findtext("{http://www.w3.org/2000/svg}title") for svg in drawn]
    assert titles == [
        f"uop conformance: {verdict}"
        for verdict in (*("conforms", "1 cause"), *["conforms"] * 2, "inconclusive", "not started")
    ]


def test_the_command_that_judges_all_again() -> None:
    options = replace(ran().options, levels=("op",), ops=("ADD", "MUL"), effort="smoke", seconds=9)
    command = "uop compare other gone --level op --op ADD,MUL --effort smoke --time 9"
    assert compare_command(["other", "gone"], options) == command
    made = compared([replace(ran(PASSED), options=options)], [MISSING])
    assert command in page(made)
    assert command in markdown(made)


def test_the_files_are_written_and_checked_before(tmp_path: Path) -> None:
    made = everything()
    files = Files(*(tmp_path / name for name in ("m.json", "m.html", "m.md", "badges")))
    files.require()
    assert files.write(made) == []
    assert read_report(tmp_path / "m.json").vote == made.vote
    assert json.loads((tmp_path / "m.json").read_text())["vote"]["missing"] == [MISSING]
    names = {path.name for path in (tmp_path / "badges").iterdir()}
    assert {"interpreter.svg", "gone.svg", "a-b-c-.svg"} <= names
    with pytest.raises(OptionError, match="cannot write"):
        replace(files, badges=tmp_path / "m.json").require()
    with pytest.raises(OptionError, match="one file"):
        replace(files, html=tmp_path / "m.md").require()


def test_a_report_that_others_have_changed_is_shown_or_refused() -> None:
    shown = 0
    for other in islice(damaged(as_json(everything())), 0, None, 41):
        with suppress(UopError):
            found = parse_report(json.dumps(other), "r.json")
            assert page(found)
            assert markdown(found)
            assert list(lines_of(found, Files()))
            shown += 1
    assert shown > 20
