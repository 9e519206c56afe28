"""Generate level graph, streams: values that are carried from part to part and from step to step.

Each program holds every step of its kind, each on buffers of its own.

- streamed: folds, counts, proportions and sums of a row, tile by tile; caches that are masked and
  read; places that are computed, then written to.
- stepped: steps of training that need what a buffer counts, or the size of all slopes.
- run-again: a program that runs again and again, on the same data or on data that differ in one
  thing, and on the first data.
- stored-otherwise: a program whose buffers have other shapes of as many elements, or other dtypes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.memory.buffers import (
    Memory,
    Steps,
    contiguous,
    in_turn,
    indexed,
    larger,
    less,
    minus,
    numbered,
    one_more,
    part_of,
    plus,
    scaled,
    steps_on,
    times,
    where,
)
from uop.conformance.suite.levels.graph.steps import MEMORY
from uop.conformance.suite.levels.group import Generated, Group, group, program, with_data
from uop.conformance.suite.levels.nodes import cast, expand, fold, reshape, store
from uop.conformance.suite.values import Draw, array, draw_ordinary, draw_positive, draw_within
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import PadFill
from uop.spec.dtype import DType, dtypes
from uop.spec.graph import slot_of
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const, param

FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16)
KINDS = (dtypes.int32, dtypes.uint8, *FLOATS)
AGAIN = (dtypes.int32, dtypes.float32, dtypes.uint8, dtypes.float64, dtypes.bfloat16)
OTHERWISE = (dtypes.int32, dtypes.uint32, dtypes.float32, dtypes.int8, dtypes.uint8)
SHAPES = ((4, 4), (2, 8), (8, 2), (1, 16), (16, 1))
TILES, WIDTH = 3, 3
"""How many tiles a row has, and how long each is."""
ROWS, COLUMNS = 5, 3
"""The shape of a cache."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    made, needs = partial(group, "graph", None), (*MEMORY, Op.ADD, Op.REDUCE)
    for dtype in vocabulary.of_dtypes(KINDS):
        args = STREAMED + STREAMED_FLOATS * dtype.is_float, dtype, vocabulary
        yield made(dtype, "streamed", (1, 3, 12), _steps, *args, needs=needs)
    for dtype in vocabulary.of_dtypes(FLOATS):
        args = STEPPED, dtype, vocabulary
        yield made(dtype, "stepped", (1, 3, 12), _steps, *args, needs=needs)
    for dtype in vocabulary.of_dtypes(AGAIN):
        yield made(dtype, "run-again", (1, 2, 8), _again, dtype, vocabulary, needs=needs)
    for dtype in vocabulary.of_dtypes(OTHERWISE):
        if not all(map(vocabulary.speaks, _stores(dtype, SHAPES[0]))):
            continue
        few = len(SHAPES) if dtype is OTHERWISE[0] else 1
        yield made(
            dtype, "stored-otherwise", (few, few, len(SHAPES)), _otherwise, dtype, needs=needs
        )


def _steps(
    steps: Steps, dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    return steps_on(Memory(choices, dtype, 5 + index % 3), Op.SINK, steps, vocabulary)


_equal, _not_equal = (partial(UOp, op) for op in (Op.CMPEQ, Op.CMPNE))
_power, _root = (partial(UOp, op) for op in (Op.EXP2, Op.SQRT))
_divided = partial(UOp, Op.DIV)


def _number(value: float, u: UOp) -> UOp:
    """Return an array like another one, of one number."""
    return expand(reshape(const(value, u.dtype), (1,) * len(u.shape)), u.shape)


def _wide(u: UOp, like: UOp) -> UOp:
    """Return an array of one element in the shape of another one."""
    return expand(reshape(u, (1,) * len(like.shape)), like.shape)


def _all(op: Op, u: UOp) -> UOp:
    return reshape(fold(op, u, range(len(u.shape))), (1,))


def _if(gate: UOp, u: UOp) -> UOp:
    """Return the elements where a gate is open, and zeros."""
    return where(gate, u, _number(0, u))


def _smaller(u: UOp, v: UOp) -> UOp:
    return where(less(u, v), u, v)


def _earlier(n: int) -> UOp:
    """Return a matrix of whether the number of a row is below that of a column."""
    return less(expand(numbered(n, n, 1), (n, n)), expand(numbered(n, 1, n), (n, n)))


def _columns(u: UOp) -> UOp:
    """Return a matrix whose rows each repeat one element of a vector."""
    n = u.shape[0]
    return expand(reshape(u, (n, 1)), (n, n))


def _counted_before(gate: UOp) -> UOp:
    """Return how many gates are open before each one."""
    n = gate.shape[0]
    open_before = UOp(Op.AND, _columns(gate), _earlier(n))
    return reshape(fold(Op.ADD, cast(open_before, dtypes.int32), (0,)), (n,))


def _few(m: Memory, *shape: int) -> UOp:
    return m.input(*shape, draw=_whole(m))


def _whole(m: Memory) -> Draw:
    """Draw whole numbers of which some are equal, below zero where the dtype has such."""
    return draw_within(*(1, 6) if m.dtype is dtypes.uint8 else (-7, -2))


def _least(m: Memory) -> int:
    """Return a number below all of those."""
    return 0 if m.dtype is dtypes.uint8 else -8


def _tiles(*rows: UOp) -> Iterator[tuple[UOp, ...]]:
    for k in range(TILES):
        yield tuple(part_of(u, k * WIDTH, WIDTH) for u in rows)


# Rows in tiles, caches and places.


def _largest_so_far(m: Memory) -> Iterator[UOp]:
    """Keep the largest element so far, how often it occurs, and the sum of what is beside it; as
    values, with memory of their own by turns, and in buffers.
    """

    def further(state: list[UOp], tile: UOp, beside: UOp) -> list[UOp]:
        top, *sums = state
        new = larger(top, _all(Op.MAX, tile))
        is_top, is_old = _equal(tile, _wide(new, tile)), _equal(top, new)
        terms = cast(is_top, m.dtype), _if(is_top, beside)
        pairs = zip(sums, terms, strict=True)
        return [new, *(plus(_if(is_old, u), _all(Op.ADD, term)) for u, term in pairs)]

    beside, numbers = _few(m, TILES * WIDTH), _whole(m)
    rising = m.input(TILES * WIDTH, draw=lambda *drawn: np.sort(numbers(*drawn)))
    falling = m.input(TILES * WIDTH, draw=lambda *drawn: np.sort(numbers(*drawn))[::-1].copy())
    for row in (falling, rising):
        state = [reshape(const(_least(m), m.dtype), (1,))]
        state += [_number(0, state[0])] * 2
        for k, tiles in enumerate(_tiles(row, beside)):
            state = further(state, *tiles)
            if k % 2:
                state = [*map(contiguous, state)]
            yield m.kept(state[2])
        yield from map(m.kept, state[:2])
    first = m.input(1, draw=draw_within(_least(m), _least(m)))
    kept, stores = [m.another(first), *m.buffers(2, 1)], list[UOp]()
    for tiles in _tiles(rising, beside):
        stores += reversed([*map(store, kept, further(kept, *tiles))])
        stores.append(m.kept(plus(*kept[1:])))
    yield in_turn(*stores)


def _sums_so_far(m: Memory) -> Iterator[UOp]:
    """Sum up the elements up to each one, tile by tile, with the sum of the tiles before; fold the
    parts of a row, one of which is short, then what they gave.
    """
    row, out, carry, stores = m.input(TILES * WIDTH), m.buffer(TILES * WIDTH), m.buffer(1), []
    for k, (tile,) in enumerate(_tiles(row)):
        before = _if(_earlier(WIDTH), _columns(tile))
        sums = plus(tile, reshape(fold(Op.ADD, before, (0,)), (WIDTH,)))
        stores += [store(part_of(out, k * WIDTH, WIDTH), plus(sums, _wide(carry, sums)))]
        stores += [store(carry, plus(carry, _all(Op.ADD, tile)))]
    yield in_turn(*stores)
    row, parts = _few(m, 11), m.buffer(3)
    for op in (Op.ADD, Op.MAX):
        cut = [
            store(part_of(parts, k, 1), _all(op, part_of(row, 4 * k, n)))
            for k, n in enumerate((4, 4, 3))
        ]
        yield in_turn(*cut, m.kept(_all(op, parts)))
        inside = less(numbered(12, 12), const(11, dtypes.int32))
        padded = nodes.pad(row, (0,), (12,), PadFill.ZERO)
        filled = padded if op is Op.ADD else where(inside, padded, _number(m.dtype.min, padded))
        yield m.kept(_all(op, contiguous(fold(op, reshape(filled, (3, 4)), (1,)))))


def _attended(m: Memory) -> Iterator[UOp]:
    """Append a key and a value twice, each time at a number that goes on, and sum up the values of
    the keys that fit best, up to that number.
    """
    keys, values = (m.another(_few(m, ROWS, COLUMNS)) for _ in range(2))
    number, stores = m.another(m.numbers(0, ROWS - 3, 1)), []
    for _ in range(2):
        query = expand(_few(m, 1, COLUMNS), keys.shape)
        scores = fold(Op.ADD, times(keys, query), (1,))
        is_past = UOp(Op.CMPLE, numbered(ROWS, ROWS, 1), _wide(number, scores))
        masked = where(is_past, scores, _number(m.dtype.min, scores))
        chosen = UOp(Op.AND, is_past, _equal(scores, _wide(_all(Op.MAX, masked), scores)))
        found = fold(Op.ADD, _if(expand(chosen, values.shape), values), (0,))
        stores += [store(indexed(u, number), _few(m, 1, COLUMNS)) for u in (keys, values)]
        stores += [m.kept(found), store(number, one_more(number))]
    yield in_turn(*stores)


def _placed(m: Memory) -> Iterator[UOp]:
    """Write elements that fit one after the other, sort by ranks and read them back, and turn an
    order around.
    """
    n, x, y = m.side, _few(m, m.side), _few(m, m.side)
    (out, back), count = m.buffers(2, n), m.another(m.numbers(0, 9, 1))
    fits = less(x, y)
    place = _counted_before(fits)
    packed = store(indexed(out, place), x, fits)
    number = store(count, _all(Op.ADD, cast(fits, dtypes.int32)))
    behind = UOp(Op.CMPLE, _wide(count, place), numbered(n, n))
    yield in_turn(packed, number, store(out, y, behind))
    yield in_turn(packed, store(back, indexed(out, place)))
    one, other = _columns(x), nodes.permute(_columns(x), (1, 0))
    comes_first = UOp(Op.OR, less(one, other), UOp(Op.AND, _equal(one, other), _earlier(n)))
    rank = contiguous(reshape(fold(Op.ADD, cast(comes_first, dtypes.int32), (0,)), (n,)))
    sort = store(indexed(out, rank), x)
    yield in_turn(sort, store(back, minus(indexed(out, rank), out)))
    order = m.places(n, n)
    inverse = m.another(m.numbers(0, n - 1, n))
    turn = store(indexed(inverse, order), numbered(n, n))
    yield in_turn(turn, m.kept(indexed(x, order)), m.kept(indexed(x, inverse)))


def _by_number(m: Memory) -> Iterator[UOp]:
    """Sum up by number, give each element the sum of its number back, and write some rows alone."""
    n, x, numbers = m.side, _few(m, m.side), m.numbers(-1, 3, m.side)
    hot = _equal(expand(reshape(numbers, (n, 1)), (n, 3)), expand(numbered(3, 1, 3), (n, 3)))
    sums = contiguous(
        reshape(fold(Op.ADD, _if(hot, expand(reshape(x, (n, 1)), (n, 3))), (0,)), (3,))
    )
    is_known = UOp(
        Op.AND, less(const(-1, dtypes.int32), numbers), less(numbers, const(3, dtypes.int32))
    )
    there = indexed(sums, where(is_known, numbers, _number(0, numbers)))
    yield m.kept(minus(x, _if(is_known, there)))
    table, moved, rows, slope = *m.buffers(2, ROWS, COLUMNS), m.places(ROWS, 2), m.input(2, COLUMNS)
    new = plus(scaled(indexed(moved, rows), 3), slope)
    step = store(indexed(table, rows), minus(indexed(table, rows), indexed(moved, rows)))
    yield in_turn(store(indexed(moved, rows), new), step)


def _narrowed(m: Memory) -> Iterator[UOp]:
    """Store what loses bits, or its sign, and read it from there."""
    x = m.input(m.side) if m.dtype.is_float else m.input(m.side, dtype=dtypes.int32)
    kinds = (dtypes.bfloat16,) if m.dtype.is_float else (dtypes.int8, dtypes.uint8, dtypes.bool)
    value = times(x, scaled(x, 37))
    for kind in kinds:
        narrow = m.another(m.input(m.side, dtype=kind))
        yield in_turn(store(narrow, cast(value, kind)), m.kept(cast(narrow, m.dtype)))


def _powers_so_far(m: Memory) -> Iterator[UOp]:
    """Sum up powers, and what they weight, less the largest so far, which scales what was summed
    before; masks leave elements out.
    """
    row, beside = (m.input(TILES * WIDTH) for _ in range(2))
    mask = m.gate(TILES * WIDTH)
    top, total, weighted = (reshape(const(v, m.dtype), (1,)) for v in (-8, 0, 0))
    for k, (tile, other, gate) in enumerate(_tiles(row, beside, mask)):
        seen = where(gate, tile, _number(-8, tile)) if k != 1 else tile
        new = contiguous(larger(top, _all(Op.MAX, seen)))
        powers, scale = _power(minus(seen, _wide(new, seen))), _power(minus(top, new))
        total = plus(times(total, scale), _all(Op.ADD, powers))
        weighted = plus(times(weighted, scale), _all(Op.ADD, times(powers, other)))
        top = new
        yield m.kept(_divided(weighted, total))
    yield from map(m.kept, (top, total))


STREAMED: Steps = (_largest_so_far, _sums_so_far, _attended, _placed, _by_number, _narrowed)
STREAMED_FLOATS: Steps = (_powers_so_far,)


# Steps of training.


def _tied(m: Memory) -> Iterator[UOp]:
    """Move weights of two buffers by slopes, each of which needs those of the other one."""
    one, other = m.buffers(2, 1, m.side)
    x = m.input(3, m.side)
    slopes = [times(expand(u, x.shape), x) for u in (other, one)]
    moves = [
        store(u, minus(u, fold(Op.ADD, slope, (0,))))
        for u, slope in zip((one, other), slopes, strict=True)
    ]
    yield in_turn(*moves)


def _corrected(m: Memory) -> Iterator[UOp]:
    """Move weights by means of slopes and of their squares, corrected by powers that buffers keep;
    weights decay apart, or with the slope.
    """
    for is_apart in (False, True):
        weight, first, last = m.buffers(3, m.side)
        second = m.another(m.input(m.side, draw=draw_positive))
        powers, stores = [m.another(_one(m)) for _ in range(2)], []
        for slope in (m.input(m.side), m.input(m.side)):
            decay = times(weight, _number(0.125, weight))
            if not is_apart:
                slope = plus(slope, decay)
            terms = (first, slope, 0.5), (second, times(slope, slope), 0.75)
            stores += [store(u, _mixed(u, new, part)) for u, new, part in terms]
            stores += [
                store(u, times(u, _number(part, u)))
                for u, part in zip(powers, (0.5, 0.75), strict=True)
            ]
            mean, square = (
                _divided(u, _wide(minus(_number(1, power), power), u))
                for u, power in zip((first, second), powers, strict=True)
            )
            step = _divided(mean, plus(_root(square), _number(0.25, square)))
            stores += [store(weight, minus(weight, plus(step, decay) if is_apart else step))]
        yield in_turn(*stores, store(last, weight))


def _mixed(old: UOp, new: UOp, part: float) -> UOp:
    """Return a mean of two values by the part of the first."""
    return plus(times(old, _number(part, old)), times(new, _number(1 - part, new)))


def _one(m: Memory) -> UOp:
    """Return an input of one element, which is 1."""
    return m.input(1, draw=draw_within(1, 1))


def _ahead(m: Memory) -> Iterator[UOp]:
    """Move weights by the velocity ahead and by the velocity, follow them by a mean, before and
    after they move, and exchange them with it for a time.
    """
    weight, velocity, mean, held = m.buffers(4, m.side)
    slope = m.input(m.side)
    gain = store(velocity, plus(times(velocity, _number(0.75, velocity)), slope))
    ahead = plus(slope, times(velocity, _number(0.75, velocity)))
    follow = store(mean, _mixed(mean, weight, 0.875))
    for step in (ahead, velocity):
        move = store(weight, minus(weight, step))
        for stores in ((gain, move, follow), (follow, gain, move), (gain, follow, move)):
            yield in_turn(*stores)
    exchange = store(held, weight), store(weight, mean)
    back = m.kept(_all(Op.MAX, weight)), store(weight, held)
    yield in_turn(*exchange, *back, store(mean, minus(mean, weight)))


def _held_back(m: Memory) -> Iterator[UOp]:
    """Shorten slopes by the length of all; leave a step out where the scale made one infinite, and
    in every second step; count the steps that were good.
    """
    for limit in (1.0, 64.0):
        weights, slopes = m.buffers(2, m.side), [m.input(m.side) for _ in range(2)]
        squares = plus(*(_all(Op.ADD, times(u, u)) for u in slopes))
        part = _smaller(_divided(_number(limit, squares), _root(squares)), _number(1, squares))
        yield from (
            store(w, minus(w, times(u, _wide(part, u))))
            for w, u in zip(weights, slopes, strict=True)
        )
    weight, scale, good = m.buffer(m.side), m.another(_one(m)), m.another(m.numbers(0, 1, 1))
    stores = []
    for most in (m.dtype.max, 4, m.dtype.max):
        slope = m.input(m.side)
        large = _if(less(_number(0, slope), slope), times(_number(most, slope), _number(2, slope)))
        size = _all(Op.MAX, times(large if most > 4 else slope, _wide(scale, slope)))
        finite = _equal(minus(size, size), _number(0, size))
        step = _divided(slope, _wide(scale, slope))
        stores += [store(weight, minus(weight, step), _wide(finite, weight))]
        stores += [store(good, where(finite, one_more(good), _number(0, good)))]
        stores += [store(scale, where(finite, scaled(scale, 2), times(scale, _number(0.5, scale))))]
    yield in_turn(*stores)
    count, stores = m.another(m.numbers(0, 3, 1)), []
    for _ in range(3):
        is_odd = _equal(UOp(Op.MOD, count, const(2, count.dtype)), _number(1, count))
        new = minus(weight, m.input(m.side))
        stores += [store(weight, new, _wide(is_odd, weight)), store(count, one_more(count))]
    yield in_turn(*stores)


def _normalised(m: Memory) -> Iterator[UOp]:
    """Return columns less their mean in proportion to their spread, and keep means and spreads,
    before or after they are used instead.
    """
    n, shape = 5, (1, COLUMNS)
    for is_later in (False, True):
        mean, spread = m.buffer(*shape), m.another(m.input(*shape, draw=draw_positive))
        stores = []
        for _ in range(2):
            x = m.input(n, COLUMNS)
            own = times(fold(Op.ADD, x, (0,)), _number(1 / n, mean))
            rest = minus(x, expand(own, x.shape))
            squares = fold(Op.ADD, times(rest, rest), (0,))
            variance = times(squares, _number(1 / n, squares))
            root = _root(plus(variance, _number(0.25, variance)))
            out = m.kept(_divided(rest, expand(root, x.shape)))
            unbiased = times(squares, _number(1 / (n - 1), squares))
            keep = (
                store(mean, _mixed(mean, own, 0.75)),
                store(spread, _mixed(spread, unbiased, 0.75)),
            )
            far = minus(x, expand(mean, x.shape))
            used = _divided(far, expand(_root(plus(spread, _number(0.25, spread))), x.shape))
            stores += [*keep, out, m.kept(used)] if is_later else [m.kept(used), out, *keep]
        yield in_turn(*stores)


STEPPED: Steps = (_tied, _corrected, _ahead, _held_back, _normalised)


# Programs that run again.


def _again(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Compute of each input and buffer, and of constants, and update each buffer in its own way."""
    n = 6 + index % 3
    m = Memory(choices, dtype, n)
    x, y, gate, places = m.input(n), m.input(n), m.gate(n), m.places(n, n)
    buffers = own, kept, row = m.buffers(3, n)
    one, count = m.input(), m.input(dtype=dtypes.int32, draw=draw_within(1, 9))
    weights = m.input(3, n)
    product = times(expand(reshape(x, (n, 1)), (n, 3)), nodes.permute(weights, (1, 0)))
    ones, counts = (expand(reshape(u, (1,)), (n,)) for u in (one, cast(count, dtype)))
    numbers = contiguous(cast(numbered(n, n), dtype))
    results = (
        *(plus(x, y), nodes.flip_all(x), _all(Op.ADD, x), _all(Op.MAX, y), indexed(x, places)),
        *(where(gate, x, y), nodes.pad(x, (1,), (n + 2,), PadFill.ZERO), plus(numbers, x)),
        *(nodes.flip_all(numbers), plus(x, ones), times(counts, y), fold(Op.ADD, product, (0,))),
        nodes.after(own, plus(own, x)),
        UOp(Op.AFTER, kept, store(kept, y, gate)),
        UOp(Op.AFTER, row, store(part_of(row, 1, n - 2), part_of(x, 0, n - 2))),
    )
    data = {k: draw() for k, draw in enumerate(m.draws)}
    for k in map(slot_of, (x, y, *buffers)):
        data[k] = array(dtype, map(dtype.encode, choices.shuffled(range(n))))
    more = dtype.format.sign_bit if dtype.is_float else dtype.encode(dtype.max)
    large, other = array(dtype, (dtype.encode(n), more))
    batches = [data, data]
    for u, change in (
        (x, lambda a: _with(a, -1, large)),
        (x, lambda a: _with(a, a == 0, other)),
        (x, lambda a: a[[1, 0, *range(2, n)]]),
        (y, lambda a: a[::-1].copy()),
        (weights, lambda a: a[::-1].copy()),
        (gate, lambda a: _with(a, 0, ~a[0])),
        (places, lambda a: a[::-1].copy()),
        (own, lambda a: _with(a, -1, large)),
        (kept, lambda a: np.roll(a, 1)),
        (one, lambda a: large if a != large else other),
        (count, lambda a: a + 1),
    ):
        data = data | {slot_of(u): change(data[slot_of(u)])}
        batches.append(data)
    root = UOp(Op.TUPLE, *filter(vocabulary.speaks, results))
    return program(root, *batches, batches[0])


def _with(a: Array, place: int | Array, value: Array) -> Array:
    changed = a.copy()
    changed[place] = value
    return changed


def _otherwise(dtype: DType, choices: Choices, index: int) -> Generated:
    root = UOp(Op.SINK, *_stores(dtype, SHAPES[index % len(SHAPES)]))
    return with_data(root, choices, draw_ordinary, draw_ordinary)


def _stores(dtype: DType, shape: Shape) -> tuple[UOp, UOp]:
    """Update a buffer by itself turned upside down, and fill another one with folds of columns."""
    own, other = (nodes.buffer(slot, shape, dtype) for slot in range(2))
    x = param(2, shape, dtype)
    turned = store(own, larger(nodes.flip(own, (True, False)), x))
    return turned, store(other, expand(fold(Op.ADD, x, (0,)), shape))
