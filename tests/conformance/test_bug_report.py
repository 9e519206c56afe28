"""A failure as a bug report: what is right is derived, and the script shows what is wrong."""

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from uop.__main__ import main
from uop.conformance.bug_report.failing import of_file, of_report
from uop.conformance.bug_report.markdown import markdown
from uop.conformance.bug_report.tinygrad_script import MOST_LINES
from uop.conformance.checks import OptionError
from uop.conformance.finding_runs import FOLDER
from uop.conformance.judging.elements import Element
from uop.conformance.reference.answers.exact import number_text

GOLDEN = Path(__file__).parents[1] / "golden" / "bug_report"
QUOTIENT = """case quotient
%0 = PARAM [2] {slot=0, dtype=int8}
%1 = PARAM [2] {slot=1, dtype=int8}
%2 = IDIV %0, %1
input 0 = [6,-7]
input 1 = [4,2]
"""
SATURATED = """case sum
%0 = PARAM [] {slot=0, dtype=uint8}
%1 = PARAM [] {slot=1, dtype=uint8}
%2 = ADD %0, %1
%3 = CONST {value=100, dtype=uint8}
%4 = CMPLT %2, %3
input 0 = 200
input 1 = 100
"""
ROOT = """case root
%0 = PARAM [] {slot=0, dtype=float32}
%1 = SQRT %0
input 0 = 0x1p+1
"""
GOLDENS = {
    "quotients-of-unlike-signs": QUOTIENT,
    "sums-that-saturate": SATURATED,
}
Found = Callable[..., Any]


def reported(tmp_path: Path, text: str, backend: str) -> str:
    """The report on a program, without the part about this machine."""
    path = tmp_path / "repro.uop"
    path.write_text(text)
    whole = markdown(of_file(path, backend)).replace(str(path), "repro.uop")
    return whole.partition("## Environment")[0]


@pytest.mark.parametrize("name", GOLDENS)
def test_the_report_on_a_seeded_fault_is_its_golden(name: str, tmp_path: Path) -> None:
    found = reported(tmp_path, GOLDENS[name], f"mutant:{name}")
    assert found == (GOLDEN / f"{name}.md").read_text("utf-8")


def test_the_environment_names_backend_and_suite(tmp_path: Path) -> None:
    path = tmp_path / "repro.uop"
    path.write_text(QUOTIENT)
    found = markdown(of_file(path, "mutant:quotients-of-unlike-signs"))
    environment = found.partition("## Environment")[2]
    for name in ("backend: interpreter", "device: ", "Python: 3.", "platform: ", "suite: uop "):
        assert f"- {name}" in environment


def test_a_report_is_about_the_first_wrong_element(tmp_path: Path) -> None:
    path = tmp_path / "repro.uop"
    path.write_text(QUOTIENT)
    found = of_file(path, "mutant:quotients-of-unlike-signs")
    element = Element("output 1[2]", (), "1", "2")
    second = replace(found, failure=replace(found.failure, values=(element,)))
    assert (second.output, second.place) == (1, (2,))
    unknown = replace(found, failure=replace(found.failure, values=()))
    assert (unknown.output, unknown.place) == (0, None)


def test_what_passes_is_nothing_to_report(tmp_path: Path) -> None:
    path = tmp_path / "repro.uop"
    path.write_text(ROOT)
    with pytest.raises(OptionError, match=r"nothing to report: .* is passed on interpreter"):
        of_file(path, "interpreter")


def test_a_file_of_several_cases_is_no_repro(tmp_path: Path) -> None:
    path = tmp_path / "repro.uop"
    path.write_text(f"{QUOTIENT}\n{ROOT}")
    with pytest.raises(OptionError, match="expected the one case of a repro, found 2"):
        of_file(path, "interpreter")


@pytest.mark.slow
def test_a_cause_of_a_report_by_signature_id_and_repro(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["conform", "mutant:quotients-of-unlike-signs", "--case", "op/IDIV/int8/edges/0"]
    assert main([*words, "--json", "r.json"]) == 1
    report = tmp_path / "r.json"
    (repro,) = Path("uop-failures").glob("*.uop")
    found = {
        markdown(of_report(report, name, ""))
        for name in ("result IDIV int8", "op/IDIV/int8/edges/0@2", str(repro))
    }
    assert len(found) == 1
    assert "not run again" in found.pop()
    again = markdown(of_report(report, "result IDIV int8", "mutant:quotients-of-unlike-signs"))
    assert "not run again" not in again
    with pytest.raises(OptionError, match=r"did you mean result IDIV int8"):
        of_report(report, "result IDIV int9", "")


def test_a_backend_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "repro.uop"]) == 2
    assert "expected a BACKEND" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(-7, 2), "-3.5"),
        (Fraction(400000000, 13107), "400000000/13107"),
        (Fraction(1, 1 << 24), "0x1p-24"),
        (Fraction(-(1 << 80) - (1 << 70)), "-0x1.004p+80"),
        (Fraction(0), "0"),
    ],
)
def test_an_exact_number_is_written_exactly(value: Fraction, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("tinygrad"), reason="needs the extra tinygrad")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("constant_cast_not_cut", ("165", "-91")),
        ("double_to_half_twice", ("0x3c00", "0x3c01")),
        ("half_large_values", ("0x7c00", "0x7bff")),
        ("half_round_trip", ("0x3dcccccd", "0x3dccc000")),
    ],
)
def test_a_script_on_casts_runs_and_shows_the_wrong_value(
    name: str, values: tuple[str, str]
) -> None:
    found = markdown(of_file(FOLDER / f"{name}.uop", "tinygrad:PYTHON"))
    assert f"which prints `{values[0]} right: {values[1]}" in found
    script = re.search(r"```python\n(.*?)```", found, re.DOTALL)
    assert script is not None
    assert len(script[1].splitlines()) <= MOST_LINES
    assert "import uop" not in script[1]


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("tinygrad"), reason="needs the extra tinygrad")
def test_a_program_that_tensor_cannot_write_has_no_script(tmp_path: Path) -> None:
    text = """case bits
%0 = PARAM [] {slot=0, dtype=fp8e4m3}
%1 = ADD %0, %0
%2 = CONTIGUOUSBACKWARD %1
input 0 = 0x1.cp+8
"""
    found = reported(tmp_path, text, "tinygrad:PYTHON")
    assert "No script of tinygrad alone: tinygrad's Tensor has no CONTIGUOUSBACKWARD." in found
