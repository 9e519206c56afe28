"""Generate level kernel: what loops count.

- limited: folds of what lies before, behind or at a limit, which comes from the data and may lie
  outside of the loop. A compiler that computes the fold without its loop must clamp the limit.
- added-in-loops: atomic sums in a loop, at a place that does not depend on it and at one that does.
"""

from __future__ import annotations

from collections.abc import Iterator

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Generated, Group, with_data
from uop.conformance.suite.levels.kernel.features import of_op
from uop.conformance.suite.levels.kernel.scalar import (
    Listing,
    Memory,
    at,
    launch,
    load,
    loop,
    modulo,
    plus,
    special,
    times,
)
from uop.conformance.suite.levels.nodes import cast, store
from uop.conformance.suite.values import draw_positive, draw_within
from uop.spec.args import AxisType, ReduceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const

DTYPES = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64, dtypes.float32)


def groups() -> Iterator[Group]:
    for dtype in DTYPES:
        yield of_op(Op.REDUCE, dtype, "limited", (1, 2, 12), _limited, dtype)
        yield of_op(Op.ATOMICADD, dtype, "added-in-loops", (1, 2, 12), _added, dtype)


def _limited(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold constants and elements, each where a comparison with the limit of an item holds."""
    n, items = choices.between(3, 6), choices.between(6, 9)
    source, limits = Memory(1, n, dtype), Memory(2, items, dtypes.int32)
    g, r = special("gidx0", items), loop(0, n, AxisType.REDUCE)
    limit = cast(load(limits.param, g), dtypes.index)
    pairs = ((r, limit), (limit, r))
    tests = [UOp(Op.CMPLT, *pair) for pair in pairs] + [UOp(Op.CMPEQ, *choices.pick(pairs))]
    few = [const(k, dtype) for k in (0, 1, 2)]
    values = []
    for op in (Op.ADD, choices.pick(FOLDS)):
        for test in tests:
            chosen = choices.pick((few[1], few[2], load(source.param, r)))
            term = UOp(Op.WHERE, test, chosen, few[0])
            values.append(UOp(Op.REDUCE, term, r, arg=ReduceArg(op)))
    target = Memory(0, items * len(values), dtype)
    stores = [store(at(target.param, plus(g, k * items)), v) for k, v in enumerate(values)]
    body = UOp(Op.SINK, *stores)
    return with_data(launch(body, target, source, limits), choices, draw_within(-3, 9))


def _added(dtype: DType, choices: Choices, index: int) -> Generated:
    """Let each item add elements in a loop: to a sum of its own, to one of all, to one by turns."""
    items, n = choices.between(1, 4), choices.between(2, 5)
    target, source = Memory(0, items + 1 + n, dtype), Memory(1, items * n, dtype)
    g, r, listing = special("gidx0", items), loop(0, n), Listing()
    places = choices.shuffled([g, modulo(g, 1), plus(r, items + 1)])
    with listing.each(r):
        element = load(source.param, UOp(Op.ADD, times(g, n), r))
        for place in places:
            listing.do(UOp(Op.ATOMICADD, at(target.param, place), element))
    return with_data(launch(listing.body, target, source), choices, draw_positive)
