"""`uop profile`: the card on the screen, the profile as a file, and a run that demands it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from uop.conformance.run import Exit

THERE = Path(__file__).parents[1] / "conformance"
SMALL = ("--level", "op", "--op", "IDIV", "--dtype", "int32", "--examples", 2, "-n", 1)
TRUNCATING = "choosing_backends:Truncating"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The choosing backends are importable by the processes of workers."""
    monkeypatch.chdir(tmp_path)
    paths = [str(THERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@pytest.mark.slow
def test_a_file_that_init_writes_is_what_conform_demands(uop: Any) -> None:
    outcome = uop("profile", "init", TRUNCATING, "--output", "mine.toml")
    assert outcome.code == 0
    assert f"next: uop conform {TRUNCATING} --profile mine.toml" in outcome.out
    assert 'int_div = "trunc"' in Path("mine.toml").read_text()
    judged = uop("conform", TRUNCATING, *SMALL, "--profile", "mine.toml", "--json", "r.json")
    assert judged.code == 0
    report = json.loads(Path("r.json").read_text())
    assert "int_div=trunc" in report["profile"]
    assert report["profile_from"] == "declared"
    assert uop("conform", "interpreter", *SMALL, "--profile", "mine.toml").code == 1
    again = uop("profile", "init", TRUNCATING, "--output", "mine.toml")
    assert (again.code, "mine.toml exists" in again.err) == (2, True)


def test_show_prints_each_point_with_its_evidence(uop: Any) -> None:
    outcome = uop("profile", "show", "interpreter")
    assert outcome.code == 0
    assert "int_div: floor" in outcome.out
    assert "IDIV(-7, 2) = int32 -4 (0xfffffffc): floor" in outcome.out
    assert "as a profile: max_nan=propagate cmp_nan=ieee; declared: strict" in outcome.out


@pytest.mark.parametrize("command", ["show", "init"])
def test_a_backend_that_hangs_ends_at_the_timeout(uop: Any, command: str) -> None:
    outcome = uop("profile", command, "backends_for_tests:HangingAtStart", "--timeout", "1s")
    assert outcome.code == Exit.NO_BACKEND
    assert "did not start: no hello within 1 s" in outcome.err


def test_two_things_are_exit_1_and_json_is_json(uop: Any) -> None:
    outcome = uop("profile", "show", "choosing_backends:Alternating", "--json")
    assert outcome.code == 1
    twofold = [e["point"] for e in json.loads(outcome.out) if e["knob"] and not e["consistent"]]
    assert twofold == ["max_nan"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("profile", "show", "abacus"), "no backend 'abacus'"),
        (("profile", "show", "interpreter", "--timeout", "soon"), "--timeout: expected a duration"),
        (("profile", "init", "interpreter", "--timeout", "9999h"), "--timeout: expected at most"),
        (("profile", "init", "interpreter", "--output", "x.txt"), "ends with .toml"),
        (("profile", "init", "interpreter", "--output", "file/x.toml"), "cannot write"),
        (("conform", "interpreter", *SMALL, "--profile", "none.toml"), "cannot read none.toml"),
        (("conform", "interpreter", *SMALL, "--profile", "cut.toml"), "no value for cmp_nan"),
        # As of a variable of the shell that is not set: nothing is demanded by accident.
        (("conform", "interpreter", *SMALL, "--profile", ""), "--profile: expected strict, "),
        (("conform", "interpreter", *SMALL, "--profile", " "), "found nothing"),
        (
            ("conform", "interpreter", *SMALL, "--profile", "decomposed=PARAM"),
            "decomposed expects some of NEG, SUB, ",
        ),
    ],
)
def test_bad_usage_is_exit_2_before_anything_runs(
    uop: Any, arguments: tuple[object, ...], said: str
) -> None:
    Path("file").write_text("no folder")
    Path("cut.toml").write_text('schema = "uop-profile/1"\nmax_nan = "number"\n')
    outcome = uop(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_explain_tells_a_knob(uop: Any) -> None:
    outcome = uop("explain", "max_nan")
    assert outcome.code == 0
    assert "either, propagate or number" in outcome.out
    assert "REDUCE MAX(" in outcome.out
    assert "near: max_nan" in uop("explain", "max_nam").err
