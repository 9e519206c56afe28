"""The bestiary by hand: every op of its tables, what it means, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from bestiary_lines import PTR, last_line, read

from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import (
    AxisType,
    DTypeArg,
    LanesArg,
    RangeArg,
    ReduceArg,
    UniqueArg,
)
from uop.spec.dtype import dtypes
from uop.spec.editions import parse, print_program
from uop.spec.editions.bestiary import (
    BESTIARY,
    RANGE_START,
    closed_ranges,
    is_expandable,
    priority,
)
from uop.spec.editions.bestiary_args import BestiaryAxisType
from uop.spec.errors import InvalidError, MalformedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

TABLES = [
    "RANGE",
    "END",
    "REDUCE_AXIS",
    "REDUCE",
    "ALLREDUCE",
    "BUFFER",
    "BUFFER_VIEW",
    "BUFFERIZE",
    "INDEX",
    "POINTER_INDEX",
    "LOAD",
    "STORE",
    "SINK",
    "CALL",
    "FUNCTION",
    "TUPLE",
    "GET_TUPLE",
    "PROGRAM",
    "LINEAR",
    "SOURCE",
    "PROGRAM_BINARY",
    "AFTER",
    "BARRIER",
    "VECTORIZE",
    "GEP",
    "VCONST",
    "CAT",
    "PTRCAT",
    "UNROLL",
    "CONTRACT",
    "WMMA",
    "SPECIAL",
    "IF",
    "ENDIF",
    "PARAM",
    "DEFINE_LOCAL",
    "DEFINE_REG",
    "DEFINE_VAR",
    "BIND",
    "UNIQUE",
    "LUNIQUE",
    "DEVICE",
    "RESHAPE",
    "PERMUTE",
    "EXPAND",
    "PAD",
    "SHRINK",
    "FLIP",
    "COPY",
    "MSTACK",
    "MSELECT",
    "MULTI",
    "GROUP",
    "DETACH",
    "CONTIGUOUS",
    "CONTIGUOUS_BACKWARD",
    "PRECAST",
    "CUSTOM",
    "CUSTOMI",
    "CUSTOM_FUNCTION",
    "CAST",
    "BITCAST",
    "CONST",
]

V = "%0 = PARAM [4] {slot=0, dtype=float32}"
DATA = np.array([1, 2, 4, 8], np.float32)


def value(*lines: str, data: Array = DATA) -> object:
    return np.asarray(evaluate(read(*lines), {0: data})).tolist()


@pytest.mark.parametrize("name", TABLES)
def test_every_op_of_the_tables_is_a_word(name: str) -> None:
    assert name in BESTIARY.words


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("%1 = REDUCE_AXIS %0 {reduce_op=MIN, axes=(0)} : float32[]",), 1.0),
        (("%1 = GEP %0 {indices=(2)} : float32[]",), 4.0),
        (("%1 = GEP %0 {indices=(3,0)} : float32[2]",), [8.0, 1.0]),
        (("%1 = GEP %0 {indices=(3,0)}", "%2 = CAT %1, %0"), [8.0, 1.0, 1.0, 2.0, 4.0, 8.0]),
        (("%1 = GEP %0 {indices=(2)}", "%2 = CAT %1, %0, %1"), [4.0, 1.0, 2.0, 4.0, 8.0, 4.0]),
        (("%1 = GEP %0 {indices=(3)}", "%2 = GEP %0 {indices=(1)}", "%3 = VECTORIZE %1, %2, %2"),
         [8.0, 2.0, 2.0]),
        (("%1 = VCONST {values=(0,1,2,255), dtype=uint8}", "%2 = CAST %1 {dtype=float32}",
          "%3 = ADD %0, %2"), [1.0, 3.0, 6.0, 263.0]),
        (("%1 = PAD %0, [1], [2]",), [0.0, 1.0, 2.0, 4.0, 8.0, 0.0, 0.0]),
        (("%1 = RESHAPE %0, [1,4]", "%2 = SHRINK %1, [0,1], [1,3]", "%3 = PAD %2, [1,0], [0,2]"),
         [[0.0, 0.0, 0.0, 0.0], [2.0, 4.0, 0.0, 0.0]]),
        (("%1 = SHRINK %0, [1], [3]",), [2.0, 4.0]),
        (("%1 = RESHAPE %0, [2,2]", "%2 = SHRINK %1, [0,1], [2,2]"), [[2.0], [8.0]]),
        (("%1 = FLIP %0 {axes=(true)}",), [8.0, 4.0, 2.0, 1.0]),
        (("%1 = RESHAPE %0, [2,2]", "%2 = PERMUTE %1 {axes=(1,0)}"), [[1.0, 4.0], [2.0, 8.0]]),
        (("%1 = RESHAPE %0, [1,2,2]", "%2 = PERMUTE %1 {axes=(2,0,1)}"),
         [[[1.0, 4.0]], [[2.0, 8.0]]]),
        (("%1 = RESHAPE %0, [2,2]", "%2 = FLIP %1 {axes=(true,false)}"), [[4.0, 8.0], [1.0, 2.0]]),
        (("%1 = NEG %0", "%2 = MSTACK %0, %1", "%3 = MSELECT %2 {index=1}"),
         [-1.0, -2.0, -4.0, -8.0]),
        (("%1 = NEG %0", "%2 = MULTI %0, %1", "%3 = GET_TUPLE %2 {index=1}"),
         [-1.0, -2.0, -4.0, -8.0]),
        (('%1 = DEVICE {device="GPU"}', "%2 = COPY %0, %1"), [1.0, 2.0, 4.0, 8.0]),
        (("%1 = BUFFER_VIEW %0 {size=2, offset=1, dtype=float32}",), [2.0, 4.0]),
        (("%1 = BUFFER_VIEW %0 {size=3, offset=1, dtype=uint16}",), [0, 0x4000, 0]),
        (("%1 = UNROLL %0 {unroll_axes=((0,4))}", "%2 = MUL %1, %1",
          "%3 = CONTRACT %2 {upcast_ranges=((0,4))}"), [1.0, 4.0, 16.0, 64.0]),
        (("%1 = NEG %0", "%2 = GEP %1 {indices=(0,1)}", "%3 = CAT %0, %2",
          "%4 = UNROLL %3 {unroll_axes=((4,2),(2,3))}",
          "%5 = CONTRACT %4 {upcast_ranges=((2,3),(4,2))}"), [1.0, 8.0, 2.0, -1.0, 4.0, -2.0]),
        (("%1 = RANGE 4 {axis_id=0, axis_type=GLOBAL}", "%2 = INDEX %0, %1", "%3 = NEG %2",
          "%4 = BUFFERIZE %3, %1 {addrspace=GLOBAL, removable=false}"), [-1.0, -2.0, -4.0, -8.0]),
    ],
)  # fmt: skip
def test_what_sugar_means(lines: tuple[str, ...], expected: object) -> None:
    assert value(V, *lines) == expected


def test_a_copy_is_on_its_device() -> None:
    u = read(V, '%1 = DEVICE {device="GPU"}', "%2 = COPY %0, %1")
    assert (u.device, u.src[0].device) == ("GPU", None)


def test_constants_of_a_vector_are_written_as_those_of_a_const() -> None:
    nan, half = (const(v, dtypes.float32) for v in (float("nan"), 0.5))
    u = UOp(Op.STACK, nan, half)
    assert "VCONST {values=(nan:0x7fc00000,0x1p-1), dtype=float32}" in last_line(u)
    assert parse(print_program(u, "bestiary")) is u


def test_loops_that_close_together_are_one_end_with_the_first_outermost() -> None:
    u = read(
        PTR,
        "%1 = RANGE 2 {axis_id=0, axis_type=GLOBAL}",
        "%2 = RANGE 2 {axis_id=1, axis_type=LOCAL}",
        "%3 = ADD %1, %2",
        "%4 = INDEX %0, %3",
        "%5 = CONST {value=0x1p+1, dtype=float32}",
        "%6 = STORE %4, %5",
        "%7 = END %6, %1, %2",
    )
    inner = u.src[0]
    assert [r.arg for r in (u.src[1], inner.src[1])] == [
        RangeArg(0, AxisType.GLOBAL),
        RangeArg(1, AxisType.LOCAL),
    ]
    (line,) = [x for x in print_program(u, "bestiary").splitlines() if " = END " in x]
    assert line.count("%") == 4
    assert parse(print_program(u, "bestiary")) is u


BODY = ("%0 = SINK", '%1 = DEVICE {device="GPU"}')
MADE = ("%2 = LINEAR", '%3 = SOURCE {code="k"}', "%4 = PROGRAM_BINARY {data=hex:00}")


@pytest.mark.parametrize("count", range(4))
def test_a_program_is_filled_stage_by_stage(count: int) -> None:
    operands = ", ".join(f"%{k}" for k in range(2 + count))
    u = read(*BODY, *MADE[:count], f"%9 = PROGRAM {operands}")
    assert u.op is (Op.SINK, Op.LINEAR, Op.PROGRAM, Op.PROGRAM)[count]


@pytest.mark.parametrize("operands", ["%0, %1, %3", "%0, %1, %2, %4", "%0, %1, %4", "%2, %1, %2"])
def test_a_stage_without_the_one_before_is_refused(operands: str) -> None:
    used = [line for line in (*BODY, *MADE) if line.split()[0] in operands.split(", ")]
    with pytest.raises(InvalidError, match=r"PROGRAM\.stage"):
        read(*used, f"%9 = PROGRAM {operands}")


def test_a_call_of_a_function_is_one_with_arguments_of_its_own() -> None:
    u = read(
        "%0 = PARAM {slot=0, dtype=int8, size=2}",
        "%1 = PARAM {slot=1, dtype=int8, size=2}",
        "%2 = SUB %0, %1",
        "%3 = TUPLE %2",
        "%4 = FUNCTION %3, %0, %1",
        "%5 = ADD %0, %0",
        '%6 = CALL %4, %1, %5 {name="difference"}',
        "%7 = GET_TUPLE %6 {index=0}",
    )
    assert u.src[0].op is Op.FUNCTION
    got = evaluate(u, {0: np.array([1, -3], np.int8), 1: np.array([10, 20], np.int8)})
    assert np.asarray(got).tolist() == [8, 26]


def test_a_matrix_instruction_keeps_what_it_computes() -> None:
    a, c = (param(k, (n,), d) for k, n, d in ((0, 8, dtypes.float16), (2, 4, dtypes.float32)))
    lines = [
        "%0 = PARAM [8] {slot=0, dtype=float16}",
        "%1 = PARAM [4] {slot=1, dtype=float16}",
        "%2 = PARAM [4] {slot=2, dtype=float32}",
    ]
    core = '{dims=(8,16,16), dtype_in=float16, dtype_out=float32, name="hmma", threads=32}'
    u = read(*lines, f"%3 = WMMA %0, %1, %2 {core}")
    assert (u.op, u.src[0], u.src[2]) == (Op.WMMA, a, c)
    assert parse(print_program(u, "bestiary")) is u
    with pytest.raises(UnsupportedError, match="WMMA"):
        read(*lines, f"%3 = WMMA %0, %1, %2 {core[:-1]}, tile_grid=(2,2)}}")


def test_axis_types_are_ordered_by_priority() -> None:
    order = ["PLACEHOLDER", "LOOP", "GLOBAL", "WARP", "LOCAL", "UPCAST", "REDUCE", "UNROLL"]
    priorities = [BestiaryAxisType[name].priority for name in order]
    assert priorities == [-3, -1, 0, 1, 2, 3, 4, 5]
    for name in ("PLACEHOLDER", "GROUP_REDUCE", "THREAD"):
        u = read(f"%0 = RANGE 4 {{axis_id=0, axis_type={name}}}")
        assert priority(u) == BestiaryAxisType[name].priority
        assert parse(print_program(u, "bestiary")) is u
    with pytest.raises(ValueError, match="CONST"):
        priority(index_const(1))


def test_renumbered_axes_are_others_and_deps_come_first() -> None:
    one = read("%0 = RANGE 4 {axis_id=0}")
    other = read("%0 = RANGE 4 {axis_id=0, renumbered=false}")
    assert one is not other
    u = read(
        "%0 = RANGE 4 {axis_id=0}", "%1 = RANGE 4 {axis_id=1}", "%2 = RANGE 3, %0, %1 {axis_id=2}"
    )
    assert (u.op, u.src[0].op, u.src[0].src[1]) == (Op.RANGE, Op.AFTER, one)
    assert u.src[0].src[2:] == (read("%0 = RANGE 4 {axis_id=1}"),)


def test_queries_on_nodes() -> None:
    r = UOp(Op.RANGE, index_const(4), arg=RangeArg(0))
    x = UOp(Op.CAST, r, arg=DTypeArg(dtypes.float32))
    total = UOp(Op.REDUCE, x, r, arg=ReduceArg(Op.ADD))
    assert closed_ranges(total) == (r,)
    assert closed_ranges(x) == ()
    assert RANGE_START == {
        Op.STAGE: 1, Op.REDUCE: 1, Op.STORE: 2, Op.WMMA: 3, Op.END: 1, Op.CALL: 1, Op.FUNCTION: 1,
    }  # fmt: skip
    assert is_expandable(total)
    assert is_expandable(x)
    assert not is_expandable(UOp(Op.UNIQUE, arg=UniqueArg(0)))


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        (("%0 = BIND_ALL",), MalformedError, "unknown op"),
        (("%0 = REPLICATED",), UnsupportedError, "has no REPLICATED"),
        (("%0 = BUFFER 3 {size=1, dtype=int8}",), InvalidError, r"BUFFER\.unique"),
        (("%0 = UNIQUE {id=0}", "%1 = BUFFER %0, 3 {size=1, dtype=int8}"), InvalidError,
         r"BUFFER\.unique"),
        (("%0 = BUFFER {dtype=int8}",), InvalidError, r"BUFFER\.size"),
        (("%0 = BUFFER {dtype=int8, size=4, shape=(4)}",), InvalidError, r"BUFFER\.size"),
        (("%0 = VCONST {values=(1,256), dtype=uint8}",), InvalidError, r"VCONST\.values"),
        (("%0 = VCONST {values=(true), dtype=float32}",), InvalidError, r"VCONST\.values"),
        (("%0 = PTRCAT",), InvalidError, r"PTRCAT\.arity"),
        (("%0 = UNIQUE {id=0}", "%1 = BUFFER %0 {size=-1, dtype=int8}"), InvalidError,
         r"BUFFER\.size"),
        (("%0 = PARAM {slot=0, dtype=int8}",), InvalidError, r"PARAM\.place"),
        ((V, "%1 = VECTORIZE %0"), InvalidError, r"VECTORIZE\.elements"),
        ((V, "%1 = PAD %0, [1,1], [1]"), InvalidError, r"PAD\.sizes"),
        ((V, "%1 = SHRINK %0, [1], 3"), InvalidError, r"SHRINK\.sizes"),
        ((V, "%1 = UNROLL %0 {unroll_axes=((0,4,1))}"), InvalidError, r"UNROLL\.axes"),
        ((V, "%1 = RESHAPE %0, [2,2]", "%2 = CAT %1"), InvalidError, r"CAT\.sources"),
        ((PTR, "%1 = INDEX %0, 0", "%2 = NEG %1", "%3 = LOAD %0, %2"), InvalidError,
         r"LOAD\.index"),
        ((PTR, "%1 = INDEX %0, 0", "%2 = LOAD %0, %1, %1"), InvalidError, r"LOAD\.alt"),
    ],
)  # fmt: skip
def test_bad_input_is_named(lines: tuple[str, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(*lines)


def test_core_nodes_are_printed_as_sugar() -> None:
    lane = UOp(Op.UNROLL, param(0, (4,), dtypes.int8), arg=LanesArg((0,), (4,)))
    one = const(1, dtypes.int8)
    for u, line in (
        (UOp(Op.STACK, one, one), "%0 = VCONST {values=(1,1), dtype=int8} : int8[2]"),
        (UOp(Op.STACK, one, lane), "%3 = VECTORIZE %0, %2 : int8[2]"),
        (lane, "%1 = UNROLL %0 {unroll_axes=((0,4))} : int8[]"),
        (dims((2, 3)), "%0 = STACK 2, 3 : index[2]"),
    ):
        assert last_line(u) == line
        assert parse(print_program(u, "bestiary")) is u
