"""`uop conform --cases DIR`: the cases of an adopter are judged and reported like those of ours."""

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

FAULTY = Path(__file__).parents[1] / "conformance"
SUM = """\
case right
%0 = PARAM [2] {slot=0, dtype=int32} : int32[2]
%1 = ADD %0, %0
input 0 = [1,2]
"""
LINES = """
case promised
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = NEG %0
input 0 = [1,2]
expect 0 = [-1,-2]

case wrongly/promised
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = NEG %0
input 0 = [1,2]
accept 0 = 7

case lax
profile max_nan=number
%0 = PARAM [1] {slot=0, dtype=float32}
%1 = PARAM [1] {slot=1, dtype=float32}
%2 = MAX %0, %1
input 0 = [nan]
input 1 = [1.0]

case meaningless
%0 = PARAM [2] {slot=0, dtype=int32}
input 0 = [1,2]
undefined

case rejected
%0 = PARAM [2] {slot=0, dtype=bool}
invalid RECIP.c1
%1 = RECIP %0
"""
ALONE = "%0 = PARAM [2] {slot=0, dtype=int32}\ninput 0 = [1,2]\n"
RUN = ("-n", "1", "--level", "cases", "--cases", "mine")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [str(FAULTY), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    write(**{"a.uop": SUM, "below/b.uop": LINES, "below/alone.uop": ALONE})


def write(**files: str) -> None:
    for name, text in files.items():
        path = Path("mine") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_each_case_is_judged_by_what_its_file_says(uop: Any) -> None:
    outcome = uop("conform", "interpreter", *RUN, "--json", "r.json", "--junit", "r.xml")
    assert outcome.code == 1
    report = json.loads(Path("r.json").read_text())
    assert report["cases"] == {
        "cases/a.uop/right": ".",
        "cases/below/alone.uop/case": ".",
        # The interpreter gives the NaN.
        "cases/below/b.uop/lax": "F",
        "cases/below/b.uop/meaningless": "s",
        "cases/below/b.uop/promised": ".",
        "cases/below/b.uop/rejected": ".",
        "cases/below/b.uop/wrongly/promised": "F",
    }
    assert [(c["level"], c["op"], c["failed"]) for c in report["cells"]] == [
        ("cases", "a.uop", 0),
        ("cases", "below/alone.uop", 0),
        ("cases", "below/b.uop", 2),
    ]
    assert "FAILED cases/below/b.uop/wrongly/promised [" in outcome.out
    (suite,) = ElementTree.parse("r.xml").getroot()
    failed = [t.get("classname") for t in suite.iter("testcase") if t.find("failure") is not None]
    assert failed == ["cases.below/b.uop"]


def test_a_failure_has_a_repro_and_commands_that_show_it_again(uop: Any) -> None:
    backend = "backends_for_tests:Inaccurate"
    outcome = uop("conform", backend, *RUN, "--case", "cases/a.uop/right", "--html", "r.html")
    assert outcome.code == 1
    assert "whole case again: uop conform backends_for_tests:Inaccurate --seed 0 --case " in (
        outcome.out
    )
    assert "--case cases/a.uop/right --cases mine" in outcome.out
    (repro,) = Path("uop-failures").iterdir()
    # Shrunk, as a failure of ours is: to one element of two.
    assert "ADD %0, %0 : int32[]" in repro.read_text()
    assert uop("replay", repro, backend).code == 1
    assert uop("replay", repro, "interpreter").code == 0


def test_what_a_file_promises_stays_in_its_repro(uop: Any) -> None:
    id = "cases/below/b.uop/wrongly/promised"
    assert uop("conform", "interpreter", *RUN, "--case", id).code == 1
    (repro,) = Path("uop-failures").iterdir()
    assert "accept 0 = 7\n" in repro.read_text()
    assert uop("replay", repro, "interpreter").code == 1


@pytest.mark.slow
def test_they_come_besides_the_others_and_can_be_known_failures(uop: Any) -> None:
    select = ("--cases", "mine", "--examples", "1", "-n", "1", "--effort", "smoke")
    Path("mine/below/b.uop").unlink()
    mixed = ("--op", "MIXED", "--dtype", "MIXED", "--level", "op,cases")
    outcome = uop("conform", "interpreter", *select, *mixed)
    assert "2 programs" in outcome.out
    only = ("--op", "ADD", "--dtype", "int32", "--level", "op")
    outcome = uop("conform", "interpreter", *select, *only, "--json", "r.json")
    assert {c["level"] for c in json.loads(Path("r.json").read_text())["cells"]} == {"op"}
    wrong = ("conform", "backends_for_tests:Inaccurate", *RUN)
    assert uop(*wrong, "--update-known").code == 0
    assert uop(*wrong).code == 0


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"bad.uop": "%0 = PARAM [2\n"}, "mine/bad.uop:1:14: "),
        ({"bad.uop": SUM + SUM}, "mine/bad.uop:5:1: the case right stands twice"),
        ({"bad.uop": ""}, "mine/bad.uop:1:1: no program"),
        ({"bad.uop": "case a\n%0 = FROB\n"}, "mine/bad.uop:2:"),
        ({"bad.uop": ALONE.replace("[1,2]", "[1]")}, "mine/bad.uop:2:11: expected 2 values"),
        ({"bad.uop": ALONE.splitlines()[0]}, "mine/bad.uop"),
    ],
)
def test_a_file_that_is_wrong_is_told_by_its_place(
    uop: Any, files: dict[str, str], said: str
) -> None:
    write(**files)
    outcome = uop("conform", "interpreter", *RUN)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--cases", "none"), "--cases: no folder none"),
        (("--cases", "empty"), "no .uop file in empty"),
        (("--cases", "texts"), "no .uop file in texts"),
        (("--level", "cases"), "--level cases: expected --cases DIR"),
        (("--case", "cases/a.uop/right"), "cases/a.uop/right: expected --cases DIR"),
        (("--cases", "mine", "--case", "cases/a.uop/left"), "no case 'cases/a.uop/left' in the"),
    ],
)
def test_what_cannot_be_run_is_told_before_anything_runs(
    uop: Any, options: tuple[str, ...], said: str
) -> None:
    Path("empty").mkdir()
    Path("texts").mkdir()
    Path("texts/a.txt").write_text(SUM)
    outcome = uop("conform", "interpreter", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_a_case_is_explained_by_what_its_file_says(uop: Any) -> None:
    explained = {
        "a.uop/right": ("under the profile strict:", "no knob of a profile changes that"),
        "below/b.uop/lax": ("under the profile max_nan=number:", "demanded: 1.0"),
        "below/b.uop/wrongly/promised": ("the steps show what the spec", "[0] = -1", "demanded: 7"),
        "below/b.uop/meaningless": ("is not judged: a program without meaning",),
        "below/b.uop/rejected": ("is to be rejected: it breaks RECIP.c1",),
    }
    for id, said in explained.items():
        outcome = uop("explain", f"cases/{id}", "--cases", "mine")
        assert outcome.code == 0
        assert [text for text in said if text not in outcome.out] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cases/a.uop/right"], "cases/a.uop/right: expected --cases DIR"),
        (["cases/a.uop/right", "--cases", "none"], "--cases: no folder none"),
        (["cases/a.uop/rihgt", "--cases", "mine"], "; did you mean cases/a.uop/right"),
        (["cases/a", "--cases", "mine"], "expected cases/FILE.uop/CASE, found 'cases/a'"),
        (["cases/a.uop/right", "--cases", "mine", "--element", "2"], "below [2]; found 2"),
        (["MAX", "--cases", "mine"], "--cases, --edition are for a case"),
    ],
)
def test_what_cannot_be_explained_is_told(uop: Any, arguments: list[str], said: str) -> None:
    outcome = uop("explain", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_one_file_is_enough(uop: Any) -> None:
    outcome = uop("conform", "interpreter", "--cases", "mine/a.uop", "--level", "cases", "-n", "1")
    assert outcome.code == 0
    assert "1 programs" in outcome.out
