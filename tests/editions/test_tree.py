"""Trees: the text of the bestiary, as its examples have it, and the law that it reads back."""

from __future__ import annotations

import numpy as np
import pytest

from uop.interpreter.evaluate import evaluate
from uop.spec.dtype import dtypes
from uop.spec.editions import parse, print_tree
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.ops.names import Op
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, param


def read(text: str) -> UOp:
    return parse(f"edition bestiary\n{text}")


SAME = [
    ("RANGE(end=128, axis_id=R0, type=Global)\n└── CONST(128) : Index",
     "%0 = RANGE 128 {axis_id=0, axis_type=GLOBAL}"),
    ("RANGE(end=128, axis_id=U7, type=GroupReduce)",
     "%0 = RANGE 128 {axis_id=7, axis_type=GROUP_REDUCE, renumbered=false}"),
    ("REDUCE_AXIS(Add, axes=[1])\n└── BUFFER[10, 20] : Float32",
     "%0 = BUFFER {dtype=float32, shape=(10,20)}\n%1 = REDUCE_AXIS %0 {reduce_op=ADD, axes=(1)}"),
    ("VECTORIZE : <4 x Float32>\n├── CONST(1.0)\n├── CONST(2.0)\n├── CONST(3.0)\n└── CONST(4.0)",
     "%0 = VCONST {values=(1,2,3,4), dtype=float32}"),
    ("GEP([0, 2]) : <2 x Float32>\n└── VCONST(values=[1, 2.5, -inf]) : <3 x Float32>",
     "%0 = VCONST {values=(1,2.5,-inf), dtype=float32}\n%1 = GEP %0 {indices=(0,2)}"),
    ('DEFINE_VAR(name="batch_size", min=1, max=128) : Index',
     '%0 = DEFINE_VAR {name="batch_size", min=1, max=128}'),
    ('SPECIAL(name="blockIdx.x", end=128) : Index\n└── CONST(128)',
     '%0 = SPECIAL 128 {name="blockIdx.x"}'),
    ("RESHAPE(new_shape=[6, 4]) : Shape[6, 4]\n├── BUFFER[2, 3, 4] : Float32\n"
     "└── CONST([6, 4]) : Shape",
     "%0 = BUFFER {dtype=float32, shape=(2,3,4)}\n%1 = RESHAPE %0, [6,4]"),
    ("BUFFERIZE(opts={addrspace=Local, removable=false})\n├── CONST(true)\n"
     "└── RANGE(end=2, axis_id=R0)",
     "%0 = CONST {value=true, dtype=bool}\n%1 = RANGE 2 {axis_id=0}\n"
     "%2 = BUFFERIZE %0, %1 {addrspace=LOCAL, removable=false}"),
    ('%1 = PARAM[3](0, device="GPU") : Float32\nCOPY(device="CPU")\n└── %1',
     '%0 = PARAM [3] {slot=0, dtype=float32, device="GPU"}\n%1 = COPY %0, "CPU"'),
    ("SUB\n├── BUFFER(size=2) : Int8\n│   ├── LUNIQUE(3)\n│   └── DEVICE(\"A\")\n"
     "└── CONST(1) : Int8",
     '%0 = LUNIQUE {id=3}\n%1 = BUFFER %0, "A" {size=2, dtype=int8}\n'
     "%2 = CONST {value=1, dtype=int8}\n%3 = SUB %1, %2"),
    ("Binary(Lt)\n├── Unary(Neg)\n│   └── CONST(1) : Int32\n└── BitCast : Int32\n"
     "    └── CONST(1.0)",
     "%0 = CONST {value=1, dtype=int32}\n%1 = NEG %0\n%2 = CONST {value=1, dtype=float32}\n"
     "%3 = BITCAST %2 {dtype=int32}\n%4 = LT %1, %3"),
    ("MSelect(1)\n└── MStack\n    ├── VConst([1.0, 2.0])\n    └── VConst([3.0, 4.0])",
     "%0 = VCONST {values=(1,2), dtype=float32}\n%1 = VCONST {values=(3,4), dtype=float32}\n"
     "%2 = MSTACK %0, %1\n%3 = MSELECT %2 {index=1}"),
    ("SINK\n└── KERNEL\n    ├── CustomFunction(kind=\"copy\")\n    ├── BUFFER(size=2) : Int8\n"
     "    │   └── UNIQUE(0)\n    └── BUFFER(size=2) : Int8\n        └── UNIQUE(1)",
     '%0 = CUSTOM_FUNCTION {name="copy"}\n%1 = UNIQUE {id=0}\n'
     "%2 = BUFFER %1 {size=2, dtype=int8}\n%3 = UNIQUE {id=1}\n"
     "%4 = BUFFER %3 {size=2, dtype=int8}\n%5 = CALL %0, %2, %4\n%6 = SINK %5"),
    ("PROGRAM_BINARY(bytes=hex:00ff)", "%0 = PROGRAM_BINARY {data=hex:00ff}"),
    ("ADD\n├── RANGE(axis_id=R1, type=Loop)\n│   └── RANGE(R0)\n└── RANGE(end=4, axis_id=R0)",
     "%0 = RANGE 4 {axis_id=0}\n%1 = RANGE %0 {axis_id=1}\n%2 = ADD %1, %0"),
]  # fmt: skip
"""Trees, most of them of the document, and the same programs with a node in each line."""


@pytest.mark.parametrize(("tree", "lines"), SAME, ids=lambda t: t[:20])
def test_a_tree_is_the_program_of_its_lines(tree: str, lines: str) -> None:
    u = read(lines)
    assert read(tree) is u
    assert parse(print_tree(u)) is u


def test_trees_are_printed_as_the_document_writes_them() -> None:
    u = read("%0 = RANGE 128 {axis_id=0, axis_type=Global}\n"
             "%1 = RANGE 64 {axis_id=2, axis_type=Reduce}\n%2 = ADD %0, %1\n"
             "%3 = PARAM {slot=1, dtype=float32, size=8192}\n%4 = INDEX %3, %2"
             "\n%5 = LOAD %3, %4\n%6 = REDUCE %5, %1 {reduce_op=ADD}")  # fmt: skip
    assert (
        print_tree(u)
        == """\
edition bestiary
REDUCE(Add) : Float32
├── LOAD : Float32
│   ├── PARAM(1, size=8192) : Float32
│   └── INDEX : Float32
│       ├── PARAM(1)
│       └── ADD : Index
│           ├── RANGE(end=128, axis_id=R0, type=Global) : Index
│           └── RANGE(end=64, axis_id=R2, type=Reduce) : Index
└── RANGE(R2, Reduce)
"""
    )


def test_a_node_that_stands_twice_has_a_tree_of_its_own() -> None:
    x = param(0, (2,), dtypes.int8)
    square = UOp(Op.MUL, x, x)
    text = print_tree(UOp(Op.ADD, square, square))
    assert (
        text
        == """\
edition bestiary
%0 = MUL : <2 x Int8>
├── PARAM[2](0) : Int8
└── PARAM(0)
ADD : <2 x Int8>
├── %0
└── %0
"""
    )


def test_a_deep_graph_is_cut_into_trees() -> None:
    u = param(0, (2,), dtypes.int8)
    for _ in range(20_000):
        u = UOp(Op.NEG, u)
    text = print_tree(u)
    assert max(map(len, text.splitlines())) < 100
    assert parse(text) is u


def test_branches_that_lost_their_indentation_are_read_by_their_corners() -> None:
    """Behind the last branch of a column only its own branches can stand there."""
    collapsed = read("LOAD : Float32\n├── PARAM(1)\n└── INDEX\n├── PARAM(1, size=12) : Float32\n"
                     "├── RANGE(R0)\n└── ADD\n├── RANGE(end=3, axis_id=R0)\n└── CONST(1)"
                     .replace("├── RANGE(R0)\n", ""))  # fmt: skip
    assert [u.op for u in collapsed.src] == [Op.INDEX]
    assert [u.op for u in collapsed.src[0].src] == [Op.PARAM, Op.ADD]
    drawn = read(
        'SINK\n├── GROUP\n│ ├── GROUP\n│ │ └── SINK\n│ └── SINK(info="a")\n└── SINK(info="b")'
    )
    assert [u.tag for u in drawn.src] == [None, "b"]
    assert [u.op for u in drawn.src[0].src] == [Op.GROUP, Op.SINK]


FILE = """\
edition bestiary
; of the document
case one
NEG : <2 x Int8>
└── BUFFER[2] : Int8

input 0 = [1, -2]
expect 0 = [-1, 2]

case two
%0 = BUFFER[2] : Int8
; a comment between trees
%3 = NEG %0
SUB
├── %3
└── %0
input 0 = [1, -2]
expect 0 = [-2, 4]
"""


def test_a_file_has_trees_and_lines() -> None:
    for case in parse_file(FILE).cases:
        assert case.root is not None
        got = evaluate(case.root, {0: np.array([1, -2], np.int8)})
        assert np.asarray(got).tobytes() == case.expect[0].data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("├── SINK", "2:1: expected a node above"),
        ("GRUMBLE\n└── SINK", "2:1: unknown op 'GRUMBLE'"),
        ("NEG\n└── Negg", "3:5: unknown op 'Negg'"),
        ("Unary(NEG\n└── CONST(1)", "expected '\\)'"),
        ("NEG\n`-- CONST(1)", "3:1: expected ├── or └──"),
        ("NEG\n|-- CONST(1)", "3:1: expected ├── or └──"),
        ("BUFFER(UNIQUE(0), size=2) : Int8", "expected operands in branches below, found UNIQUE"),
        ("RANGE(axis_id=R0)\n└── RANGE(R0)", "found none"),
        ("NEG\n└── CONST(...)", "unexpected '...'"),
        ("NEG\n└── CONST(1, 2, 3)", "CONST has 2 fields"),
        ("NEG\n└── CONST(1, value=2)", "the field 'value' stands twice"),
        ("NEG\n└── RANGE(R0, Global)", "expected one RANGE with this axis_id .* found none"),
        ("ADD\n├── RANGE(end=4, axis_id=R0, type=Global)\n└── RANGE(R0, Loop)", "found 0"),
        ("ADD\n├── RANGE(R0)\n└── ADD\n    ├── RANGE(end=4, axis_id=R0)\n"
         "    └── RANGE(end=5, axis_id=R0)", "found 2"),
        ("INDEX[R0]\n└── BUFFER[2] : Int8", "expected one RANGE with the axis_id R0 and its end"),
        ("RANGE(end=128, axis_id=R0)\n└── CONST(64)", "expected the operand end"),
        ("RANGE(axis_id=R0, end=x)", "expected integers between the brackets"),
        ("NEG : Int16\n└── BUFFER[2] : Int8", r"expected the type int8\[2\], found Int16"),
        ("NEG : <3 x Int8>\n└── BUFFER[2] : Int8", r"the type int8\[2\], found <3 x Int8>"),
        ("NEG\n└── %4", "%4 is not defined before this line"),
        ("%0 = SINK\n%0 = SINK", "%0 is defined twice"),
        ("SINK\nSINK", "%0 is used by no node and is not the last"),
        ("NEG\n└── PERMUTE(swap={a=1})", "expected one of opts, info"),
        ("DEVICE(\"A\"", "expected ','|expected '\\)'"),
        ("%3", "expected the name of an op"),
        ("GEP(" + "[" * 100_000, "brackets nested more than 8 deep"),
        ("PAD(begin_pads=[a=1])", "expected no name between these brackets, found a; .* in braces"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_tree_is_named(text: str, message: str) -> None:
    with pytest.raises((MalformedError, InvalidError), match=message):
        read(text)
