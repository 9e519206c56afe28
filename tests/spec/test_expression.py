"""Expressions: what they build, how they bind, which dtype a number gets, what is refused."""

from __future__ import annotations

import ast
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uop.interpreter.evaluate import evaluate
from uop.spec.args import ConstArg, DTypeArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.expression import DEEPEST, NAMED_OPS, read_expression
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const


def number(value: int | float, dtype: DType) -> UOp:
    return const(value, dtype)


ONE, TWO, THREE = (number(k, dtypes.int32) for k in (1, 2, 3))


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
    ],
)
def test_what_an_expression_builds(text: str, expected: UOp) -> None:
    assert read_expression(text) is expected


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
        ("foo(1)", 1, "'foo' is neither a dtype nor an elementwise op"),
        ("__import__('os')", 12, 'unexpected "\'"'),
        ("reshape(1)", 1, "'reshape' is neither a dtype nor an elementwise op"),
        ("u8(256)", 4, "256 is outside uint8: expected 0..255"),
        ("u8(0.5)", 4, "expected an integer, found 0.5"),
        ("1 + true", 5, "expected an integer, found true"),
        ("u8(1, 2)", 1, "u8 takes one value, found 2"),
        ("bitcast(1, 2)", 12, "expected a dtype, found '2'"),
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


def test_every_elementwise_op_without_arg_can_be_called() -> None:
    wanted = {op.name for op, d in DECLARATIONS.items() if d.is_elementwise and d.arg is None}
    assert wanted <= NAMED_OPS.keys()
