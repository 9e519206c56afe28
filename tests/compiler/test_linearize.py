"""linearize: order, loops in one piece, and nothing inside a loop that could stand outside."""

from __future__ import annotations

from uop.compiler.pipeline import compile
from uop.compiler.stages.linearize import instructions
from uop.spec.args import AddrSpace, BufferArg, ParamArg, RangeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

ZERO = index_const(0)


def reg(slot: int) -> UOp:
    return UOp(Op.BUFFER, dims((1,)), arg=BufferArg(slot, dtypes.int32, None, AddrSpace.REG))


def loop(bound: int, id: int) -> UOp:
    return UOp(Op.RANGE, index_const(bound), arg=RangeArg(id))


def accumulate(register: UOp, around: tuple[UOp, ...], value: UOp, *ranges: UOp) -> UOp:
    """The fold of a value over ranges, in a register."""
    fresh = UOp(Op.AFTER, register, *around) if around else register
    start = UOp(Op.STORE, UOp(Op.INDEX, fresh, ZERO), const(0, dtypes.int32))
    at = UOp(Op.INDEX, UOp(Op.AFTER, register, start, *ranges), ZERO)
    effect = UOp(Op.STORE, at, UOp(Op.ADD, UOp(Op.LOAD, at), value))
    for r in reversed(ranges):
        effect = UOp(Op.END, effect, r)
    return UOp(Op.LOAD, UOp(Op.INDEX, UOp(Op.AFTER, register, effect), ZERO))


def test_sources_come_first_and_loops_are_in_one_piece() -> None:
    x = param(0, (4, 5, 6), dtypes.int32)
    program = compile(UOp(Op.REDUCE, UOp(Op.NEG, x), arg=ReduceArg(Op.ADD, (0, 2))))
    (linear,) = (u for u in program.stages["linearize"].toposort() if u.op is Op.LINEAR)
    place = {u: k for k, u in enumerate(linear.src)}
    assert all(place[s] < place[u] for u in linear.src for s in u.src)
    shape = [u.op for u in linear.src if u.op in (Op.RANGE, Op.END, Op.STORE)]
    assert shape == [Op.STORE, Op.RANGE, Op.RANGE, Op.STORE, Op.END, Op.END, Op.STORE]


def test_what_a_loop_does_not_change_stands_before_it() -> None:
    a, b = loop(3, 0), loop(4, 1)
    memory = UOp(Op.PARAM, dims((12,)), arg=ParamArg(0, dtypes.int32, None, AddrSpace.GLOBAL))
    outer = UOp(Op.MUL, a, index_const(4))
    value = UOp(Op.LOAD, UOp(Op.INDEX, memory, UOp(Op.ADD, outer, b)))
    result = accumulate(reg(0), (), value, a, b)
    order = instructions(UOp(Op.SINK, UOp(Op.STORE, UOp(Op.INDEX, memory, ZERO), result)))
    assert order.index(a) < order.index(outer) < order.index(b) < order.index(value)


def test_loops_one_after_the_other_do_not_interleave() -> None:
    a, b = loop(3, 0), loop(4, 1)
    one, two = const(1, dtypes.int32), const(2, dtypes.int32)
    first, second = accumulate(reg(0), (), one, a), accumulate(reg(1), (), two, b)
    memory = UOp(Op.PARAM, dims((1,)), arg=ParamArg(0, dtypes.int32, None, AddrSpace.GLOBAL))
    total = UOp(Op.STORE, UOp(Op.INDEX, memory, ZERO), UOp(Op.ADD, first, second))
    order = [u for u in instructions(UOp(Op.SINK, total)) if u.op in (Op.RANGE, Op.END)]
    assert [u.op for u in order] == [Op.RANGE, Op.END, Op.RANGE, Op.END]


def test_a_fold_inside_a_fold_starts_anew_each_time() -> None:
    a, b = loop(3, 0), loop(4, 1)
    inner = accumulate(reg(0), (a,), const(1, dtypes.int32), b)
    outer = accumulate(reg(1), (), inner, a)
    memory = UOp(Op.PARAM, dims((1,)), arg=ParamArg(0, dtypes.int32, None, AddrSpace.GLOBAL))
    order = instructions(UOp(Op.SINK, UOp(Op.STORE, UOp(Op.INDEX, memory, ZERO), outer)))
    shape = [u.op for u in order if u.op in (Op.RANGE, Op.END, Op.STORE)]
    assert shape == [
        Op.STORE, Op.RANGE, Op.STORE, Op.RANGE, Op.STORE, Op.END, Op.STORE, Op.END, Op.STORE,
    ]  # fmt: skip


def test_depth_needs_no_stack() -> None:

    memory = UOp(Op.PARAM, dims((1,)), arg=ParamArg(0, dtypes.int32, None, AddrSpace.GLOBAL))
    deep = UOp(Op.LOAD, UOp(Op.INDEX, memory, ZERO))
    for _ in range(30_000):
        deep = UOp(Op.NEG, deep)
    body = UOp(Op.SINK, UOp(Op.STORE, UOp(Op.INDEX, memory, ZERO), deep))
    assert len(instructions(body)) > 30_000


def test_what_only_a_loop_has_happens_in_it() -> None:
    """A loop of no iteration stores nothing, though the store does not depend on the counter."""
    a, b = loop(0, 0), loop(4, 1)
    memory = UOp(Op.PARAM, dims((2,)), arg=ParamArg(0, dtypes.int32, None, AddrSpace.GLOBAL))
    one, two = (
        UOp(Op.STORE, UOp(Op.INDEX, memory, index_const(k)), const(9, dtypes.int32))
        for k in range(2)
    )
    nested = UOp(Op.END, UOp(Op.END, UOp(Op.GROUP, one, two), b), a)
    order = instructions(UOp(Op.SINK, nested))
    shape = [u.op for u in order if u.op in (Op.RANGE, Op.END, Op.STORE)]
    assert shape == [Op.RANGE, Op.RANGE, Op.STORE, Op.STORE, Op.END, Op.END]
    place = {u: k for k, u in enumerate(order)}
    assert all(place[s] < place[u] for u in order for s in u.src)
