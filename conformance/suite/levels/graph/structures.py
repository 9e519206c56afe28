"""Generate level graph: ops that pick, join, fold or turn elements, behind one another.

- structures: each op that picks, joins, folds or reads bits behind another one, or a view. A
  compiler that merges them may lose an order, an offset or an operand that occurs twice.
- orders-alone: one graph with another order of axes in each program: it is no program of before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.choices import CountedChoices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import pairs
from uop.conformance.suite.levels.graph.chains import MOVED
from uop.conformance.suite.levels.group import OF_ALL, Group
from uop.conformance.suite.levels.op.sizes import UINTS
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import PadFill
from uop.spec.dtype import VALUES, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const, param

TOGETHER = 12
"""The pairs in one program."""
ROWS = 4
"""The rows of each input, and of what is gathered: indices also fit where they are swapped."""
SHAPES = ((ROWS,), (ROWS, 2), (ROWS, 3, 2))
"""The shapes of the inputs, slots 0, 1 and 2."""
ORDERS = ((1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0))
FLAGS = tuple(product((False, True), repeat=3))[1:]
MOST = 96
"""The most elements of an operand of the second op."""
Structure = Callable[[pairs.Plan, UOp], UOp]

KINDS = pairs.Kinds()


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    return KINDS.groups(vocabulary, OF_ALL | {"int16", "uint8", "uint16"})


def _gathered(p: pairs.Plan, u: UOp) -> UOp:
    """Read rows by indices from the data."""
    slot, drawn = len(SHAPES) + len(p.given), values.draw_within(0, u.shape[0] - 1)
    p.given[slot] = values.sample(drawn, dtypes.int32, ROWS, p.choices)
    return UOp(Op.INDEX, u, param(slot, (ROWS,), dtypes.int32))


def _picked(p: pairs.Plan, u: UOp) -> UOp:
    return UOp(Op.INDEX, u, index_const(p.choices.below(u.shape[0])))


def _rejoined(p: pairs.Plan, u: UOp) -> UOp:
    """Join all rows in another order."""
    order = p.choices.shuffled(range(u.shape[0]))
    return UOp(Op.STACK, *(UOp(Op.INDEX, u, index_const(k)) for k in order))


def _joined_twice(p: pairs.Plan, u: UOp) -> UOp:
    return UOp(Op.STACK, *p.choices.shuffled([u, u, nodes.flip_all(u)]))


def _parts(p: pairs.Plan, u: UOp) -> UOp:
    """Read elements as several numbers each."""
    fewer = [d for d in p.vocabulary.of_dtypes(UINTS) if d.itemsize < u.dtype.itemsize]
    return nodes.bitcast(u, p.choices.pick(fewer)) if fewer else u


def _wholes(p: pairs.Plan, u: UOp) -> UOp:
    """Read several elements as one number."""
    sizes = [n * u.dtype.itemsize for n in (2, 4) if u.shape[-1] % n == 0]
    kinds = [d for d in p.vocabulary.of_dtypes(UINTS) if d.itemsize in sizes]
    return nodes.bitcast(u, p.choices.pick(kinds)) if kinds and u.dtype is not dtypes.bool else u


def _folded(p: pairs.Plan, u: UOp) -> UOp:
    ops = p.vocabulary.of((Op.ADD, Op.MUL) if u.dtype.is_int else (Op.MAX, Op.MIN), u.dtype)
    axis = p.choices.below(len(u.shape))
    return nodes.fold(p.choices.pick(ops or (Op.ADD,)), u, (axis,))


def _shrunk(p: pairs.Plan, u: UOp) -> UOp:
    return nodes.shrink(u, (int(s > 1) for s in u.shape), (s - (s > 1) for s in u.shape))


def _padded(p: pairs.Plan, u: UOp) -> UOp:
    return nodes.pad(
        u, (1,) * len(u.shape), (s + 1 + k for k, s in enumerate(u.shape)), PadFill.ZERO
    )


STRUCTURES = (_gathered, _picked, _rejoined, _joined_twice, _parts, _wholes, _folded)
VIEWS: tuple[Structure, ...] = (
    lambda p, u: nodes.reshape(u, u.shape[::-1]),
    lambda p, u: nodes.permute(u, range(len(u.shape))[::-1]),
    lambda p, u: nodes.flip(u, (k == 0 for k in range(len(u.shape)))),
    lambda p, u: nodes.expand(nodes.reshape(u, (*u.shape, 1)), (*u.shape, 2)),
    _shrunk,
    _padded,
)
BOTH = [*product(STRUCTURES, repeat=2)]
WITH_A_VIEW = [*product(STRUCTURES, VIEWS), *product(VIEWS, STRUCTURES)]
PAIRS = CountedChoices(0, "structures").shuffled([*BOTH, *BOTH, *WITH_A_VIEW])
"""The first op and the second; views of views are programs of their own."""
PROGRAMS = -(-len(PAIRS) // TOGETHER)


@KINDS.add("structures", (1, 3, PROGRAMS), VALUES, pairs.ordinary_first)
def _structures(p: pairs.Plan) -> Iterator[UOp]:
    """Build the next pairs, each on the row and on another input."""
    row, *others = (param(slot, shape, p.dtype) for slot, shape in enumerate(SHAPES))
    begin = pairs.own_share(p.dtype, len(PAIRS)) + TOGETHER * p.index
    for place in range(begin, begin + TOGETHER):
        first, second = PAIRS[place % len(PAIRS)]
        for x in (row, p.choices.pick(others)):
            one = _with_axes(first(p, x))
            if prod(one.shape) <= MOST:
                yield second(p, one)


def _with_axes(u: UOp) -> UOp:
    return u if u.shape else nodes.reshape(u, (1,))


@KINDS.add("orders-alone", (3, 3, 6), MOVED, pairs.ordinary_first)
def _orders_alone(p: pairs.Plan) -> Iterator[UOp]:
    """Turn a cube in one way, and reverse it along some axes."""
    x = param(0, (3, 3, 3), p.dtype)
    turned = nodes.permute(x, ORDERS[p.index % len(ORDERS)])
    yield UOp(Op.MAX, turned, nodes.flip(x, FLAGS[p.index % len(FLAGS)]))
