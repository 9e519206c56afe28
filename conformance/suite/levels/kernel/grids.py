"""Generate level kernel, grids: axes of launches, gates of work items, positions of few bits."""

from __future__ import annotations

from math import prod

from uop.conformance.suite.choices import Choices, between, shuffled
from uop.conformance.suite.levels.group import Generated, program
from uop.conformance.suite.levels.kernel.scalar import (
    Memory,
    at,
    flat,
    launch,
    load,
    plus,
    register,
    special,
    times,
    turned,
    with_contents,
)
from uop.conformance.suite.levels.nodes import cast, dims, store
from uop.conformance.suite.values import draw_bits, sample
from uop.interpreter.kernel.schedule import bound
from uop.spec.args import AddrSpace, BufferArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

READ = 23
AXES = ((1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2), (0, 2), (3, 0), (2, 2))
"""How many axes the workgroups of a launch have, and the items of each group."""
FEW = 3
NARROW = (dtypes.uint8, dtypes.int8)


def axes(dtype: DType, choices: Choices, index: int) -> Generated:
    """Launch kernels whose groups have fewer axes than their items, and more."""
    source = Memory(FEW, READ, dtype)
    calls = []
    for k in range(FEW):
        groups, items = AXES[(FEW * index + k) % len(AXES)]
        counters = [
            special(f"{name}{axis}", between(choices, 2, 4))
            for name, count in (("gidx", groups), ("lidx", items))
            for axis in range(count)
        ]
        target = Memory(k, prod(map(bound, counters)), dtype)
        element = load(Memory(1, READ, dtype).param, turned(counters, READ, choices))
        place = at(Memory(0, target.count, dtype).param, flat(counters))
        body = UOp(Op.SINK, store(place, element))
        calls.append(UOp(Op.CALL, body, target.argument, source.argument))
    return with_contents(UOp(Op.SINK, *calls), choices)


def register_gates(dtype: DType, choices: Choices, index: int) -> Generated:
    """Store twice into registers, under gates of both values."""
    return _gates(AddrSpace.REG, dtype, choices)


def local_gates(dtype: DType, choices: Choices, index: int) -> Generated:
    """Store twice into elements of LOCAL memory that belong to one item, under such gates."""
    return _gates(AddrSpace.LOCAL, dtype, choices)


def _gates(space: AddrSpace, dtype: DType, choices: Choices) -> Generated:
    items = between(choices, 3, 6)
    item = special("lidx0" if space is AddrSpace.LOCAL else "gidx0", items)
    source = Memory(1, READ, dtype)
    gates = _on_and_off(item, load(source.param, turned((item,), READ, choices)), choices)
    target = Memory(0, items * len(gates), dtype)
    own, first = _own(space, item, len(gates), dtype)
    stores = []
    for k, gate in enumerate(gates):
        place = plus(first, k)
        before, new = (load(source.param, turned((item,), READ, choices)) for _ in range(2))
        if k % 2:
            new = const(between(choices, 1, 9), dtype)
        begun = UOp(Op.AFTER, own, store(at(own, place), before))
        written = UOp(Op.AFTER, own, store(at(begun, place), new, gate))
        result = plus(times(item, len(gates)), k)
        stores.append(store(at(target.param, result), load(written, place)))
    return with_contents(launch(UOp(Op.SINK, *stores), target, source), choices)


def _on_and_off(item: UOp, element: UOp, choices: Choices) -> list[UOp]:
    """Return gates that are open for no item, for some of them, by data, and for all."""
    items = bound(item)
    some = between(choices, 1, items - 1)
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
    shared = UOp(Op.BUFFER, dims((bound(item) * width,)), arg=BufferArg(8, dtype, None, space))
    return shared, times(item, width)


def positions(dtype: DType, choices: Choices, index: int) -> Generated:
    """Read and write the upper half of memories by counters of few bits."""
    calls, memories = [], []
    for k, narrow in enumerate(NARROW):
        most = int(narrow.max) + 1
        items = between(choices, 5, most // 2)
        target, source = Memory(2 * k, most, dtype), Memory(2 * k + 1, most, dtype)
        g = special("gidx0", items)
        down = cast(UOp(Op.SUB, index_const(most - 1), g), narrow)
        up = cast(plus(g, most - items), narrow)
        one, other = shuffled(choices, (up, down))
        value = load(Memory(1, most, dtype).param, one)
        body = UOp(Op.SINK, store(at(Memory(0, most, dtype).param, other), value))
        calls.append(UOp(Op.CALL, body, target.argument, source.argument))
        memories += [target, source]
    data = [sample(draw_bits, m.dtype, m.count, choices) for m in memories]
    return program(UOp(Op.SINK, *calls), data)
