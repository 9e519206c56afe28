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
from uop.conformance.suite.levels.kernel import nests, scalar
from uop.conformance.suite.levels.nodes import cast, store
from uop.interpreter.kernel.fragments import SHAPES
from uop.interpreter.kernel.schedule import bound
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import AddrSpace, AxisType, GetAddrArg, InsArg, WmmaArg
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
            needs = (*scalar.KERNEL_OPS, Op.SPECIAL, Op.CMPLT, Op.CMPNE)
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
    return group("kernel", op, dtype, name, counts, build, *args, needs=(*scalar.KERNEL_OPS, op))


def atomic_sums(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item add its element to one of few sums, some of them under nested gates."""
    sums = choices.between(1, 4)
    items = choices.between(2, MOST_TERMS * sums if dtype.is_float else MOST_ITEMS)
    target, source = memories = scalar.Memory(0, sums, dtype), scalar.Memory(1, items, dtype)
    g, listing = scalar.special("gidx0", items), scalar.Listing()
    place = scalar.modulo(scalar.plus(g, choices.below(5)), sums)
    add = UOp(Op.ATOMICADD, target.at(place), source.load(g))
    _gated(choices, listing, g, add, choices.between(0, MOST_DEEP))
    if choices.chance(30):
        listing.do(UOp(Op.ATOMICADD, target.at(index_const(0)), const(1, dtype)))
    draws = (values.draw_positive, values.draw_positive if dtype.is_float else values.draw_bits)
    return with_data(scalar.launch(listing.body, *memories), choices, *draws)


def atomic_constants(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item of two axes add constants to few sums, some of them once in each iteration."""
    sums, listing = choices.between(2, 3), scalar.Listing()
    target = scalar.Memory(0, sums + 1, dtype)
    items = [scalar.special(name, choices.between(2, 5)) for name in ("gidx0", "lidx0")]
    one, each, first, second = choices.shuffled(range(3, 9))[:4]
    places = (index_const(sums), *(scalar.modulo(item, sums) for item in items))
    for place, number in zip(places, (one, first, second), strict=True):
        listing.do(UOp(Op.ATOMICADD, target.at(place), const(number, dtype)))
    with listing.each(scalar.loop(0, choices.between(2, 5))):
        listing.do(UOp(Op.ATOMICADD, target.at(places[0]), const(each, dtype)))
    return with_data(scalar.launch(listing.body, target), choices, values.draw_within(0, 9))


def _gated(choices: Choices, listing: scalar.Listing, g: UOp, effect: UOp, depth: int) -> None:
    """List the effect inside so many branches, each by the number of the item."""
    if not depth:
        listing.do(effect)
        return
    bound = index_const(choices.between(1, 30))
    spread = scalar.modulo(scalar.times(g, choices.between(1, 5)), 31)
    gate = choices.pick((UOp(Op.CMPLT, g, bound), UOp(Op.CMPLT, spread, bound)))
    with listing.where(gate):
        _gated(choices, listing, g, effect, depth - 1)


def _limited(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold what lies before, behind or at a limit, which comes from the data and may lie outside of
    the loop. A compiler that computes the fold without its loop must clamp the limit.
    """
    n, items = choices.between(3, 6), choices.between(6, 9)
    source, limits = scalar.Memory(1, n, dtype), scalar.Memory(2, items, dtypes.int32)
    g, r = scalar.special("gidx0", items), scalar.loop(0, n, AxisType.REDUCE)
    limit = cast(limits.load(g), dtypes.index)
    pairs = ((r, limit), (limit, r))
    tests = [UOp(Op.CMPLT, *pair) for pair in pairs] + [UOp(Op.CMPEQ, *choices.pick(pairs))]
    few = [const(k, dtype) for k in (0, 1, 2)]
    folds = []
    for op in (Op.ADD, choices.pick(FOLDS)):
        for test in tests:
            chosen = choices.pick((few[1], few[2], source.load(r)))
            folds.append(scalar.folded(op, UOp(Op.WHERE, test, chosen, few[0]), r))
    target = scalar.Memory(0, items * len(folds), dtype)
    body = UOp(Op.SINK, *(target.store(scalar.plus(g, k * items), v) for k, v in enumerate(folds)))
    return with_data(
        scalar.launch(body, target, source, limits), choices, values.draw_within(-3, 9)
    )


def _added(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item add elements in a loop: to a sum of its own, to one of all, to one by turns."""
    items, n = choices.between(1, 4), choices.between(2, 5)
    target, source = scalar.Memory(0, items + 1 + n, dtype), scalar.Memory(1, items * n, dtype)
    g, r, listing = scalar.special("gidx0", items), scalar.loop(0, n), scalar.Listing()
    places = choices.shuffled([g, scalar.modulo(g, 1), scalar.plus(r, items + 1)])
    with listing.each(r):
        element = source.load(UOp(Op.ADD, scalar.times(g, n), r))
        for place in places:
            listing.do(UOp(Op.ATOMICADD, target.at(place), element))
    return with_data(scalar.launch(listing.body, target, source), choices, values.draw_positive)


def distances(dtype: DType, choices: Choices, index: int) -> Generated:
    """Compute how many bytes lie between elements of one buffer."""
    n, count = choices.between(2, 20), choices.between(2, 9)
    target, source = memories = scalar.Memory(0, count, dtypes.uint64), scalar.Memory(1, n, dtype)
    g = scalar.special("gidx0", count)
    places = [scalar.modulo(scalar.plus(g, choices.below(n)), n) for _ in range(2)]
    addresses = (UOp(Op.GETADDR, source.at(i), arg=GetAddrArg("GPU")) for i in places)
    root = scalar.launch(UOp(Op.SINK, target.store(g, UOp(Op.SUB, *addresses))), *memories)
    blank = values.draw_bits(dtypes.uint64, count, 0).astype(np_dtype(dtypes.uint64))
    return program(root, [blank, values.sample(values.draw_bits, dtype, n, choices)])


def named(choices: Choices, index: int) -> Generated:
    """Run every machine instruction that has a name, on elements of any bits."""
    n, dtype = choices.between(5, 70), dtypes.uint32
    target, source = memories = scalar.Memory(0, len(ARITY) * n, dtype), scalar.Memory(1, n, dtype)
    g, stores = scalar.special("gidx0", n), []
    for k, (name, arity) in enumerate(ARITY.items()):
        places = (scalar.modulo(scalar.plus(g, choices.below(n)), n) for _ in range(arity))
        value = UOp(Op.INS, *(source.load(i) for i in places), arg=InsArg(name, dtype))
        stores.append(target.store(scalar.plus(g, k * n), value))
    data = {1: values.sample(values.draw_mixed, dtype, n, choices)}
    return program(scalar.launch(UOp(Op.SINK, *stores), *memories), data)


def matrices(arg: WmmaArg, choices: Choices, index: int) -> Generated:
    """Run one WMMA of one warp on fragments: A, B and acc in slots 1 to 3, the result in slot 0.

    The fragments lie lane after lane. The latitude of WMMA applies, which is wider than that of the
    same sum by tensor ops (D-067).
    """
    sources = _matrices(1, arg)
    target = scalar.Memory(0, sources[2].count, arg.dtype_out)
    lane, listing = scalar.special("lidx0", WARP), scalar.Listing()
    fragments = (s.load(_fragment(lane, s.count)) for s in sources)
    value = UOp(Op.WMMA, *fragments, arg=arg)
    listing.do(target.store(_fragment(lane, target.count), value))
    batches = (
        {s.slot: values.sample(values.draw_ordinary, s.dtype, s.count, choices) for s in sources}
        for _ in range(2)
    )
    return program(scalar.launch(listing.body, target, *sources), *batches)


def accumulated(arg: WmmaArg, choices: Choices, index: int) -> Generated:
    """Add to what WMMAs give that accumulate on constants: elements, a constant, another result."""
    sources = _matrices(0, arg)
    lane, listing = scalar.special("lidx0", WARP), scalar.Listing()
    a, b, elements = (s.load(_fragment(lane, s.count)) for s in sources)

    def constants() -> UOp:
        number = const(choices.between(1, 9), arg.dtype_out)
        return UOp(Op.STACK, *(number for _ in range(elements.shape[0])))

    first, second = (UOp(Op.WMMA, a, b, constants(), arg=arg) for _ in range(2))
    targets = [scalar.Memory(slot, sources[2].count, arg.dtype_out) for slot in (3, 4, 5)]
    for target, added in zip(targets, (elements, constants(), second), strict=True):
        place = target.at(_fragment(lane, target.count))
        listing.do(store(place, UOp(Op.ADD, first, added)))
    return scalar.with_contents(scalar.launch(listing.body, *sources, *targets), choices)


def _matrices(first: int, arg: WmmaArg) -> list[scalar.Memory]:
    """Return memories for A, B and acc in slots from the first on."""
    sizes = (arg.m * arg.k, arg.k * arg.n, arg.m * arg.n)
    kinds = (arg.dtype_in, arg.dtype_in, arg.dtype_out)
    return [*map(scalar.Memory, range(first, first + 3), sizes, kinds)]


def _fragment(lane: UOp, count: int) -> UOp:
    """Return the places of a lane among so many elements."""
    each = count // WARP
    first = scalar.times(lane, each)
    return UOp(Op.STACK, *(scalar.plus(first, k) for k in range(each)))


def lanes(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read and write several elements at once, in any order between the first and the last one.

    Some lanes read the element of another lane, and some have a gate that is closed, of one LOAD
    of all lanes or of one LOAD each.
    """
    items, source = choices.between(2, 5), scalar.Memory(1, READ, dtype)
    g, target, stores = (
        scalar.special("gidx0", items),
        scalar.Memory(0, items * sum(LANES), dtype),
        [],
    )
    for k, n in enumerate(LANES):
        start = scalar.modulo(scalar.times(g, choices.between(1, 3)), READ - n + 1)
        read, written = ([0, *choices.shuffled(range(1, n - 1)), n - 1] for _ in range(2))
        if k % 2:
            read[1] = read[2]
        indices = [scalar.plus(start, lane) for lane in read]
        value = source.load(UOp(Op.STACK, *indices))
        if k > 1:
            most = scalar.plus(start, choices.between(1, n - 1))
            gates = [UOp(Op.CMPLT, i, most) for i in indices]
            others = [const(choices.below(9), dtype) for _ in read]
            if k % 2:
                each = zip(map(source.at, indices), others, gates, strict=True)
                value = UOp(Op.STACK, *(UOp(Op.LOAD, *row) for row in each))
            else:
                stacks = (UOp(Op.STACK, *column) for column in (others, gates))
                value = UOp(Op.LOAD, value.src[0], *stacks)
        first = scalar.plus(scalar.times(g, n), items * sum(LANES[:k]))
        places = UOp(Op.STACK, *(scalar.plus(first, lane) for lane in written))
        stores.append(target.store(places, value))
    return scalar.kernel(choices, stores, target, source)


def wrapped(dtype: DType, choices: Choices, index: int) -> Generated:
    """Divide i + k by the count of i, and compare them: some sums reach it, others exceed it."""
    i, results = _counter(choices.between(4, 9), index), []
    n = bound(i)
    source, end = scalar.Memory(1, 2 * n, dtype), index_const(n)
    for k in (0, 1, choices.between(2, n)):
        later = scalar.plus(i, k)
        results += [source.load(UOp(Op.MOD, later, end))]
        results += [cast(UOp(op, later, end), dtype) for op in (Op.IDIV, Op.MOD, Op.CMPLT)]
        results += [cast(UOp(Op.MOD, scalar.times(later, 2), scalar.plus(end, k)), dtype)]
    return _results(i, results, dtype, choices, source)


def _counter(n: int, index: int) -> UOp:
    """Return a loop of so many iterations, or in every second program as many items."""
    return scalar.loop(0, n) if index % 2 else scalar.special("gidx0", n)


def _results(
    i: UOp, stored: Sequence[UOp], dtype: DType, choices: Choices, *sources: scalar.Memory
) -> Generated:
    """Return a kernel that stores the values of each iteration of a loop, or of each item."""
    target = scalar.Memory(0, bound(i) * len(stored), dtype)
    return scalar.kernel(
        choices, [scalar.of_each(i, target.side_by_side(i, stored))], target, *sources
    )


def axes(dtype: DType, choices: Choices, index: int) -> Generated:
    """Launch kernels whose groups have fewer axes than their items, and more."""
    source = scalar.Memory(FEW, READ, dtype)
    calls = []
    for k in range(FEW):
        groups, items = AXES[(FEW * index + k) % len(AXES)]
        counters = [
            scalar.special(f"{name}{axis}", choices.between(2, 4))
            for name, count in (("gidx", groups), ("lidx", items))
            for axis in range(count)
        ]
        target = scalar.Memory(k, prod(map(bound, counters)), dtype)
        element = scalar.Memory(1, READ, dtype).load(scalar.turned(counters, READ, choices))
        place = scalar.Memory(0, target.count, dtype).at(scalar.flat(counters))
        body = UOp(Op.SINK, store(place, element))
        calls.append(UOp(Op.CALL, body, target.argument, source.argument))
    return scalar.with_contents(UOp(Op.SINK, *calls), choices)


def gates(space: AddrSpace, dtype: DType, choices: Choices, index: int) -> Generated:
    """Store twice into memory that belongs to one item, under gates of both values."""
    items = choices.between(3, 6)
    item = scalar.special("lidx0" if space is AddrSpace.LOCAL else "gidx0", items)
    source = scalar.Memory(1, READ, dtype)
    opened = _on_and_off(item, source.load(scalar.turned((item,), READ, choices)), choices)
    target = scalar.Memory(0, items * len(opened), dtype)
    if space is AddrSpace.REG:
        own, first = scalar.register(8, len(opened), dtype), index_const(0)
    else:
        own, first = scalar.shared(8, target.count, dtype), scalar.times(item, len(opened))
    found = []
    for k, gate in enumerate(opened):
        place = scalar.plus(first, k)
        before, new = (source.load(scalar.turned((item,), READ, choices)) for _ in range(2))
        if k % 2:
            new = const(choices.between(1, 9), dtype)
        begun = UOp(Op.AFTER, own, store(scalar.at(own, place), before))
        found.append(
            scalar.load(UOp(Op.AFTER, own, store(scalar.at(begun, place), new, gate)), place)
        )
    return scalar.kernel(choices, target.side_by_side(item, found), target, source)


def registers(dtype: DType, choices: Choices, index: int) -> Generated:
    """Hold elements in registers of one size at once, and combine them in pairs."""
    item, count = scalar.special("gidx0", choices.between(2, 5)), 3
    target, source = scalar.Memory(0, count * bound(item), dtype), scalar.Memory(1, READ, dtype)
    place = index_const(0)
    own = [scalar.register(8 + k, choices.pick((1, 1, 2)), dtype) for k in range(count)]
    elements = (source.load(scalar.turned((item,), READ, choices)) for _ in own)
    filled = [store(scalar.at(r, place), u) for r, u in zip(own, elements, strict=True)]
    held = [scalar.load(UOp(Op.AFTER, r, *filled), place) for r in own]
    differences = [UOp(Op.SUB, held[k], held[k - 1]) for k in range(count)]
    return scalar.kernel(choices, target.side_by_side(item, differences), target, source)


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


def positions(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read and write the upper half of memories by counters of few bits."""
    calls = []
    for k, narrow in enumerate(NARROW):
        most = int(narrow.max) + 1
        items = choices.between(5, most // 2)
        target, source = scalar.Memory(2 * k, most, dtype), scalar.Memory(2 * k + 1, most, dtype)
        g = scalar.special("gidx0", items)
        down = cast(UOp(Op.SUB, index_const(most - 1), g), narrow)
        up = cast(scalar.plus(g, most - items), narrow)
        one, other = choices.shuffled((up, down))
        value = scalar.Memory(1, most, dtype).load(one)
        body = UOp(Op.SINK, scalar.Memory(0, most, dtype).store(other, value))
        calls.append(UOp(Op.CALL, body, target.argument, source.argument))
    return with_data(UOp(Op.SINK, *calls), choices, values.draw_bits)


def _copy(dtype: DType, choices: Choices, index: int) -> Generated:
    """Move elements bit by bit; where a gate is false the result is alt or the old contents."""
    n = choices.pick((7, 16, 65))
    target, source = memories = scalar.Memory(0, n, dtype), scalar.Memory(1, n, dtype)
    g = scalar.special("gidx0", n)
    step = choices.pick([k for k in (1, 3, 5, n - 1) if np.gcd(k, n) == 1])
    place = scalar.modulo(scalar.plus(scalar.times(g, step), choices.below(n)), n)
    alt = source.load(index_const(choices.below(n)))
    inside = UOp(Op.CMPLT, g, index_const(choices.between(1, n)))
    value = UOp(Op.LOAD, source.at(scalar.plus(g, 0)), alt, inside)
    gates = (UOp(Op.CMPNE, place, index_const(choices.below(n))),) if choices.chance(50) else ()
    body = UOp(Op.SINK, target.store(place, value, *gates))
    return with_data(scalar.launch(body, *memories), choices, values.draw_bits)


def branches(dtype: DType, choices: Choices, index: int) -> Generated:
    """List several stores before a branch, in it and in a branch inside, and one after it."""
    n = choices.between(5, 33)
    *targets, source = memories = [scalar.Memory(slot, n, dtype) for slot in range(4)]
    g, listing = scalar.special("gidx0", n), scalar.Listing()
    odd = [k for k in range(1, n) if np.gcd(k, n) == 1]
    turns = [scalar.plus(scalar.times(g, choices.pick(odd)), choices.below(n)) for _ in range(8)]
    # Listed first, so that a branch holds nothing but its stores.
    read = [listing.do(source.load(scalar.modulo(i, n))) for i in turns]
    places = [listing.do(m.at(scalar.modulo(i, n))) for m, i in zip(targets, turns, strict=False)]

    def write(count: int) -> None:
        for place in choices.shuffled(places)[:count]:
            listing.do(store(place, choices.pick(read)))

    def gate() -> UOp:
        place = scalar.modulo(scalar.times(g, choices.pick(odd)), n)
        return UOp(Op.CMPLT, place, index_const(choices.between(1, n - 1)))

    write(3)
    with listing.where(gate()):
        write(2)
        with listing.where(gate()):
            write(2)
        write(1)
    write(1)
    return scalar.with_contents(scalar.launch(listing.body, *memories), choices)


def affine(dtype: DType, choices: Choices, index: int) -> Generated:
    """Divide what is computed of a counter, and read at remainders of such quotients.

    Numbers are added that may be negative, and the factors have common divisors.
    """
    i, results, source = _counter(choices.between(5, 40), index), [], scalar.Memory(1, READ, dtype)
    for k in range(AFFINE):
        a, b, c, divisor = related(choices)
        product, rest = scalar.times(i, a), scalar.modulo(i, b)
        value = choices.pick(
            (
                scalar.plus(product, choices.between(-11, 11)),
                UOp(Op.ADD, product, rest),
                scalar.times(UOp(Op.IDIV, i, index_const(b)), c),
                UOp(Op.ADD, scalar.times(rest, a), UOp(Op.IDIV, i, index_const(c))),
            )
        )
        divided = UOp(choices.pick(FLOOR_DIVISIONS), value, index_const(divisor))
        read = source.load(scalar.modulo(divided, READ))
        results.append(cast(divided, dtype) if k % 2 else read)
    return _results(i, results, dtype, choices, source)


def updated(dtype: DType, choices: Choices, index: int) -> Generated:
    """Update several memories in place, each by what it holds there and a number of its own."""
    n = choices.between(3, 9)
    i, memories = (
        _counter(n, index),
        [scalar.Memory(slot, n, dtype) for slot in range(2 + index // 2 % 3)],
    )
    ops = [choices.pick((Op.ADD, Op.SUB, Op.MUL, Op.MAX)) for _ in memories]
    numbers = choices.shuffled(range(2, 2 + len(memories)))
    effects = [
        m.store(i, UOp(op, m.load(i), const(number, dtype)))
        for m, op, number in zip(memories, ops, numbers, strict=True)
    ]
    return scalar.kernel(choices, [scalar.of_each(i, effects)], *memories)


def counters(dtype: DType, choices: Choices, index: int) -> Generated:
    """Multiply a counter i by large numbers, add up such products, and read at places i * c % m."""
    wide, source = dtype if dtype.is_int else dtypes.int64, scalar.Memory(1, READ, dtype)
    i, products = _counter(choices.between(4, 9), index), []
    # Some of these numbers fit in 32 bits, but their products do not.
    for bits in (30, 31, 32, 40):
        number = (1 << bits) - 1 - choices.below(1 << bits - 2)
        products.append(UOp(Op.MUL, cast(i, wide), const(number, wide)))
    sums = (UOp(Op.ADD, *choices.shuffled(products)[:2]) for _ in range(2))
    turns = (scalar.modulo(scalar.times(i, c), m) for c, m in choices.shuffled(TURNS)[:4])
    results = [cast(u, dtype) for u in (*products[:2], *sums)]
    results += [source.load(place) for place in turns]
    return _results(i, results, dtype, choices, source)


in_registers, in_local = (partial(gates, space) for space in (AddrSpace.REG, AddrSpace.LOCAL))
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
