"""Folds in loops: triangles, bounds by data, and folds over a RANGE that a loop closes too."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import pytest
from kernels import add, argument, at, int32, kernel_param, load, loop, program, store

from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.args import AxisType, DTypeArg, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

N = 4
F32 = dtypes.float32
TYPES = [AxisType.GLOBAL, AxisType.LOOP, AxisType.REDUCE]


def fold(op: Op, value: UOp, *ranges: UOp) -> UOp:
    return UOp(Op.REDUCE, value, *ranges, arg=ReduceArg(op))


def calling(body: UOp, dtype: DType) -> UOp:
    return UOp(Op.SINK, UOp(Op.CALL, body, argument(0, N, dtype), argument(1, N * N, dtype)))


def row_and_column(i: UOp, k: UOp) -> UOp:
    return UOp(Op.ADD, UOp(Op.MUL, i, index_const(N)), k)


def triangle(op: Op, dtype: DType, kind: AxisType) -> UOp:
    """Element i is the fold of the first i elements of row i."""
    i = loop(0, N, kind)
    k = loop(1, i, AxisType.REDUCE)
    element = load(kernel_param(1, N * N, dtype), row_and_column(i, k))
    effect = store(kernel_param(0, N, dtype), i, fold(op, element, k))
    return calling(UOp(Op.SINK, UOp(Op.END, effect, i)), dtype)


def written(root: UOp, data: Array) -> Array:
    found = evaluate(root, {1: data.reshape(-1)})
    assert isinstance(found, dict)
    return found[0]


@pytest.mark.parametrize("kind", TYPES)
def test_a_triangle_folds_what_stands_below_the_diagonal(kind: AxisType) -> None:
    data = np.arange(2, 2 + N * N, dtype=np.int32).reshape(N, N)
    expected = {
        Op.ADD: [int(data[i, :i].sum()) for i in range(N)],
        Op.MUL: [int(data[i, :i].prod()) for i in range(N)],
        Op.MAX: [int(data[i, :i].max(initial=np.iinfo(np.int32).min)) for i in range(N)],
    }
    for op, right in expected.items():
        assert written(triangle(op, dtypes.int32, kind), data).tolist() == right


def test_a_triangle_of_floats_folds_from_left_to_right_and_keeps_the_sign_of_zero() -> None:
    data = np.full((N, N), 9, np.float32)
    data[1, 0] = -0.0
    data[2, :2] = [1e8, 1]
    data[3, :3] = [1, 1e8, -1e8]
    right = np.array([0.0, -0.0, np.float32(1e8) + np.float32(1), 0], np.float32)
    root = triangle(Op.ADD, F32, AxisType.GLOBAL)
    assert to_bits(written(root, data)).tolist() == to_bits(right).tolist()
    (accepted,) = accept(root, {1: data.reshape(-1)})
    assert accepted.contains(right).all()
    # What stands on the diagonal is no term.
    assert not accepted.contains(right + data.diagonal())[:2].any()
    # In another order the last row has 1.
    assert accepted.contains(np.array([0, -0.0, 1e8, 1], np.float32)).all()


def test_one_fold_of_a_triangle_is_row_major() -> None:
    i = loop(0, 3, AxisType.REDUCE)
    k = loop(1, add(i, 1), AxisType.REDUCE)
    element = load(kernel_param(1, N * N, F32), row_and_column(i, k))
    total = fold(Op.ADD, element, i, k)
    root = calling(UOp(Op.SINK, store(kernel_param(0, N, F32), 0, total)), F32)
    data = np.full((N, N), 7, np.float32)
    terms = [1.0, 1e8, 1.0, -1e8, 3.0, 1.0]
    data[np.tril_indices(3)] = terms
    right = np.float32(0)
    for term in terms:
        right = np.float32(right + np.float32(term))
    assert written(root, data)[0] == right


def test_a_fold_runs_as_often_as_data_says_and_reads_nothing_else() -> None:
    i = loop(0, N, AxisType.GLOBAL)
    often = UOp(Op.CAST, load(kernel_param(1, N * N), i), arg=DTypeArg(dtypes.index))
    k = loop(1, often, AxisType.REDUCE)
    # Index 4 + k is out of bounds from 12 iterations on.
    total = fold(Op.ADD, load(kernel_param(1, N * N), add(k, 4)), k)
    body = UOp(Op.SINK, UOp(Op.END, store(kernel_param(0, N), i, total), i))
    data = np.arange(N * N, dtype=np.int32)
    data[:4] = [12, 0, 1, 3]
    assert written(calling(body, dtypes.int32), data).tolist() == [114, 0, 4, 15]
    data[1] = 13
    with pytest.raises(UndefinedError, match=r"INDEX\.u1"):
        written(calling(body, dtypes.int32), data)


def test_a_fold_over_the_range_of_a_loop_runs_through_it_of_its_own() -> None:
    """The loop runs one iteration after the other, because each reads what the last one wrote."""
    i = loop(0, N - 1)
    out = kernel_param(0, N)
    total = fold(Op.ADD, int32(i), i)
    before = load(UOp(Op.AFTER, out, i), i)
    effect = UOp(Op.STORE, at(out, add(i, 1)), UOp(Op.ADD, before, total))
    found = evaluate(program(UOp(Op.SINK, UOp(Op.END, effect, i)), N), {0: np.ones(N, np.int32)})
    assert isinstance(found, dict)
    assert found[0].tolist() == [1, 4, 7, 10]


def test_two_ends_of_one_range_are_one_loop() -> None:
    i = loop(0, 3)
    out = kernel_param(0, 5)
    stores = (store(out, i, int32(i)), store(out, add(i, 2), UOp(Op.NEG, int32(i))))
    root = program(UOp(Op.SINK, *(UOp(Op.END, s, i) for s in stores)), 5)
    found = evaluate(root, {0: np.full(5, 9, np.int32)})
    assert isinstance(found, dict)
    assert found[0].tolist() == [0, 1, 2, -1, -2]


def test_a_kernel_has_more_loops_than_numpy_broadcasts_axes() -> None:
    i, a = loop(0, N, AxisType.GLOBAL), kernel_param(1, N * N, dtypes.int32)
    loops = [loop(k, 2, AxisType.REDUCE) for k in range(1, 41)]
    sums = [fold(Op.ADD, load(a, row_and_column(i, k)), k) for k in loops]
    effect = store(kernel_param(0, N, dtypes.int32), i, reduce(partial(UOp, Op.MAX), sums))
    body = UOp(Op.SINK, UOp(Op.END, effect, i))
    rows = np.arange(N * N, dtype=np.int32)
    found = evaluate(calling(body, dtypes.int32), {1: rows})
    assert found[0].tolist() == [int(row[:2].sum()) for row in rows.reshape(N, N)]
