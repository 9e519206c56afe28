"""The bestiary's words of memory: pointers, gates, and what names a buffer or a variable."""

from __future__ import annotations

import numpy as np
import pytest
from bestiary_lines import PTR, last_line, read, value

from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    AddrSpace,
    BufferArg,
    ParamArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.editions import parse, print_program
from uop.spec.errors import InvalidError, UndefinedError
from uop.spec.ops.names import Op


@pytest.mark.parametrize(
    "dtype",
    [dtypes.bool, dtypes.int8, dtypes.uint32, dtypes.float16, dtypes.fp8e4m3, dtypes.float64],
    ids=lambda d: d.name,
)
def test_an_access_has_the_dtype_of_its_element(dtype: DType) -> None:
    """Also behind a gate, by a pointer, and in a view that shows the bytes as another dtype."""
    memory = f"%0 = PARAM {{slot=0, dtype={dtype.name}, size=8}}"
    gate = "%1 = PARAM [] {slot=1, dtype=bool}"
    accesses = [
        (memory, "%1 = INDEX %0, 3"),
        (memory, gate, "%2 = INDEX %0, 3, %1 {gated=true}"),
        (memory, "%1 = POINTER_INDEX %0, 3 {unit=ELEMENTS}"),
        (memory, "%1 = BUFFER_VIEW %0 {size=4, offset=1}", "%2 = INDEX %1, 3"),
    ]
    assert {read(*lines).dtype for lines in accesses} == {dtype}
    bytes_of = "%1 = BUFFER_VIEW %0 {size=4, offset=1, dtype=uint8}"
    assert read(memory, bytes_of, "%2 = INDEX %1, 3").dtype is dtypes.uint8


def test_a_gate_of_an_index_is_one_of_the_load() -> None:
    u = read(
        PTR,
        "%1 = CONST {value=false, dtype=bool}",
        "%2 = INDEX %0, 99, %1 {gated=true}",
        "%3 = CONST {value=0x1p+1, dtype=float32}",
        "%4 = LOAD %0, %2, %3",
    )
    assert (u.op, u.src[0].op, u.src[1].op, u.src[2].dtype) == (
        Op.LOAD, Op.INDEX, Op.CONST, dtypes.bool,
    )  # fmt: skip
    assert last_line(u) == "%4 = LOAD %0, %2, %3 : float32[]"
    assert parse(print_program(u, "bestiary")) is u


def test_a_gate_of_an_index_is_one_of_the_store() -> None:
    u = read(
        PTR,
        "%1 = CONST {value=true, dtype=bool}",
        "%2 = RANGE 4 {axis_id=0, axis_type=GLOBAL}",
        "%3 = INDEX %0, %2, %1 {gated=true}",
        "%4 = CONST {value=0x1p+1, dtype=float32}",
        "%5 = STORE %3, %4, %2",
    )
    assert u.op is Op.END
    store = u.src[0]
    assert (store.op, len(store.src), store.src[0].op) == (Op.STORE, 3, Op.INDEX)
    assert parse(print_program(u, "bestiary")) is u


@pytest.mark.parametrize("row", [1, 7])
def test_a_false_gate_of_an_index_keeps_a_load_and_a_store_from_memory(row: int) -> None:
    """A row 7 does not exist."""
    place = (
        "%0 = BUFFER {dtype=int32, shape=(2,3)}",
        "%1 = PARAM [] {slot=1, dtype=bool}",
        f"%2 = INDEX %0, {row}, 2, %1 {{gated=true}}",
    )
    read_it = (*place, "%3 = LOAD %0, %2")
    write_it = (*place, "%3 = CONST {value=9, dtype=int32}", "%4 = STORE %2, %3", "%5 = SINK %4")
    data = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    given = {0: data, 1: np.array(False)}
    assert value(read_it, given) == 0
    assert value(write_it, given) == {0: data.tolist()}
    given[1] = np.array(True)
    if row == 1:
        assert value(read_it, given) == 6
        assert value(write_it, given) == {0: [[1, 2, 3], [4, 5, 9]]}
        return
    for lines in (read_it, write_it):
        with pytest.raises(UndefinedError, match=r"INDEX\.u1"):
            value(lines, given)


def test_pointers_that_are_grouped_are_stored_lane_by_lane() -> None:
    u = read(
        PTR,
        "%1 = POINTER_INDEX %0, 4",
        "%2 = POINTER_INDEX %0, 3 {unit=ELEMENTS}",
        "%3 = PTRCAT %1, %2",
        "%4 = VCONST {values=(0,1), dtype=float32}",
        "%5 = STORE %3, %4",
    )
    assert u.op is Op.GROUP
    assert [s.src[0].op for s in u.src] == [Op.PTRADD, Op.PTRADD]


def test_stores_under_an_if_have_its_condition() -> None:
    u = read(
        "%0 = PARAM [] {slot=0, dtype=bool}",
        "%1 = UNIQUE {id=1}",
        "%2 = BUFFER %1 {size=1, dtype=int8}",
        "%3 = INDEX %2, 0",
        "%4 = CONST {value=5, dtype=int8}",
        "%5 = STORE %3, %4",
        "%6 = IF %0, %5",
        "%7 = ENDIF %6",
        "%8 = SINK %7",
    )
    for condition, expected in ((True, [5]), (False, [1])):
        given = {0: np.array(condition), 1: np.array([1], np.int8)}
        result = evaluate(u, given)
        assert isinstance(result, dict)
        assert result[1].tolist() == expected


def test_memory_is_named_by_use() -> None:
    unique = read("%0 = UNIQUE {id=3}", '%1 = DEVICE {device="A"}',
                  "%2 = BUFFER %0, %1 {size=6, dtype=int8}")  # fmt: skip
    assert unique.arg == BufferArg(3, dtypes.int8, "A")
    lunique = read("%0 = LUNIQUE {id=3}", "%1 = BUFFER %0 {size=6, dtype=int8}")
    assert lunique is not read("%0 = UNIQUE {id=3}", "%1 = BUFFER %0 {size=6, dtype=int8}")
    assert parse(print_program(lunique, "bestiary")) is lunique
    both = read(*(f"%{k} = {name} {{id=0}}" for k, name in enumerate(("UNIQUE", "LUNIQUE"))),
                "%2 = BUFFER %0 {size=1, dtype=int8}", "%3 = BUFFER %1 {size=1, dtype=int8}",
                "%4 = SUB %2, %3")  # fmt: skip
    inputs = {slot: np.array([value], np.int8) for slot, value in ((0, 9), (1 << 32, 4))}
    assert evaluate(both, inputs).tolist() == [5]
    for name in ("LOCAL", "REG"):
        u = read(f"%0 = DEFINE_{name} {{id=2, size=6, dtype=int8}}")
        assert u.arg == BufferArg(2, dtypes.int8, None, AddrSpace[name])
        assert parse(print_program(u, "bestiary")) is u


def test_a_variable_keeps_its_name_and_its_slot() -> None:
    u = read('%0 = DEFINE_VAR {name="v3", min=1, max=8, slot=3}', "%1 = BIND %0, 5")
    assert (u.src[0].arg, u.src[0].tag) == (ParamArg(3, dtypes.index, min=1, max=8), None)
    assert parse(print_program(u, "bestiary")) is u
    two = read('%0 = DEFINE_VAR {name="batch", min=1, max=8}',
               '%1 = DEFINE_VAR {name="time", min=1, max=8}', "%2 = BIND %0, 5", "%3 = BIND %1, 6",
               "%4 = TUPLE %3, %2, %0")  # fmt: skip
    assert [v.arg.slot for v in (two.src[1].src[0], two.src[0].src[0])] == [1 << 33, (1 << 33) + 1]
    text = print_program(two, "bestiary")
    assert parse(text) is two
    assert 'DEFINE_VAR {name="time", min=1, max=8, slot=8589934593}' in print_program(
        two, "bestiary"
    )
    with pytest.raises(InvalidError, match=r"DEFINE_VAR\.number"):
        read('%0 = DEFINE_VAR {name="a", min=1, max=8}',
             '%1 = DEFINE_VAR {name="b", min=1, max=8, slot=3}', "%2 = ADD %0, %1")  # fmt: skip
    with pytest.raises(InvalidError, match=r"BIND\.c2"):
        read('%0 = DEFINE_VAR {name="v3", min=1, max=8}', "%1 = BIND %0, 9")


def test_a_gated_store_under_an_if_wants_both() -> None:
    u = read(
        "%0 = PARAM [] {slot=0, dtype=bool}",
        "%1 = PARAM [] {slot=1, dtype=bool}",
        "%2 = UNIQUE {id=2}",
        "%3 = BUFFER %2 {size=1, dtype=int8}",
        "%4 = INDEX %3, 0, %1 {gated=true}",
        "%5 = CONST {value=5, dtype=int8}",
        "%6 = STORE %4, %5",
        "%7 = IF %0, %6",
        "%8 = ENDIF %7",
        "%9 = SINK %8",
    )
    for a, b in ((False, False), (False, True), (True, False), (True, True)):
        given = {0: np.array(a), 1: np.array(b), 2: np.array([1], np.int8)}
        result = evaluate(u, given)
        assert isinstance(result, dict)
        assert result[2].tolist() == [5 if a and b else 1]


BOUNDED = """\
SINK
└── CALL
    ├── SINK
    │   └── END
    │       ├── ENDIF
    │       │   └── IF
    │       │       ├── LT — idx < bound
    │       │       │   ├── RANGE(end=8, axis_id=R0, type=Global)
    │       │       │   └── CONST(3)
    │       │       ├── STORE
    │       │       │   ├── INDEX[R0]
    │       │       │   │   └── PARAM(0, size=8) : Int32
    │       │       │   └── LOAD
    │       │       │       ├── PARAM(1, size=3) : Int32
    │       │       │       └── INDEX[R0]
    │       │       │           └── PARAM(1)
    │       │       └── STORE
    │       │           ├── INDEX[R0]
    │       │           │   └── PARAM(2, size=8) : Int32
    │       │           └── CONST(1) : Int32
    │       └── RANGE(R0)
    ├── BUFFER[8] : Int32
    │   └── UNIQUE(0)
    ├── BUFFER[3] : Int32
    │   └── UNIQUE(1)
    └── BUFFER[8] : Int32
        └── UNIQUE(2)"""


def test_an_if_checks_a_bound() -> None:
    """Where the condition is false the value is not read: element 3 of 3 does not exist."""
    u = read(BOUNDED)
    eight = np.full(8, 7, np.int32)
    inputs = {0: eight, 1: np.array([5, -6, 4], np.int32), 2: eight}
    result = evaluate(u, inputs)
    assert isinstance(result, dict)
    assert {k: v.tolist() for k, v in result.items()} == {
        0: [5, -6, 4, 7, 7, 7, 7, 7],
        2: [1, 1, 1, 7, 7, 7, 7, 7],
    }
