"""Bad input, each kind once: the error's class, label, node, what was found, and the line.

Every kind is met twice: built in Python, where the line is that of the caller, and as a file on the
command line, where the line is that of the file which ends with `; here`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    AddrSpace,
    BufferArg,
    CustomFunctionArg,
    InsArg,
    LoadArg,
    ParamArg,
    PermuteArg,
    RangeArg,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import (
    InvalidError,
    LabelledError,
    LackingError,
    MalformedError,
    UndefinedError,
)
from uop.spec.ops.names import Op
from uop.spec.text.program import parse
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp, const, dims, index_const, param

I32 = dtypes.int32
A = param(0, (2,), I32)
ROW = param(1, (4, 2), I32, ("A", "B"))
N = UOp(Op.PARAM, dims(()), arg=ParamArg(0, dtypes.index, min=1, max=4))
WHERE = param(1, (), I32)
TWO = np.array([1, 2], np.int32)


def buffer(slot: int, count: int = 2) -> UOp:
    return UOp(Op.BUFFER, dims((count,)), arg=BufferArg(slot, I32, addrspace=AddrSpace.GLOBAL))


def call(body: UOp, *buffers: UOp) -> UOp:
    return UOp(Op.SINK, UOp(Op.CALL, body, *buffers))


def kernel(value: UOp) -> UOp:
    """A kernel that stores one element."""
    out = UOp(Op.PARAM, dims((2,)), arg=ParamArg(0, I32, addrspace=AddrSpace.GLOBAL))
    place = UOp(Op.INDEX, out, index_const(0))
    return UOp(Op.SINK, UOp(Op.STORE, place, value))


@dataclass(frozen=True, slots=True)
class Bad:
    """One kind: what the error is, a program in Python and the same in a file."""

    kind: type[LabelledError]
    label: str
    node: str
    found: str
    build: Callable[[], Any]
    file: str


BAD = {
    "arity": Bad(
        InvalidError,
        "ADD.arity",
        "ADD(PARAM:int32[2])",
        "1 operands",
        lambda: UOp(Op.ADD, A),
        """\
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = ADD %0 ; here
""",
    ),
    "arg of another op": Bad(
        InvalidError,
        "ADD.arg",
        "ADD(PARAM:int32[2], PARAM:int32[2]) {order=(0)}",
        "PermuteArg",
        lambda: UOp(Op.ADD, A, A, arg=PermuteArg((0,))),
        """\
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = ADD %0, %0 {} ; here
""",
    ),
    "body without TUPLE": Bad(
        InvalidError,
        "FUNCTION.c1",
        "FUNCTION(NEG:int32[2], PARAM:int32[2])",
        "NEG",
        lambda: UOp(Op.FUNCTION, UOp(Op.NEG, A), A),
        """\
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = NEG %0
%2 = FUNCTION %1, %0 ; here
""",
    ),
    "PARAM without argument": Bad(
        InvalidError,
        "FUNCTION.c2",
        "FUNCTION(TUPLE:void[])",
        "slot 0 of 0 arguments",
        lambda: UOp(Op.FUNCTION, UOp(Op.TUPLE, A)),
        """\
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = TUPLE %0
%2 = FUNCTION %1 ; here
""",
    ),
    "PARAM of a kernel without buffer": Bad(
        InvalidError,
        "CALL.c2",
        "CALL(SINK:void[])",
        "slot 0 of 0 arguments",
        lambda: UOp(Op.CALL, kernel(const(1, I32))),
        """\
%0 = PARAM [2] {slot=0, dtype=int32, addrspace=GLOBAL}
%1 = INDEX %0, 0
%2 = CONST {value=1, dtype=int32}
%3 = STORE %1, %2
%4 = SINK %3
%5 = CALL %4 ; here
%6 = SINK %5
""",
    ),
    "PARAM without input": Bad(
        InvalidError,
        "INPUT.c3",
        "slot 0: PARAM int32[2]",
        "none",
        lambda: evaluate(UOp(Op.NEG, A)),
        """\
; A comment above.
%0 = PARAM [2] {slot=0, dtype=int32} ; here
%1 = NEG %0
""",
    ),
    "two PARAMs in one slot": Bad(
        InvalidError,
        "INPUT.c1",
        "slot 0",
        "PARAM int32[2] and PARAM int32[1]",
        lambda: evaluate(UOp(Op.ADD, A, param(0, (1,), I32)), {0: TWO}),
        """\
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = PARAM [1] {slot=0, dtype=int32} ; here
%2 = ADD %0, %1
""",
    ),
    "shards along two axes": Bad(
        InvalidError,
        "ADD.c5",
        "ADD(PARAM:int32[4, 2], PERMUTE:int32[4, 2])",
        "axes 0, 1",
        lambda: UOp(
            Op.ADD,
            ROW,
            UOp(Op.PERMUTE, param(2, (2, 4), I32, ("A", "B")), arg=PermuteArg((1, 0))),
        ),
        """\
%0 = PARAM [4,2] {slot=1, dtype=int32, device=("A","B")}
%1 = PARAM [2,4] {slot=2, dtype=int32, device=("A","B")}
%2 = PERMUTE %1 {order=(1,0)}
%3 = ADD %0, %2 ; here
""",
    ),
    "shards that do not divide": Bad(
        InvalidError,
        "PARAM.c3",
        'PARAM(STACK:index[1]) {slot=0, dtype=int32, device=("A","B")}',
        "(3,) over 2 devices",
        lambda: param(0, (3,), I32, ("A", "B")),
        '%0 = PARAM [3] {slot=0, dtype=int32, device=("A","B")} ; here\n',
    ),
    "shards of an argument": Bad(
        InvalidError,
        "FUNCTION.c3",
        "FUNCTION(TUPLE:void[], PARAM:int32[4, 2])",
        "slot 0: ('A', 'B') axis 0 for a PARAM on None",
        lambda: UOp(Op.FUNCTION, UOp(Op.TUPLE, param(0, (4, 2), I32)), ROW),
        """\
%0 = PARAM [4,2] {slot=0, dtype=int32}
%1 = TUPLE %0
%2 = PARAM [4,2] {slot=1, dtype=int32, device=("A","B")}
%3 = FUNCTION %1, %2 ; here
""",
    ),
    "operands on two devices": Bad(
        InvalidError,
        "ADD.c4",
        "ADD(PARAM:int32[2], PARAM:int32[2])",
        "A",
        lambda: UOp(Op.ADD, param(0, (2,), I32, "A"), param(1, (2,), I32, "B")),
        """\
%0 = PARAM [2] {slot=0, dtype=int32, device="A"}
%1 = PARAM [2] {slot=1, dtype=int32, device="B"}
%2 = ADD %0, %1 ; here
""",
    ),
    "one device twice": Bad(
        InvalidError,
        "LOAD.c8",
        'LOAD(PARAM:int32[2]) {device=("A","A")}',
        "'A' twice among A, A",
        lambda: UOp(Op.LOAD, A, arg=LoadArg(("A", "A"))),
        """\
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = LOAD %0 {device=("A","A")} ; here
""",
    ),
    "bound of a BIND": Bad(
        InvalidError,
        "BIND.c2",
        "BIND(PARAM:index[], CONST:index[])",
        "5",
        lambda: UOp(Op.BIND, N, index_const(5)),
        """\
%0 = PARAM [] {slot=0, dtype=index, min=1, max=4}
%1 = BIND %0, 5 ; here
""",
    ),
    "bound of an input": Bad(
        InvalidError,
        "INPUT.c5",
        "slot 0: from 1 to 4",
        "5",
        lambda: evaluate(UOp(Op.ADD, N, index_const(1)), {0: np.asarray(5)}),
        """\
%0 = PARAM [] {slot=0, dtype=index, min=1, max=4} ; here
%1 = ADD %0, 1
input 0 = 5
""",
    ),
    "bound of a RANGE": Bad(
        InvalidError,
        "RANGE.c1",
        "RANGE(CONST:index[]) {id=0, axis_type=LOOP}",
        "a negative bound",
        lambda: UOp(Op.RANGE, index_const(-1), arg=RangeArg(0)),
        "%0 = RANGE -1 {id=0, axis_type=LOOP} ; here\n",
    ),
    "out of bounds": Bad(
        UndefinedError,
        "INDEX.u1",
        "INDEX(PARAM:int32[2], PARAM:int32[])",
        "2 on axis 0 of size 2",
        lambda: evaluate(
            UOp(Op.NEG, UOp(Op.INDEX, A, WHERE)), {0: TWO, 1: np.asarray(2, np.int32)}
        ),
        """\
%0 = PARAM [2] {slot=0, dtype=int32}
%1 = PARAM [] {slot=1, dtype=int32}
%2 = INDEX %0, %1 ; here
%3 = NEG %2
input 0 = [1,2]
input 1 = 2
""",
    ),
    "race": Bad(
        UndefinedError,
        "STORE.u2",
        "STORE(BUFFER:int32[2], NEG:int32[2])",
        "race: it and STORE(BUFFER:int32[2], PARAM:int32[2]) access element 0",
        lambda: evaluate(
            UOp(Op.SINK, UOp(Op.STORE, buffer(1), A), UOp(Op.STORE, buffer(1), UOp(Op.NEG, A))),
            {0: TWO},
        ),
        """\
%0 = BUFFER [2] {slot=1, dtype=int32, addrspace=GLOBAL}
%1 = PARAM [2] {slot=0, dtype=int32}
%2 = STORE %0, %1
%3 = NEG %1
%4 = STORE %0, %3 ; here
%5 = SINK %2, %4
input 0 = [1,2]
""",
    ),
    "unknown CUSTOMFUNCTION": Bad(
        LackingError,
        "CUSTOMFUNCTION.n1",
        'CUSTOMFUNCTION() {name="decode"}',
        "'decode' has no registered meaning",
        lambda: evaluate(call(UOp(Op.CUSTOMFUNCTION, arg=CustomFunctionArg("decode")), buffer(0))),
        """\
%0 = CUSTOMFUNCTION {name="decode"} ; here
%1 = BUFFER [2] {slot=0, dtype=int32, addrspace=GLOBAL}
%2 = CALL %0, %1
%3 = SINK %2
""",
    ),
    "unknown INS": Bad(
        LackingError,
        "INS.n1",
        'INS() {name="nop", dtype=int32, shape=()}',
        "'nop' has no registered meaning",
        lambda: evaluate(call(kernel(UOp(Op.INS, arg=InsArg("nop", I32, ()))), buffer(0))),
        """\
%0 = PARAM [2] {slot=0, dtype=int32, addrspace=GLOBAL}
%1 = INDEX %0, 0
%2 = INS {name="nop", dtype=int32, shape=()} ; here
%3 = STORE %1, %2
%4 = SINK %3
%5 = BUFFER [2] {slot=0, dtype=int32, addrspace=GLOBAL}
%6 = CALL %4, %5
%7 = SINK %6
""",
    ),
    "more than fits in memory": Bad(
        LackingError,
        "VALUE.n1",
        "EXPAND(PARAM:int32[1], STACK:index[1])",
        "40000000000000 bytes for one value, 40000000000004 at once, of ",
        lambda: evaluate(
            UOp(Op.EXPAND, param(0, (1,), I32), dims((10**13,))), {0: np.zeros(1, np.int32)}
        ),
        """\
%0 = PARAM [1] {slot=0, dtype=int32}
%1 = EXPAND %0, [10000000000000] ; here
%2 = NEG %1
input 0 = [5]
""",
    ),
}
KINDS = [pytest.param(bad, id=name) for name, bad in BAD.items()]


@pytest.mark.parametrize("bad", KINDS)
def test_in_python_the_line_is_that_of_the_caller(bad: Bad) -> None:
    with pytest.raises(bad.kind) as caught:
        bad.build()
    error = caught.value
    assert type(error) is bad.kind
    assert error.label == bad.label
    assert error.node.startswith(bad.node)
    assert bad.found in error.found
    file, _, number = error.where.rpartition(":")
    assert file == __file__
    lines = {line for *_, line in bad.build.__code__.co_lines() if line is not None}
    assert int(number) in lines


@pytest.mark.parametrize("bad", KINDS)
def test_on_the_command_line_the_line_is_that_of_the_file(
    bad: Bad, uop: Any, tmp_path: Path
) -> None:
    path = tmp_path / "bad.uop"
    path.write_text(bad.file)
    # An unknown INS is native code too.
    outcome = uop("run", path, "--native")
    assert outcome.code == 2
    assert outcome.out == ""
    said = outcome.err
    assert said.startswith(f"error: {bad.label}: ")
    assert f"\n  node: {bad.node.partition(' ')[0]}" in said
    (line,) = (n for n, text in enumerate(bad.file.splitlines(), 1) if text.endswith("; here"))
    assert f"\n  at: {path}:{line}" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("%0 = NEG %1\n%1 = NEG %0\n", 1, 10, "%1 is not defined before this line"),
        ("%0 = NEG %0\n", 1, 10, "%0 is not defined before this line"),
        ("%0 = PARAM [2] {slot=0, dtype=int32}\n%1 = FOO %0\n", 2, 6, "unknown op 'FOO'"),
        ("%0 = PARAM [2] {slot=0, dtype=int33}\n", 1, 16, "int33"),
        ("%0 = PARAM [2] {slt=0, dtype=int32}\n", 1, 16, "slt"),
        ("%0 = PARAM [2] {slot=0, dtype=int32}\ninput 3 = [1,2]\n", 2, 7, "no PARAM or BUFFER"),
    ],
)
def test_text_that_is_no_program_says_line_and_column(
    text: str, line: int, column: int, message: str, uop: Any, tmp_path: Path
) -> None:
    path = tmp_path / "bad.uop"
    path.write_text(text)
    with pytest.raises(MalformedError, match=message) as caught:
        read_file(path)
    if "input" not in text:
        with pytest.raises(MalformedError):
            parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    outcome = uop("run", path)
    assert outcome.code == 2
    assert f"{path}:{line}:{column}: " in outcome.err
