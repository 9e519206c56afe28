"""The bestiary's ops one by one: the examples of the document, and each field of an op."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bestiary_lines import last_line, read, value

from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import (
    AddrSpace,
    BinaryArg,
    BufferArg,
    CustomArg,
    CustomFunctionArg,
    SourceArg,
    SpecialArg,
    StageArg,
    WmmaArg,
)
from uop.spec.dtype import dtypes
from uop.spec.editions import parse, print_program
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

F = "%0 = PARAM {slot=0, dtype=float32, size=3}"
P = "%0 = PARAM {slot=0, dtype=int32, size=6}"
DATA = np.array([3, -1, 2], np.float32)
INTS = np.array([1, 2, 4, 8, 16, 32], np.int32)
UNIQUE = ("%0 = UNIQUE {id=0}", "%1 = BUFFER %0 {size=6, dtype=int32}")

MEANINGS: dict[str, tuple[tuple[str, ...], dict[int, Array], object]] = {
    "EXPAND": ((F, "%1 = RESHAPE %0, [3,1]", "%2 = EXPAND %1, [3,2]"), {0: DATA},
               [[3.0, 3.0], [-1.0, -1.0], [2.0, 2.0]]),
    "CAST": ((F, "%1 = CAST %0 {dtype=int8}"), {0: DATA}, [3, -1, 2]),
    "BITCAST": ((F, "%1 = BITCAST %0 {dtype=uint32}"), {0: DATA},
                [0x40400000, 0xBF800000, 0x40000000]),
    "UNARY": ((F, "%1 = NEG %0"), {0: DATA}, [-3.0, 1.0, -2.0]),
    "BINARY": ((F, "%1 = SUB %0, %0", "%2 = MAX %0, %1"), {0: DATA}, [3.0, 0.0, 2.0]),
    "TERNARY": ((F, "%1 = NEG %0", "%2 = CMPLT %0, %1", "%3 = WHERE %2, %1, %0"), {0: DATA},
                [3.0, 1.0, 2.0]),
    "DETACH": ((F, "%1 = DETACH %0"), {0: DATA}, [3.0, -1.0, 2.0]),
    "CONTIGUOUS": ((F, "%1 = CONTIGUOUS %0"), {0: DATA}, [3.0, -1.0, 2.0]),
    "CONTIGUOUS_BACKWARD": ((F, "%1 = CONTIGUOUS_BACKWARD %0"), {0: DATA}, [3.0, -1.0, 2.0]),
    "PRECAST": ((F, "%1 = PRECAST %0"), {0: DATA}, [3.0, -1.0, 2.0]),
    "ALLREDUCE": (('%0 = DEVICE {device=("A","B","C")}', "%1 = PARAM [6], %0 {slot=0, dtype=int32}",
                   '%2 = DEVICE {device="A"}', "%3 = ALLREDUCE %1, %2 {reduce_op=ADD}"), {0: INTS},
                  [21, 42]),
    "AFTER": ((*UNIQUE, "%2 = INDEX %1, 4", "%3 = CONST {value=9, dtype=int32}",
               "%4 = STORE %2, %3", "%5 = AFTER %1, %4"), {0: INTS}, [1, 2, 4, 8, 9, 32]),
    "SINK": ((*UNIQUE, "%2 = INDEX %1, 4", "%3 = INDEX %1, 0", "%4 = CONST {value=9, dtype=int32}",
              "%5 = CONST {value=7, dtype=int32}", "%6 = STORE %2, %4", "%7 = STORE %3, %5",
              "%8 = SINK %6, %7"), {0: INTS}, {0: [7, 2, 4, 8, 9, 32]}),
    "GROUP": ((*UNIQUE, "%2 = INDEX %1, 4", "%3 = INDEX %1, 0", "%4 = CONST {value=9, dtype=int32}",
               "%5 = CONST {value=7, dtype=int32}", "%6 = STORE %2, %4", "%7 = STORE %3, %5",
               "%8 = GROUP %6, %7", "%9 = SINK %8"), {0: INTS}, {0: [7, 2, 4, 8, 9, 32]}),
    "INDEX": (("%0 = PARAM [2,3] {slot=0, dtype=int32}", "%1 = INDEX %0, 1, 0"),
              {0: INTS.reshape(2, 3)}, 8),
    "LOAD": ((P, "%1 = INDEX %0, 3", "%2 = LOAD %0, %1"), {0: INTS}, 8),
    "POINTER_INDEX": ((P, "%1 = POINTER_INDEX %0, 12", "%2 = LOAD %0, %1"),
                      {0: INTS}, 8),
    "GET_TUPLE": ((F, "%1 = NEG %0", "%2 = CMPLT %0, %1", "%3 = TUPLE %1, %2",
                   "%4 = GET_TUPLE %3 {index=1}"), {0: DATA}, [False, True, False]),
    "BUFFERIZE": (("%0 = PARAM [2,3] {slot=0, dtype=int32}", "%1 = RANGE 2 {axis_id=0}",
                   "%2 = RANGE 3 {axis_id=1}", "%3 = INDEX %0, %1, %2",
                   "%4 = BUFFERIZE %3, %1, %2"), {0: INTS.reshape(2, 3)},
                  [[1, 2, 4], [8, 16, 32]]),
    "GET_TUPLE of FUNCTION": (("%0 = PARAM [3] {slot=0, dtype=float32}", "%1 = NEG %0",
                               "%2 = CMPLT %0, %1", "%3 = TUPLE %1, %2", "%4 = FUNCTION %3, %0",
                               "%5 = GET_TUPLE %4 {index=1} : bool[3]"),
                              {0: DATA}, [False, True, False]),
    "REDUCE_AXIS": (("%0 = PARAM [2,3] {slot=0, dtype=int32}",
                     "%1 = REDUCE_AXIS %0 {reduce_op=ADD, axes=(1)}"), {0: INTS.reshape(2, 3)},
                    [7, 56]),
    "REDUCE_AXIS of two axes": (("%0 = PARAM [2,3,2] {slot=0, dtype=int32}",
                                 "%1 = REDUCE_AXIS %0 {reduce_op=ADD, axes=(0,2)}"),
                                {0: np.arange(12, dtype=np.int32).reshape(2, 3, 2)}, [14, 22, 30]),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANINGS)
def test_an_op_computes_what_the_document_says(name: str) -> None:
    lines, inputs, expected = MEANINGS[name]
    assert value(lines, inputs) == expected
    u = read(*lines)
    assert last_line(u).split()[2] == lines[-1].split()[2]
    assert parse(print_program(u, "bestiary")) is u


KERNEL = (
    "%0 = PARAM {slot=0, dtype=int32, size=2}",
    "%1 = PARAM {slot=1, dtype=int32, size=6}",
    '%2 = SPECIAL 2 {name="blockIdx.x"}',
    "%3 = RANGE 3 {axis_id=1, axis_type=REDUCE}",
    "%4 = MUL %2, 3",
    "%5 = ADD %4, %3",
    "%6 = INDEX %1, %5",
    "%7 = LOAD %1, %6",
    "%8 = REDUCE %7, %3 {reduce_op=FOLD}",
    "%9 = INDEX %0, %2",
    "%10 = STORE %9, %8",
    "%11 = SINK %10",
    "%12 = UNIQUE {id=0}",
    "%13 = BUFFER %12 {size=2, dtype=int32}",
    "%14 = UNIQUE {id=1}",
    "%15 = BUFFER %14 {size=6, dtype=int32}",
    "%16 = CALL %11, %13, %15",
    "%17 = SINK %16",
)


@pytest.mark.parametrize(
    ("fold", "expected"), [("ADD", [7, 56]), ("MUL", [8, 4096]), ("MAX", [4, 32]), ("MIN", [1, 8])]
)
def test_a_kernel_folds_over_its_loop_in_every_work_item(fold: str, expected: list[int]) -> None:
    lines = tuple(line.replace("FOLD", fold) for line in KERNEL)
    assert value(lines, {0: np.zeros(2, np.int32), 1: INTS}) == {0: expected}
    u = read(*lines)
    assert parse(print_program(u, "bestiary")) is u


def test_what_a_kernel_is_made_of_has_its_word() -> None:
    """A list of instructions, its text and its bytes; text put into code; a function by kind."""
    source = read('%0 = SOURCE {code="void k() {}"}')
    assert source is UOp(Op.SOURCE, arg=SourceArg("void k() {}"))
    binary = read("%0 = PROGRAM_BINARY {data=hex:c0de}")
    assert binary is UOp(Op.BINARY, arg=BinaryArg(b"\xc0\xde"))
    assert (binary.shape, binary.dtype) == ((2,), dtypes.uint8)
    for u in (source, binary):
        assert parse(print_program(u, "bestiary")) is u
    listed = read('%0 = SPECIAL 4 {name="lidx0"}', "%1 = CAST %0 {dtype=int32}",
                  "%2 = LINEAR %0, %1")  # fmt: skip
    assert [u.op for u in listed.src] == [Op.SPECIAL, Op.CAST]
    for name in ("CUSTOM", "CUSTOMI"):
        u = read(F, f'%1 = {name} %0 {{fmt="f({{0}})", dtype=float32, shape=(3)}}')
        assert (u.op, u.arg) == (Op.CUSTOM, CustomArg("f({0})", dtypes.float32, (3,)))
    named = read('%0 = CUSTOM_FUNCTION {name="EncDec"}')
    assert (named.op, named.arg) == (Op.CUSTOMFUNCTION, CustomFunctionArg("EncDec"))


def test_a_value_passes_through_a_barrier() -> None:
    u = read(F, "%1 = UNIQUE {id=1}", "%2 = BUFFER %1 {size=1, dtype=int8}", "%3 = INDEX %2, 0",
             "%4 = CONST {value=9, dtype=int8}", "%5 = STORE %3, %4",
             "%6 = BARRIER %0, %5")  # fmt: skip
    assert (u.op, u.src[0].op, u.src[1].op) == (Op.AFTER, Op.PARAM, Op.BARRIER)
    assert [s.op for s in u.src[1].src] == [Op.STORE]
    alone = read("%0 = SINK", "%1 = BARRIER %0")
    assert (alone.op, [s.op for s in alone.src]) == (Op.BARRIER, [Op.SINK])


def test_the_mark_of_a_kernel_tells_one_root_from_another() -> None:
    bare, marked = read("%0 = SINK"), read('%0 = SINK {info="kernel"}')
    assert bare is not marked
    assert marked is read('%0 = SINK {info="kernel"}')
    assert parse(print_program(marked, "bestiary")) is marked


CALLED = ("%0 = PARAM [3] {slot=0, dtype=float32}", "%1 = NEG %0", "%2 = TUPLE %1")


@pytest.mark.parametrize("word", ["CALL", "FUNCTION"])
@pytest.mark.parametrize(
    "info",
    [
        'grad_tag="g"',
        'metadata=("a","b")',
        "precompile=true",
        "precompile_backward=true",
        'name="f", metadata=("a","b"), precompile=true',
    ],
)
def test_what_is_said_about_a_call_is_kept_and_changes_no_value(word: str, info: str) -> None:
    said = read(*CALLED, f"%3 = {word} %2, %0 {{{info}}}", "%4 = GET_TUPLE %3 {index=0}")
    plain = read(*CALLED, f"%3 = {word} %2, %0", "%4 = GET_TUPLE %3 {index=0}")
    assert said is not plain
    assert (said.src[0].op, said.src[0].tag) == (plain.src[0].op, f"{{{info}}}")
    assert np.asarray(evaluate(said, {0: DATA})).tolist() == [-3.0, 1.0, -2.0]
    text = print_program(said, "bestiary")
    assert info in text
    assert "!" not in text
    assert parse(text) is said


def test_what_is_said_about_the_call_of_a_kernel_is_kept_and_changes_no_value() -> None:
    info = '{name="k", grad_tag="g"}'
    lines = tuple(
        line.replace("FOLD", "ADD").replace("%13, %15", f"%13, %15 {info}") for line in KERNEL
    )
    assert value(lines, {0: np.zeros(2, np.int32), 1: INTS}) == {0: [7, 56]}
    u = read(*lines)
    assert (u.src[0].op, u.src[0].tag) == (Op.CALL, info)
    assert parse(print_program(u, "bestiary")) is u


@pytest.mark.parametrize("name", ["f", "{", '{name="f"}', "", "a b"])
def test_any_name_of_a_call_reads_back(name: str) -> None:
    quoted = json.dumps(name)
    u = read(*CALLED, f"%3 = FUNCTION %2, %0 {{name={quoted}}}", "%4 = GET_TUPLE %3 {index=0}")
    text = print_program(u, "bestiary")
    assert f"name={quoted}" in text
    assert parse(text) is u


@pytest.mark.parametrize("word", ["CALL", "FUNCTION"])
def test_the_name_of_a_call_is_its_tag(word: str) -> None:
    named = read(*CALLED, f'%3 = {word} %2, %0 {{name="f"}}', "%4 = GET_TUPLE %3 {index=0}")
    assert (named.src[0].op, named.src[0].tag) == (Op.FUNCTION, "f")
    assert np.asarray(evaluate(named, {0: DATA})).tolist() == [-3.0, 1.0, -2.0]


FRAGMENTS = (
    "%0 = PARAM {slot=0, dtype=float16, size=8}",
    "%1 = PARAM {slot=1, dtype=float16, size=4}",
    "%2 = PARAM {slot=2, dtype=float32, size=4}",
)


def product(said: str = "", dims: str = "8,16,16") -> UOp:
    core = f"dims=({dims}), dtype_in=float16, dtype_out=float32"
    return read(*FRAGMENTS, f"%3 = WMMA %0, %1, %2 {{{core}{said}}}")


def test_the_sizes_and_dtypes_of_a_matrix_product_are_kept_columns_first() -> None:
    assert product().arg == WmmaArg(16, 8, 16, dtypes.float16, dtypes.float32)
    for sizes in ("16,8,16", "8,32,8"):
        with pytest.raises(InvalidError, match=r"WMMA\.c"):
            product(dims=sizes)
    short = [line.replace("size=8", "size=4").replace("slot=1, dtype=float16, size=4",
                                                       "slot=1, dtype=float16, size=2")
             for line in FRAGMENTS]  # fmt: skip
    core = "dims=(8,16,8), dtype_in=float16, dtype_out=float32"
    found = read(*short, f"%3 = WMMA %0, %1, %2 {{{core}}}")
    assert found.arg == WmmaArg(16, 8, 8, dtypes.float16, dtypes.float32)


@pytest.mark.parametrize(
    "said",
    ['name="__hmma"', 'device="CUDA"', "threads=32",
     "upcast_a=((0,2),(1,4))", "upcast_b=((0,2),(1,2))",
     "upcast_c=((0,2),(3,2))", "reduce_axes=((5,2),(4,4))", "tile_grid=(1,1)",
     'name="__hmma", device="CUDA", threads=32, upcast_a=((0,2),(1,4)), '
     "upcast_b=((0,2),(1,2)), upcast_c=((0,2),(3,2)), reduce_axes=((5,2),(4,4))"],
)  # fmt: skip
def test_what_is_said_about_a_matrix_product_is_kept(said: str) -> None:
    u = product(f", {said}")
    assert (u.op, u.src, u.arg) == (Op.WMMA, product().src, product().arg)
    text = print_program(u, "bestiary")
    assert said in text
    assert parse(text) is u
    default = said in ("threads=32", "tile_grid=(1,1)")
    assert (u is product()) == default


@pytest.mark.parametrize("said", ["upcast_a=((0,2))", "upcast_b=((0,8))", "upcast_c=((0,2),(1,4))"])
def test_the_lanes_of_a_fragment_are_all_its_elements(said: str) -> None:
    with pytest.raises(InvalidError, match=r"WMMA\.upcast"):
        product(f", {said}")


@pytest.mark.parametrize("said", ["threads=64", "tile_grid=(2,1)"])
def test_a_matrix_product_of_more_than_one_warp_is_refused(said: str) -> None:
    with pytest.raises(UnsupportedError, match="32 threads"):
        product(f", {said}")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", StageArg(None, AddrSpace.GLOBAL, True)),
        ('{device="A", addrspace=GLOBAL}', StageArg("A", AddrSpace.GLOBAL, True)),
        ("{addrspace=LOCAL}", StageArg(None, AddrSpace.LOCAL, True)),
        ("{addrspace=GLOBAL, removable=false}", StageArg(None, AddrSpace.GLOBAL, False)),
    ],
)
def test_each_option_of_what_is_materialized_is_kept(said: str, expected: StageArg) -> None:
    lines = (F, "%1 = RANGE 3 {axis_id=0}", "%2 = INDEX %0, %1", "%3 = NEG %2",
             f"%4 = BUFFERIZE %3, %1 {said}")  # fmt: skip
    u = read(*lines)
    assert u.arg == expected
    assert u.device == expected.device
    assert parse(print_program(u, "bestiary")) is u
    assert value(lines, {0: DATA}) == [-3.0, 1.0, -2.0]
    here = read('%0 = DEVICE {device="B"}', "%1 = PARAM [3], %0 {slot=0, dtype=float32}",
                "%2 = RANGE 3 {axis_id=0}", "%3 = INDEX %1, %2",
                f"%4 = BUFFERIZE %3, %2 {said}")  # fmt: skip
    assert here.device == ("B" if expected.device is None else expected.device)


def test_a_buffer_of_one_parameter_serves_any_other() -> None:
    """Without identity: two computations on buffers in the same place are one node."""
    made = [read(F, "%1 = NEG %0") for _ in range(2)]
    assert made[0] is made[1]
    on = read('%0 = DEVICE {device="GPU"}', "%1 = PARAM [3], %0 {slot=0, dtype=float32}")
    assert on.device == "GPU"


GATE = "%1 = CONST {value=true, dtype=bool}"
POINTERS = (P, GATE, "%2 = INDEX %0, 1", "%3 = INDEX %0, 4, %1 {gated=true}",
            "%4 = PTRCAT %2, %3, %2")  # fmt: skip


def test_a_read_of_grouped_pointers_comes_back_as_one() -> None:
    lines = (*POINTERS, "%5 = LOAD %0, %4 : int32[3]")
    assert value(lines, {0: INTS}) == [2, 16, 2]
    text = print_program(read(*lines), "bestiary")
    assert text.splitlines()[-2:] == [
        "%4 = PTRCAT %1, %3, %1 : int32[3]",
        "%5 = LOAD %0, %4 : int32[3]",
    ]
    assert parse(text) is read(*lines)
    each = (P, "%1 = INDEX %0, 1", "%2 = LOAD %0, %1", "%3 = VECTORIZE %2, %2")
    assert last_line(read(*each)) == "%3 = VECTORIZE %2, %2 : int32[2]"
    with pytest.raises(InvalidError, match=r"LOAD\.index"):
        read(*POINTERS, "%5 = PARAM {slot=1, dtype=int32, size=6}", "%6 = LOAD %5, %4")


def test_a_write_to_grouped_pointers_comes_back_as_one() -> None:
    lines = (*UNIQUE, "%2 = CONST {value=true, dtype=bool}", "%3 = INDEX %1, 1",
             "%4 = INDEX %1, 4, %2 {gated=true}", "%5 = CONST {value=false, dtype=bool}",
             "%6 = INDEX %1, 0, %5 {gated=true}", "%7 = PTRCAT %3, %4, %6",
             "%8 = VCONST {values=(7,9,11), dtype=int32}", "%9 = STORE %7, %8",
             "%10 = SINK %9")  # fmt: skip
    assert value(lines, {0: INTS}) == {0: [1, 7, 4, 8, 9, 32]}
    u = read(*lines)
    text = print_program(u, "bestiary")
    assert [line.split()[2] for line in text.splitlines()[-3:]] == ["VCONST", "STORE", "SINK"]
    assert parse(text) is u


def test_a_buffer_has_a_shape_and_may_lack_a_name() -> None:
    u = read("%0 = BUFFER {dtype=int32, shape=(2,3)}", "%1 = BUFFER {dtype=int32, shape=(3,2)}",
             "%2 = TUPLE %0, %1")  # fmt: skip
    assert [(s.op, s.shape, s.arg) for s in u.src] == [
        (Op.BUFFER, (2, 3), BufferArg(0, dtypes.int32)),
        (Op.BUFFER, (3, 2), BufferArg(1, dtypes.int32)),
    ]
    assert parse(print_program(u, "bestiary")) is u


@pytest.mark.parametrize(
    "line",
    ["%0 = RANGE 4 {axis_id=0, axis_type=Placeholder}",
     "%0 = RANGE 4 {axis_id=0, axis_type=GroupReduce, renumbered=false}",
     "%0 = CONST {value=1, dtype=UInt8} : UInt8[]", "%0 = CONST {value=1, dtype=BFloat16}",
     "%0 = CONST {value=1, dtype=FP8E4M3}", "%0 = CONST {value=1, dtype=Index} : Index[]"],
)  # fmt: skip
def test_types_have_the_names_of_the_document(line: str) -> None:
    u = read(line)
    text = print_program(u, "bestiary")
    assert "!" not in text
    assert parse(text) is u


@pytest.mark.parametrize(
    ("hardware", "core"),
    [("blockIdx.x", "gidx0"), ("blockIdx.z", "gidx2"), ("threadIdx.y", "lidx1"), ("warp", "warp")],
)
def test_hardware_indices_have_the_names_of_the_document(hardware: str, core: str) -> None:
    u = read(f'%0 = SPECIAL 4 {{name="{hardware}"}}')
    assert u.arg == SpecialArg(core)
    assert f'"{hardware}"' in print_program(u, "bestiary")
    assert parse(print_program(u, "bestiary")) is u
