"""Generate level kernel, dependences: what a LOAD reads was stored by another iteration or item.

A compiler that reorders accesses must compare their places, and may not take two PARAMs for two
memories.
"""

from __future__ import annotations

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Generated
from uop.conformance.suite.levels.kernel.scalar import (
    Memory,
    at,
    closed,
    flat,
    launch,
    load,
    loop,
    modulo,
    plus,
    shared,
    special,
    times,
    with_contents,
)
from uop.conformance.suite.levels.nodes import store
from uop.spec.dtype import DType
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

DISTANCE = 3
"""The largest distance between two accesses of one iteration."""


def _op(choices: Choices) -> Op:
    return choices.pick((Op.ADD, Op.SUB, Op.MUL))


def carried(dtype: DType, choices: Choices, index: int) -> Generated:
    """Run loops whose iterations read what others write, by one PARAM or by two of one buffer."""
    effects, arguments = [], []
    for id, form in enumerate(choices.shuffled((_step, _step, _chosen, _chosen, _gated))):
        n = choices.between(4, 12)
        written, source = (Memory(3 * id + k, n + DISTANCE, dtype) for k in (0, 1))
        again = Memory(3 * id + 2, written.count, dtype)
        i = loop(id, n)
        here, there = choices.shuffled(range(DISTANCE + 1))[:2]
        # Every second loop reads the buffer that it writes through a PARAM of its own.
        read = load((again if id % 2 else written).param, plus(i, there))
        new = UOp(_op(choices), read, load(source.param, plus(i, choices.below(DISTANCE))))
        effects.append(UOp(Op.END, form(at(written.param, plus(i, here)), new, read, i), i))
        arguments += [written.argument, source.argument, written.argument]
    return with_contents(UOp(Op.SINK, UOp(Op.CALL, UOp(Op.SINK, *effects), *arguments)), choices)


def _step(place: UOp, new: UOp, read: UOp, i: UOp) -> UOp:
    return store(place, new)


def _chosen(place: UOp, new: UOp, read: UOp, i: UOp) -> UOp:
    """Store the new value or what stands at the other place."""
    return store(place, UOp(Op.WHERE, _every_second(i), new, read))


def _gated(place: UOp, new: UOp, read: UOp, i: UOp) -> UOp:
    return store(place, new, _every_second(i))


def _every_second(i: UOp) -> UOp:
    return UOp(Op.CMPNE, modulo(i, 2), index_const(0))


def totals(dtype: DType, choices: Choices, index: int) -> Generated:
    """Add up elements in memory that each iteration reads anew, and keep what they were."""
    n, effects, memories = choices.between(3, 9), [], []
    for k in range(4):
        total, steps, source = (
            Memory(3 * k + m, count, dtype) for m, count in enumerate((2, n, n))
        )
        i, place = loop(k, n), index_const(choices.below(2))
        held = load(UOp(Op.AFTER, total.param, i), place)
        new = UOp(_op(choices), held, load(source.param, i))
        gate = (_every_second(i),) if k == 3 else ()
        stores = (store(at(total.param, place), new, *gate), store(at(steps.param, i), held))
        effects.append(UOp(Op.END, UOp(Op.GROUP, *stores), i))
        memories += [total, steps, source]
    return with_contents(launch(UOp(Op.SINK, *effects), *memories), choices)


def overwritten(dtype: DType, choices: Choices, index: int) -> Generated:
    """Write elements several times in nested loops, so that the order of iterations shows."""
    rows, columns = choices.between(2, 5), choices.between(2, 5)
    effects, memories = [], []
    for k in range(4):
        i, j = loop(2 * k, rows), loop(2 * k + 1, columns)
        places = (UOp(Op.ADD, i, j), UOp(Op.ADD, times(j, 2), i), modulo(flat((i, j)), rows))
        written = Memory(2 * k, rows + 2 * columns, dtype)
        source = Memory(2 * k + 1, rows * columns, dtype)
        effect = store(at(written.param, choices.pick(places)), load(source.param, flat((i, j))))
        effects.append(closed(effect, (i, j)))
        memories += [written, source]
    return with_contents(launch(UOp(Op.SINK, *effects), *memories), choices)


def neighbours(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item read what other items have stored to LOCAL memories, after a barrier.

    The memories have equal sizes and dtypes. One barrier serves all of them, or each has its own.
    What is read goes through a chain of ops, each of which rounds.
    """
    items, count = choices.between(3, 8), 3
    item = special("lidx0", items)
    target, source = Memory(0, items * count, dtype), Memory(1, items * count, dtype)
    memories = [shared(2 + k, items, dtype) for k in range(count)]
    own = [load(source.param, plus(times(item, count), k)) for k in range(count)]
    stored = [store(at(m, item), value) for m, value in zip(memories, own, strict=True)]
    barriers = [UOp(Op.BARRIER, one) for one in stored]
    if index % 2:
        barriers = [UOp(Op.BARRIER, UOp(Op.GROUP, *stored))] * count
    stores = []
    for k, (memory, barrier) in enumerate(zip(memories, barriers, strict=True)):
        distance = choices.between(1, items - 1)
        turned = UOp(Op.SUB, index_const(items - 1), item)
        place = choices.pick((modulo(plus(item, distance), items), turned))
        value = load(UOp(Op.AFTER, memory, barrier), place)
        for op in (_op(choices) for _ in range(2 * k)):
            value = UOp(op, value, choices.pick((value, own[k], const(3, dtype))))
        stores.append(store(at(target.param, plus(times(item, count), k)), value))
    return with_contents(launch(UOp(Op.SINK, *stores), target, source), choices)


def led(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let one item, or a few, store to LOCAL memories, and every item read them after a barrier."""
    items = choices.between(3, 8)
    item = special("lidx0", items)
    leaders = (1, choices.between(1, items - 1), items - 1)
    target, source = Memory(0, items * len(leaders), dtype), Memory(1, items, dtype)
    own, stores = load(source.param, item), []
    for k, few in enumerate(leaders):
        memory = shared(2 + k, few, dtype)
        place = choices.pick((item, UOp(Op.SUB, index_const(items - 1), item)))
        stored = store(at(memory, place), own, UOp(Op.CMPLT, place, index_const(few)))
        written = UOp(Op.AFTER, memory, UOp(Op.BARRIER, stored))
        value = load(written, modulo(plus(item, choices.below(items)), few))
        result = at(target.param, plus(times(item, len(leaders)), k))
        stores.append(store(result, UOp(_op(choices), value, own)))
    return with_contents(launch(UOp(Op.SINK, *stores), target, source), choices)
