"""`uop run`: results on the screen and on disk, the trace, and what it says about bad input."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

PROGRAM = """\
; A 3-cycle with distinct values, then elements that are absent and NaNs of both kinds.
%0 = PARAM [2,3] {slot=0, dtype=float32} : float32[2,3]
%1 = PERMUTE %0 {order=(1,0)} : float32[3,2]
%2 = PAD %1, [0,1], [3,3] : float32[3,3]
%3 = RECIP %2 : float32[3,3]
"""
INPUT = np.array([[1, 2, 4], [0.0, -np.inf, np.nan]], np.float32)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.uop"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def array(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, INPUT)
    return path


def test_the_result_is_printed(uop: Any, program: Path, array: Path) -> None:
    outcome = uop("run", program, "--input", f"0={array}")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "0 : float32[3,3] = [[invalid, 1.0, inf],",
        "                    [invalid, 0.5, -0.0],",
        "                    [invalid, 0.25, nan]]",
    ]


def test_the_result_and_its_masks_are_written(
    uop: Any, program: Path, array: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "deep" / "out"
    assert uop("run", program, "--input", f"0={array}", "--output", folder).code == 0
    assert {path.name for path in folder.iterdir()} == {"0.npy", "0.invalid.npy"}
    invalid = np.load(folder / "0.invalid.npy")
    assert invalid.tolist() == [[True, False, False]] * 3
    expected = np.array([1, np.inf, 0.5, -0.0, 0.25, np.nan], np.float32)
    np.testing.assert_array_equal(np.load(folder / "0.npy")[~invalid], expected)


def test_trace_prints_every_node_with_its_value(uop: Any, program: Path, array: Path) -> None:
    lines = uop("run", program, "--input", f"0={array}", "--trace").out.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("%")] == [
        "PARAM",
        "PERMUTE",
        "PAD",
        "RECIP",
    ]
    # A NaN that was given keeps its bits, one that arithmetic made has none to show.
    assert lines[1:3] == ["    = [[1.0, 2.0, 4.0],", "       [0.0, -inf, nan:0x7fc00000]]"]


def test_a_small_float_file_is_read_and_written(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "neg.uop"
    path.write_text("%0 = PARAM [3] {slot=7, dtype=bfloat16}\n%1 = NEG %0\n")
    values = np.array([1.5, -2, 0.0], ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", values)
    outcome = uop("run", path, "--input", f"7={tmp_path / 'x.npy'}", "--output", tmp_path)
    assert outcome.out == "0 : bfloat16[3] = [-1.5, 2, -0]\n"
    assert np.load(tmp_path / "0.npy").view(np.uint16).tolist() == [0xBFC0, 0x4000, 0x8000]


def test_an_open_element_is_unspecified(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "div.uop"
    path.write_text("%0 = PARAM [2] {slot=0, dtype=int8}\n%1 = IDIV %0, %0\n")
    np.save(tmp_path / "x.npy", np.array([-128, 0], np.int8))
    outcome = uop("run", path, "--input", f"0={tmp_path / 'x.npy'}")
    assert outcome.out == "0 : int8[2] = [1, unspecified]\n"


def test_a_tuple_numbers_its_members_and_a_sink_its_slots(uop: Any, tmp_path: Path) -> None:
    pair = tmp_path / "pair.uop"
    pair.write_text("%0 = CONST {value=2, dtype=int8}\n%1 = NEG %0\n%2 = TUPLE %0, %1\n")
    assert uop("run", pair).out == "0 : int8[] = 2\n1 : int8[] = -2\n"
    sink = tmp_path / "sink.uop"
    sink.write_text(
        '%0 = BUFFER [1] {slot=5, dtype=int8, device="CPU"}\n%1 = CONST {value=2, dtype=int8}\n'
        "%2 = STACK %1\n%3 = STORE %0, %2\n%4 = SINK %3\n"
    )
    assert uop("run", sink).out == "5 : int8[1] = [2]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("%0 = PARAM [2,3] {slot=0, dty", ":1:"),
        ("\x00\x01garbage", ":1:1: "),
        ("%0 = PLUS 1, 2", ":1:6: unknown op 'PLUS'"),
        ("%0 = CONST {value=nan, dtype=int32}", "integer"),
        ("%0 = CONST {value=300, dtype=int8}", "CONST.c1"),
        ("%0 = CONST {colour=1, dtype=int8}", "no arg field 'colour'"),
        ("%0 = CONST {value=1, dtype=int8} : int16[]", "expected int8[], found int16[]"),
        ("%0 = PARAM [2] {slot=0, dtype=int8}\n%1 = PERMUTE %0 {order=(1,)}", "PERMUTE.c1"),
        ("%0 = PARAM [2] {slot=0, dtype=int8}\n%1 = ADD %0, %3", "%3 is not defined"),
        ("", "no program"),
    ],
)
def test_a_bad_program_is_one_message_with_its_place(
    uop: Any, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "bad.uop"
    path.write_text(text)
    outcome = uop("run", path)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert said in outcome.err
    assert str(path) in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_bytes_that_are_no_text(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.uop"
    path.write_bytes(b"%0 = CONST\n\xff\xfe")
    outcome = uop("run", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert "bad.uop:2:1: expected UTF-8 text" in outcome.err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ([], "INPUT.c3: every PARAM has an input"),
        (["--input", "0={folder}/shape.npy"], "float32[3, 2]"),
        (["--input", "0={folder}/dtype.npy"], "float64"),
        (["--input", "0={folder}/text.npy"], "not a .npy array"),
        (["--input", "0={folder}/objects.npy"], "not a .npy array"),
        (["--input", "0={folder}/many.npz"], "an archive"),
        (["--input", "0={folder}/none.npy"], "No such file"),
        (["--input", "0={folder}/x.npy", "--input", "4={folder}/x.npy"], "INPUT.c2"),
        (["--input", "0={folder}/x.npy", "--input", "0={folder}/x.npy"], "slot 0 is given twice"),
        (["--input", "x.npy"], "expected SLOT=FILE.npy"),
        (["--input", "zero=x.npy"], "expected SLOT=FILE.npy"),
        (["--input", "0={folder}/x.npy", "--output", "{folder}/text.npy"], "cannot write to"),
    ],
)
def test_a_bad_input_is_one_message(
    uop: Any, program: Path, array: Path, option: list[str], said: str
) -> None:
    folder = array.parent
    np.save(folder / "shape.npy", INPUT.T)
    np.save(folder / "dtype.npy", INPUT.astype(np.float64))
    (folder / "text.npy").write_text("no array")
    np.save(folder / "objects.npy", np.array([object()]), allow_pickle=True)
    np.savez(folder / "many.npz", x=INPUT)
    outcome = uop("run", program, *(word.format(folder=folder) for word in option))
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert "Traceback" not in outcome.err


def test_a_program_without_meaning_on_its_inputs(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "bounds.uop"
    path.write_text(
        "%0 = PARAM [2] {slot=0, dtype=int8}\n%1 = PARAM [] {slot=1, dtype=index}\n"
        "%2 = INDEX %0, %1\n"
    )
    np.save(tmp_path / "x.npy", np.array([3, 4], np.int8))
    np.save(tmp_path / "i.npy", np.array(2, np.int64))
    outcome = uop(
        "run", path, "--input", f"0={tmp_path / 'x.npy'}", "--input", f"1={tmp_path / 'i.npy'}"
    )
    assert (outcome.code, outcome.out) == (2, "")
    assert "INDEX" in outcome.err


CASES = """\
case one
%0 = PARAM [2] {slot=0, dtype=int8}
%1 = NEG %0
input 0 = [1, -128]
case two
%0 = CONST {value=2, dtype=int8}
case three
invalid PERMUTE.c1
%0 = PERMUTE [2,3] {order=(1,)}
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.uop"
    path.write_text(CASES)
    return path


def test_a_case_brings_its_inputs(uop: Any, cases: Path, tmp_path: Path) -> None:
    assert uop("run", cases, "--case", "one").out == "0 : int8[2] = [-1, -128]\n"
    np.save(tmp_path / "x.npy", np.array([5, 6], np.int8))
    outcome = uop("run", cases, "--case", "one", "--input", f"0={tmp_path / 'x.npy'}")
    assert outcome.out == "0 : int8[2] = [-5, -6]\n"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ([], "3 cases: choose one with --case one, two, three"),
        (["--case", "four"], "no case 'four', but one, two, three"),
        (["--case", "three"], "to be rejected with PERMUTE.c1"),
    ],
)
def test_a_file_of_cases_needs_the_id_of_one_that_runs(
    uop: Any, cases: Path, option: list[str], said: str
) -> None:
    outcome = uop("run", cases, *option)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_a_missing_program(uop: Any, tmp_path: Path) -> None:
    outcome = uop("run", tmp_path / "none.uop")
    assert outcome.code == 2
    assert "does not exist" in outcome.err


def test_a_backend_that_takes_too_long_is_ended(uop: Any, program: Path, array: Path) -> None:
    options = ["--backend", "command:sleep 100", "--timeout", "1s"]
    result = uop("run", program, "--input", f"0={array}", *options)
    assert result.code == 3
    assert "did not start: no reply within 1 s" in result.err
    result = uop("run", program, "--input", f"0={array}", "--timeout", "1s")
    assert result.code == 2
    assert "--timeout is for a backend" in result.err
