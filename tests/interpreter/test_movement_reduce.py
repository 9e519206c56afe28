"""Movement and REDUCE against definitions by index and by exact fractions."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.exact import specials

from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import BITS, Array, from_bits, np_dtype, to_bits
from uop.spec.args import Arg, DTypeArg, FlipArg, PadArg, PadFill, PermuteArg, ReduceArg
from uop.spec.dtype import DTYPES, FLOATS, INTS, DType, Scalar, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param

Position = tuple[int, ...]
SMALL = (dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2)


def distinct(shape: tuple[int, ...]) -> Array:
    """All elements differ, so that a wrong index cannot pass."""
    return np.arange(1, math.prod(shape) + 1, dtype=np.int32).reshape(shape)


def check(
    op: Op,
    shape: tuple[int, ...],
    operands: tuple[UOp, ...],
    arg: Arg | None,
    source: Callable[[Position], Position | None],
) -> None:
    """Each element of the result is the element of T at `source`, or 0 where that is None."""
    t = param(0, shape, dtypes.int32)
    data = distinct(shape)
    result = evaluate(UOp(op, t, *operands, arg=arg), {0: data})
    assert isinstance(result, np.ndarray)
    for position in itertools.product(*(range(n) for n in result.shape)):
        old = source(position)
        assert result[position] == (0 if old is None else data[old])


shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(shapes, st.data())
def test_permute(shape: tuple[int, ...], data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(len(shape)))))

    def source(p: Position) -> Position:
        return tuple(p[order.index(axis)] for axis in range(len(shape)))

    check(Op.PERMUTE, shape, (), PermuteArg(order), source)


@given(shapes, st.data())
def test_flip(shape: tuple[int, ...], data: st.DataObject) -> None:
    flags = tuple(data.draw(st.booleans()) for _ in shape)

    def source(p: Position) -> Position:
        return tuple(n - 1 - i if f else i for i, n, f in zip(p, shape, flags, strict=True))

    check(Op.FLIP, shape, (), FlipArg(flags), source)


@given(shapes, st.data())
def test_reshape(shape: tuple[int, ...], data: st.DataObject) -> None:
    new = tuple(data.draw(st.permutations(shape))) + (1,) * data.draw(st.integers(0, 2))

    def source(p: Position) -> Position:
        flat = 0
        for i, n in zip(p, new, strict=True):
            flat = flat * n + i
        old = []
        for n in reversed(shape):
            flat, i = divmod(flat, n)
            old.append(i)
        return tuple(reversed(old))

    check(Op.RESHAPE, shape, (dims(new),), None, source)


@given(shapes, st.data())
def test_expand(shape: tuple[int, ...], data: st.DataObject) -> None:
    new = tuple(data.draw(st.integers(0, 3)) if n == 1 else n for n in shape)

    def source(p: Position) -> Position:
        return tuple(0 if n == 1 else i for i, n in zip(p, shape, strict=True))

    check(Op.EXPAND, shape, (dims(new),), None, source)


@given(shapes, st.data())
def test_pad_and_shrink(shape: tuple[int, ...], data: st.DataObject) -> None:
    offset = tuple(data.draw(st.integers(0, 2)) for _ in shape)
    total = tuple(o + n + data.draw(st.integers(0, 2)) for o, n in zip(offset, shape, strict=True))

    def source(p: Position) -> Position | None:
        old = tuple(i - o for i, o in zip(p, offset, strict=True))
        inside = all(0 <= i < n for i, n in zip(old, shape, strict=True))
        return old if inside else None

    check(Op.PAD, shape, (dims(offset), dims(total)), PadArg(PadFill.ZERO), source)

    def kept(p: Position) -> Position:
        return tuple(i + o for i, o in zip(p, offset, strict=True))

    check(Op.SHRINK, total, (dims(offset), dims(shape)), None, kept)


def patterns(dtype: DType) -> list[int]:
    """Bits that no arithmetic keeps: integers that no float has, zeros of both signs and NaNs."""
    if dtype.is_float:
        return specials(dtype)
    half = 1 << dtype.bits - 1
    return [0, 1, half - 1, half, half + 1, 2 * half - 1]


REREAD = {8: dtypes.uint8, 16: dtypes.float16, 32: dtypes.float32, 64: dtypes.float64}
"""A dtype of each size that integers are reread as; floats are as unsigned integers."""


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS], ids=repr)
def test_no_movement_computes(dtype: DType) -> None:
    """Elements stay bit for bit, with the signs of zeros and the payloads of NaNs."""
    bits = patterns(dtype)
    reread = DTYPES[f"uint{dtype.bits}"] if dtype.is_float else REREAD[dtype.bits]
    count, column = len(bits), [[b] for b in bits]
    t = param(0, (count, 1), dtype)
    backwards = dims(reversed(range(count)))
    moved = {
        UOp(Op.PERMUTE, t, arg=PermuteArg((1, 0))): [bits],
        UOp(Op.FLIP, t, arg=FlipArg((True, False))): column[::-1],
        UOp(Op.RESHAPE, t, dims((1, count))): [bits],
        UOp(Op.EXPAND, t, dims((count, 2))): [[b, b] for b in bits],
        UOp(Op.PAD, t, dims((1, 0)), dims((count + 2, 1)), arg=PadArg(PadFill.ZERO)): [
            [0], *column, [0],
        ],
        UOp(Op.SHRINK, t, dims((1, 0)), dims((count - 1, 1))): column[1:],
        UOp(Op.INDEX, t, backwards): column[::-1],
        UOp(Op.STACK, t, t): [column, column],
        UOp(Op.BITCAST, t, arg=DTypeArg(dtype)): column,
        UOp(Op.BITCAST, t, arg=DTypeArg(reread)): column,
    }  # fmt: skip
    data = from_bits(np.array(column, BITS[dtype.itemsize]), dtype)
    for u, expected in moved.items():
        result = evaluate(u, {0: data})
        assert isinstance(result, np.ndarray)
        assert to_bits(result).tolist() == expected, u.op


@pytest.mark.parametrize("op", [Op.CONTIGUOUS, Op.CONTIGUOUSBACKWARD, Op.DETACH])
def test_no_marker_moves_or_fills_an_element(op: Op) -> None:
    t = param(0, (2, 3), dtypes.int32)
    data = np.array([[1, 20, 3], [4, 5, 60]], np.int32)
    assert np.asarray(evaluate(UOp(op, t), {0: data})).tolist() == data.tolist()
    marked = UOp(op, UOp(Op.PAD, t, dims((1, 0)), dims((4, 3))))
    product = UOp(Op.REDUCE, marked, arg=ReduceArg(Op.MUL, (0,)))
    assert np.asarray(evaluate(product, {0: data})).tolist() == [[4, 100, 180]]


def fold_exactly(op: Op, dtype: DType, values: list[Scalar]) -> Scalar:
    """One rounding a step, by fractions; infinities and NaN by Python floats."""
    result = values[0]
    for x in values[1:]:
        if not (math.isfinite(result) and math.isfinite(x)):
            if op is Op.MAX:
                result = math.nan if math.isnan(result) or math.isnan(x) else max(result, x)
            else:
                result = result + x if op is Op.ADD else result * x
            continue
        a, b = Fraction(result), Fraction(x)
        exact = {Op.ADD: a + b, Op.MUL: a * b, Op.MAX: max(a, b)}[op]
        result = dtype.decode(dtype.encode(exact))
    return result


@pytest.mark.parametrize("op", [Op.ADD, Op.MUL, Op.MAX])
@pytest.mark.parametrize("dtype", [*SMALL, dtypes.float32, dtypes.float64])
@given(data=st.data())
def test_a_float_reduce_folds_left_to_right(op: Op, dtype: DType, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 9))
    bits = [data.draw(st.integers(0, (1 << dtype.bits) - 1)) for _ in range(count)]
    storage = np.array(bits, to_bits(np.zeros(1, np_dtype(dtype))).dtype)
    t = param(0, (count,), dtype)
    result = evaluate(UOp(Op.REDUCE, t, arg=ReduceArg(op, (0,))), {0: from_bits(storage, dtype)})
    assert isinstance(result, np.ndarray)
    expected = fold_exactly(op, dtype, [dtype.decode(b) for b in bits])
    found = dtype.decode(int(to_bits(result)[0]))
    assert found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.uint32])
@given(data=st.data())
def test_an_integer_reduce_wraps(dtype: DType, data: st.DataObject) -> None:
    values = data.draw(
        st.lists(st.integers(int(dtype.min), int(dtype.max)), min_size=1, max_size=9)
    )
    t = param(0, (len(values),), dtype)
    given_values = {0: np.array(values, np_dtype(dtype))}
    modulus = 1 << dtype.bits
    for op, exact in ((Op.ADD, sum(values)), (Op.MUL, math.prod(values)), (Op.MAX, max(values))):
        result = evaluate(UOp(Op.REDUCE, t, arg=ReduceArg(op, (0,))), given_values)
        assert isinstance(result, np.ndarray)
        assert (int(result[0]) - exact) % modulus == 0


LOWEST = {dtypes.bool: False, dtypes.fp8e4m3: -448.0} | {
    d: -(1 << d.bits - 1) if d.is_signed else 0 for d in INTS
}


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS, dtypes.bool], ids=repr)
def test_an_empty_fold_is_what_the_fold_starts_from(dtype: DType) -> None:
    lowest = LOWEST.get(dtype, -math.inf)
    highest = True if dtype is dtypes.bool else -lowest if dtype.is_float else ~int(lowest)
    if dtype.is_int and not dtype.is_signed:
        highest = (1 << dtype.bits) - 1
    t, data = param(0, (0,), dtype), np.zeros(0, np_dtype(dtype))
    for op, start in ((Op.ADD, 0), (Op.MUL, 1), (Op.MAX, lowest), (Op.MIN, highest)):
        result = evaluate(UOp(Op.REDUCE, t, arg=ReduceArg(op, (0,))), {0: data})
        assert np.asarray(result).tolist() == [start], op


@pytest.mark.parametrize(
    ("op", "combine"), [(Op.ADD, operator.add), (Op.MUL, operator.mul), (Op.MAX, max)]
)
def test_the_order_of_a_reduce_is_row_major_over_its_axes(
    op: Op, combine: Callable[[np.float32, np.float32], np.float32]
) -> None:
    """Large and small terms that cancel: each order of adding gives another sum."""
    data = np.array([[[1e8, 1.0], [-1e8, 1.0]], [[3.0, 1e8], [1.0, -1e8]]], np.float32)
    for axes in ((0, 1, 2), (0, 2), (1, 2), (0, 1)):
        t = param(0, data.shape, dtypes.float32)
        result = evaluate(UOp(Op.REDUCE, t, arg=ReduceArg(op, axes)), {0: data})
        assert isinstance(result, np.ndarray)
        expected = np.zeros(result.shape, np.float32)
        started = np.zeros(result.shape, np.bool_)
        for position in itertools.product(*(range(n) for n in data.shape)):
            target = tuple(0 if k in axes else i for k, i in enumerate(position))
            term = data[position]
            expected[target] = combine(expected[target], term) if started[target] else term
            started[target] = True
        assert result.tolist() == expected.tolist()
