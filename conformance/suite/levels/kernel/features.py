"""Generate level kernel, features: kernels by hand, each about one thing that a device does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import gcd, prod

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.chains import related
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import (
    Args,
    Counts,
    Generated,
    Group,
    group,
    program,
    with_data,
)
from uop.conformance.suite.levels.kernel import nests
from uop.conformance.suite.levels.kernel.scalar import (
    KERNEL_OPS,
    Listing,
    Memory,
    at,
    closed,
    flat,
    launch,
    load,
    loop,
    modulo,
    plus,
    register,
    shared,
    special,
    times,
    turned,
    with_contents,
)
from uop.conformance.suite.levels.nodes import cast, store
from uop.interpreter.kernel.fragments import SHAPES
from uop.interpreter.kernel.schedule import bound
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import AddrSpace, AxisType, GetAddrArg, InsArg, ReduceArg, WmmaArg
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.ops.codegen import WARP
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.uop import UOp, const, index_const

MOST_TERMS = 12
"""The most terms of a sum, so that small floats still tell a lost term from rounding."""
MOST_ITEMS = 40
AFFINE = 10
"""The quotients in one kernel."""
MOST_DEEP = 3
ARITY = {"mul_hi": 2, "popcount": 1, "clz": 1}
READ = 23
LANES = (4, 4, 8, 8)
AXES = ((1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2), (0, 2), (3, 0), (2, 2))
"""How many axes the workgroups of a launch have, and the items of each group."""
FEW = 3
NARROW = (dtypes.uint8, dtypes.int8)
USUAL = (dtypes.int32, dtypes.float32, dtypes.uint8)
TURNS = [(c, m) for m in range(4, 13) for c in range(2, 13) if gcd(c, m) > 1 and c % m]
"""Factors and divisors that have a common divisor."""


def dense_groups() -> Iterator[Group]:
    for op, name, build, few in DENSE:
        for dtype in few:
            yield of_op(op, dtype, name, (1, 4, 20), build, dtype)


def groups() -> Iterator[Group]:
    yield of_op(Op.INS, dtypes.uint32, "instructions", (1, 1, 10), named)
    for arg in SHAPES:
        # An instruction is named after its shape; of two results, after the narrow one too.
        name = f"m{arg.m}n{arg.n}k{arg.k}"
        if arg.dtype_out is not dtypes.float32:
            name += f"-{arg.dtype_out.name}"
        yield of_op(Op.WMMA, arg.dtype_in, name, (1, 1, 6), matrices, arg)
        if arg.dtype_in is dtypes.float16:
            yield of_op(Op.WMMA, arg.dtype_in, f"{name}-added", (1, 1, 6), accumulated, arg)
    for dtype in VALUES:
        if dtype is not dtypes.index:
            needs = (*KERNEL_OPS, Op.SPECIAL, Op.CMPLT, Op.CMPNE)
            yield group("kernel", None, dtype, "copy", (1, 1, 10), _copy, dtype, needs=needs)
            yield of_op(Op.GETADDR, dtype, "distances", (0, 1, 6), distances, dtype)
        if dtype.is_int or dtype.is_float:
            # Devices add 64 bits by another instruction, and in a word of 32 they look right.
            smoke = 2 * (dtype.is_int and dtype.bits == 64)
            counts = (smoke, 2, 20)
            yield of_op(Op.ATOMICADD, dtype, "added", counts, atomic_sums, dtype)
            # Sums of small floats would be rounded, by the order of the items.
            counts = (int(dtype.bits == 32), int(dtype.bits > 16), 10)
            yield of_op(Op.ATOMICADD, dtype, "constants", counts, atomic_constants, dtype)
    for dtype in (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64, dtypes.float32):
        yield of_op(Op.REDUCE, dtype, "limited", (1, 2, 12), _limited, dtype)
        yield of_op(Op.ATOMICADD, dtype, "added-in-loops", (1, 2, 12), _added, dtype)


def of_op(
    op: Op,
    dtype: DType,
    name: str,
    counts: Counts,
    build: Callable[[*Args, Choices, int], Generated],
    *args: *Args,
) -> Group:
    """Return a group of kernels about an op."""
    return group("kernel", op, dtype, name, counts, build, *args, needs=(*KERNEL_OPS, op))


def atomic_sums(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item add its element to one of few sums, some of them under nested gates."""
    sums = choices.between(1, 4)
    items = choices.between(2, MOST_TERMS * sums if dtype.is_float else MOST_ITEMS)
    target, source = memories = Memory(0, sums, dtype), Memory(1, items, dtype)
    g, listing = special("gidx0", items), Listing()
    place = modulo(plus(g, choices.below(5)), sums)
    add = UOp(Op.ATOMICADD, target.at(place), source.load(g))
    _gated(choices, listing, g, add, choices.between(0, MOST_DEEP))
    if choices.chance(30):
        listing.do(UOp(Op.ATOMICADD, target.at(index_const(0)), const(1, dtype)))
    draws = (values.draw_positive, values.draw_positive if dtype.is_float else values.draw_bits)
    return with_data(launch(listing.body, *memories), choices, *draws)


def atomic_constants(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item of two axes add constants to few sums, some of them once in each iteration."""
    sums, listing = choices.between(2, 3), Listing()
    target = Memory(0, sums + 1, dtype)
    items = [special(name, choices.between(2, 5)) for name in ("gidx0", "lidx0")]
    one, each, first, second = choices.shuffled(range(3, 9))[:4]
    places = (index_const(sums), *(modulo(item, sums) for item in items))
    for place, number in zip(places, (one, first, second), strict=True):
        listing.do(UOp(Op.ATOMICADD, target.at(place), const(number, dtype)))
    with listing.each(loop(0, choices.between(2, 5))):
        listing.do(UOp(Op.ATOMICADD, target.at(places[0]), const(each, dtype)))
    return with_data(launch(listing.body, target), choices, values.draw_within(0, 9))


def _gated(choices: Choices, listing: Listing, g: UOp, effect: UOp, depth: int) -> None:
    """List the effect inside so many branches, each by the number of the item."""
    if not depth:
        listing.do(effect)
        return
    bound = index_const(choices.between(1, 30))
    turned = modulo(times(g, choices.between(1, 5)), 31)
    gate = choices.pick((UOp(Op.CMPLT, g, bound), UOp(Op.CMPLT, turned, bound)))
    with listing.where(gate):
        _gated(choices, listing, g, effect, depth - 1)


def _limited(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold what lies before, behind or at a limit, which comes from the data and may lie outside of
    the loop. A compiler that computes the fold without its loop must clamp the limit.
    """
    n, items = choices.between(3, 6), choices.between(6, 9)
    source, limits = Memory(1, n, dtype), Memory(2, items, dtypes.int32)
    g, r = special("gidx0", items), loop(0, n, AxisType.REDUCE)
    limit = cast(limits.load(g), dtypes.index)
    pairs = ((r, limit), (limit, r))
    tests = [UOp(Op.CMPLT, *pair) for pair in pairs] + [UOp(Op.CMPEQ, *choices.pick(pairs))]
    few = [const(k, dtype) for k in (0, 1, 2)]
    folds = []
    for op in (Op.ADD, choices.pick(FOLDS)):
        for test in tests:
            chosen = choices.pick((few[1], few[2], source.load(r)))
            term = UOp(Op.WHERE, test, chosen, few[0])
            folds.append(UOp(Op.REDUCE, term, r, arg=ReduceArg(op)))
    target = Memory(0, items * len(folds), dtype)
    stores = [target.store(plus(g, k * items), v) for k, v in enumerate(folds)]
    return with_data(
        launch(UOp(Op.SINK, *stores), target, source, limits), choices, values.draw_within(-3, 9)
    )


def _added(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item add elements in a loop: to a sum of its own, to one of all, to one by turns."""
    items, n = choices.between(1, 4), choices.between(2, 5)
    target, source = Memory(0, items + 1 + n, dtype), Memory(1, items * n, dtype)
    g, r, listing = special("gidx0", items), loop(0, n), Listing()
    places = choices.shuffled([g, modulo(g, 1), plus(r, items + 1)])
    with listing.each(r):
        element = source.load(UOp(Op.ADD, times(g, n), r))
        for place in places:
            listing.do(UOp(Op.ATOMICADD, target.at(place), element))
    return with_data(launch(listing.body, target, source), choices, values.draw_positive)


def distances(dtype: DType, choices: Choices, index: int) -> Generated:
    """Compute how many bytes lie between elements of one buffer."""
    n, count = choices.between(2, 20), choices.between(2, 9)
    target, source = memories = Memory(0, count, dtypes.uint64), Memory(1, n, dtype)
    g = special("gidx0", count)
    places = [modulo(plus(g, choices.below(n)), n) for _ in range(2)]
    addresses = (UOp(Op.GETADDR, source.at(i), arg=GetAddrArg("GPU")) for i in places)
    body = UOp(Op.SINK, target.store(g, UOp(Op.SUB, *addresses)))
    blank = values.draw_bits(dtypes.uint64, count, 0).astype(np_dtype(dtypes.uint64))
    return program(
        launch(body, *memories), [blank, values.sample(values.draw_bits, dtype, n, choices)]
    )


def named(choices: Choices, index: int) -> Generated:
    """Run every machine instruction that has a name, on elements of any bits."""
    n, dtype = choices.between(5, 70), dtypes.uint32
    target, source = memories = Memory(0, len(ARITY) * n, dtype), Memory(1, n, dtype)
    g, stores = special("gidx0", n), []
    for k, (name, arity) in enumerate(ARITY.items()):
        places = (modulo(plus(g, choices.below(n)), n) for _ in range(arity))
        value = UOp(Op.INS, *(source.load(i) for i in places), arg=InsArg(name, dtype))
        stores.append(target.store(plus(g, k * n), value))
    data = {1: values.sample(values.draw_mixed, dtype, n, choices)}
    return program(launch(UOp(Op.SINK, *stores), *memories), data)


def matrices(arg: WmmaArg, choices: Choices, index: int) -> Generated:
    """Run one WMMA of one warp on fragments: A, B and acc in slots 1 to 3, the result in slot 0.

    The fragments lie lane after lane. The latitude of WMMA applies, which is wider than that of the
    same sum by tensor ops (D-067).
    """
    sources = _matrices(1, arg)
    target = Memory(0, sources[2].count, arg.dtype_out)
    lane, listing = special("lidx0", WARP), Listing()
    fragments = (s.load(_fragment(lane, s.count)) for s in sources)
    value = UOp(Op.WMMA, *fragments, arg=arg)
    listing.do(target.store(_fragment(lane, target.count), value))
    batches = (
        {s.slot: values.sample(values.draw_ordinary, s.dtype, s.count, choices) for s in sources}
        for _ in range(2)
    )
    return program(launch(listing.body, target, *sources), *batches)


def accumulated(arg: WmmaArg, choices: Choices, index: int) -> Generated:
    """Add to what WMMAs give that accumulate on constants: elements, a constant, another result."""
    sources = _matrices(0, arg)
    lane, listing = special("lidx0", WARP), Listing()
    a, b, elements = (s.load(_fragment(lane, s.count)) for s in sources)

    def constants() -> UOp:
        number = const(choices.between(1, 9), arg.dtype_out)
        return UOp(Op.STACK, *(number for _ in range(elements.shape[0])))

    first, second = (UOp(Op.WMMA, a, b, constants(), arg=arg) for _ in range(2))
    targets = [Memory(slot, sources[2].count, arg.dtype_out) for slot in (3, 4, 5)]
    for target, added in zip(targets, (elements, constants(), second), strict=True):
        place = target.at(_fragment(lane, target.count))
        listing.do(store(place, UOp(Op.ADD, first, added)))
    return with_contents(launch(listing.body, *sources, *targets), choices)


def _matrices(first: int, arg: WmmaArg) -> list[Memory]:
    """Return memories for A, B and acc in slots from the first on."""
    a, b = (
        Memory(first, arg.m * arg.k, arg.dtype_in),
        Memory(first + 1, arg.k * arg.n, arg.dtype_in),
    )
    return [a, b, Memory(first + 2, arg.m * arg.n, arg.dtype_out)]


def _fragment(lane: UOp, count: int) -> UOp:
    """Return the places of a lane among so many elements."""
    each = count // WARP
    first = times(lane, each)
    return UOp(Op.STACK, *(plus(first, k) for k in range(each)))


def lanes(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read and write several elements at once, in any order between the first and the last one.

    Some lanes read the element of another lane, and some have a gate that is closed, of one LOAD
    of all lanes or of one LOAD each.
    """
    items, source = choices.between(2, 5), Memory(1, READ, dtype)
    g, target, stores = special("gidx0", items), Memory(0, items * sum(LANES), dtype), []
    for k, n in enumerate(LANES):
        start = modulo(times(g, choices.between(1, 3)), READ - n + 1)
        read, written = (_lanes(choices, n) for _ in range(2))
        if k % 2:
            read[1] = read[2]
        indices = [plus(start, lane) for lane in read]
        value = source.load(UOp(Op.STACK, *indices))
        if k > 1:
            most = plus(start, choices.between(1, n - 1))
            gates = [UOp(Op.CMPLT, i, most) for i in indices]
            others = [const(choices.below(9), dtype) for _ in read]
            if k % 2:
                each = zip(map(source.at, indices), others, gates, strict=True)
                value = UOp(Op.STACK, *(UOp(Op.LOAD, *row) for row in each))
            else:
                stacks = (UOp(Op.STACK, *column) for column in (others, gates))
                value = UOp(Op.LOAD, value.src[0], *stacks)
        first = plus(times(g, n), items * sum(LANES[:k]))
        places = UOp(Op.STACK, *(plus(first, lane) for lane in written))
        stores.append(target.store(places, value))
    return with_contents(launch(UOp(Op.SINK, *stores), target, source), choices)


def _lanes(choices: Choices, n: int) -> list[int]:
    return [0, *choices.shuffled(range(1, n - 1)), n - 1]


def wrapped(dtype: DType, choices: Choices, index: int) -> Generated:
    """Divide i + k by the count of i, and compare them: some sums reach it, others exceed it."""
    i, results = _counter(choices.between(4, 9), index), []
    n = bound(i)
    source, end = Memory(1, 2 * n, dtype), index_const(n)
    for k in (0, 1, choices.between(2, n)):
        later = plus(i, k)
        results += [source.load(UOp(Op.MOD, later, end))]
        results += [cast(UOp(op, later, end), dtype) for op in (Op.IDIV, Op.MOD, Op.CMPLT)]
        results += [cast(UOp(Op.MOD, times(later, 2), plus(end, k)), dtype)]
    return _results(i, results, dtype, choices, source)


def _counter(n: int, index: int) -> UOp:
    """Return a loop of so many iterations, or in every second program as many items."""
    return loop(0, n) if index % 2 else special("gidx0", n)


def _results(
    i: UOp, stored: Sequence[UOp], dtype: DType, choices: Choices, *sources: Memory
) -> Generated:
    """Return a kernel that stores the values of each iteration of a loop, or of each item."""
    target, each = Memory(0, bound(i) * len(stored), dtype), len(stored)
    places = (target.at(plus(times(i, each), k)) for k in range(each))
    body = UOp(Op.SINK, _of_each(i, [*map(store, places, stored)]))
    return with_contents(launch(body, target, *sources), choices)


def _of_each(i: UOp, effects: Sequence[UOp]) -> UOp:
    """Return the effects of each iteration of a loop, or of each item."""
    return closed(UOp(Op.GROUP, *effects), (i,) if i.op is Op.RANGE else ())


def axes(dtype: DType, choices: Choices, index: int) -> Generated:
    """Launch kernels whose groups have fewer axes than their items, and more."""
    source = Memory(FEW, READ, dtype)
    calls = []
    for k in range(FEW):
        groups, items = AXES[(FEW * index + k) % len(AXES)]
        counters = [
            special(f"{name}{axis}", choices.between(2, 4))
            for name, count in (("gidx", groups), ("lidx", items))
            for axis in range(count)
        ]
        target = Memory(k, prod(map(bound, counters)), dtype)
        element = Memory(1, READ, dtype).load(turned(counters, READ, choices))
        place = Memory(0, target.count, dtype).at(flat(counters))
        body = UOp(Op.SINK, store(place, element))
        calls.append(UOp(Op.CALL, body, target.argument, source.argument))
    return with_contents(UOp(Op.SINK, *calls), choices)


def gates(space: AddrSpace, dtype: DType, choices: Choices, index: int) -> Generated:
    """Store twice into memory that belongs to one item, under gates of both values."""
    items = choices.between(3, 6)
    item = special("lidx0" if space is AddrSpace.LOCAL else "gidx0", items)
    source = Memory(1, READ, dtype)
    opened = _on_and_off(item, source.load(turned((item,), READ, choices)), choices)
    target = Memory(0, items * len(opened), dtype)
    own, first = _own(space, item, len(opened), dtype)
    stores = []
    for k, gate in enumerate(opened):
        place = plus(first, k)
        before, new = (source.load(turned((item,), READ, choices)) for _ in range(2))
        if k % 2:
            new = const(choices.between(1, 9), dtype)
        begun = UOp(Op.AFTER, own, store(at(own, place), before))
        written = UOp(Op.AFTER, own, store(at(begun, place), new, gate))
        result = plus(times(item, len(opened)), k)
        stores.append(target.store(result, load(written, place)))
    return with_contents(launch(UOp(Op.SINK, *stores), target, source), choices)


in_registers, in_local = (partial(gates, space) for space in (AddrSpace.REG, AddrSpace.LOCAL))


def registers(dtype: DType, choices: Choices, index: int) -> Generated:
    """Hold elements in registers of one size at once, and combine them in pairs."""
    item, count = special("gidx0", choices.between(2, 5)), 3
    target, source = Memory(0, count * bound(item), dtype), Memory(1, READ, dtype)
    place = index_const(0)
    own = [register(8 + k, choices.pick((1, 1, 2)), dtype) for k in range(count)]
    elements = (source.load(turned((item,), READ, choices)) for _ in own)
    filled = [store(at(r, place), u) for r, u in zip(own, elements, strict=True)]
    held = [load(UOp(Op.AFTER, r, *filled), place) for r in own]
    stores = [
        target.store(plus(times(item, count), k), UOp(Op.SUB, held[k], held[k - 1]))
        for k in range(count)
    ]
    return with_contents(launch(UOp(Op.SINK, *stores), target, source), choices)


def _on_and_off(item: UOp, element: UOp, choices: Choices) -> list[UOp]:
    """Return gates that are open for no item, for some of them, by data, and for all."""
    items = bound(item)
    some = choices.between(1, items - 1)
    return [
        UOp(Op.CMPLT, item, index_const(0)),
        UOp(Op.CMPLT, item, index_const(some)),
        UOp(Op.CMPLT, index_const(some - 1), item),
        UOp(Op.CMPLT, element, const(3, element.dtype)),
        UOp(Op.CMPLT, item, index_const(items)),
    ]


def _own(space: AddrSpace, item: UOp, width: int, dtype: DType) -> tuple[UOp, UOp]:
    """Return memory and the first of the elements that an item has in it."""
    if space is AddrSpace.REG:
        return register(8, width, dtype), index_const(0)
    return shared(8, bound(item) * width, dtype), times(item, width)


def positions(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read and write the upper half of memories by counters of few bits."""
    calls = []
    for k, narrow in enumerate(NARROW):
        most = int(narrow.max) + 1
        items = choices.between(5, most // 2)
        target, source = Memory(2 * k, most, dtype), Memory(2 * k + 1, most, dtype)
        g = special("gidx0", items)
        down = cast(UOp(Op.SUB, index_const(most - 1), g), narrow)
        up = cast(plus(g, most - items), narrow)
        one, other = choices.shuffled((up, down))
        value = Memory(1, most, dtype).load(one)
        body = UOp(Op.SINK, Memory(0, most, dtype).store(other, value))
        calls.append(UOp(Op.CALL, body, target.argument, source.argument))
    return with_data(UOp(Op.SINK, *calls), choices, values.draw_bits)


def _copy(dtype: DType, choices: Choices, index: int) -> Generated:
    """Move elements bit by bit; where a gate is false the result is alt or the old contents."""
    n = choices.pick((7, 16, 65))
    target, source = memories = Memory(0, n, dtype), Memory(1, n, dtype)
    g = special("gidx0", n)
    step = choices.pick([k for k in (1, 3, 5, n - 1) if np.gcd(k, n) == 1])
    place = modulo(plus(times(g, step), choices.below(n)), n)
    alt = source.load(index_const(choices.below(n)))
    inside = UOp(Op.CMPLT, g, index_const(choices.between(1, n)))
    value = UOp(Op.LOAD, source.at(plus(g, 0)), alt, inside)
    gates = (UOp(Op.CMPNE, place, index_const(choices.below(n))),) if choices.chance(50) else ()
    body = UOp(Op.SINK, target.store(place, value, *gates))
    return with_data(launch(body, *memories), choices, values.draw_bits)


def branches(dtype: DType, choices: Choices, index: int) -> Generated:
    """List several stores before a branch, in it and in a branch inside, and one after it."""
    n = choices.between(5, 33)
    *targets, source = memories = [Memory(slot, n, dtype) for slot in range(4)]
    g, listing = special("gidx0", n), Listing()
    odd = [k for k in range(1, n) if np.gcd(k, n) == 1]
    turns = [plus(times(g, choices.pick(odd)), choices.below(n)) for _ in range(8)]
    # Listed first, so that a branch holds nothing but its stores.
    read = [listing.do(source.load(modulo(i, n))) for i in turns]
    places = [listing.do(m.at(modulo(i, n))) for m, i in zip(targets, turns, strict=False)]

    def write(count: int) -> None:
        for place in choices.shuffled(places)[:count]:
            listing.do(store(place, choices.pick(read)))

    def gate() -> UOp:
        turned = modulo(times(g, choices.pick(odd)), n)
        return UOp(Op.CMPLT, turned, index_const(choices.between(1, n - 1)))

    write(3)
    with listing.where(gate()):
        write(2)
        with listing.where(gate()):
            write(2)
        write(1)
    write(1)
    return with_contents(launch(listing.body, *memories), choices)


def affine(dtype: DType, choices: Choices, index: int) -> Generated:
    """Divide what is computed of a counter, and read at remainders of such quotients.

    Numbers are added that may be negative, and the factors have common divisors.
    """
    i, results, source = _counter(choices.between(5, 40), index), [], Memory(1, READ, dtype)
    for k in range(AFFINE):
        a, b, c, divisor = related(choices)
        product, rest = times(i, a), modulo(i, b)
        value = choices.pick(
            (
                plus(product, choices.between(-11, 11)),
                UOp(Op.ADD, product, rest),
                times(UOp(Op.IDIV, i, index_const(b)), c),
                UOp(Op.ADD, times(rest, a), UOp(Op.IDIV, i, index_const(c))),
            )
        )
        divided = UOp(choices.pick(FLOOR_DIVISIONS), value, index_const(divisor))
        read = source.load(modulo(divided, READ))
        results.append(cast(divided, dtype) if k % 2 else read)
    return _results(i, results, dtype, choices, source)


def updated(dtype: DType, choices: Choices, index: int) -> Generated:
    """Update several memories in place, each by what it holds there and a number of its own."""
    n = choices.between(3, 9)
    i, memories = _counter(n, index), [Memory(slot, n, dtype) for slot in range(2 + index // 2 % 3)]
    ops = [choices.pick((Op.ADD, Op.SUB, Op.MUL, Op.MAX)) for _ in memories]
    numbers = choices.shuffled(range(2, 2 + len(memories)))
    effects = [
        m.store(i, UOp(op, m.load(i), const(number, dtype)))
        for m, op, number in zip(memories, ops, numbers, strict=True)
    ]
    return with_contents(launch(UOp(Op.SINK, _of_each(i, effects)), *memories), choices)


def counters(dtype: DType, choices: Choices, index: int) -> Generated:
    """Multiply a counter i by large numbers, add up such products, and read at places i * c % m."""
    wide, source = dtype if dtype.is_int else dtypes.int64, Memory(1, READ, dtype)
    i, products = _counter(choices.between(4, 9), index), []
    # Some of these numbers fit in 32 bits, but their products do not.
    for bits in (30, 31, 32, 40):
        number = (1 << bits) - 1 - choices.below(1 << bits - 2)
        products.append(UOp(Op.MUL, cast(i, wide), const(number, wide)))
    sums = (UOp(Op.ADD, *choices.shuffled(products)[:2]) for _ in range(2))
    turns = (modulo(times(i, c), m) for c, m in choices.shuffled(TURNS)[:4])
    results = [cast(u, dtype) for u in (*products[:2], *sums)]
    results += [source.load(place) for place in turns]
    return _results(i, results, dtype, choices, source)


DENSE: tuple[tuple[Op, str, Callable[[DType, Choices, int], Generated], tuple[DType, ...]], ...] = (
    (Op.GROUP, "effects", nests.effects, (dtypes.int32, dtypes.uint64, dtypes.int8)),
    (Op.REDUCE, "nested", nests.folds, (dtypes.int32, dtypes.uint64, dtypes.int16)),
    (Op.REDUCE, "triangles", nests.triangles, USUAL),
    (Op.REDUCE, "terms", nests.terms, (dtypes.int32, dtypes.float32, dtypes.uint8, dtypes.int64)),
    (Op.REDUCE, "masked", nests.masked, (dtypes.int32, dtypes.float32, dtypes.uint8, dtypes.int64)),
    (Op.REDUCE, "shared", nests.shared_folds, (dtypes.int32, dtypes.int64, dtypes.uint8)),
    (Op.SPECIAL, "axes", axes, USUAL),
    (Op.STORE, "register-gates", in_registers, (dtypes.int32, dtypes.float64, dtypes.int8)),
    (Op.STORE, "local-gates", in_local, (dtypes.uint32, dtypes.float32, dtypes.int64)),
    (Op.BUFFER, "registers-at-once", registers, (dtypes.int32, dtypes.uint8, dtypes.float64)),
    (Op.IF, "branches", branches, USUAL),
    (Op.IDIV, "affine", affine, (dtypes.int32, dtypes.int64, dtypes.int8, dtypes.float32)),
    (Op.STORE, "updated", updated, (dtypes.int32, dtypes.float32, dtypes.uint8, dtypes.int64)),
    (Op.INDEX, "positions", positions, USUAL),
    (Op.END, "overwritten", nests.overwritten, USUAL),
    (Op.STORE, "carried", nests.carried, (dtypes.int32, dtypes.float32, dtypes.uint16)),
    (Op.BARRIER, "neighbours", nests.neighbours, (dtypes.int32, dtypes.bfloat16, dtypes.uint8)),
    (Op.BARRIER, "led", nests.led, USUAL),
    (Op.INDEX, "lanes", lanes, USUAL),
    (Op.MOD, "wrapped", wrapped, USUAL),
    (Op.END, "totals", nests.totals, (dtypes.int32, dtypes.float32, dtypes.uint16)),
    (Op.CAST, "counters", counters, (dtypes.int64, dtypes.float32, dtypes.uint64, dtypes.float64)),
)
"""Kernels with several results each, on few dtypes: what they show does not depend on the dtype."""
