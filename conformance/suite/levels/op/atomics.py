"""Level kernel, atomics and addresses: sums that many work items add to, distances of elements."""

from __future__ import annotations

from uop.conformance.suite import values
from uop.conformance.suite.case import Batch
from uop.conformance.suite.choices import Choices, between, chance, data_key, pick
from uop.conformance.suite.levels.group import Program
from uop.conformance.suite.levels.kernel.listing import Listing
from uop.conformance.suite.levels.op.scalar import Memory, argument, at, load, special
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import GetAddrArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

MOST_TERMS = 12
"""Of a sum, so that small floats still tell a lost term from rounding."""
MOST_ITEMS = 40
MOST_DEEP = 3


def added(dtype: DType, choices: Choices, index: int) -> Program:
    """Each item adds its element to one of few sums: all of them, or those behind nested gates."""
    sums = between(choices, 1, 4)
    items = between(choices, 2, MOST_TERMS * sums if dtype.is_float else MOST_ITEMS)
    target, source = Memory(0, sums, dtype), Memory(1, items, dtype)
    g, listing = special(0, items), Listing()
    place = UOp(Op.MOD, UOp(Op.ADD, g, index_const(choices.below(5))), index_const(sums))
    add = UOp(Op.ATOMICADD, at(target.param, place), load(source.param, g))
    _behind(choices, listing, g, add, between(choices, 0, MOST_DEEP))
    if chance(choices, 30):
        listing.do(UOp(Op.ATOMICADD, at(target.param, index_const(0)), const(1, dtype)))
    root = UOp(Op.SINK, UOp(Op.CALL, listing.body, argument(target), argument(source)))
    draws = (values.draw_positive, values.draw_positive if dtype.is_float else values.draw_bits)
    data = ({m.slot: d(dtype, m.count, data_key(choices)) for m in (target, source)} for d in draws)
    return Program(root, tuple(Batch(inputs) for inputs in data))


def _behind(choices: Choices, listing: Listing, g: UOp, effect: UOp, depth: int) -> None:
    """The effect inside so many branches, each by the number of the item."""
    if not depth:
        listing.do(effect)
        return
    bound = index_const(between(choices, 1, 30))
    turned = UOp(Op.MOD, UOp(Op.MUL, g, index_const(between(choices, 1, 5))), index_const(31))
    gate = pick(choices, (UOp(Op.CMPLT, g, bound), UOp(Op.CMPLT, turned, bound)))
    with listing.where(gate):
        _behind(choices, listing, g, effect, depth - 1)


def distances(dtype: DType, choices: Choices, index: int) -> Program:
    """How many bytes lie between elements of one buffer."""
    n, count = between(choices, 2, 20), between(choices, 2, 9)
    target, source = Memory(0, count, dtypes.uint64), Memory(1, n, dtype)
    g = special(0, count)
    steps = (index_const(choices.below(n)) for _ in range(2))
    one, other = (UOp(Op.MOD, UOp(Op.ADD, g, step), index_const(n)) for step in steps)
    addresses = (UOp(Op.GETADDR, at(source.param, i), arg=GetAddrArg("GPU")) for i in (one, other))
    body = UOp(Op.SINK, UOp(Op.STORE, at(target.param, g), UOp(Op.SUB, *addresses)))
    root = UOp(Op.SINK, UOp(Op.CALL, body, argument(target), argument(source)))
    blank = values.draw_bits(dtypes.uint64, count, 0).astype(np_dtype(dtypes.uint64))
    return Program(root, (Batch({0: blank, 1: values.draw_bits(dtype, n, data_key(choices))}),))
