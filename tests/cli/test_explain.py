"""`uop explain`: pages on a screen, an op on values, and what it refuses."""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from uop.conformance.reference.page import comparison
from uop.spec.documents.decisions import decisions
from uop.spec.documents.rows import Standing, rows
from uop.spec.registry import DECLARATIONS


def test_an_op_is_explained(uop: Any) -> None:
    outcome = uop("explain", "idiv")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[:2] == ["IDIV(A, B)", "  floor(a / b); the lowest value divided by -1 is itself."]
    for expected in (
        "  dtype      that of A",
        "  IDIV.c2     operands have one dtype",
        "  Elements whose divisor is 0.",
        "  -128    1     -128  unspecified  -128  -19  -2",
        "  2026-05 2026-06  elementwise/IDIV  The quotient, rounded down.  implemented",
        "  C  `-7 / 2` is -3: rounds toward zero  C17 6.5.5p6",
        "  D-030  IDIV floors, MOD has the sign of the divisor",
        "  0 : int32[4] = [3, -4, -3, -3]",
    ):
        assert any(" ".join(expected.split()) in " ".join(line.split()) for line in lines), expected


def test_a_decomposition_is_a_program(uop: Any) -> None:
    out = uop("explain", "SUB").out
    assert "NEG %1" in out
    assert "ADD %0, %2" in out


def test_a_label_is_explained_by_the_program_that_breaks_it(uop: Any) -> None:
    outcome = uop("explain", "PERMUTE.c1")
    assert outcome.code == 0
    assert "PERMUTE: order is a permutation of the axes of T." in outcome.out
    assert "must be rejected" in outcome.out
    assert "found: (" in outcome.out


def test_a_decision_is_its_text(uop: Any) -> None:
    out = uop("explain", "d-030").out
    assert out.startswith(f"D-030 {decisions()['D-030'].title}")
    assert "**Reading.**" in out


@pytest.mark.parametrize("name", ["2026-05/movement/PAD", "gemm", "vectorize", "tripy/eval/repr"])
def test_a_row_is_explained(uop: Any, name: str) -> None:
    outcome = uop("explain", name)
    assert outcome.code == 0
    assert outcome.out.strip()


def test_the_ledger_counts_every_row_and_names_what_is_not_implemented(uop: Any) -> None:
    lines = uop("explain", "--ledger").out.splitlines()
    documents = {row.document for row in rows().values()}
    sums = [line.split()[1:] for line in lines if line.split()[:1] and line.split()[0] in documents]
    assert len(sums) == len(documents)
    assert sum(int(number) for line in sums for number in line) == len(rows())
    named = [line.split()[0] for line in lines if line.startswith("  ")]
    assert named == [*dict.fromkeys(named)]
    open_ = {row.id for row in rows().values() if row.standing is not Standing.IMPLEMENTED}
    assert open_ == {*named} - {"implemented"}


@pytest.mark.parametrize(
    ("arguments", "first", "accepted"),
    [
        (["IDIV", "-7", "2", "--dtype", "int8"], "IDIV(-7, 2) : int8 = -4", "-4"),
        (["IDIV", "1", "0"], "IDIV(1, 0) : int32 = unspecified", "anything"),
        (["CAST", "300", "--to", "uint8"], "CAST(300) : uint8 = 44", "44"),
        (["MAX", "nan", "1.5"], "MAX(nan, 1.5) : float32 = nan", "1.5 or nan"),
        (["MAX", "u8(3)", "1"], "MAX(u8(3), 1) : uint8 = 3", "3"),
        (["WHERE", "true", "1", "2"], "WHERE(true, 1, 2) : int32 = 1", "1"),
        (["SQRT", "4"], "SQRT(4) : float32 = 2.0", "1.9999993 to 2.0000007"),
        (
            ["ADD", "1", "invalid", "--dtype", "u8"],
            "ADD(1, invalid) : uint8 = invalid",
            "anything: the element is absent",
        ),
        (["BITCAST", "1.0", "--to", "u32"], "BITCAST(1.0) : uint32 = 1065353216", "1065353216"),
    ],
)
def test_an_op_on_values(uop: Any, arguments: list[str], first: str, accepted: str) -> None:
    outcome = uop("explain", *arguments)
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == first
    assert lines[-1].split(maxsplit=1) == ["accepted", accepted]
    assert any("uop.interpreter.rules" in line for line in lines)


@pytest.mark.usefixtures("opencl")
def test_a_backend_is_asked_on_request(uop: Any) -> None:
    asked = ("explain", "IDIV", "-7", "2", "--dtype", "int8")
    assert "opencl" not in uop(*asked).out
    lines = uop(*asked, "--backend", "opencl", "--backend", "interpreter").out.splitlines()
    for name in ("opencl", "interpreter"):
        assert [name, "-4", "accepted"] in [line.split() for line in lines]


def test_no_temporary_folder_is_left(
    uop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by a backend that makes one and is killed either."""
    (tmp_path / "mine.py").write_text(LITTERING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    outcome = uop("explain", "ADD", "1", "2", "--backend", "mine:Littering")
    assert outcome.out.splitlines()[-1].split() == ["mine:Littering", "3", "accepted"]
    assert list(temporary.iterdir()) == []


LITTERING = """\
import tempfile
from uop.conformance.backends.interpreter import InterpreterBackend


class Littering(InterpreterBackend):
    def hello(self):
        self.folder = tempfile.TemporaryDirectory()
        return super().hello()
"""
CASE = "op/MAX/float32/edges/0"


def test_a_case_is_explained_element_by_element(uop: Any) -> None:
    outcome = uop("explain", CASE, "--element", "6")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].endswith("batch 0 of 3, output 0 of 1, element [6] of [2704]")
    assert "      [6] = 0.0 or nan" in lines
    assert (
        "      latitude  with one NaN: NaN or the other operand; of two zeros either one" in lines
    )
    assert "      row       2026-05/elementwise/MAX, 2026-05/derived/MAX" in outcome.out
    assert "      reading   D-033 MAX of a NaN, and of two zeros" in lines
    assert lines[-3:] == [
        "demanded: 0.0 or nan",
        "with max_nan=propagate: nan",
        "with max_nan=number: 0.0",
    ]
    lines = uop("explain", CASE, "--element", "6", "--profile", "max_nan=number").out.splitlines()
    assert lines[-3:] == ["demanded: 0.0", "with max_nan=either: 0.0 or nan",
                          "with max_nan=propagate: nan"]  # fmt: skip


def test_a_case_to_be_rejected_is_explained_by_its_label(uop: Any) -> None:
    outcome = uop("explain", "invalid/ADD/void/c1/0")
    assert outcome.code == 0
    assert "to be rejected: it breaks ADD.c1; uop explain ADD.c1" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["op/NONE/float32/edges/0"], "no case 'op/NONE/float32/edges/0@2'"),
        (["op/MAX/float32/edges"], "expected level/op/dtype/group/index"),
        ([CASE, "--element", "2704"], "--element: expected 1 numbers below [2704]; found 2704"),
        ([CASE, "--element", "1,1"], "--element: expected 1 numbers below [2704]; found 1,1"),
        ([CASE, "--element", "-1"], "found -1"),
        ([CASE, "--element", "x"], "expected numbers separated by commas, found 'x'"),
        ([CASE, "--batch", "3"], "--batch: expected a number below 3, found 3"),
        ([CASE, "--batch", "-1"], "--batch: expected a number below 3, found -1"),
        ([CASE, "--output", "1"], "--output: expected a number below 1, found 1"),
        ([CASE, "--profile", "lax"], "expected knob=value"),
        (
            [CASE, "1"],
            "a case takes --element, --batch, --output, --profile, --cases, --edition, --seed",
        ),
        (["MAX", "1", "2", "--element", "0"], "are for a case"),
        (["MAX", "--backend", "opencl"], "--dtype, --to and --backend are for values"),
    ],
)
def test_what_no_case_has_is_told(uop: Any, arguments: list[str], said: str) -> None:
    outcome = uop("explain", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["PADD"], "near: PAD"),
        (["PERMUT.c1"], "near: PERMUTE.c1"),
        (["D-" + "999"], "nothing is called 'D-"),
        (["RESHAPE", "1"], "RESHAPE takes more than values"),
        (["CAST", "1"], "CAST needs a target dtype"),
        (["ADD", "1", "2", "--dtype", "int7"], "no dtype 'int7'"),
        (["ADD", "1", "x"], "'x' is neither"),
        (["ADD", "1"], "ADD.arity"),
        (["ADD", "1", "2", "3"], "ADD.arity"),
        (["XOR", "1.0", "2.0"], "XOR.c1"),
        (["ADD", "300", "1", "--dtype", "uint8"], "300 is outside uint8"),
        (["ADD.c1", "1"], "ADD.c1 is no op"),
        (["ADD", "--dtype", "int8"], "--dtype, --to and --backend are for values"),
    ],
)
def test_bad_input_is_exit_2(uop: Any, arguments: list[str], said: str) -> None:
    outcome = uop("explain", *arguments)
    assert outcome.code == 2
    assert said in outcome.err
    assert "site-packages" not in outcome.err
    assert outcome.out == ""


def test_two_ops_are_compared(uop: Any) -> None:
    lines = [" ".join(line.split()) for line in uop("explain", "idiv", "MOD").out.splitlines()]
    assert lines[:4] == ["IDIV and MOD", "", "differs", "IDIV MOD"]
    # -128 // 127 is -2, and 126 remains; the last value shown is not the last that differs.
    assert "int8 (-128, 127) -2 126" in lines
    assert "12 more ... ..." in lines
    assert lines[-1] == "MOD a - b * floor(a / b): the sign of the divisor."


@pytest.mark.parametrize(
    ("names", "row"),
    [
        (("ADD", "SIN"), "operands A, B A"),
        (("SHRINK", "PAD"), "arg - fill: INVALID|ZERO = INVALID"),
        (("CMPLT", "ADD"), "dtype bool that of A"),
        (("NEG", "NOT"), "fp8e5m2 index bool meaning"),
        (("REDUCE", "RESHAPE"), "shape that of T, 1 on the folded axes the numbers of s'"),
        (("IDIV", "MUL"), "no value Elements whose divisor is 0. -"),
        (("max", "add"), "float32 (-inf, nan) -inf or nan nan"),
        (("case", "program"), "program A compiled kernel:"),
        (("PERMUTE.c1", "ADD"), "ADD a + b; integers wrap, on bool OR."),
        (("ADD", "add"), "ADD a + b; integers wrap, on bool OR."),
    ],
)
def test_what_differs_is_a_row(uop: Any, names: tuple[str, str], row: str) -> None:
    outcome = uop("explain", *names)
    assert outcome.code == 0
    assert row in " ".join(outcome.out.split())


def test_of_every_two_ops_each_fact_is_compared_both_ways() -> None:
    for a, b in pairwise(DECLARATIONS.values()):
        there, back = comparison(("", ""), a, b), comparison(("", ""), b, a)
        for one, other in zip(there.sections, back.sections, strict=True):
            swapped = [(title, y, x) for title, x, y in other.table] if len(one.header) > 2 else []
            assert not swapped or sorted(swapped) == sorted(one.table)


def test_one_value_is_a_value_and_an_unknown_name_is_refused(uop: Any) -> None:
    for word in ("nan", "Inf", "true", "u8(3)", "invalid", "-1"):
        assert not uop("explain", "NEG" if word != "true" else "NOT", word).out.startswith(
            "NEG and"
        )
    outcome = uop("explain", "ADD", "ad")
    assert outcome.code == 2
    assert "nothing is called 'ad'; near: " in outcome.err
    assert uop("explain", "ADD", "MUL", "--dtype", "int8").code == 2
