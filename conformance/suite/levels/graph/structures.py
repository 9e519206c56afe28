"""Generate level graph: ops that pick, join, fold or turn elements, behind one another.

- structures: each op that picks, joins, folds or reads bits behind another one, or a view. A
  compiler that merges them may lose an order, an offset or an operand that occurs twice.
- siblings: programs of one op or two, which differ in one number: an axis, an offset, an order of
  axes, a constant, a size. A cache whose key lacks it gives the kernel of another one.
- dtypes-alone: one graph on each dtype. The key of a cache must tell signed from unsigned.
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
from uop.conformance.suite.levels.group import OF_ALL, Counts, Group
from uop.conformance.suite.levels.op.sizes import UINTS
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import PadFill
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const, param, variable

IN_SMOKE = OF_ALL | {"int16", "uint8", "uint16"}
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
    return KINDS.groups(vocabulary, {dtype.name for dtype in VALUES})


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


def _structures_of(dtype: DType, vocabulary: Vocabulary) -> Counts:
    return int(dtype.name in IN_SMOKE), 3, PROGRAMS


@KINDS.add("structures", _structures_of, VALUES, pairs.ordinary_first)
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


def _siblings(dtype: DType) -> Iterator[UOp]:
    x = param(0, (3, 3, 3), dtype)
    turned = [nodes.permute(x, order) for order in ORDERS]
    yield from (
        UOp(Op.MAX, u, nodes.flip(x, flags))
        for u, flags in zip(turned, FLAGS[: len(ORDERS)], strict=True)
    )
    for axis in range(3):
        yield from (nodes.fold(op, x, (axis,)) for op in (Op.ADD, Op.MAX))
        beside = [int(k == axis) for k in range(3)]
        yield nodes.shrink(x, beside, (2, 2, 2))
        yield nodes.pad(x, beside, (4, 4, 4), PadFill.ZERO)
        yield UOp(Op.INDEX, x, index_const(axis))
        yield UOp(Op.ADD, x, const(axis + 2, dtype))
    for rows in (2, 3, 4, 6):
        y = param(0, (rows, 12 // rows), dtype)
        yield nodes.fold(Op.ADD, y, (0,))
        yield nodes.permute(y, (1, 0))
    # In Python -1 and -2 have one hash.
    numbers = (-1, -2) if dtype.is_signed or dtype.is_float else (1, 2)
    yield from (UOp(op, x, const(n, dtype)) for op in (Op.ADD, Op.MAX, Op.SUB) for n in numbers)
    # Two numbers that look alike when few digits are printed, and numbers of variables.
    y, size = param(0, (3,), dtypes.float32), variable(1, 1, 8)
    for op in (Op.ADD, Op.MUL, Op.MAX):
        yield from (UOp(op, y, const(n, dtypes.float32)) for n in (1.0, 1 + 2.0**-23))
    for n in (2, 5, 7, 3):
        number = UOp(Op.BIND, size, index_const(n))
        yield UOp(Op.MUL, x, nodes.cast(number, dtype))


SIBLINGS = len([*_siblings(dtypes.int32)])


def _siblings_of(dtype: DType, vocabulary: Vocabulary) -> Counts:
    """Return counts with all of them; a smoke run has those of one dtype."""
    return SIBLINGS * (dtype is dtypes.int32), SIBLINGS, SIBLINGS


@KINDS.add("siblings", _siblings_of, MOVED, pairs.ordinary_first)
def _sibling(p: pairs.Plan) -> Iterator[UOp]:
    yield [*_siblings(p.dtype)][p.index % SIBLINGS]


@KINDS.add("dtypes-alone", (1, 1, 6), VALUES, pairs.drawn(values.draw_bits))
def _dtypes_alone(p: pairs.Plan) -> Iterator[UOp]:
    """Apply to each dtype what depends on its sign or its format."""
    x, y = p.inputs(2)
    yield from (UOp(op, x, y) for op in (Op.MAX, Op.CMPLT))
    yield from (nodes.fold(op, x, (0,)) for op in (Op.MAX, Op.MIN))
    yield nodes.cast(x, dtypes.float64)
