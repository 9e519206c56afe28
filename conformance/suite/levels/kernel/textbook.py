"""Generate level kernel, textbook: the kernels that everybody writes, one of each in a program.

Their sizes are no multiples of 4. They run in loops, in loops of work items, and in work items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Generated
from uop.conformance.suite.levels.kernel.scalar import (
    Listing,
    Memory,
    at,
    closed,
    flat,
    load,
    loop,
    modulo,
    plus,
    shared,
    special,
    times,
    with_contents,
)
from uop.conformance.suite.levels.nodes import cast, store
from uop.spec.args import AxisType, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

SIZES = (3, 5, 6, 7, 9, 10)
KINDS = (AxisType.LOOP, AxisType.GLOBAL, None)
"""In what a kernel runs; None is a work item."""
ITEMS = 4
SIDE = 3
"""The side of a tile."""


@dataclass(slots=True)
class Kernel:
    """One kernel under construction: its memories, and the counters of its outputs."""

    dtype: DType
    choices: Choices
    kind: AxisType | None
    memories: list[Memory] = field(default_factory=list)
    counters: list[UOp] = field(default_factory=list)
    folds: int = 0
    same: dict[int, int] = field(default_factory=dict)
    """The PARAMs that have the buffer of an earlier one."""
    runs: int = 1
    """How often it runs; each run has the buffers of the one before in the other order."""

    def size(self) -> int:
        return self.choices.pick(SIZES)

    def memory(self, count: int, dtype: DType | None = None) -> Memory:
        self.memories.append(Memory(len(self.memories), count, dtype or self.dtype))
        return self.memories[-1]

    def again(self, memory: Memory) -> Memory:
        """Return the same memory by another PARAM."""
        self.memories.append(replace(memory, slot=len(self.memories)))
        self.same[self.memories[-1].slot] = memory.slot
        return self.memories[-1]

    def counter(self, count: int) -> UOp:
        """Return what counts the outputs along an axis."""
        number = len(self.counters)
        one = (
            special(f"gidx{number}", count) if self.kind is None else loop(number, count, self.kind)
        )
        self.counters.append(one)
        return one

    def fold(self, op: Op, count: int, term: Callable[[UOp], UOp]) -> UOp:
        self.folds += 1
        r = loop(9 + self.folds, count, AxisType.REDUCE)
        return UOp(Op.REDUCE, term(r), r, arg=ReduceArg(op, ()))

    def number(self, value: int) -> UOp:
        return const(value, self.dtype)

    def call(self, body: UOp, first: int) -> UOp:
        """Return the CALL of an effect or a LINEAR, with buffers from this slot on."""
        if body.op is not Op.LINEAR:
            body = UOp(Op.SINK, body if self.kind is None else closed(body, self.counters))
        arguments = [
            Memory(first + self.same.get(m.slot, m.slot), m.count, m.dtype).argument
            for m in self.memories
        ]
        call = UOp(Op.CALL, body, *arguments)
        for _ in range(1, self.runs):
            arguments.reverse()
            call = UOp(Op.CALL, body, *(UOp(Op.AFTER, a, call) for a in arguments))
        return call


class Steps(Listing):
    """A LINEAR whose reads stand where they are written."""

    def put(self, memory: UOp, i: UOp, value: UOp, *gate: UOp) -> None:
        self.do(store(at(memory, i), value, *gate))

    def get(self, memory: UOp, i: UOp) -> UOp:
        return self.do(load(self.now(memory), i))


def square(k: Kernel) -> tuple[UOp, UOp, UOp, UOp]:
    """Return the counters of groups and of items, of rows and of columns; axis 0 is either."""
    y, x = (0, 1) if k.choices.chance(50) else (1, 0)
    groups = special(f"gidx{y}", 2), special(f"gidx{x}", 3)
    return *groups, special(f"lidx{y}", SIDE), special(f"lidx{x}", SIDE)


def written(
    kernels: Sequence[Callable[[Kernel], UOp]], dtype: DType, choices: Choices, index: int
) -> Generated:
    """Write each kernel once."""
    calls, slot = [], 0
    for k, build in enumerate(kernels):
        kernel = Kernel(dtype, choices, KINDS[(k + index) % len(KINDS)])
        body = build(kernel)
        calls.append(kernel.call(body, slot))
        slot += len(kernel.memories)
    return with_contents(UOp(Op.SINK, *calls), choices)


def _transposed(k: Kernel) -> UOp:
    n, m = k.size(), k.size()
    out, a = k.memory(n * m), k.memory(n * m)
    i, j = k.counter(n), k.counter(m)
    return out.store(flat((i, j)), a.load(UOp(Op.ADD, times(j, n), i)))


def _reversed(k: Kernel) -> UOp:
    n = k.size()
    out, a, i = k.memory(n), k.memory(n), k.counter(n)
    return out.store(UOp(Op.SUB, index_const(n - 1), i), UOp(Op.ADD, a.load(i), k.number(1)))


def _smoothed(k: Kernel) -> UOp:
    """Add up neighbours; what is beyond an end is a number."""
    n = k.size()
    out, a, i = k.memory(n), k.memory(n), k.counter(n)
    left = UOp(Op.LOAD, a.at(plus(i, -1)), k.number(0), UOp(Op.CMPLT, index_const(0), i))
    right = UOp(Op.LOAD, a.at(plus(i, 1)), k.number(3), UOp(Op.CMPLT, i, index_const(n - 1)))
    return out.store(i, UOp(Op.ADD, UOp(Op.ADD, left, a.load(i)), right))


def _joined(k: Kernel) -> UOp:
    """Write one vector after another one."""
    n, m = k.size(), k.size()
    out, a, b, i = k.memory(n + m), k.memory(n), k.memory(m), k.counter(n + m)
    first = UOp(Op.CMPLT, i, index_const(n))
    second = UOp(Op.CMPLT, index_const(n - 1), i)
    here = UOp(Op.LOAD, a.at(i), k.number(0), first)
    there = UOp(Op.LOAD, b.at(plus(i, -n)), k.number(0), second)
    return out.store(i, UOp(Op.WHERE, first, here, there))


def _gathered(k: Kernel) -> UOp:
    n, m = k.size(), k.size()
    out, a, places = k.memory(n), k.memory(m), k.memory(n, dtypes.int32)
    i = k.counter(n)
    return out.store(i, a.load(modulo(cast(places.load(i), dtypes.index), m)))


def _scattered(k: Kernel) -> UOp:
    """Write to places in another order, to some of them."""
    n = k.choices.pick((5, 7))
    out, a, i = k.memory(n), k.memory(n), k.counter(n)
    return out.store(modulo(times(i, 3), n), a.load(i), UOp(Op.CMPNE, i, index_const(1)))


def _product(k: Kernel) -> UOp:
    n, m, depth = k.size(), k.size(), k.size()
    out, a, b = k.memory(n * m), k.memory(n * depth), k.memory(depth * m)
    i, j = k.counter(n), k.counter(m)

    def term(r: UOp) -> UOp:
        row, column = UOp(Op.ADD, times(i, depth), r), UOp(Op.ADD, times(r, m), j)
        return UOp(Op.MUL, a.load(row), b.load(column))

    return out.store(flat((i, j)), k.fold(Op.ADD, depth, term))


def _centred(k: Kernel) -> UOp:
    """Subtract the largest of its row from each element."""
    n, m = k.size(), k.size()
    out, a = k.memory(n * m), k.memory(n * m)
    i, j = k.counter(n), k.counter(m)
    largest = k.fold(Op.MAX, m, lambda r: a.load(UOp(Op.ADD, times(i, m), r)))
    return out.store(flat((i, j)), UOp(Op.SUB, a.load(flat((i, j))), largest))


def _place_of_largest(k: Kernel) -> UOp:
    """Find the last place of the largest element of each row."""
    n, m = k.size(), k.size()
    out, a, i = k.memory(n, dtypes.int32), k.memory(n * m), k.counter(n)

    def element(r: UOp) -> UOp:
        return a.load(UOp(Op.ADD, times(i, m), r))

    largest = k.fold(Op.MAX, m, element)

    def place(r: UOp) -> UOp:
        is_largest = UOp(Op.CMPNE, element(r), largest)
        return UOp(Op.WHERE, is_largest, const(0, dtypes.int32), cast(r, dtypes.int32))

    return out.store(i, k.fold(Op.MAX, m, place))


def _pooled(k: Kernel) -> UOp:
    """Fold windows of 3 that begin at every second element."""
    n = k.size()
    out, a, i = k.memory(n), k.memory(2 * n + 1), k.counter(n)
    return out.store(i, k.fold(Op.MAX, 3, lambda r: a.load(UOp(Op.ADD, times(i, 2), r))))


def _repeated(k: Kernel) -> UOp:
    """Write each element twice, and add the element at its remainder."""
    n = k.size()
    out, a, i = k.memory(2 * n), k.memory(n), k.counter(2 * n)
    half = UOp(Op.IDIV, i, index_const(2))
    return out.store(i, UOp(Op.SUB, a.load(half), a.load(modulo(i, n))))


def _in_blocks(k: Kernel) -> UOp:
    """Work in blocks of 4, the last of which is not whole."""
    n = k.size()
    out, a = k.memory(n), k.memory(n)
    i = flat((k.counter(-(-n // 4)), k.counter(4)))
    inside = UOp(Op.CMPLT, i, index_const(n))
    element = UOp(Op.LOAD, a.at(i), k.number(0), inside)
    return out.store(i, UOp(Op.MUL, element, k.number(3)), inside)


def _below_diagonal(k: Kernel) -> UOp:
    """Write a matrix up to its diagonal."""
    n = k.size()
    out, a, b = k.memory(n * n), k.memory(n), k.memory(n)
    i, j = k.counter(n), k.counter(n)
    gate = UOp(Op.CMPLT, j, plus(i, 1))
    return out.store(flat((i, j)), UOp(Op.SUB, a.load(i), b.load(j)), gate)


def _in_place(k: Kernel) -> UOp:
    """Update one memory by another one, and by what it holds."""
    n = k.size()
    a, b, i = k.memory(n), k.memory(n), k.counter(n)
    old = a.load(i)
    chosen = UOp(Op.WHERE, UOp(Op.CMPLT, old, b.load(i)), b.load(i), UOp(Op.ADD, old, old))
    return a.store(i, chosen)


def _kept(k: Kernel) -> UOp:
    """Write some elements, and read all of them."""
    n = k.size()
    kept, out, a, i = k.memory(n), k.memory(n), k.memory(n), k.counter(n)
    gate = UOp(Op.CMPLT, k.number(2), a.load(i))
    done = UOp(Op.AFTER, kept.param, kept.store(i, a.load(i), gate))
    return out.store(i, load(done, i))


def _windowed(k: Kernel) -> UOp:
    """Read the window of each place, the first of which begins before the row."""
    n, width = k.size(), k.choices.between(2, 5)
    out, a = k.memory(n * width), k.memory(n + 1)
    i, j = k.counter(n), k.counter(width)
    place = UOp(Op.ADD, times(i, width), plus(j, -1))
    window = plus(UOp(Op.IDIV, place, index_const(width)), 1)
    return out.store(flat((i, j)), a.load(window))


def _looked_up(k: Kernel) -> UOp:
    """Add up one element of a row by its number, which may be none."""
    n, m = k.size(), k.size()
    out, a, numbers = k.memory(n), k.memory(m), k.memory(n, dtypes.int32)
    i = k.counter(n)

    def term(r: UOp) -> UOp:
        is_other = UOp(Op.CMPNE, cast(r, dtypes.int32), numbers.load(i))
        return UOp(Op.WHERE, is_other, k.number(0), a.load(r))

    return out.store(i, k.fold(Op.ADD, m, term))


def _skewed(k: Kernel) -> UOp:
    """Compute each row from the one before, a place further right: the loops have one order."""
    k.kind = AxisType.LOOP
    n, m = k.choices.between(2, 3), k.choices.between(4, 6)
    a = k.memory((n + 1) * m + 1)
    i, j = k.counter(n), k.counter(m)
    here = UOp(Op.ADD, times(i, m), j)
    return a.store(plus(here, m), UOp(Op.ADD, a.load(plus(here, 1)), k.number(3)))


def _counted(k: Kernel) -> UOp:
    """Count how often numbers come."""
    k.kind = None
    n, bins = k.size(), k.size()
    out, numbers = k.memory(bins, dtypes.int32), k.memory(n, dtypes.int32)
    place = modulo(cast(numbers.load(k.counter(n)), dtypes.index), bins)
    return UOp(Op.ATOMICADD, out.at(place), const(1, dtypes.int32))


def _in_two_phases(k: Kernel) -> UOp:
    """Let each item add up its share in LOCAL memory, and one item the shares."""
    rounds = k.choices.between(2, 3)
    out, a = k.memory(1), k.memory(ITEMS * rounds)
    item, shares = special("lidx0", ITEMS), shared(9, ITEMS, k.dtype)
    own = k.fold(Op.ADD, rounds, lambda r: a.load(UOp(Op.ADD, times(r, ITEMS), item)))
    done = UOp(Op.AFTER, shares, UOp(Op.BARRIER, store(at(shares, item), own)))
    total = k.fold(Op.ADD, ITEMS, lambda r: load(done, r))
    return out.store(index_const(0), total, UOp(Op.CMPLT, item, index_const(1)))


KERNELS: tuple[Callable[[Kernel], UOp], ...] = (
    *(_transposed, _reversed, _smoothed, _joined, _gathered, _scattered, _product, _centred),
    *(_place_of_largest, _pooled, _repeated, _in_blocks, _below_diagonal, _in_place, _kept),
    *(_windowed, _looked_up, _skewed, _counted, _in_two_phases),
)
textbook = partial(written, KERNELS)
