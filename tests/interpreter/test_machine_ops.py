"""Ops of kernels one by one: atomics, vectors, addresses, and what is known by name only."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from kernels import (
    add,
    argument,
    at,
    below,
    int32,
    kernel_param,
    load,
    loop,
    memory,
    program,
    run,
    special,
    store,
    times,
    vector,
)

from uop.conformance.suite.levels.kernel.scalar import Listing
from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.launch import run_program
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.values import Value
from uop.spec.args import (
    AddrSpace,
    AxisType,
    BinaryArg,
    DTypeArg,
    GetAddrArg,
    ReduceArg,
    SourceArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const

SIZE = 8
LANE = special(SIZE)
U32 = dtypes.uint32


def added(dtype: DType, start: float, terms: Array) -> Array:
    """One element to which each work item adds its term."""
    listing = Listing()
    out, given = kernel_param(0, 1, dtype), kernel_param(1, SIZE, dtype)
    listing.do(UOp(Op.ATOMICADD, at(out, 0), load(given, LANE)))
    root = program(listing.body, argument(0, 1, dtype), argument(1, SIZE, dtype))
    storage = np_dtype(dtype)
    return run(root, np.array([start], storage), terms.astype(storage), first=0)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.bfloat16], ids=str)
def test_atomic_additions_of_floats_are_a_fold_in_the_order_of_the_items(dtype: DType) -> None:
    terms = np.array([1.0, 2.0**-11, 2.0**-11, 256.0, -256.0, 0.5, 3.0, 2.0**-9])
    storage = np_dtype(dtype).type
    total = storage(1)
    for term in terms:
        total = storage(total + storage(term))
    assert added(dtype, 1, terms).tolist() == [total]


def test_items_are_counted_group_after_group_with_dimension_0_fastest() -> None:
    """The sum shows the order, whatever the order in which the counters stand in the body."""
    names, sizes = ("lidx0", "gidx0", "lidx1", "gidx1"), (2, 3, 2, 2)
    counters = [special(n, name) for name, n in zip(names, sizes, strict=True)]
    inner, group, outer, groups = counters
    place = add(times(groups, 12), add(times(group, 4), add(times(outer, 2), inner)))
    random = np.random.default_rng(8)
    terms = ((random.random(24) - 0.5) * 2.0 ** random.integers(0, 12, 24)).astype(np.float32)
    expected = _sum(terms)
    given = load(kernel_param(1, 24, dtypes.float32), place)
    listing = Listing()
    listing.do(UOp(Op.ATOMICADD, at(kernel_param(0, 1, dtypes.float32), 0), given))
    root = program(listing.body, argument(0, 1, dtypes.float32), argument(1, 24, dtypes.float32))
    result = evaluate(root, {0: np.zeros(1, np.float32), 1: terms})
    assert isinstance(result, dict)
    assert result[0].tolist() == [expected]
    others = [p for p in permutations(range(4)) if p != (0, 1, 2, 3)]
    assert all(_sum(terms.reshape(2, 3, 2, 2).transpose(p)) != expected for p in others)


def _sum(terms: Array) -> np.float32:
    total = np.float32(0)
    for term in terms.reshape(-1):
        total = np.float32(total + term)
    return total


def test_atomic_additions_of_ints_wrap_and_those_of_bools_are_or() -> None:
    assert added(dtypes.int8, 100, np.full(SIZE, 7)).tolist() == [100 + 56 - 256]
    assert added(dtypes.bool, 0, np.arange(SIZE) == 3).tolist() == [True]
    assert added(dtypes.bool, 0, np.zeros(SIZE)).tolist() == [False]


def test_an_atomic_addition_of_what_is_open_opens_only_its_element() -> None:
    out, given = kernel_param(0, 3), kernel_param(1, SIZE)
    listing = Listing()
    listing.do(UOp(Op.ATOMICADD, at(out, UOp(Op.MOD, LANE, index_const(3))), load(given, LANE)))
    root = program(listing.body, 3, SIZE)
    mask = np.arange(SIZE) == 4
    arguments = root.src[0].src
    contents = {
        arguments[1]: Value(np.zeros(3, np.int32)),
        arguments[2]: Value(np.ones(SIZE, np.int32), None, mask),
    }
    found = run_program(root, contents, None)[0].unspecified
    assert found is not None
    assert found.tolist() == [False, True, False]


def test_an_atomic_addition_happens_in_every_work_item_and_private_memory_is_private() -> None:
    lane, own = special(4, "lidx0"), memory(AddrSpace.REG, 1)
    listing = Listing()
    listing.do(store(own, 0, int32(10)))
    listing.do(UOp(Op.ATOMICADD, at(own, 0), int32(lane)))
    listing.do(UOp(Op.ATOMICADD, at(kernel_param(0, 5), 0), int32(1)))
    value = load(listing.now(own), 0)
    listing.do(UOp(Op.ATOMICADD, at(kernel_param(0, 5), add(lane, 1)), value))
    result = evaluate(program(listing.body, 5), {0: np.zeros(5, np.int32)})
    assert isinstance(result, dict)
    assert result[0].tolist() == [4, 10, 11, 12, 13]


@pytest.mark.parametrize("kind", [AxisType.LOOP, AxisType.REDUCE, AxisType.GLOBAL, AxisType.LOCAL])
def test_an_atomic_addition_happens_in_every_iteration(kind: AxisType) -> None:
    """Also where nothing in it depends on the loops around it."""
    outer, inner = loop(0, 3, kind), loop(1, 5)
    one = UOp(Op.ATOMICADD, at(kernel_param(0, 2), 0), int32(1))
    ten = UOp(Op.ATOMICADD, at(kernel_param(0, 2), 1), int32(10))
    body = UOp(Op.SINK, UOp(Op.END, UOp(Op.GROUP, UOp(Op.END, one, inner), ten), outer))
    assert run(program(body, 2), np.zeros(2, np.int32), first=0).tolist() == [15, 30]


def test_vectors_are_loaded_computed_picked_apart_and_stored() -> None:
    """Each of 4 items swaps two neighbours and negates them; the last has only its first."""
    half, given, out = special(4), kernel_param(1, 7), kernel_param(0, 7)
    places = vector([times(half, 2), add(times(half, 2), 1)])
    inside = below(places, 7)
    pair = UOp(Op.LOAD, at(given, places), vector([int32(-1), int32(-2)]), inside)
    swapped = UOp(Op.INDEX, pair, vector([index_const(1), index_const(0)]))
    body = UOp(Op.SINK, UOp(Op.STORE, at(out, places), UOp(Op.NEG, swapped), inside))
    found = run(program(body, 7, 7), np.arange(10, 17, dtype=np.int32))
    assert found.tolist() == [-11, -10, -13, -12, -15, -14, 2]


def test_a_scalar_meets_each_element_of_a_vector() -> None:
    given = kernel_param(1, SIZE)
    places = vector([index_const(3), index_const(0), index_const(3)])
    total = UOp(Op.ADD, load(given, places), load(given, LANE))
    wide = UOp(Op.REDUCE, UOp(Op.MUL, total, total), arg=ReduceArg(Op.ADD, (0,)))
    value = UOp(Op.INDEX, wide, index_const(0))
    a = np.arange(2, 2 + SIZE, dtype=np.int32)
    expected = [sum((int(a[k]) + int(x)) ** 2 for k in (3, 0, 3)) for x in a]
    body = UOp(Op.SINK, store(kernel_param(0, SIZE), LANE, value))
    assert run(program(body, SIZE, SIZE), a).tolist() == expected


def test_ranges_and_axes_of_a_value_are_folded_together() -> None:
    k = loop(0, 3, AxisType.REDUCE)
    places = vector([times(k, 2), add(times(k, 2), 1)])
    total = UOp(
        Op.REDUCE, load(kernel_param(1, 6, dtypes.float32), places), k, arg=ReduceArg(Op.ADD, (0,))
    )
    body = UOp(
        Op.SINK, store(kernel_param(0, 1, dtypes.float32), 0, UOp(Op.INDEX, total, index_const(0)))
    )
    root = program(body, argument(0, 1, dtypes.float32), argument(1, 6, dtypes.float32))
    a = np.array([1e8, 1.0, -1e8, 3.0, 4.0, 1e-3], np.float32)
    expected = np.float32(0)
    for x in a:
        expected = np.float32(expected + x)
    assert run(root, a).tolist() == [expected]


def test_a_vector_is_reinterpreted_along_its_elements() -> None:
    places = vector([times(LANE, 2), add(times(LANE, 2), 1)])
    halves = load(kernel_param(1, 2 * SIZE, dtypes.uint16), places)
    word = UOp(Op.INDEX, UOp(Op.BITCAST, halves, arg=DTypeArg(U32)), index_const(0))
    body = UOp(Op.SINK, store(kernel_param(0, SIZE, U32), LANE, word))
    root = program(body, argument(0, SIZE, U32), argument(1, 2 * SIZE, dtypes.uint16))
    a = np.arange(1000, 1000 + 2 * SIZE, dtype=np.uint16)
    assert run(root, a).tolist() == a.view(np.uint32).tolist()


def test_memory_of_two_axes_is_indexed_along_both() -> None:
    i, j = special(2, "lidx0"), special(3, "lidx1")
    tile = UOp(Op.BUFFER, dims((2, 3)), arg=memory(AddrSpace.LOCAL, 1).arg)
    listing = Listing()
    element = load(kernel_param(1, 6), add(times(i, 3), j))
    listing.do(UOp(Op.STORE, UOp(Op.INDEX, tile, i, j), element))
    listing.barrier()
    last = index_const(2)
    mirrored = UOp(
        Op.INDEX, listing.now(tile), UOp(Op.SUB, index_const(1), i), UOp(Op.SUB, last, j)
    )
    listing.do(store(kernel_param(0, 6), add(times(i, 3), j), UOp(Op.LOAD, mirrored)))
    assert run(program(listing.body, 6, 6), np.arange(6, dtype=np.int32)).tolist() == [
        5,
        4,
        3,
        2,
        1,
        0,
    ]


def test_registers_are_indexed_by_what_differs_between_items() -> None:
    own = memory(AddrSpace.REG, 3)
    listing = Listing()
    for k in range(3):
        listing.do(store(own, k, int32(10 * k)))
    place = UOp(Op.MOD, LANE, index_const(3))
    listing.do(store(own, place, int32(LANE)))
    pair = load(listing.now(own), vector([place, index_const(0)]))
    listing.do(store(kernel_param(0, SIZE), LANE, UOp(Op.INDEX, pair, index_const(0))))
    listing.do(store(kernel_param(1, SIZE), LANE, UOp(Op.INDEX, pair, index_const(1))))
    result = evaluate(program(listing.body, SIZE, SIZE))
    assert isinstance(result, dict)
    assert result[0].tolist() == list(range(SIZE))
    assert result[1].tolist() == [k if k % 3 == 0 else 0 for k in range(SIZE)]


def test_addresses_are_distinct_and_aligned_and_count_in_bytes() -> None:
    values = []
    for slot, dtype in ((1, dtypes.int32), (2, dtypes.float64)):
        for device in ("A", "B"):
            for offset in (0, 3):
                place = at(kernel_param(slot, 5, dtype), offset)
                values.append(UOp(Op.GETADDR, place, arg=GetAddrArg(device)))
    out = kernel_param(0, len(values), dtypes.uint64)
    body = UOp(Op.SINK, *(store(out, k, value) for k, value in enumerate(values)))
    root = program(
        body,
        argument(0, len(values), dtypes.uint64),
        argument(1, 5, dtypes.int32),
        argument(2, 5, dtypes.float64),
    )
    found = [int(x) for x in run(root)]
    starts, sizes = found[::2], [20, 20, 40, 40]
    assert [b - a for a, b in zip(starts, found[1::2], strict=True)] == [12, 12, 24, 24]
    assert all(start > 0 and start % 8 == 0 for start in starts)
    spans = sorted(zip(starts, sizes, strict=True))
    assert all(a + n <= b for (a, n), (b, _) in pairwise(spans))


def test_one_buffer_behind_two_arguments_has_one_address() -> None:
    shared = argument(1, 4)
    places = [at(kernel_param(slot, 4), 0) for slot in (1, 2)]
    out = kernel_param(0, 2, dtypes.uint64)
    body = UOp(
        Op.SINK,
        *(store(out, k, UOp(Op.GETADDR, p, arg=GetAddrArg("A"))) for k, p in enumerate(places)),
    )
    one, two = run(program(body, argument(0, 2, dtypes.uint64), shared, shared))
    assert one == two


def test_a_program_runs_through_its_linear() -> None:
    listing = Listing()
    with listing.where(below(LANE, 3)):
        listing.do(store(kernel_param(0, SIZE), LANE, int32(add(LANE, 5))))
    source, binary = UOp(Op.SOURCE, arg=SourceArg("")), UOp(Op.BINARY, arg=BinaryArg(b""))
    root = program(UOp(Op.PROGRAM, listing.body, source, binary), SIZE)
    result = evaluate(root, {0: np.zeros(SIZE, np.int32)})
    assert isinstance(result, dict)
    assert result[0].tolist() == [5, 6, 7, 0, 0, 0, 0, 0]


def test_what_stands_behind_a_branch_runs_in_every_item() -> None:
    listing = Listing()
    with listing.where(below(LANE, 3)):
        listing.do(store(kernel_param(0, SIZE), LANE, int32(add(LANE, 5))))
    listing.do(store(kernel_param(1, SIZE), LANE, int32(LANE)))
    given = {slot: np.full(SIZE, -1, np.int32) for slot in range(2)}
    result = evaluate(program(listing.body, SIZE, SIZE), given)
    assert isinstance(result, dict)
    assert result[0].tolist() == [5, 6, 7, *[-1] * (SIZE - 3)]
    assert result[1].tolist() == list(range(SIZE))


def test_a_value_index_out_of_bounds_has_no_meaning() -> None:
    pair = vector([int32(1), int32(2)])
    body = UOp(Op.SINK, store(kernel_param(0, SIZE), LANE, UOp(Op.INDEX, pair, LANE)))
    with pytest.raises(UndefinedError, match=r"INDEX\.u1"):
        evaluate(program(body, SIZE))
