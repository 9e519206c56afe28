"""`.uop` files: cases read back equal, data gets the dtype of its node, errors say where."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from uop.spec.case import ElementSet, FileCase, UopFile, outputs
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError, MalformedError, UopError
from uop.spec.graph import slots_of
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.text.array import LIST_LIMIT, Array
from uop.spec.text.program import parse
from uop.spec.text.uop_file import parse_file, print_file, read_file, write_file
from uop.spec.uop import UOp, dims, param

FILE = """\
; The head of the file,
; two lines.

case ops/first-1
; Why this case stands here.
profile max_nan=number
%0 = PARAM [2,2] {slot=0, dtype=float32} : float32[2,2]
%1 = RECIP %0 : float32[2,2]
input 0 = [[0x1p+0,0x1.4p+1],[nan:0x7fc00000,-0x0p+0]]
expect 0 = [[0x1p+0,0x1.99999ap-2],[nan:0x7fc00001,-inf]]
accept 0 = [0x1p-1,0x1p+0] | 0x1p+1 | nan, any, 0x1.4p+2, nan:0x7f800001 | nan:0x7fc00001

case must_reject
%0 = PARAM [2,3] {slot=0, dtype=int32} : int32[2,3]
invalid REDUCE.c2
%1 = REDUCE %0 {op=ADD, axes=(1,0)}

case effects
%0 = BUFFER [2] {slot=3, dtype=bool, addrspace=GLOBAL} : bool[2] &GLOBAL
%1 = PARAM [2] {slot=1, dtype=bool} : bool[2]
%2 = STORE %0, %1 : void[]
%3 = SINK %2 : void[]
input 1 = [true,false]
expect 3 = [true,false]
undefined
"""


def test_a_file_prints_as_it_was_written() -> None:
    assert print_file(parse_file(FILE)) == FILE


def test_cases_hold_what_stands_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.uop"
    path.write_text(FILE)
    file = read_file(path)
    first, reject, effects = file.cases
    assert file.comment == "The head of the file,\ntwo lines."
    assert (first.id, first.profile) == ("ops/first-1", Profile(max_nan="number"))
    assert first.comment == "Why this case stands here."
    assert first.inputs[0].values[:2] == [1.0, 2.5]
    assert math.copysign(1, first.inputs[0].values[3]) == -1
    assert first.expect[0].bits[2] == 0x7FC00001
    assert first.accept[0] == (
        ElementSet(((0x3F000000, 0x3F800000), (0x40000000, 0x40000000)), nan=True),
        ElementSet(any=True),
        ElementSet(((0x40A00000, 0x40A00000),)),
        ElementSet(nan_bits=(0x7F800001, 0x7FC00001)),
    )
    assert (reject.invalid, reject.root) == ("REDUCE.c2", None)
    assert reject.rejected is not None
    with pytest.raises(InvalidError, match=r"REDUCE\.c2"):
        reject.rejected.build()
    with pytest.raises(InvalidError, match=r"REDUCE\.c2"):
        parse(reject.text)
    assert effects.undefined
    assert effects.expect[3].values == [True, False]


def test_a_label_may_say_why_a_program_has_no_meaning() -> None:
    file = parse_file("case a\n" + P + "undefined INDEX.u1\ncase b\n" + P + "undefined\n", "f.uop")
    assert [c.undefined_label for c in file.cases] == ["INDEX.u1", ""]
    assert all(c.undefined for c in file.cases)
    assert parse_file(print_file(file)) == file
    root = file.cases[1].root
    assert root is not None
    assert [c.place_of([root]) for c in file.cases] == ["f.uop:2", "f.uop:5"]


def test_places_are_those_of_nodes_alike_where_evaluation_has_put_others() -> None:
    (case,) = parse_file("; one\n" + P).cases
    assert case.root is not None
    assert case.place_of([UOp(Op.NEG, case.root)]) == ""
    assert case.place_of([UOp(case.root.op, dims((7,)), arg=case.root.arg)]) == "line 2"


def test_numbers_are_scoped_to_a_case() -> None:
    one = "case a\n%0 = CONST {value=1, dtype=int8}\n"
    with pytest.raises(MalformedError, match="%0 is not defined before this line"):
        parse_file(one + "case b\n%1 = NEG %0\n")


def test_floats_that_are_words_are_in_any_case() -> None:
    f = "%0 = PARAM [4] {slot=0, dtype=float32} : float32[4]\n"
    written = "input 0 = [NaN,-Inf,INF,nan]\naccept 0 = NaN\n"
    (case,) = parse_file(f + written).cases
    assert print_file(UopFile((case,))) == f + written.replace("NaN,-Inf,INF,nan", PRINTED).lower()
    assert parse(f"{f}%1 = CONST {{value=Inf, dtype=float32}}\n%2 = MUL %0, %1").dtype is F32


PRINTED = "nan:0x7fc00000,-inf,inf,nan:0x7fc00000"
F32 = dtypes.float32


def test_a_file_without_case_holds_one() -> None:
    (case,) = parse_file("%0 = PARAM [2] {slot=0, dtype=int8}\ninput 0 = [1, -1]").cases
    assert case.id == ""
    assert case.inputs[0].bits == [1, 255]
    assert parse_file(print_file(UopFile((case,)))) == UopFile((case,))


def test_large_data_is_written_as_bytes_and_reads_back(tmp_path: Path) -> None:
    count = LIST_LIMIT + 1
    data = Array.of((k * k % 100 for k in range(count)), dtypes.int16)
    case = FileCase("big", param(0, (count,), dtypes.int16), {0: data}, {0: data})
    path = tmp_path / "big.uop"
    write_file(path, UopFile((case,)))
    assert "base64:" in path.read_text()
    assert read_file(path) == UopFile((case,))


NAN = dtypes.float32.format.nan_bits


@pytest.mark.parametrize(
    ("data", "written"),
    [
        (Array.of([7] * 17, dtypes.int8), "fill:7"),
        (Array.of([-0.0] * 20, dtypes.float32, (4, 5)), "fill:-0x0p+0"),
        (Array.of([1] * 17, dtypes.bool), "fill:true"),
        (Array.of_bits([NAN | 1] * 17, dtypes.float32), "fill:nan:0x7fc00001"),
        (Array.of(range(17), dtypes.uint8), "range:0:1"),
        (Array.of(range(9, -9, -1), dtypes.int8, (2, 9)), "range:9:-1"),
        (Array.of(range(0, 40, 2), dtypes.float16), "range:0:2"),
        (Array.of([7] * (1 << 20), dtypes.int64), "fill:7"),
    ],
)
def test_data_that_a_word_describes(data: Array, written: str) -> None:
    case = FileCase("short", param(0, data.shape, data.dtype), {0: data})
    text = print_file(UopFile((case,)))
    assert f"input 0 = {written}\n" in text
    assert parse_file(text).cases[0].inputs == {0: data}


@pytest.mark.parametrize(
    "data",
    [
        Array.of([7] * 16, dtypes.int8),
        Array.of([*range(17), 18], dtypes.int8),
        Array.of([k + 0.5 for k in range(18)], dtypes.float32),
        Array.of([0.0, *[-0.0] * 17], dtypes.float32),
        Array.of([False, True] * 9, dtypes.bool),
        Array.of([*range(4090, 4108)], dtypes.float16),
    ],
)
def test_other_data_are_lists(data: Array) -> None:
    text = print_file(UopFile((FileCase("", param(0, data.shape, data.dtype), {0: data}),)))
    assert "input 0 = [" in text
    assert parse_file(text).cases[0].inputs == {0: data}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("fill:300", "300 is outside int8"),
        ("fill:", "expected fill:VALUE"),
        ("fill:1:2", "expected fill:VALUE"),
        ("fill:1.5", "1.5"),
        ("range:0:100", "of integers that int8[20] holds"),
        ("range:0", "expected range:START:STEP"),
        ("range:a:b", "expected range:START:STEP"),
        ("range:0:99999999999999999999999", "expected range:START:STEP"),
    ],
)
def test_words_that_describe_no_data(written: str, found: str) -> None:
    text = f"%0 = PARAM [20] {{slot=0, dtype=int8}} : int8[20]\ninput 0 = {written}\n"
    with pytest.raises(MalformedError) as error:
        parse_file(text)
    assert error.value.line == 2
    assert found in str(error.value)


def test_a_word_is_not_unpacked_beyond_the_limit() -> None:
    text = "%0 = PARAM [1000000000] {slot=0, dtype=int8} : int8[1000000000]\ninput 0 = fill:1\n"
    with pytest.raises(MalformedError, match="expected at most"):
        parse_file(text)


@pytest.mark.parametrize(
    ("shape", "written", "bits"),
    [
        ("", "7", [7]),
        ("0,3", "[]", []),
        ("2,0", "[[],[]]", []),
        ("2,2", "[1,2,3,4]", [1, 2, 3, 4]),
        ("2,2", "[[1,2],[3,4]]", [1, 2, 3, 4]),
        ("1,2,1", "[[[1],[2]]]", [1, 2]),
        ("2", "base64:AQI=", [1, 2]),
    ],
)
def test_data_is_nested_flat_or_bytes(shape: str, written: str, bits: list[int]) -> None:
    text = f"%0 = PARAM [{shape}] {{slot=0, dtype=uint8}}\ninput 0 = {written}"
    (case,) = parse_file(text).cases
    assert case.inputs[0].bits == bits
    assert parse_file(print_file(UopFile((case,)))).cases == (case,)


def test_outputs_are_a_value_the_members_of_a_tuple_or_locations() -> None:
    value, other = param(0, (2,), dtypes.int8), param(1, (2,), dtypes.int8)
    assert outputs(value) == {0: value}
    assert outputs(UOp(Op.TUPLE, value, other)) == {0: value, 1: other}
    effects = parse_file(FILE).cases[2].root
    assert effects is not None
    assert list(outputs(effects)) == [3]
    assert sorted(slots_of(effects)) == [1, 3]


P = "%0 = PARAM [2] {slot=0, dtype=uint8}\n"
HUGE = f"%0 = PARAM [{','.join(['1' + 18 * '0'] * 300)}] {{slot=0, dtype=uint8}}\n"
F = "%0 = PARAM [2] {slot=0, dtype=float32}\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "no program"),
        ("case", 1, 1, "expected case ID"),
        ("case a b", 1, 1, "expected case ID"),
        ("case a\n", 1, 1, "no program: expected a node"),
        (f"case a\n{P}case a\n{P}", 3, 1, "the case a stands twice"),
        (f"{P}case a\n{P}", 2, 1, "a case without ID"),
        ("foo bar", 1, 1, "expected %N, case, profile"),
        (P + "input 1 = [1,2]", 2, 7, "the program has no PARAM or BUFFER in slot 1"),
        (P + "expect 1 = [1,2]", 2, 8, "the program has no output 1"),
        (P + "input 0 = [1]", 2, 11, "expected 2 values for uint8[2], found 1"),
        (P + "input 0 = [1,2,3]", 2, 11, "expected 2 values for uint8[2], found 3"),
        (P + "input 0 = [[1],[2]]", 2, 11, "expected a value of uint8, found a list of 1"),
        (P + "input 0 = 3", 2, 11, "expected a list for uint8[2], found 3"),
        (P + "input 0 = [1,nan]", 2, 11, "expected an integer, found nan"),
        (P + "input 0 = [1,300]", 2, 11, "300 is outside uint8"),
        (P + "input 0 = [1,2", 2, 15, "expected ']', found the end of the line"),
        (P + "input 0 = base64:AQ==", 2, 11, "expected 2 bytes for uint8[2], found 1"),
        (P + "input 0 = base64:AQI", 2, 11, "bytes that are no base64"),
        (P.replace("uint8", "bool") + "input 0 = base64:AQI=", 2, 11, "no bit pattern of bool"),
        (P + "input 0 = [1,2]\ninput 0 = [1,2]", 3, 7, "input 0 stands twice"),
        (P + "input 0 = [1,2]\n%1 = NEG %0", 3, 1, "expected no node after input"),
        ("input 0 = [1,2]\n" + P, 1, 1, "no program: expected a node"),
        (P + "accept 0 = [2,1]", 2, 12, "expected lo <= hi"),
        (F + "accept 0 = [0,-0.0]", 2, 12, "expected lo <= hi, where -0 is below +0"),
        (F + "accept 0 = [0,nan]", 2, 12, "found a NaN as an end"),
        (P + "accept 0 = nan", 2, 12, "expected an integer, found nan"),
        (P + "accept 0 = 1, 2, 3", 2, 12, "expected 1 set or 2, found 3"),
        (HUGE + "input 0 = [1]", 2, 11, "expected 0x"),
        (HUGE + "input 0 = base64:AQ==", 2, 11, " bytes for uint8[1000000000000000000,"),
        (HUGE + "accept 0 = 1, 2, 3", 2, 12, "expected 1 set or 0x"),
        (P + "accept 0 = 1 | [2,1]", 2, 12, "expected lo <= hi"),
        (P + "profile fast", 2, 9, "expected knob=value"),
        (P + "invalid ADD.c77", 2, 9, "unknown label 'ADD.c77'"),
        ("case a\n" + P + "invalid ADD.c1", 1, 1, "expected the node that breaks ADD.c1"),
        (P + "invalid NEG.c1\n%1 = NEG %0\n%2 = NEG %0", 4, 1, "expected the end of the case"),
        (P + "%1 = NEG %0\ninvalid NEG.arity\n%2 = NEG", 2, 1, "%1 is used by no node"),
        (P + "invalid NEG.arity\n%1 = NEG %0 : uint8[2]", 3, 13, "expected the end of the line"),
        (P + "undefined 3", 2, 11, "expected the end of the line"),
        (P + "undefined INDEX.c1", 2, 11, "unknown label 'INDEX.c1'"),
        (P + "undefined VALUE.n1", 2, 11, "unknown label 'VALUE.n1'"),
        (P + "undefined INDEX.u1 INDEX.u1", 2, 20, "expected the end of the line"),
    ],
)
def test_a_file_that_is_none_is_refused_in_its_place(
    text: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(MalformedError) as caught:
        parse_file(text, "x.uop")
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_sizes_whose_product_has_no_decimals_are_told() -> None:
    with pytest.raises(InvalidError, match=r"RESHAPE\.c2[^$]*\(2,\) of 2 to \(10{18}, .* of 0x"):
        parse_file(f"{P}%1 = STACK {', '.join(['1' + 18 * '0'] * 300)}\n%2 = RESHAPE %0, %1", "x")


def test_bytes_that_are_no_text_are_refused_in_their_place(tmp_path: Path) -> None:
    path = tmp_path / "x.uop"
    path.write_bytes(b"; fine\n; \xff\n")
    with pytest.raises(MalformedError, match=f"{path}:2:3: expected UTF-8 text"):
        read_file(path)


def test_a_broken_node_that_is_not_marked_is_invalid() -> None:
    with pytest.raises(InvalidError, match=r"NEG\.arity") as caught:
        parse_file(P + "%1 = NEG %0, %0", "x.uop")
    assert caught.value.where == "x.uop:2:1"


SYMBOLIC = """\
%0 = PARAM [] {slot=0, dtype=index, min=1, max=3}
%1 = STACK %0
%2 = PARAM %1 {slot=1, dtype=int32}
%3 = NEG %2
"""


def test_data_of_symbolic_sizes_has_those_of_the_inputs_above() -> None:
    text = SYMBOLIC + "input 0 = 2\ninput 1 = [5, 6]\nexpect 0 = [-5, -6]\n"
    (case,) = parse_file(text).cases
    assert case.inputs[1].shape == case.expect[0].shape == (2,)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("input 1 = [5, 6]\n", "5:.*its sizes need the input of slot 0 above it"),
        ("input 0 = 3\ninput 1 = [5, 6]\n", r"6:11: .*int32\[3\]"),
        ("input 0 = 4\ninput 1 = [5, 6]\n", r"6:.*BIND.c2: found \[4, 4\] for \[1, 3\]"),
    ],
)
def test_data_of_symbolic_sizes_that_does_not_fit_is_refused(data: str, message: str) -> None:
    with pytest.raises(UopError, match=message):
        parse_file(SYMBOLIC + data)
