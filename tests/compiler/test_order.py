"""Order: an effect waits for those that it depends on, and for no other."""

from __future__ import annotations

from uop.compiler.stages.order import Order, free_slots
from uop.spec.args import BufferArg
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param

A, B, C = (UOp(Op.BUFFER, dims((4,)), arg=BufferArg(slot, dtypes.int32, None)) for slot in range(3))
KERNEL = UOp(Op.SINK)


def waits(call: UOp, position: int) -> tuple[UOp, ...]:
    argument = call.src[1 + position]
    return argument.src[1:] if argument.op is Op.AFTER else ()


def test_a_reader_waits_for_the_writer() -> None:
    order = Order()
    first = order.call(KERNEL, [A], [A])
    second = order.call(KERNEL, [B, A], [B])
    assert waits(first, 0) == waits(second, 0) == ()
    assert waits(second, 1) == (first,)


def test_a_writer_waits_for_the_readers_who_wait_for_the_writer_before() -> None:
    order = Order()
    first = order.call(KERNEL, [A], [A])
    readers = tuple(order.call(KERNEL, [other, A], [other]) for other in (B, C))
    last = order.call(KERNEL, [A], [A])
    assert waits(last, 0) == readers
    assert order.writer[A] is last
    again = order.call(KERNEL, [A], [A])
    assert waits(again, 0) == (last,)
    assert first is not last


def test_the_results_of_a_function_wait_for_what_any_of_them_waits_for() -> None:
    order = Order()
    reader = order.call(KERNEL, [C, A], [C])
    values = UOp(Op.TUPLE, *(param(0, (4,), dtypes.int32) for _ in range(2)))
    order.store(values, [C], [A, B])
    for target in (A, B):
        place = order.writer[target].src[0]
        assert place.src == (target, reader)


def test_free_slots_are_above_those_of_a_program() -> None:
    assert next(free_slots([A, C, UOp(Op.SINK)])) == 3
    assert next(free_slots([A, C], 2)) == 5
    assert next(free_slots([])) == 0
