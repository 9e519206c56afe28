"""The textual form: what is printed reads back as the same node; what is no program says where."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bits_of, programs

from uop.spec.args import ConstArg
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.errors import InvalidError, MalformedError, UnsupportedError, UopError
from uop.spec.ops.names import Op
from uop.spec.text.program import Scope, parse, print_program
from uop.spec.uop import UOp, const, dims, index_const, param

PROGRAM = """\
%0 = PARAM [2,3] {slot=0, dtype=float32, device="CPU"} : float32[2,3] @"CPU"
%1 = PERMUTE %0 {order=(1,0)} : float32[3,2] @"CPU"
%2 = INDEX %1, 0, 1 : float32[] @"CPU"
%3 = CONST {value=-0x1.8p+3, dtype=float32} : float32[]
%4 = ADD %2, %3 : float32[] @"CPU" !"a \\"tag\\""
%5 = CONST {value=nan:0x7fc00001, dtype=float32} : float32[]
%6 = MUL %4, %5 : float32[] @"CPU"
"""
WIDE = [d for d in DTYPES.values() if d.kind is not Kind.VOID]


def test_a_program_prints_as_it_was_written() -> None:
    assert print_program(parse(PROGRAM)) == PROGRAM


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.name)
def test_every_op_reads_back_as_the_same_node(op: Op, examples: dict[Op, UOp]) -> None:
    text = print_program(examples[op])
    assert parse(text) is examples[op]
    assert print_program(parse(text)) == text


@settings(max_examples=150, deadline=None)
@given(programs())
def test_any_program_reads_back_as_the_same_node(root: UOp) -> None:
    assert parse(print_program(root)) is root


@pytest.mark.parametrize(
    "dtype", [dtypes.bool, dtypes.uint8, dtypes.fp8e4m3, dtypes.fp8e5m2], ids=repr
)
def test_every_constant_of_a_small_dtype_reads_back(dtype: DType) -> None:
    for bits in range(1 << dtype.bits):
        u = UOp(Op.CONST, arg=ConstArg(bits, dtype))
        assert parse(print_program(u)) is u


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(WIDE).flatmap(lambda d: st.tuples(st.just(d), bits_of(d))))
def test_any_constant_reads_back(constant: tuple[DType, int]) -> None:
    dtype, bits = constant
    u = UOp(Op.CONST, arg=ConstArg(bits, dtype))
    assert parse(print_program(u)) is u


@pytest.mark.parametrize(
    ("dtype", "written", "bits"),
    [
        ("float32", "1", 0x3F800000),
        ("float32", "0.1", 0x3DCCCCCD),
        ("float32", "-0.0", 0x80000000),
        ("float32", "-0x0p+0", 0x80000000),
        ("float32", "1e40", 0x7F800000),
        ("float32", "-inf", 0xFF800000),
        ("float32", "nan", 0x7FC00000),
        # Halfway above by one unit far beyond float64: rounding through it would go down to even.
        ("float32", "0x1.00000100000000000001p+0", 0x3F800001),
        ("bfloat16", "0x1.01000000000000000001p+0", 0x3F81),
        ("float64", "0x1.999999999999ap-4", 0x3FB999999999999A),
        ("int8", "-128", 0x80),
        ("bool", "true", 1),
        ("index", "-1", (1 << 64) - 1),
    ],
)
def test_a_literal_is_rounded_once(dtype: str, written: str, bits: int) -> None:
    u = parse(f"%0 = CONST {{value={written}, dtype={dtype}}}")
    assert u.arg == ConstArg(bits, DTYPES[dtype])


def test_constant_shapes_and_indices_are_written_in_place() -> None:
    t = param(0, (2, 3), dtypes.float32)
    u = UOp(Op.INDEX, t, index_const(-1), dims((0, 2)))
    assert print_program(u).splitlines()[1] == "%1 = INDEX %0, -1, [0,2] : float32[2]"
    assert (
        print_program(param(0, (), dtypes.int8)) == "%0 = PARAM [] {slot=0, dtype=int8} : int8[]\n"
    )


@pytest.mark.parametrize(
    ("dtype", "written", "bits"),
    [
        ("float32", "1.44", 0x3FB851EC),
        ("float16", "1.", 0x3C00),
        ("float64", "-1e0", 0xBFF0000000000000),
        ("float32", "-0.0", 0x80000000),
        ("float32", "0x1.8p+1", 0x40400000),
        ("bfloat16", "-Inf", 0xFF80),
        ("float32", "NaN", 0x7FC00000),
        ("float32", "nan:0x7f800001", 0x7F800001),
        ("float16", "1e9", 0x7C00),
    ],
)
def test_a_float_in_place_has_the_dtype_of_the_other_operand(
    dtype: str, written: str, bits: int
) -> None:
    x, number = param(0, (2,), DTYPES[dtype]), UOp(Op.CONST, arg=ConstArg(bits, DTYPES[dtype]))
    head = f"%0 = PARAM [2] {{slot=0, dtype={dtype}}}\n"
    assert parse(f"{head}%1 = MUL %0, {written}") is UOp(Op.MUL, x, number)
    swapped = UOp(Op.SUB, number, x)
    assert parse(f"{head}%1 = SUB {written}, %0 : {dtype}[2]") is swapped
    assert f"= CONST {{value={print_value(number)}, dtype={dtype}}}" in print_program(swapped)
    assert parse(print_program(swapped)) is swapped


def print_value(number: UOp) -> str:
    found = re.search("value=([^,]+)", print_program(number))
    assert found is not None
    return found[1]


def test_a_condition_does_not_give_a_float_its_dtype() -> None:
    chosen = parse(
        "%0 = PARAM [2] {slot=0, dtype=bool}\n%1 = PARAM [2] {slot=1, dtype=float16}\n"
        "%2 = WHERE %0, 0.5, %1"
    )
    assert chosen.src[1] is const(0.5, dtypes.float16)


def test_a_root_and_a_tagged_constant_have_their_own_lines() -> None:
    assert print_program(dims((2, 3))) == "%0 = STACK 2, 3 : index[2]\n"
    assert print_program(index_const(7)) == "%0 = CONST {value=7, dtype=index} : index[]\n"
    tagged = UOp(Op.CONST, arg=ConstArg(1, dtypes.index), tag="t")
    u = UOp(Op.ADD, tagged, index_const(2))
    assert print_program(u) == (
        '%0 = CONST {value=1, dtype=index} : index[] !"t"\n%1 = ADD %0, 2 : index[]\n'
    )
    assert parse(print_program(u)) is u


def test_derived_parts_comments_and_empty_lines_may_be_left_out_or_added() -> None:
    bare = "\n".join(line.partition(" : ")[0] for line in PROGRAM.splitlines())
    bare = bare.replace("ADD %2, %3", 'ADD %2, %3 !"a \\"tag\\""')
    assert parse(bare) is parse(PROGRAM)
    noisy = PROGRAM.replace("\n", ' ; a comment with " and %9\r\n\r\n; another\r\n')
    assert parse(noisy) is parse(PROGRAM)


def test_numbers_need_not_be_consecutive() -> None:
    assert parse("%7 = CONST {value=1, dtype=int8}\n%2 = NEG %7") is UOp(
        Op.NEG, const(1, dtypes.int8)
    )


P = "%0 = PARAM [2] {slot=0, dtype=float32}\n"
MALFORMED = [
    ("", 1, 1, "no program: expected a node"),
    ("; nothing", 1, 1, "no program"),
    ("%0 = FOO", 1, 6, "unknown op 'FOO'"),
    ("%0 = add", 1, 6, "unknown op 'add'"),
    (P + "%1 = NEG %1", 2, 10, "%1 is not defined before this line"),
    (P + "%1 = NEG %2\n%2 = NEG %0", 2, 10, "%2 is not defined before this line"),
    (P + "%0 = NEG %0", 2, 1, "%0 is defined twice"),
    (P + "%1 = NEG %0\n%2 = SIN %0", 2, 1, "%1 is used by no node and is not the last"),
    (P + "%1 = MUL %0, 1.4.4", 2, 17, "unexpected '.4'"),
    (P + "%1 = CMPLT %0, 1.5\n%2 = WHERE %1, 1.0, 2", 3, 16, "found bool, index"),
    (P + "%1 = NEG 1.5", 2, 10, "expected other operands of one float dtype, found none"),
    (P.replace("float32", "int8") + "%1 = MUL %0, 1.5", 2, 14, "one float dtype, found int8"),
    (P.replace("float32", "fp8e4m3") + "%1 = MUL %0, inf", 2, 14, "no infinity in fp8e4m3"),
    (P + "%1 = MUL %0, nan:0x1", 2, 14, "expected the bits of a NaN of float32, found nan:0x1"),
    (P + "%1 = MUL %0, fill:1.0", 2, 14, "expected an operand: %N, a number or [...]"),
    (
        P + "%1 = CAST %0 {dtype=float16}\n%2 = STACK %0, %1, 1.5",
        3,
        20,
        "of one float dtype, found float32, float16",
    ),
    ("%0 = CONST {value=nan, dtype=int32}", 1, 12, "expected an integer, found nan"),
    ("%0 = CONST {value=1.5, dtype=int32}", 1, 12, "expected an integer, found 1.5"),
    ("%0 = CONST {value=0x1p+0, dtype=int32}", 1, 12, "expected an integer, found 0x1p+0"),
    ("%0 = CONST {value=1, dtype=bool}", 1, 12, "expected true or false, found 1"),
    ("%0 = CONST {value=true, dtype=int8}", 1, 12, "expected an integer, found true"),
    ("%0 = CONST {value=inf, dtype=fp8e4m3}", 1, 12, "there is no infinity in fp8e4m3"),
    ("%0 = CONST {value=nan:0x7f800000, dtype=float32}", 1, 12, "the bits of a NaN of float32"),
    ("%0 = CONST {value=nan:0x1, dtype=int8}", 1, 12, "expected an integer, found nan:0x1"),
    ("%0 = CONST {value=one, dtype=float32}", 1, 12, "expected a float, found one"),
    ("%0 = CONST {value=1, dtype=float33}", 1, 12, "field 'dtype': expected a dtype"),
    ("%0 = CONST {value=1}", 1, 12, "CONST lacks the arg field 'dtype'"),
    ("%0 = CONST {value=1, value=1, dtype=int8}", 1, 22, "the field 'value' stands twice"),
    ("%0 = PARAM [2] {slot=0, type=int8}", 1, 16, "PARAM has no arg field 'type'"),
    ("%0 = PARAM [2] {slot=zero, dtype=int8}", 1, 16, "field 'slot': expected an integer"),
    ("%0 = PARAM [2] {slot=0, dtype=int8, device=CPU}", 1, 16, "expected a string in quotes"),
    ('%0 = PARAM [2] {slot=0, dtype="int8"}', 1, 16, "field 'dtype': expected a dtype"),
    ("%0 = PARAM [2.5] {slot=0, dtype=int8}", 1, 13, "expected an integer, found '2.5'"),
    ("%0 = PARAM [2,3", 1, 16, "expected ']', found the end of the line"),
    (P + "%1 = REDUCE %0 {op=ADD, axes=0}", 2, 16, "field 'axes': expected a list, found 0"),
    (P + "%1 = REDUCE %0 {op=PLUS, axes=(0)}", 2, 16, "field 'op': expected an op, found PLUS"),
    (P + "%1 = NEG %0 {dtype=int8}", 2, 13, "NEG has no arg, found the field 'dtype'"),
    (P + "%1 = NEG %0, ", 2, 14, "expected an operand"),
    (P + "%1 = NEG %0 %0", 2, 13, "expected the end of the line, found '%0'"),
    (P + "%1 = NEG zero", 2, 10, "expected the end of the line, found 'zero'"),
    (P + "%1 = NEG %0 : float32[3]", 2, 15, "expected float32[2], found float32[3]"),
    (P + "%1 = NEG %0 : float16[2]", 2, 15, "expected float32[2], found float16[2]"),
    (P + '%1 = NEG %0 : float32[2] @"CPU"', 2, 15, 'found float32[2] @"CPU"'),
    (P + "%1 = NEG %0 : float32[2] &GLOBAL", 2, 15, "found float32[2] &GLOBAL"),
    (P + "%1 = NEG %0 !tag", 2, 17, "expected a tag in quotes, found tag"),
    ("%0 = BINARY {data=hex:0}", 1, 13, "field 'data': expected bytes as hex:"),
    ('%0 = SOURCE {text="abc}', 1, 19, "a string without end"),
    ('%0 = SOURCE {text="\\q"}', 1, 19, "a string that is no JSON string"),
    ("%0 = CONST {value=1x, dtype=int8}", 1, 19, "unexpected '1x'"),
    ("%0 = CONST {value=1, dtype=int8} $", 1, 34, "unexpected '$'"),
    ("%x = CONST {value=1, dtype=int8}", 1, 1, "unexpected '%'"),
    ("NEG %0", 1, 1, "expected %N, found 'NEG'"),
    ("%0 CONST", 1, 4, "expected '=', found 'CONST'"),
    (P + "%1 = INDEX %0, 99999999999999999999", 2, 16, "outside index"),
    ("%" + "1" * 5000 + " = CONST {value=1, dtype=int8}", 1, 1, "unexpected '%'"),
    ("%0 = CONST {value=" + "1" * 5000 + ", dtype=int8}", 1, 19, "too many digits"),
    ("%0 = CONST {value=0x1p+999999, dtype=float32}", 1, 12, "expected a float"),
    ("%0 = STACK " + "(" * 100_000, 1, 12, "expected the end of the line"),
    (P + "%1 = REDUCE %0 {op=ADD, axes=" + "(" * 100_000, 2, 100_030, "expected a value"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message"), MALFORMED)
def test_text_that_is_no_program_is_refused_in_its_place(
    text: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(MalformedError) as caught:
        parse(text, "x.uop")
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"x.uop:{line}:{column}: ")


@pytest.mark.parametrize(
    ("text", "label", "line"),
    [
        (P + "%1 = PERMUTE %0 {order=(1)}", "PERMUTE.c1", 2),
        (P + "\n; why\n%1 = NEG %0, %0", "NEG.arity", 4),
        ("%0 = CONST {value=300, dtype=uint8}", "CONST.c1", 1),
        ("%0 = CONST {value=-1, dtype=uint8}", "CONST.c1", 1),
        ("%0 = CONST", "CONST.arg", 1),
        (P + "%1 = NEG %0 {}", "NEG.arg", 2),
    ],
)
def test_a_broken_constraint_names_its_label_and_line(text: str, label: str, line: int) -> None:
    with pytest.raises(InvalidError) as caught:
        parse(text)
    assert caught.value.label == label
    assert caught.value.where == f"line {line}, column 1"
    with pytest.raises(InvalidError) as caught:
        parse(text, "x.uop")
    assert caught.value.where.startswith(f"x.uop:{line}:")


def test_what_is_not_supported_yet_says_where() -> None:
    symbolic = (
        "%0 = RANGE 4 {id=0, axis_type=LOOP}\n%1 = STACK %0\n%2 = PARAM %1 {slot=0, dtype=int8}"
    )
    with pytest.raises(UnsupportedError, match=r"line 3, column [0-9]+: symbolic sizes"):
        parse(symbolic)


def test_every_cut_of_a_program_is_refused_or_a_program() -> None:
    for end in range(len(PROGRAM)):
        try:
            root = parse(PROGRAM[:end])
        except UopError:
            continue
        assert parse(print_program(root)) is root


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(PROGRAM) - 1), st.text(max_size=3), st.integers(0, 3))
def test_garbled_text_is_refused_or_a_program(start: int, put: str, gone: int) -> None:
    garbled = PROGRAM[:start] + put + PROGRAM[start + gone :]
    try:
        root = parse(garbled)
    except UopError:
        return
    assert parse(print_program(root)) is root


class Tokens(Scope):
    """Reads every line by its tokens: a line of the core as it is printed takes a shorter way."""


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(PROGRAM) - 1), st.sampled_from([*"%0123,[] {}=:;\"'-+.x"]), st.booleans())
def test_a_printed_line_reads_as_its_tokens_do(start: int, put: str, over: bool) -> None:
    lines = (PROGRAM[:start] + put + PROGRAM[start + over :]).splitlines()
    outcomes: list[object] = []
    for scope in (Scope(), Tokens()):
        try:
            for number, line in enumerate(lines, 1):
                scope.read_text(line, number)
            outcomes.append((scope.nodes, scope.lines, scope.root()))
        except UopError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
