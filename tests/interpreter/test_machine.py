"""Kernel programs against an interpreter that runs one work item at a time."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.naive_machine import run_body

from uop.interpreter.evaluate import evaluate
from uop.interpreter.kernel.launch import run_program
from uop.interpreter.numeric.storage import Array
from uop.interpreter.values import Value
from uop.spec.args import (
    AddrSpace,
    AxisType,
    BinaryArg,
    BufferArg,
    ParamArg,
    RangeArg,
    ReduceArg,
    SpecialArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const

I32 = dtypes.int32
ROWS, INNER, COLUMNS = 3, 4, 5


def argument(slot: int, count: int, dtype: DType = I32) -> UOp:
    return UOp(Op.BUFFER, dims((count,)), arg=BufferArg(slot, dtype))


def kernel_param(slot: int, count: int, dtype: DType = I32) -> UOp:
    return UOp(Op.PARAM, dims((count,)), arg=ParamArg(slot, dtype, None, AddrSpace.GLOBAL))


def loop(number: int, count: int, kind: AxisType = AxisType.LOOP) -> UOp:
    return UOp(Op.RANGE, index_const(count), arg=RangeArg(number, kind))


def special(count: int, name: str = "gidx0") -> UOp:
    return UOp(Op.SPECIAL, index_const(count), arg=SpecialArg(name))


def at(memory: UOp, i: UOp | int) -> UOp:
    return UOp(Op.INDEX, memory, index_const(i) if isinstance(i, int) else i)


def load(memory: UOp, i: UOp | int) -> UOp:
    return UOp(Op.LOAD, at(memory, i))


def add(a: UOp, b: UOp) -> UOp:
    return UOp(Op.ADD, a, b)


def times(a: UOp, n: int) -> UOp:
    return UOp(Op.MUL, a, index_const(n))


def program(body: UOp, *counts: int) -> UOp:
    buffers = [argument(slot, count) for slot, count in enumerate(counts)]
    return UOp(Op.SINK, UOp(Op.CALL, body, *buffers))


def product(i: UOp, j: UOp, k: UOp) -> UOp:
    a, b = kernel_param(1, ROWS * INNER), kernel_param(2, INNER * COLUMNS)
    left, right = load(a, add(times(i, INNER), k)), load(b, add(times(k, COLUMNS), j))
    return UOp(Op.MUL, left, right)


def gemm_of_ranges() -> UOp:
    """As a graph of loops: outputs closed by END, the sum by REDUCE."""
    i, j, k = loop(0, ROWS), loop(1, COLUMNS), loop(2, INNER, AxisType.REDUCE)
    total = UOp(Op.REDUCE, product(i, j, k), k, arg=ReduceArg(Op.ADD))
    place = at(kernel_param(0, ROWS * COLUMNS), add(times(i, COLUMNS), j))
    store = UOp(Op.STORE, place, total)
    return UOp(Op.SINK, UOp(Op.END, UOp(Op.END, store, j), i))


def gemm_of_registers() -> UOp:
    """As a device runs it: a work item per output, an accumulator in a register."""
    g, k = special(ROWS * COLUMNS), loop(0, INNER, AxisType.REDUCE)
    i = UOp(Op.IDIV, g, index_const(COLUMNS))
    j = UOp(Op.MOD, g, index_const(COLUMNS))
    acc = UOp(Op.BUFFER, dims((1,)), arg=BufferArg(0, I32, None, AddrSpace.REG))
    start = UOp(Op.STORE, at(acc, 0), const(0, I32))
    inside = UOp(Op.AFTER, acc, start, k)
    update = UOp(Op.STORE, at(inside, 0), add(load(inside, 0), product(i, j, k)))
    total = load(UOp(Op.AFTER, acc, UOp(Op.END, update, k)), 0)
    return UOp(Op.SINK, UOp(Op.STORE, at(kernel_param(0, ROWS * COLUMNS), g), total))


def linear(body: UOp) -> UOp:
    """The instructions of a body with one loop, in an order that keeps it together."""
    order = [u for u in body.toposort() if u is not body]
    (k,) = (u for u in order if u.op is Op.RANGE)
    (end,) = (u for u in order if u.op is Op.END)
    inside = [u for u in end.src[0].toposort() if k in u.toposort() and u is not k]
    before = [u for u in end.toposort() if u not in inside and u not in (k, end)]
    after = [u for u in order if u not in inside and u not in before and u not in (k, end)]
    return UOp(Op.LINEAR, *before, k, *inside, end, *after)


def matrices(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    a = rng.integers(-(2**31), 2**31, ROWS * INNER).astype(np.int32)
    b = rng.integers(-(2**31), 2**31, INNER * COLUMNS).astype(np.int32)
    return a, b


@pytest.mark.parametrize(
    "body",
    [gemm_of_ranges(), gemm_of_registers(), linear(gemm_of_registers())],
    ids=["ranges", "registers", "linear"],
)
def test_gemm_in_every_form(body: UOp) -> None:
    a, b = matrices()
    memory = [[0] * (ROWS * COLUMNS), a.tolist(), b.tolist()]
    run_body(body, memory)
    root = program(body, *(len(m) for m in memory))
    result = evaluate(root, {1: a, 2: b})
    assert isinstance(result, dict)
    assert result[0].tolist() == memory[0]
    exact = a.reshape(ROWS, INNER).astype(np.int64) @ b.reshape(INNER, COLUMNS).astype(np.int64)
    assert result[0].tolist() == exact.astype(np.int32).reshape(-1).tolist()


SIZE = 6


@st.composite
def scalar_values(draw: st.DrawFn, variables: list[UOp], depth: int = 3) -> UOp:
    """A random int32 expression over loads at random places, some of them gated."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        place = draw(st.sampled_from(variables))
        place = add(times(place, draw(st.integers(0, 7))), index_const(draw(st.integers(0, 9))))
        memory = kernel_param(draw(st.integers(1, 2)), SIZE)
        if draw(st.booleans()):
            return load(memory, UOp(Op.MOD, place, index_const(SIZE)))
        gate = UOp(Op.CMPLT, place, index_const(SIZE))
        return UOp(Op.LOAD, at(memory, place), const(draw(st.integers(-9, 9)), I32), gate)
    inner = scalar_values(variables, depth - 1)
    if draw(st.booleans()):
        op = draw(st.sampled_from([Op.ADD, Op.MUL, Op.SUB, Op.MAX, Op.AND]))
        return UOp(op, draw(inner), draw(inner))
    condition = UOp(Op.CMPLT, draw(inner), draw(inner))
    return UOp(Op.WHERE, condition, draw(inner), draw(inner))


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_random_kernels(data: st.DataObject, seed: int) -> None:
    counts = [data.draw(st.integers(0, 4)) for _ in range(4)]
    items = [special(counts[0]), special(counts[1], "gidx1")]
    loops = [loop(0, counts[2], AxisType.REDUCE), loop(1, counts[3], AxisType.REDUCE)]
    op = data.draw(st.sampled_from([Op.ADD, Op.MUL, Op.MAX]))
    folded = UOp(Op.REDUCE, data.draw(scalar_values([*items, *loops])), *loops, arg=ReduceArg(op))
    value = add(folded, data.draw(scalar_values(items)))
    place = add(times(items[0], 4), items[1])
    gate = UOp(Op.CMPNE, data.draw(scalar_values(items)), const(0, I32))
    body = UOp(Op.SINK, UOp(Op.STORE, at(kernel_param(0, 16), place), value, gate))
    rng = np.random.default_rng(seed)
    start = [rng.integers(-99, 99, n).astype(np.int32) for n in (16, SIZE, SIZE)]
    memory = [array.tolist() for array in start]
    run_body(body, memory)
    result = evaluate(program(body, 16, SIZE, SIZE), dict(enumerate(start)))
    assert isinstance(result, dict)
    assert result[0].tolist() == memory[0]


def test_kernels_run_in_the_order_of_their_afters() -> None:
    g = special(SIZE)
    place = at(kernel_param(0, SIZE), g)

    def kernel(op: Op, operand: int) -> UOp:
        value = UOp(op, load(kernel_param(1, SIZE), g), const(operand, I32))
        return UOp(Op.SINK, UOp(Op.STORE, place, value))

    first, second, third = (argument(slot, SIZE) for slot in range(3))
    one = UOp(Op.CALL, kernel(Op.ADD, 5), second, first)
    two = UOp(Op.CALL, kernel(Op.MUL, 3), third, UOp(Op.AFTER, second, one))
    result = evaluate(UOp(Op.SINK, two), {0: np.arange(SIZE, dtype=np.int32)})
    assert isinstance(result, dict)
    assert result[2].tolist() == [(i + 5) * 3 for i in range(SIZE)]


def test_bytes_are_an_argument() -> None:
    g = special(3)
    value = load(kernel_param(1, 3, dtypes.uint8), g)
    body = UOp(Op.SINK, UOp(Op.STORE, at(kernel_param(0, 3, dtypes.uint8), g), value))
    data = UOp(Op.BINARY, arg=BinaryArg(b"\x07\xff\x00"))
    root = UOp(Op.SINK, UOp(Op.CALL, body, argument(0, 3, dtypes.uint8), data))
    result = evaluate(root)
    assert isinstance(result, dict)
    assert result[0].tolist() == [7, 255, 0]


def copy_at(place: UOp, source: UOp, gate: UOp | None = None) -> UOp:
    value = load(kernel_param(1, SIZE), source)
    gates = () if gate is None else (gate,)
    return UOp(Op.SINK, UOp(Op.STORE, at(kernel_param(0, SIZE), place), value, *gates))


def test_out_of_bounds_accesses_are_named_unless_gated() -> None:
    g = special(SIZE)
    beyond = add(g, index_const(1))
    given = {1: np.arange(SIZE, dtype=np.int32)}
    for body in (copy_at(g, beyond), copy_at(beyond, g)):
        with pytest.raises(UndefinedError, match="6 on axis 0 of size 6, where gidx0 = 5"):
            evaluate(program(body, SIZE, SIZE), given)
    inside = UOp(Op.CMPLT, beyond, index_const(SIZE))
    result = evaluate(
        program(copy_at(beyond, g, inside), SIZE, SIZE), given | {0: np.zeros(SIZE, np.int32)}
    )
    assert isinstance(result, dict)
    assert result[0].tolist() == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("axis", range(2))
def test_a_gate_of_one_axis_of_items_beside_ops_on_tensors(axis: int) -> None:
    items = special(2, "gidx0"), special(3, "gidx1")
    place, gate = add(times(items[0], 3), items[1]), UOp(Op.CMPLT, index_const(0), items[axis])
    element = UOp(Op.LOAD, at(kernel_param(1, SIZE), place), const(-1, I32), gate)
    body = UOp(Op.SINK, UOp(Op.STORE, at(kernel_param(0, SIZE), place), element))
    kept, given = argument(0, SIZE), argument(1, SIZE)
    later = UOp(Op.AFTER, kept, UOp(Op.CALL, body, kept, given))
    results = evaluate(
        UOp(Op.SINK, UOp(Op.STORE, argument(2, SIZE), add(later, later))),
        {1: np.arange(SIZE, dtype=np.int32)},
    )
    assert isinstance(results, dict)
    expected = np.array([[-1, -1, -1], [3, 4, 5]] if axis == 0 else [[-1, 1, 2], [-1, 4, 5]])
    assert results[2].tolist() == (2 * expected).reshape(-1).tolist()


def test_two_items_that_write_one_element_are_a_race() -> None:
    g = special(SIZE)
    body = copy_at(UOp(Op.IDIV, g, index_const(2)), g)
    with pytest.raises(UndefinedError, match="race"):
        evaluate(program(body, SIZE, SIZE), {1: np.arange(SIZE, dtype=np.int32)})


def test_a_register_must_be_written_before_it_is_read() -> None:
    acc = UOp(Op.BUFFER, dims((1,)), arg=BufferArg(0, I32, None, AddrSpace.REG))
    body = UOp(Op.SINK, UOp(Op.STORE, at(kernel_param(0, 1), 0), load(acc, 0)))
    with pytest.raises(UndefinedError, match="before it is written"):
        evaluate(program(body, 1))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_list_runs_in_its_order(order: tuple[int, ...]) -> None:
    """Two writes of an element and a copy of it to another one, which the list alone orders."""
    out = kernel_param(0, 2)
    copied = load(out, 0)
    values = const(3, I32), const(5, I32), copied
    stores = [UOp(Op.STORE, at(out, k // 2), v) for k, v in enumerate(values)]
    first = [u for store in stores for u in _scalars(store) if u is not copied]
    effects = [[stores[0]], [stores[1]], [copied, stores[2]]]
    body = UOp(Op.LINEAR, *dict.fromkeys(first), *(u for k in order for u in effects[k]))
    expected = [7, 8]
    for k in order:
        expected[k // 2] = (3, 5, expected[0])[k]
    result = evaluate(program(body, 2), {0: np.array([7, 8], np.int32)})
    assert isinstance(result, dict)
    assert result[0].tolist() == expected


def test_a_list_runs_what_it_names_alone() -> None:
    """What stands below an instruction is not run for it: the list names it before."""
    negated = UOp(Op.NEG, load(kernel_param(0, 1), 0))
    store = UOp(Op.STORE, at(kernel_param(0, 1), 0), negated)
    named = [u for u in store.toposort() if u not in (negated, store)]
    fine = evaluate(
        program(UOp(Op.LINEAR, *named, negated, store), 1), {0: np.array([3], np.int32)}
    )
    assert isinstance(fine, dict)
    assert fine[0].tolist() == [-3]
    for body in (UOp(Op.LINEAR, *named, store), UOp(Op.LINEAR, *named, store, negated)):
        with pytest.raises(UndefinedError, match=r"LINEAR\.u2"):
            evaluate(program(body, 1), {0: np.array([3], np.int32)})


def test_loops_must_be_closed_in_turn() -> None:
    i, j = loop(0, 2), loop(1, 2)
    store = UOp(Op.STORE, at(kernel_param(0, 4), add(times(i, 2), j)), const(1, I32))
    crossed = UOp(Op.LINEAR, i, j, *_scalars(store), store, UOp(Op.END, store, i))
    never = UOp(Op.LINEAR, i, j, *_scalars(store), store, UOp(Op.END, store, j))
    for body in (crossed, never):
        with pytest.raises(UndefinedError, match="RANGE"):
            evaluate(program(body, 4))


def _scalars(store: UOp) -> list[UOp]:
    return [u for u in store.toposort() if u.op not in (Op.RANGE, Op.STORE)]


def test_what_is_open_stays_open_through_a_kernel() -> None:
    """An element that was never written is copied as UNSPECIFIED, not as a value."""
    g = special(2)
    body = UOp(Op.SINK, UOp(Op.STORE, at(kernel_param(0, 2), g), load(kernel_param(1, 2), g)))
    source = Value(np.zeros(2, np.int32), None, np.array([True, False]))
    root = program(body, 2, 2)
    given = {u: source for u in root.src[0].src if u.op is Op.BUFFER and u.arg.slot == 1}
    result = run_program(root, given, None)
    assert result[0].unspecified is not None
    assert result[0].unspecified.tolist() == [True, False]


def test_no_work_items_and_no_iterations() -> None:
    i, k = loop(0, 0), loop(1, 0, AxisType.REDUCE)
    total = UOp(Op.REDUCE, load(kernel_param(1, SIZE), k), k, arg=ReduceArg(Op.MUL))
    ends = UOp(Op.END, UOp(Op.STORE, at(kernel_param(0, 1), i), total), i)
    given = {0: np.zeros(1, np.int32), 1: np.arange(SIZE, dtype=np.int32)}
    result = evaluate(program(UOp(Op.SINK, ends), 1, SIZE), given)
    assert isinstance(result, dict)
    assert result[0].tolist() == [0]
    once = UOp(Op.SINK, UOp(Op.STORE, at(kernel_param(0, 1), 0), total))
    result = evaluate(program(once, 1, SIZE), given)
    assert isinstance(result, dict)
    assert result[0].tolist() == [1]


def test_a_fold_takes_its_value_in_every_iteration_of_its_loops() -> None:
    """Also of a loop that the value does not depend on."""
    i, k = loop(0, 3, AxisType.REDUCE), loop(1, 4, AxisType.REDUCE)
    total = UOp(Op.REDUCE, load(kernel_param(1, 3), i), i, k, arg=ReduceArg(Op.ADD))
    body = UOp(Op.SINK, UOp(Op.STORE, at(kernel_param(0, 1), 0), total))
    result = evaluate(program(body, 1, 3), {1: np.array([1, 10, 100], np.int32)})
    assert isinstance(result, dict)
    assert result[0].tolist() == [444]


def test_an_effect_in_a_loop_that_some_items_skip_does_not_happen_in_them() -> None:
    """It does not depend on the loop, nor on the items that run it."""
    out, g = kernel_param(0, 4), special(2)
    bound = UOp(Op.WHERE, UOp(Op.CMPLT, g, index_const(1)), index_const(0), index_const(2))
    r = UOp(Op.RANGE, bound, arg=RangeArg(0, AxisType.LOOP))
    stores = [
        UOp(Op.STORE, at(out, add(times(g, 2), index_const(k))), const(9, I32)) for k in (0, 1)
    ]
    body = UOp(Op.SINK, UOp(Op.GROUP, UOp(Op.END, UOp(Op.GROUP, *stores), r)))
    memory = [[1, 2, 3, 4]]
    run_body(body, memory)
    result = evaluate(program(body, 4), {0: np.array([1, 2, 3, 4], np.int32)})
    assert isinstance(result, dict)
    assert result[0].tolist() == memory[0] == [1, 2, 9, 9]


@pytest.mark.parametrize("kind", [AxisType.LOOP, AxisType.REDUCE])
def test_iterations_that_read_one_element_read_what_the_one_before_wrote(kind: AxisType) -> None:
    """No index has the counter of the loop: the order alone says that the read is inside."""
    out, r = kernel_param(0, 3), loop(0, 3, kind)
    value = add(load(UOp(Op.AFTER, out, r), 0), const(5, I32))
    for place, expected in ((index_const(0), [16, 2, 3]), (r, [6, 11, 11])):
        store = UOp(Op.GROUP, UOp(Op.STORE, at(out, place), value))
        body = UOp(Op.SINK, UOp(Op.END, store, r))
        result = evaluate(program(body, 3), {0: np.array([1, 2, 3], np.int32)})
        assert isinstance(result, dict)
        assert result[0].tolist() == expected


def folded_back(random: Random, counters: list[UOp]) -> UOp:
    """A place of the buffer, often one for each position of the loops."""
    place = index_const(random.randrange(SIZE))
    for counter in counters:
        place = add(times(counter, random.randint(0, 3)), place)
    return UOp(Op.MOD, place, index_const(SIZE))


@given(seed=st.integers(0, 2**32 - 1))
def test_random_loops_over_one_buffer(seed: int) -> None:
    """Whether iterations depend on each other or not, they give what they give one by one."""
    random = Random(seed)
    loops = [loop(k, random.randint(1, 4)) for k in range(random.randint(1, 2))]
    out = kernel_param(0, SIZE)
    value = add(load(out, folded_back(random, loops)), load(out, folded_back(random, loops)))
    if random.random() < 0.5:
        r = loop(9, random.randint(0, 3), AxisType.REDUCE)
        term = load(random.choice([out, kernel_param(1, SIZE)]), folded_back(random, [*loops, r]))
        value = add(value, UOp(Op.REDUCE, term, r, arg=ReduceArg(Op.ADD)))
    effect = UOp(Op.STORE, at(out, folded_back(random, loops)), value)
    for r in loops:
        effect = UOp(Op.END, effect, r)
    body = UOp(Op.SINK, effect)
    start = [np.array([random.randrange(99) for _ in range(SIZE)], np.int32) for _ in range(2)]
    memory = [array.tolist() for array in start]
    run_body(body, memory)
    result = evaluate(program(body, SIZE, SIZE), dict(enumerate(start)))
    assert isinstance(result, dict)
    assert result[0].tolist() == memory[0]
