"""Accesses to neighbours in memory, where fragments have no axis for vectors to lie along."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from uop.compiler.pipeline import lower
from uop.compiler.stages.select.vectors import with_neighbours
from uop.compiler.targets.cuda import CUDA
from uop.interpreter.evaluate import evaluate
from uop.spec.args import AddrSpace, DTypeArg, ParamArg, ReduceArg, WmmaArg
from uop.spec.dtype import dtypes
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

ARG = WmmaArg(16, 8, 16, dtypes.float16, dtypes.float32)
M, N, K = 16, 16, 32


def accesses(body: UOp, op: Op) -> Counter[tuple[int, ...]]:
    """The shapes of the accesses to memory."""
    return Counter(u.src[0].shape for u in body.toposort() if u.op is op)


def fragments(*memory: UOp) -> tuple[UOp, UOp]:
    """The elements from 0 on as A and from 8 on as B, from a memory or two."""
    loads = [UOp(Op.LOAD, UOp(Op.INDEX, memory[k > 7], index_const(k))) for k in range(12)]
    return UOp(Op.STACK, *loads[:8]), UOp(Op.STACK, *loads[8:])


def kernel(read: UOp, written: UOp, *at: int) -> UOp:
    """Writes the elements of a product, as float16."""
    nothing = UOp(Op.STACK, *(const(0, dtypes.float32),) * 4)
    found = UOp(Op.WMMA, *fragments(read, read), nothing, arg=ARG)
    stores = (
        UOp(
            Op.STORE,
            UOp(Op.INDEX, written, index_const(k)),
            UOp(Op.CAST, UOp(Op.INDEX, found, index_const(e)), arg=DTypeArg(dtypes.float16)),
        )
        for e, k in enumerate(at)
    )
    return UOp(Op.SINK, UOp(Op.GROUP, *stores))


X, Y = (
    UOp(Op.PARAM, dims((16,)), arg=ParamArg(slot, dtypes.float16, None, AddrSpace.GLOBAL))
    for slot in (0, 1)
)


def test_fragments_are_vectors() -> None:
    body = with_neighbours(kernel(X, Y, 4, 5, 6, 7), CUDA)
    assert accesses(body, Op.LOAD) == {(8,): 1, (4,): 1}
    assert accesses(body, Op.STORE) == {(4,): 1}
    (product,) = (u for u in body.toposort() if u.op is Op.WMMA)
    assert [s.op for s in product.src] == [Op.LOAD, Op.LOAD, Op.STACK]


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ((2, 3, 4, 5), {(2,): 2}),  # A vector begins at a multiple of its size,
        ((3, 4, 5, 6), {(): 2, (2,): 1}),
        ((7, 5, 3, 1), {(): 4}),  # and has no gaps.
        ((9, 8, 6, 7), {(2,): 2}),  # The order does not matter,
        ((4, 5, 4, 6), {(): 4}),  # unless one element is written twice.
    ],
)
def test_stores_side_by_side(at: tuple[int, ...], found: dict[tuple[int, ...], int]) -> None:
    assert accesses(with_neighbours(kernel(X, Y, *at), CUDA), Op.STORE) == found


def test_what_is_written_in_between_is_read_alone() -> None:
    body = with_neighbours(kernel(X, X, 4, 5, 6, 7), CUDA)
    assert accesses(body, Op.LOAD) == {(): 12}


def test_other_kernels_stay() -> None:
    body = UOp(Op.SINK, UOp(Op.STORE, UOp(Op.INDEX, Y, index_const(0)), const(1, dtypes.float16)))
    assert with_neighbours(body, CUDA) is body


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_product_of_a_part_of_a_matrix(first: int) -> None:
    """Behind an odd column no neighbours are at a multiple of two."""
    whole = param(0, (M, K + 2), dtypes.float16)
    a = UOp(Op.SHRINK, whole, dims((0, first)), dims((M, K)))
    b = param(1, (N, K), dtypes.float16)
    wide = (UOp(Op.RESHAPE, a, dims((M, 1, K))), UOp(Op.RESHAPE, b, dims((1, N, K))))
    terms = UOp(Op.MUL, *(UOp(Op.CAST, x, arg=DTypeArg(dtypes.float32)) for x in wide))
    root = UOp(Op.REDUCE, terms, arg=ReduceArg(Op.ADD, (2,)))
    sequence = parse_optimizations("TC(2, m16n8k16); SPLIT(1, 2, UPCAST)")
    program = lower(root, "select", "cuda-host", [sequence])
    rng = np.random.default_rng(first)
    held = {k: rng.integers(-4, 5, s).astype(np.float16) for k, s in ((0, (M, K + 2)), (1, (N, K)))}
    found = evaluate(program, held)
    assert isinstance(found, dict)
    expected = held[0][:, first : first + K].astype(np.float64) @ held[1].T.astype(np.float64)
    np.testing.assert_array_equal(next(iter(found.values())).reshape(M, N), expected)
    scalars = sum(u.op is Op.LOAD and not u.shape for u in program.toposort())
    assert scalars == (8 if first % 2 else 0)
