"""`uop compare`: what stands on the screen and on disk, exit codes, bad input, Ctrl-C."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from uop.conformance.report.format import read_report

FAULTY = Path(__file__).parents[1] / "conformance"
ADD = ("--level", "op", "--op", "ADD", "--dtype", "int32", "-n", 1, "--examples", 1)
WRONG, MISSING = "backends_for_tests:Inaccurate", "backends_for_tests:Missing"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs leave their failures in the working folder; the faulty backends are importable."""
    monkeypatch.chdir(tmp_path)
    paths = [str(FAULTY), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@pytest.mark.slow
def test_backends_are_compared_and_the_page_is_made_again_without_them(uop: Any) -> None:
    files = ("--json", "m.json", "--html", "m.html", "--markdown", "m.md", "--badges", "badges")
    outcome = uop("compare", "adversary", MISSING, WRONG, *ADD, *files)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert len(lines) < 40
    assert f"{MISSING}: not started: backend {MISSING!r} did not start" in outcome.out
    assert f"ADD on int32: a wrong value: 1 of 2 backends fail; odd one out: {WRONG}." in lines
    # What another backend gives on that program is run there.
    accepted = next(line for line in lines if ", accepted " in line).rpartition(" ")[2]
    assert f"    {accepted} (accepted): adversary" in lines
    (wrong,) = [line for line in lines if line.endswith(f": {WRONG}") and line.startswith("    ")]
    assert wrong != f"    {accepted}: {WRONG}"
    assert {path.name for path in Path("badges").iterdir()} == {
        "adversary.svg",
        "backends_for_tests-Inaccurate.svg",
        "backends_for_tests-Missing.svg",
    }
    assert [path.suffix for path in Path("uop-failures").rglob("*.uop")] == [".uop"]
    written = {name: Path(name).read_bytes() for name in ("m.json", "m.html", "m.md")}
    files = ("--json", "n.json", "--html", "n.html", "--markdown", "n.md")
    assert uop("compare", "m.json", *files).code == 0
    for name, text in written.items():
        assert Path(name.replace("m", "n", 1)).read_bytes() == text, name


@pytest.mark.slow
def test_a_backend_joins_reports_under_their_options(uop: Any) -> None:
    select = ("--level", "op", "--op", "ADD", "--dtype", "int32", "--examples", 1, "-n", 1)
    assert uop("conform", WRONG, *select, "--json", "wrong.json").code == 1
    outcome = uop("compare", "wrong.json", "interpreter", "-n", 1, "--json", "m.json")
    assert outcome.code == 0
    first, second = read_report(Path("m.json")).every
    assert (first.options.backend, second.options.backend) == (WRONG, "interpreter")
    assert second.options.ops == ("ADD",)
    assert second.summary.programs == first.summary.programs
    assert second.tried is not None
    assert "next: uop compare m.json --html matrix.html" in outcome.out
    outcome = uop("compare", "wrong.json", "interpreter", "--seed", 1)
    assert outcome.code == 2
    assert "--seed: expected no such option beside wrong.json" in outcome.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "missing argument"),
        (("interpreter",), "expected at least two backends, found 1: interpreter"),
        (("interpreter", "Interpreter"), "found interpreter twice: the command line"),
        (("interpreter", "opncl"), "no backend 'opncl'"),
        (("interpreter", "opncl"), "did you mean opencl?"),
        (("interpreter", "none.json"), "cannot read none.json: No such file or directory"),
        (("interpreter", "adversary", "--op", "AD"), "--op: expected one of"),
        (("interpreter", "adversary", "--html", "file/m.html"), "cannot write file/m.html"),
        (("interpreter", "adversary", "--badges", "file"), "cannot write file/badge.svg"),
        (("interpreter", "adversary", "--html", "m", "--json", "m"), "one file"),
    ],
)
def test_bad_input_is_named_before_anything_is_judged(
    uop: Any, words: tuple[str, ...], said: str
) -> None:
    Path("file").write_text("")
    outcome = uop("compare", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_where_no_backend_starts_there_is_nothing_to_compare(uop: Any) -> None:
    outcome = uop("compare", MISSING, "no_such_module:Backend", *ADD, "--html", "m.html")
    assert outcome.code == 3
    assert "pip install driver" in outcome.err
    assert not Path("m.html").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_on_a_full_disk_the_comparison_is_still_shown(uop: Any) -> None:
    select = ("--level", "op", "--op", "ADD", "--dtype", "int32", "--examples", 1, "-n", 1)
    for name in ("interpreter", "adversary"):
        assert uop("conform", name, *select, "--json", f"{name}.json").code == 0
    Path("m.html").symlink_to("/dev/full")
    files = ("--html", "m.html", "--markdown", "m.md")
    outcome = uop("compare", "interpreter.json", "adversary.json", *files)
    assert outcome.code == 2
    assert "cannot write m.html: No space left on device" in outcome.err
    assert outcome.out.startswith("backend ")
    assert Path("m.md").is_file()


def test_ctrl_c_leaves_what_was_judged(uop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from uop.conformance.run.conform import Conformance

    examine = Conformance.examine

    def interrupted(self: Conformance, *arguments: Any) -> None:
        if self.options.backend != "interpreter":
            raise KeyboardInterrupt
        examine(self, *arguments)

    monkeypatch.setattr(Conformance, "examine", interrupted)
    outcome = uop("compare", "interpreter", "adversary", WRONG, *ADD, "--json", "m.json")
    assert outcome.code == 130
    assert [one.options.backend for one in read_report(Path("m.json")).every] == [
        "interpreter",
        "adversary",
    ]
    assert "adversary: inconclusive" in outcome.out
    assert "interrupted" in outcome.out
