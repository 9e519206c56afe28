"""Expressions: what they build, how they bind, which dtype a number gets, what is refused."""

from __future__ import annotations

import ast
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    ConstArg,
    DTypeArg,
    FlipArg,
    LoadArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.editions import EDITIONS
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.expression import DEEPEST, INDICES, read_expression
from uop.spec.uop import UOp, const, dims


def number(value: int | float, dtype: DType) -> UOp:
    return const(value, dtype)


ONE, TWO, THREE = (number(k, dtypes.int32) for k in (1, 2, 3))
PAIR, SWAP = UOp(Op.STACK, ONE, TWO), PermuteArg((1, 0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", UOp(Op.ADD, ONE, UOp(Op.MUL, TWO, THREE))),
        ("(1 + 2) * 3", UOp(Op.MUL, UOp(Op.ADD, ONE, TWO), THREE)),
        ("1 - 2 - 3", UOp(Op.SUB, UOp(Op.SUB, ONE, TWO), THREE)),
        ("1 << 2 & 3", UOp(Op.AND, UOp(Op.SHL, ONE, TWO), THREE)),
        ("1 | 2 ^ 3", UOp(Op.OR, ONE, UOp(Op.XOR, TWO, THREE))),
        ("1 < 2 >> 3", UOp(Op.CMPLT, ONE, UOp(Op.SHR, TWO, THREE))),
        ("-i32(1)", UOp(Op.NEG, ONE)),
        ("~i8(1)", UOp(Op.XOR, number(1, dtypes.int8), number(-1, dtypes.int8))),
        ("!true", UOp(Op.NOT, number(True, dtypes.bool))),
        ("u8(f32(1))", UOp(Op.CAST, number(1, dtypes.float32), arg=DTypeArg(dtypes.uint8))),
        ("[1, 2]", UOp(Op.STACK, ONE, TWO)),
        (
            "bitcast(f32(1), u32)",
            UOp(Op.BITCAST, const(1, dtypes.float32), arg=DTypeArg(dtypes.uint32)),
        ),
        ("contiguous(1)", UOp(Op.CONTIGUOUS, ONE)),
        ("cast(f32(1), u8)", UOp(Op.CAST, const(1, dtypes.float32), arg=DTypeArg(dtypes.uint8))),
        ("reshape([1, 2], [2, 1])", UOp(Op.RESHAPE, PAIR, dims((2, 1)))),
        ("reshape([1], [])", UOp(Op.RESHAPE, UOp(Op.STACK, ONE), dims(()))),
        ("permute([[1, 2]], order=[1, 0])", UOp(Op.PERMUTE, UOp(Op.STACK, PAIR), arg=SWAP)),
        ("flip([1, 2], flags=[true])", UOp(Op.FLIP, PAIR, arg=FlipArg((True,)))),
        ("pad([1, 2], [1], [4])", UOp(Op.PAD, PAIR, dims((1,)), dims((4,)), arg=PadArg())),
        (
            "pad([1, 2], [1], [4], zero)",
            UOp(Op.PAD, PAIR, dims((1,)), dims((4,)), arg=PadArg(PadFill.ZERO)),
        ),
        ("reduce(max, [1, 2])", UOp(Op.REDUCE, PAIR, arg=ReduceArg(Op.MAX, (0,)))),
        ("reduce([1, 2], op=add, axes=[])", UOp(Op.REDUCE, PAIR, arg=ReduceArg(Op.ADD, ()))),
        ("INDEX([1, 2], 1)", UOp(Op.INDEX, PAIR, const(1, dtypes.index))),
        ('load(1, device="GPU")', UOp(Op.LOAD, ONE, arg=LoadArg("GPU"))),
    ],
)
def test_what_an_expression_builds(text: str, expected: UOp) -> None:
    assert read_expression(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2] @ [3, 4]", 11),
        ("[[1, 2], [3, 4]] @ [5, 6]", [17, 39]),
        ("[1, 2] @ [[3, 4], [5, 6]]", [13, 16]),
        ("2 * [[1, 2]] @ [[3], [4]]", [[22]]),
        ("[u8(16)] @ [u8(16)]", 0),
        ("[[[1, 2]], [[3, 4]]] @ [[5], [6]]", [[[17]], [[39]]]),
    ],
)
def test_a_matrix_product(text: str, expected: object) -> None:
    assert evaluate(read_expression(text)).tolist() == expected  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("1", dtypes.int32),
        ("1.0", dtypes.float32),
        ("u8(1) + 1", dtypes.uint8),
        ("1 + u8(1)", dtypes.uint8),
        ("1 + 0.5", dtypes.float32),
        ("[1, 0.5]", dtypes.float32),
        ("f16([1, 2])", dtypes.float16),
        ("1 / 3", dtypes.float32),
        ("threefry(1, 2)", dtypes.uint64),
        ("where(true, 1, u8(2))", dtypes.uint8),
        ("bf16(1) ** 2", dtypes.bfloat16),
        ("1 < 2", dtypes.bool),
        ("index(1) // 2", dtypes.index),
        ("[1] @ [0.5]", dtypes.float32),
        ("f16(1) + Inf", dtypes.float16),
        ("!True", dtypes.bool),
    ],
)
def test_the_dtype_of_numbers(text: str, dtype: DType) -> None:
    assert read_expression(text).dtype is dtype


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("f32(-0.0)", 0x80000000),
        ("f32(-0)", 0x80000000),
        ("f32(0x1.8p1)", 0x40400000),
        ("f32(inf)", 0x7F800000),
        ("f32(-inf)", 0xFF800000),
        ("f32(-Inf)", 0xFF800000),
        ("f32(NaN)", 0x7FC00000),
        ("f32(nan:0x7f800001)", 0x7F800001),
        ("u8(0xff)", 0xFF),
        ("i8(-128)", 0x80),
        ("f16(1e-1)", dtypes.float16.encode(Fraction(1, 10))),
    ],
)
def test_a_number_is_rounded_once(text: str, bits: int) -> None:
    u = read_expression(text)
    assert isinstance(u.arg, ConstArg)
    assert u.arg.bits == bits


ARGUMENTS = (
    "1", "nan", "[1, 2]", "[]", "[2]", "true", "add", "i8", "zero", "op=max", "axes=[0]", "id=3",
    "order=[0]", "dtype=f32", "idx=0", 'name="x"', "size=1", "device=[\"A\", \"B\"]",
)  # fmt: skip


def of_sums() -> st.SearchStrategy[str]:
    """Integer expressions that read the same in Python, brackets or none."""
    leaves = st.integers(0, 9).map(str)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "|", "&", "^"]), inner).map(" ".join),
            inner.map(lambda text: f"({text})"),
            inner.map(lambda text: f"-({text})"),
        ),
        max_leaves=12,
    )


@given(of_sums())
def test_operators_bind_as_in_python(text: str) -> None:
    # Wrapping commutes with all of these, so it may come last.
    expected = (_exact(ast.parse(text, mode="eval").body) + 2**31) % 2**32 - 2**31
    assert int(evaluate(read_expression(text))) == expected  # type: ignore[arg-type]


def _exact(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(operand=operand):
            return -_exact(operand)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _exact(left), _exact(right)
            table = {
                ast.Add: lambda: a + b,
                ast.Sub: lambda: a - b,
                ast.Mult: lambda: a * b,
                ast.BitOr: lambda: a | b,
                ast.BitAnd: lambda: a & b,
                ast.BitXor: lambda: a ^ b,
            }
            return table[type(op)]()
    raise TypeError(ast.dump(node))


@pytest.mark.parametrize(
    ("text", "column", "found"),
    [
        ("", 1, "expected a value, found the end"),
        ("1 +", 4, "expected a value, found the end"),
        ("1 2", 3, "expected the end, found '2'"),
        ("1 $ 2", 3, "unexpected '$'"),
        ("1 < 2 < 3", 7, "expected the end, found '<'"),
        ("foo(1)", 1, "'foo' is neither a dtype nor an op"),
        ("__import__('os')", 12, 'unexpected "\'"'),
        ("cast(1)", 1, "CAST lacks the arg field 'dtype'"),
        ("cast(1, u9)", 1, "field 'dtype': expected a dtype, found u9"),
        ("max(1, size=2)", 8, "'size' is neither a dtype nor an op"),
        ("pad(1, 2, fill=zero, fill=zero)", 22, "the field 'fill' stands twice"),
        ("pad(1, 2, fill=*)", 16, "expected the value of a field, found '*'"),
        ("permute(1, order=[0.5])", 19, "expected an integer, found '0.5'"),
        ("permute(1, order", 12, "'order' is neither a dtype nor an op"),
        ("reduce(max, [])", 13, "expected a value between the brackets"),
        ("u8(256)", 4, "256 is outside uint8: expected 0..255"),
        ("u8(0.5)", 4, "expected an integer, found 0.5"),
        ("1 + true", 5, "expected an integer, found true"),
        ("u8(1, 2)", 1, "u8 takes one value, found 2"),
        ("bitcast(1, 2)", 1, "BITCAST lacks the arg field 'dtype'"),
        ("[]", 1, "expected a value between the brackets"),
        ("(1", 3, "expected ')', found the end"),
        ("(" * 100 + "1", DEEPEST + 2, f"nested more than {DEEPEST} deep"),
        ("-" * 100 + "1", DEEPEST + 2, f"nested more than {DEEPEST} deep"),
    ],
)
def test_what_is_outside_the_grammar_is_refused_in_its_place(
    text: str, column: int, found: str
) -> None:
    with pytest.raises(MalformedError) as caught:
        read_expression(text)
    assert (caught.value.column, caught.value.message) == (column, found)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("f32(1) + i32(1)", "ADD.c2"),
        ("max(1)", "MAX.arity"),
        ("-true", "NEG.c1"),
        ("f32(1) & 1", "AND.c1"),
        ("[1, 2] + [1, 2, 3]", "ADD.c3"),
        ("[1, 2] @ [1, 2, 3]", "TENSOR.c9"),
        ("1 @ [1]", "TENSOR.c9"),
        ("[f32(1)] @ [u8(1)]", "MUL.c2"),
        ("bitcast(u8(1), f32)", "BITCAST.c2"),
    ],
)
def test_a_node_that_breaks_a_constraint_is_named(text: str, label: str) -> None:
    with pytest.raises(InvalidError) as caught:
        read_expression(text)
    assert (caught.value.label, caught.value.where) == (label, text)


@given(st.text("01.u8f(i)[],+-*/%<>=!~&|^ nanxpe:", max_size=20))
def test_any_text_is_a_graph_or_refused(text: str) -> None:
    try:
        u = read_expression(text)
    except (MalformedError, InvalidError):
        return
    assert u.toposort()[-1] is u


@given(st.sampled_from(list(Op)), st.lists(st.sampled_from(ARGUMENTS), max_size=4).map(", ".join))
def test_any_call_is_a_graph_or_refused(op: Op, arguments: str) -> None:
    try:
        u = read_expression(f"{op.name}({arguments})")
    except (MalformedError, InvalidError):
        return
    assert u.op is op


def test_every_operand_that_is_a_shape_or_an_offset_is_one_of_index() -> None:
    named = {n.rstrip("?*") for d in DECLARATIONS.values() for n in d.src}
    words = {n.rstrip("?*") for e in EDITIONS.values() for w in e.words.values() for n in w.src}
    assert named | words >= INDICES
    for declaration in DECLARATIONS.values():
        shapes = [c.label for c in declaration.constraints if "STACK of ()-shaped" in c.title]
        assert len(shapes) == len({n for n in declaration.src if n in ("s", "s'", "o")})
