"""rangeify: which values are computed again, which are stored, and by which kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graphs import SLOW, Inputs, agree, demanded, graphs, stores
from hypothesis import given
from hypothesis import strategies as st

from uop.compiler.loops import type_of
from uop.compiler.pipeline import lower
from uop.compiler.stages.rangeify import split
from uop.spec.args import AxisType, BufferArg, FlipArg, PermuteArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.frontend.compositions import attention, conv2d, gemm, layer_norm, softmax
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import calls, slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

LOOP, REDUCE = AxisType.LOOP, AxisType.REDUCE


def tensor(slot: int, *shape: int) -> Tensor:
    return Tensor(param(slot, shape, dtypes.float32))


def x(*shape: int) -> UOp:
    return param(0, shape, dtypes.int32)


def fold(u: UOp, *axes: int, op: Op = Op.ADD) -> UOp:
    return UOp(Op.REDUCE, u, arg=ReduceArg(op, axes))


def kernels(root: UOp) -> list[UOp]:
    """The bodies of the kernels, in the order in which they run. They do what the graph says."""
    program = lower(root, "rangeify")
    inputs = {
        slot: (np.arange(np.prod(u.shape, dtype=int)).reshape(u.shape) % 7 - 3).astype(u.dtype.name)
        for slot, u in slots_of(root).items()
    }
    agree(root, inputs, program)
    return [call.src[0] for call in calls(program)]


def types(body: UOp) -> list[tuple[int, AxisType]]:
    """The loops around the elements of a kernel."""
    ends = (u.src[1] for u in body.toposort() if u.op is Op.END)
    return [(r.src[0].arg.value, type_of(r)) for r in ends]  # type: ignore[union-attr]


def folds(body: UOp) -> int:
    return sum(u.op is Op.REDUCE for u in body.toposort())


ONE_KERNEL: dict[str, Callable[[], Tensor]] = {
    "gemm": lambda: gemm(tensor(0, 9, 40), tensor(1, 40, 7)),
    "gemm-with-bias": lambda: (gemm(tensor(0, 9, 40), tensor(1, 40, 7)) + tensor(2, 7)).exp(),
    "batched": lambda: tensor(0, 2, 5, 40) @ tensor(1, 2, 40, 6),
    "negated-sum": lambda: -tensor(0, 5, 40).sum(1),
    "moved": lambda: gemm(tensor(0, 9, 40), tensor(1, 40, 7)).transpose(0, 1).reshape(63),
    "conv2d": lambda: conv2d(tensor(0, 1, 3, 6, 6), tensor(1, 4, 3, 3, 3), 1),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_a_fold_and_what_is_made_of_it_are_one_kernel(name: str) -> None:
    (body,) = kernels(ONE_KERNEL[name]().uop)
    assert folds(body) == 1
    assert {type for _, type in types(body)} == {LOOP}


def test_a_gemm_is_one_sum_of_products() -> None:
    (body,) = kernels(ONE_KERNEL["gemm"]().uop)
    (product,) = (u for u in body.toposort() if u.op is Op.REDUCE)
    assert product.src[0].op is Op.MUL
    assert [u.op for u in product.src[0].src] == [Op.LOAD, Op.LOAD]
    assert sum(u.op is Op.STORE for u in body.toposort()) == 1


def test_what_a_row_shares_is_computed_once_by_a_kernel_of_rows() -> None:
    (body,) = kernels(softmax(tensor(0, 6, 40)).uop)
    assert types(body) == [(40, REDUCE), (6, LOOP)]
    assert folds(body) == 2
    (body,) = kernels(softmax(tensor(0, 6, 40), axis=0).uop)
    assert types(body) == [(6, REDUCE), (40, LOOP)]
    sizes = tensor(0, 6, 40), tensor(1, 40), tensor(2, 40)
    (body,) = kernels(layer_norm(*sizes, 1e-5).uop)
    assert types(body) == [(40, REDUCE), (6, LOOP)]
    assert folds(body) == 2


def test_few_long_rows_are_not_computed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "SHORT_ROW", 30)
    first, second = kernels(softmax(tensor(0, 6, 40)).uop)
    # The largest elements and the sums have a kernel of rows: each sum needs its largest element.
    assert types(first) == [(6, LOOP)]
    assert folds(first) == sum(u.op is Op.STORE for u in first.toposort()) == 2
    assert types(second) == [(40, LOOP), (6, LOOP)]
    assert folds(second) == 0
    monkeypatch.setattr(split, "MANY_ROWS", 6)
    assert len(kernels(softmax(tensor(0, 6, 40)).uop)) == 1


def test_attention_stores_the_scores_and_their_softmax() -> None:
    q, k, v = (tensor(slot, 2, 12, 40) for slot in range(3))
    scores, rows, sums = kernels(attention(q, k, v).uop)
    assert [folds(scores), folds(rows), folds(sums)] == [1, 2, 1]
    assert types(rows) == [(12, REDUCE), (12, LOOP), (2, LOOP)]


def test_a_row_whose_elements_cost_more_than_what_they_share_is_no_row() -> None:
    """A product of matrices stays parallel in both axes, though its rows share a sum."""
    product, sums = gemm(tensor(0, 9, 40), tensor(1, 40, 30)), tensor(2, 9, 40).reduce(Op.ADD, 1)
    first, second = kernels((product / sums).uop)
    assert types(first) == [(9, LOOP)]
    assert types(second) == [(30, LOOP), (9, LOOP)]


def test_a_short_fold_is_computed_again() -> None:
    (body,) = kernels(UOp(Op.SUB, x(2, 3, 4), fold(x(2, 3, 4), 0, 2)))
    assert types(body) == [(4, LOOP), (3, LOOP), (2, LOOP)]


def test_a_costly_fold_inside_another_one_is_stored_unless_the_kernel_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nested = fold(UOp(Op.NEG, fold(x(3, 70, 70), 2)), 1, op=Op.MAX)
    assert [folds(body) for body in kernels(nested)] == [1, 1]
    monkeypatch.setattr(split, "BUSY", 3)
    assert [folds(body) for body in kernels(nested)] == [2]
    monkeypatch.setattr(split, "BUSY", 1 << 14)
    short = fold(UOp(Op.NEG, fold(x(3, 70, 7), 2)), 1, op=Op.MAX)
    assert [folds(body) for body in kernels(short)] == [2]


def test_what_an_expand_repeats_inside_a_fold_is_stored() -> None:
    """Each element of the exponentials would be computed for each of the columns."""
    weights = gemm(tensor(0, 9, 40).exp(), tensor(1, 40, 7))
    assert len(kernels(weights.uop)) == 2
    light = gemm(-tensor(0, 9, 40), tensor(1, 40, 7))
    assert len(kernels(light.uop)) == 1


def test_a_fold_of_folds_that_share_their_rows_is_one_kernel() -> None:
    largest = fold(x(5, 40), 1, op=Op.MAX)
    (body,) = kernels(fold(UOp(Op.MUL, UOp(Op.SUB, x(5, 40), largest), largest), 1))
    assert folds(body) == 2
    assert types(body) == [(5, LOOP)]


def test_a_result_that_another_result_is_made_of_is_stored_by_its_kernel() -> None:
    total = fold(x(5, 40), 1)
    (body,) = kernels(UOp(Op.TUPLE, total, UOp(Op.NEG, total)))
    assert folds(body) == 1
    assert sum(u.op is Op.STORE for u in body.toposort()) == 2
    # Beside a result of rows: a store in the loop over the rows, and one in the loop inside.
    spread = UOp(Op.SUB, x(5, 40), total)
    (body,) = kernels(UOp(Op.TUPLE, total, spread))
    assert folds(body) == 1
    assert types(body) == [(40, REDUCE), (5, LOOP)]


def test_a_result_that_is_read_at_other_indices_is_stored_before() -> None:
    total = fold(x(5, 40), 1)
    flipped = UOp(Op.FLIP, total, arg=FlipArg((True, False)))
    first, second = kernels(UOp(Op.TUPLE, total, UOp(Op.SUB, flipped, total)))
    assert [folds(first), folds(second)] == [1, 0]


def test_a_value_is_not_stored_by_a_kernel_that_waits_for_one_of_its_readers() -> None:
    """The sums are read by the kernel of `other`, whose values their other reader needs."""
    a = x(300, 40)
    sums = fold(a, 1)
    other = UOp(
        Op.CONTIGUOUS, fold(UOp(Op.PERMUTE, UOp(Op.MUL, a, sums), arg=PermuteArg((1, 0))), 1)
    )
    again = fold(UOp(Op.SUB, a, UOp(Op.RESHAPE, other, dims((1, 40)))), 1)
    bodies = kernels(UOp(Op.MUL, again, sums))
    assert [folds(body) for body in bodies] == [1, 1, 1]


def test_kernels_have_a_limited_number_of_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "MOST_FOLDS", 3)
    total = UOp(Op.ADD, fold(x(5, 40), 1), fold(x(5, 40), 1, op=Op.MAX))
    for k in range(4):
        total = UOp(Op.ADD, total, fold(UOp(Op.ADD, x(5, 40), const(k + 1, dtypes.int32)), 1))
    counts = [folds(body) for body in kernels(total)]
    assert sum(counts) == 6
    assert max(counts) == 3


def test_a_fold_behind_a_pad_or_an_index_is_read_where_it_is() -> None:
    sums = fold(x(5, 40), 1)
    (body,) = kernels(UOp(Op.PAD, sums, dims((1, 0)), dims((6, 1))))
    assert folds(body) == 1
    # Folds over nothing, outside of the sums, may cost more than to store these.
    assert len(kernels(UOp(Op.PAD, sums, dims((1, 0)), dims((9, 1))))) == 2
    few = UOp(Op.INDEX, sums, UOp(Op.STACK, index_const(3), index_const(0)))
    (body,) = kernels(few)
    assert folds(body) == 1
    gate = UOp(Op.CMPLT, x(5, 1), const(2, dtypes.int32))
    loaded = UOp(Op.LOAD, fold(param(1, (5, 40), dtypes.int32), 1), x(5, 1), gate)
    assert [folds(body) for body in kernels(loaded)] == [1]


def test_an_input_that_is_stored_in_place_is_read_before() -> None:
    buffer = UOp(Op.BUFFER, dims((4, 40)), arg=BufferArg(0, dtypes.int32))
    centred = UOp(Op.SUB, UOp(Op.LOAD, buffer), fold(UOp(Op.LOAD, buffer), 1))
    flipped = UOp(Op.FLIP, centred, arg=FlipArg((True, True)))
    bodies = kernels(UOp(Op.SINK, UOp(Op.STORE, buffer, flipped)))
    assert [folds(body) for body in bodies] == [1, 0]


def test_views_of_what_is_computed_are_stored_where_they_are_read_too_often() -> None:
    """Else a chain of views, each of which is also read by itself, had a square of indices."""
    view, total = UOp(Op.EXP2, tensor(0, 3, 3).uop), []
    for _ in range(60):
        view = UOp(
            Op.FLIP, UOp(Op.PERMUTE, view, arg=PermuteArg((1, 0))), arg=FlipArg((True, False))
        )
        total.append(UOp(Op.SIN, view))
    result = total[0]
    for k, value in enumerate(total[1:]):
        result = UOp(Op.SUB, result, UOp(Op.FLIP, value, arg=FlipArg((k % 2 == 0, True))))
    assert len(kernels(result)) > 1


def test_folds_in_a_chain_of_rows_stay_small() -> None:
    """Each step reads the one before twice: computed again at each index it had 2^30 folds."""
    rows = x(3, 20)
    for _ in range(30):
        rows = UOp(Op.SUB, rows, fold(rows, 1, op=Op.MAX))
    found = kernels(rows)
    assert sum(len(body.toposort()) for body in found) < 3000


COSTS: dict[str, dict[str, float]] = {
    "nothing-is-stored": {"split.MEMORY": float("inf")},
    "all-is-stored": {"split.MEMORY": 0, "split.SHORT_ROW": 0, "split.MANY_ROWS": 1 << 30},
    "rows": {"split.MEMORY": 0.5, "split.SLACK": 1 << 30},
    "no-rows": {"split.MEMORY": 0.5, "split.SLACK": 0},
    "few-of-each": {f"split.{name}": 1 for name in ("MEMORY", "MOST_FOLDS", "OUTPUTS", "INDICES")},
    "no-fold-in-another": {"split.MEMORY": 1, "split.COSTLY_FOLD": 0},
}


@st.composite
def of_rows(draw: Callable[..., int]) -> tuple[UOp, Inputs]:
    """Values of rows and columns and folds of them, in many combinations; zero-size axes too."""
    shape = (draw(st.integers(0, 3)), draw(st.integers(1, 4)))
    pool = [x(*shape), param(1, shape, dtypes.int32)]
    for _ in range(draw(st.integers(2, 10))):
        a, b = (pool[draw(st.integers(0, len(pool) - 1))] for _ in range(2))
        op = (Op.ADD, Op.MUL, Op.MAX)[draw(st.integers(0, 2))]
        step = draw(st.integers(0, 4))
        if step == 0:
            pool.append(fold(a, draw(st.integers(0, 1)), op=op))
        elif step == 1:
            flags = draw(st.integers(0, 1)) == 1, draw(st.integers(0, 1)) == 1
            pool.append(UOp(Op.FLIP, a, arg=FlipArg(flags)))
        elif step == 2 and a.shape != shape:
            pool.append(UOp(Op.EXPAND, a, dims(shape)))
        elif step == 3:
            pool.append(UOp(Op.CONTIGUOUS, a))
        else:
            pool.append(UOp(op, a, b))
    root = UOp(Op.TUPLE, *pool[-3:]) if draw(st.integers(0, 1)) else pool[-1]
    data = [np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape) - 5 * k for k in (1, 2)]
    return root, {slot: data[slot] for slot in slots_of(root)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", COSTS)
def test_whatever_the_costs_the_kernels_do_what_the_graph_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = {"split": split}
    for place, value in COSTS[name].items():
        module, _, constant = place.partition(".")
        monkeypatch.setattr(modules[module], constant, value)

    @SLOW
    @given(st.one_of(of_rows(), of_rows(), graphs(), stores()))
    def check(program: tuple[UOp, Inputs]) -> None:
        root, inputs = program
        demanded(root, inputs)
        agree(root, inputs, lower(root, "rangeify"))

    check()
