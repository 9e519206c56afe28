"""The decomposed ops against exact arithmetic on single elements, and THREEFRY against vectors."""

from __future__ import annotations

import operator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import exact
from oracles.rules import array, run, run_bits, values

from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.dtype import FLOATS, INTS, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, param

NARROW = [d for d in FLOATS if d.bits <= 16]
COMPARISONS = {
    Op.CMPGT: operator.gt,
    Op.CMPGE: operator.ge,
    Op.CMPLE: operator.le,
    Op.CMPEQ: operator.eq,
}


def agrees_with_exact(op: Op, dtype: DType, pairs: list[tuple[int, int]]) -> None:
    a, b = [a for a, _ in pairs], [b for _, b in pairs]
    x, y = values(dtype, a), values(dtype, b)
    expected = [exact.BINARY[op](dtype, p, q) for p, q in zip(x, y, strict=True)]
    assert run_bits(op, dtype, a, b) == expected


def patterns(dtype: DType) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << dtype.bits) - 1) | st.sampled_from(exact.specials(dtype))


@pytest.mark.parametrize("dtype", [dtypes.fp8e4m3, dtypes.fp8e5m2], ids=repr)
def test_every_pair_of_8_bit_floats(dtype: DType) -> None:
    pairs = list(product(range(256), repeat=2))
    agrees_with_exact(Op.DIV, dtype, pairs)
    a, b = [a for a, _ in pairs], [b for _, b in pairs]
    opposite = [bits ^ dtype.format.sign_bit for bits in b]
    assert run_bits(Op.SUB, dtype, a, b) == run_bits(Op.ADD, dtype, a, opposite)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("op", [Op.SUB, Op.DIV], ids=lambda op: op.name)
def test_special_floats(op: Op, dtype: DType) -> None:
    agrees_with_exact(op, dtype, list(product(exact.specials(dtype), repeat=2)))


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits > 8], ids=repr)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_floats(dtype: DType, data: st.DataObject) -> None:
    one = patterns(dtype)
    pairs = data.draw(st.lists(st.tuples(one, one), min_size=1, max_size=40))
    for op in (Op.SUB, Op.DIV):
        agrees_with_exact(op, dtype, pairs)
    for op in (Op.NEG, Op.SQRT):
        a = [a for a, _ in pairs]
        expected = [exact.UNARY[op](dtype, x) for x in values(dtype, a)]
        assert run_bits(op, dtype, a) == expected


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
def test_every_narrow_float(dtype: DType) -> None:
    every = list(range(1 << dtype.bits))
    roots = [exact.sqrt(dtype, x) for x in values(dtype, every)]
    assert run_bits(Op.SQRT, dtype, every) == roots
    negated = [exact.any_nan(dtype, bits ^ dtype.format.sign_bit) for bits in every]
    assert run_bits(Op.NEG, dtype, every) == negated


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("op", COMPARISONS, ids=lambda op: op.name)
def test_comparisons_are_false_on_a_nan(op: Op, dtype: DType) -> None:
    pairs = list(product(exact.specials(dtype), repeat=2))
    a, b = [a for a, _ in pairs], [b for _, b in pairs]
    expected = list(map(COMPARISONS[op], values(dtype, a), values(dtype, b)))
    assert run(op, dtype, array(dtype, a), array(dtype, b)).tolist() == expected


@pytest.mark.parametrize("dtype", [*INTS, dtypes.index, dtypes.bool], ids=repr)
@pytest.mark.parametrize("op", COMPARISONS, ids=lambda op: op.name)
def test_comparisons_of_ints(op: Op, dtype: DType) -> None:
    numbers = sorted({int(dtype.min), 0, 1, int(dtype.max) // 2 + 1, int(dtype.max)})
    pairs = list(product(numbers, repeat=2))
    a, b = (np.array(side, np_dtype(dtype)) for side in zip(*pairs, strict=True))
    assert run(op, dtype, a, b).tolist() == [COMPARISONS[op](x, y) for x, y in pairs]


@pytest.mark.parametrize("dtype", INTS, ids=repr)
def test_ints_wrap(dtype: DType) -> None:
    numbers = sorted({int(dtype.min), 0, 1, 2, 100, int(dtype.max) - 1, int(dtype.max)})
    triples = list(product(numbers, repeat=3))
    a, b, c = (np.array(side, np_dtype(dtype)) for side in zip(*triples, strict=True))
    for result, meaning in (
        (run(Op.NEG, dtype, a), lambda x, y, z: -x),
        (run(Op.SUB, dtype, a, b), lambda x, y, z: x - y),
        (run(Op.MULACC, dtype, a, b, c), lambda x, y, z: x * y + z),
    ):
        assert result.dtype == np_dtype(dtype)
        assert result.tolist() == [exact.wrapped(dtype, meaning(*t)) for t in triples]


MADE_OF = {
    Op.NEG: {Op.MUL},
    Op.SUB: {Op.ADD, Op.NEG},
    Op.DIV: {Op.MUL, Op.RECIP},
    Op.CMPGT: {Op.CMPLT},
    Op.CMPGE: {Op.CMPLT, Op.CMPNE},
    Op.CMPLE: {Op.CMPLT, Op.CMPNE},
    Op.CMPEQ: {Op.CMPNE},
    Op.NOT: {Op.CMPNE},
    Op.SQRT: {Op.EXP2, Op.LOG2, Op.MUL},
    Op.POW: {Op.EXP2, Op.LOG2, Op.MUL},
    Op.MULACC: {Op.MUL, Op.ADD},
}
"""The ops of each decomposition, as the documents list them."""
EXACT = ([4, 1, 16, 2], [2, 1, 4, 8], [3, 5, 7, 0])
"""Operands in every order, with powers, roots and quotients that nothing rounds."""


OF = (dtypes.bool, dtypes.uint8, dtypes.int32, dtypes.float32, dtypes.float64)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, dtype) for op in MADE_OF for dtype in OF if dtype in DECLARATIONS[op].dtypes],
    ids=lambda part: part.name,
)
def test_a_decomposition_computes_its_op(op: Op, dtype: DType) -> None:
    declared = DECLARATIONS[op]
    u = UOp(op, *(param(k, (4,), dtype) for k in range(len(declared.src))))
    given = {k: np.array(EXACT[k]).astype(np_dtype(dtype)) for k in range(len(declared.src))}
    if dtype is dtypes.bool:
        bits = [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1]]
        given = {k: np.array(bits[k], np.bool_) for k in given}
    plain = u.decompose()
    assert plain is not None
    assert {v.op for v in plain.toposort()} - {Op.PARAM, Op.STACK, Op.CONST} == MADE_OF[op]
    np.testing.assert_array_equal(np.asarray(evaluate(plain, given)), evaluate(u, given))


def test_index_arithmetic() -> None:
    a, b = np.array([3, -4]), np.array([5, 2**62])
    assert run(Op.NEG, dtypes.index, a).tolist() == [-3, 4]
    assert run(Op.SUB, dtypes.index, a, b).tolist() == [-2, -4 - 2**62]
    assert run(Op.MULACC, dtypes.index, a, a, b).tolist() == [14, 16 + 2**62]


def test_not() -> None:
    assert run(Op.NOT, dtypes.bool, np.array([False, True])).tolist() == [True, False]


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_mulacc_rounds_twice(dtype: DType, data: st.DataObject) -> None:
    one = patterns(dtype)
    triples = data.draw(st.lists(st.tuples(one, one, one), min_size=1, max_size=30))
    a, b, c = ([t[i] for t in triples] for i in range(3))
    expected = []
    for x, y, z in zip(values(dtype, a), values(dtype, b), values(dtype, c), strict=True):
        product_bits = exact.mul(dtype, x, y)
        known = product_bits is not None
        expected.append(exact.add(dtype, dtype.decode(product_bits), z) if known else None)
    assert run_bits(Op.MULACC, dtype, a, b, c) == expected


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32], ids=repr)
def test_mulacc_is_not_fused(dtype: DType) -> None:
    # (1 + u)^2 - (1 + 2u): the product's u^2 is gone after its own rounding.
    u = 2.0**-dtype.format.fraction_bits
    x, z = np.array([1 + u]).astype(np_dtype(dtype)), np.array([-1 - 2 * u]).astype(np_dtype(dtype))
    assert run(Op.MULACC, dtype, x, x, z).tolist() == [0.0]


THREEFRY = [
    (0, 0, 0x99BA4EFE6B200159),
    (1, 0, 0xC0DE3F32508EFB2C),
    (2**64 - 1, 2**64 - 1, 0xBB002BE71CB996FC),
    (0x85A308D3243F6A88, 0x0370734413198A2E, 0x483DF7A0C4923A9C),
]


def test_threefry_vectors() -> None:
    """All at once, each with its own key, and one by one."""
    counters, keys = (np.array([v[k] for v in THREEFRY], np.uint64) for k in range(2))
    expected = [v[2] for v in THREEFRY]
    assert run(Op.THREEFRY, dtypes.uint64, counters, keys).tolist() == expected
    for k, one in enumerate(expected):
        scalar = run(Op.THREEFRY, dtypes.uint64, counters[k].reshape(()), keys[k].reshape(()))
        assert (scalar.shape, int(scalar)) == ((), one)


def test_threefry_broadcasts_one_key() -> None:
    counters, key = np.array([0, 1], np.uint64), np.array([0], np.uint64)
    result = run(Op.THREEFRY, dtypes.uint64, counters, key)
    assert result.tolist() == [0x99BA4EFE6B200159, 0xC0DE3F32508EFB2C]
