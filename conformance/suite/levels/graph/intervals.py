"""Level property: intervals of what counts loops and work items, reads memory or is returned.

A comparison stands at a bound of the interval that its operand has, or one beside it: there a rule
that is off by one decides wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from uop.conformance.suite.case import MIXED
from uop.conformance.suite.choices import Choices, between, chance, pick
from uop.conformance.suite.levels.graph.functions import outlined
from uop.conformance.suite.levels.graph.growth import Growth
from uop.conformance.suite.levels.graph.random_graph import batches
from uop.conformance.suite.levels.group import Group, Program
from uop.conformance.suite.levels.op.scalar import KERNEL_OPS, Memory, Scalars, load, loop, special
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import AxisType, DTypeArg, ReduceArg
from uop.spec.dtype import DTYPES, INTS, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

RETURNED = tuple(DTYPES[n] for n in ("int8", "uint8", "int32", "uint64"))
COUNTS = (1, 2, 3, 5, 8, 40, 127, 128, 129, 130, 255, 256, 257)
"""How often loops run and how many work items there are: also just inside and outside 8 bits."""
MOST_ITEMS = 1 << 11
NARROW = (DTYPES["uint8"], DTYPES["int8"], DTYPES["int16"])
LARGEST = 300

Counter = Callable[[int], UOp]
LONGEST = 4
"""Ops in a row on a counter, at most."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in INTS:
        for name, kernel, counters in KERNELS:
            build = partial(kernel, dtype, vocabulary)
            needs = (*KERNEL_OPS, *DECIDED, *counters)
            yield Group("property", MIXED, dtype.name, name, (1, 3, 40), build, needs)
    for dtype in RETURNED:
        build = partial(_functions, dtype, vocabulary)
        needs = (Op.FUNCTION, Op.GETTUPLE, Op.TUPLE, *DECIDED, *RESTS)
        yield Group("property", MIXED, dtype.name, "functions", (1, 4, 60), build, needs)


def _loops(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """Loops over the outputs, and folds over loops of their own: no work items yet."""
    scalars = Scalars(choices, dtype, vocabulary)
    counters = _pair(choices, lambda n: loop(0, n), lambda n: loop(1, n))
    folded = [_folded(scalars, counters)] if chance(choices, 50) else []
    return _kernel(scalars, counters, counters, folded)


def _items(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """Work items, and a loop in each of them."""
    counters = _pair(choices, lambda n: special(0, n), lambda n: loop(1, n, AxisType.REDUCE))
    return _kernel(Scalars(choices, dtype, vocabulary), counters, counters[1:], [])


KERNELS = (
    ("loops", _loops, (Op.RANGE, Op.END)),
    ("items", _items, (Op.SPECIAL, Op.RANGE, Op.END)),
)
"""Each with the ops that it counts by."""
DECIDED = (Op.WHERE, Op.CMPLT, Op.CMPNE, Op.CAST, Op.CONST)
"""The ops by which a value is decided at a bound."""
RESTS = (Op.MOD, Op.ADD, Op.MUL, Op.MAX, Op.SUB)


def _pair(choices: Choices, first: Counter, second: Counter) -> list[UOp]:
    """One or two counters; together they count no more than MOST_ITEMS."""
    n = pick(choices, COUNTS)
    if chance(choices, 40):
        return [first(n)]
    return [first(n), second(pick(choices, [m for m in COUNTS if m * n <= MOST_ITEMS]))]


def _kernel(
    scalars: Scalars, counters: Sequence[UOp], loops: Sequence[UOp], terms: Sequence[UOp]
) -> Program:
    """Counters and elements of narrow memory, compared at the ends of what they can be."""
    choices = scalars.choices
    kinds = scalars.vocabulary.of_dtypes(NARROW) or (scalars.dtype,)
    narrow = Memory(3, between(choices, 5, 40), pick(choices, kinds))
    scalars.memories.append(narrow)
    value = _counted(scalars, counters)
    for term in (_counted(scalars, counters), _read(scalars, narrow, counters), *terms):
        ops = scalars.vocabulary.of((Op.ADD, Op.MUL, Op.XOR, Op.MAX))
        value = UOp(pick(choices, ops), value, term)
    effect = scalars.stored(value, counters)
    for r in reversed(loops):
        effect = UOp(Op.END, effect, r)
    return scalars.program(UOp(Op.SINK, effect))


def _counted(scalars: Scalars, counters: Sequence[UOp]) -> UOp:
    """Arithmetic on a counter, decided at a bound, then in the dtype of the kernel."""
    choices = scalars.choices
    i = pick(choices, counters)
    for _ in range(between(choices, 1, LONGEST)):
        i = _stepped(scalars, i)
    return UOp(Op.CAST, compared(choices, i), arg=DTypeArg(scalars.dtype))


def _stepped(scalars: Scalars, i: UOp) -> UOp:
    """A sum, product, quotient or rest; the divisor may be larger than every dividend."""
    choices = scalars.choices
    ops = scalars.vocabulary.of((Op.ADD, Op.SUB, Op.MUL, Op.IDIV, Op.MOD, Op.MAX))
    op = pick(choices, ops)
    if op in (Op.IDIV, Op.MOD):
        return UOp(op, i, index_const(between(choices, 1, LARGEST)))
    if op is Op.MUL:
        return UOp(op, i, index_const(between(choices, -3, 3)))
    return UOp(op, i, index_const(between(choices, -LARGEST, LARGEST)))


def _read(scalars: Scalars, narrow: Memory, counters: Sequence[UOp]) -> UOp:
    """An element of narrow memory, maybe behind a gate with an alt outside its own range."""
    choices, dtype = scalars.choices, scalars.dtype
    element = load(narrow.param, scalars.place(counters, narrow.count))
    if chance(choices, 50):
        gate = compared_truth(choices, pick(choices, counters))
        alt = const(between(choices, 0, 9), narrow.dtype)
        element = UOp(Op.LOAD, *element.src, alt, gate)
    if narrow.dtype is not dtype:
        element = UOp(Op.CAST, element, arg=DTypeArg(dtype))
    return compared(choices, element)


def _folded(scalars: Scalars, counters: Sequence[UOp]) -> UOp:
    """The largest of some values, or their sum, over a loop of its own."""
    choices = scalars.choices
    inner = loop(9, between(choices, 1, 5), AxisType.REDUCE)
    arg = ReduceArg(pick(choices, (Op.ADD, Op.MAX)))
    return compared(choices, UOp(Op.REDUCE, _counted(scalars, [*counters, inner]), inner, arg=arg))


def compared_truth(choices: Choices, u: UOp) -> UOp:
    """Whether a value is below, or differs from, a number at or beside an end of its interval."""
    if u.min_max is None:
        return const(True, dtypes.bool)
    end = int(pick(choices, (u.min_max.min, u.min_max.max))) + between(choices, -1, 1)
    if u.dtype is not dtypes.index:
        end = min(max(end, int(u.dtype.min)), int(u.dtype.max))
    return UOp(pick(choices, (Op.CMPLT, Op.CMPNE)), u, const(end, u.dtype))


def compared(choices: Choices, u: UOp) -> UOp:
    """The value where that holds, else another number."""
    return UOp(Op.WHERE, compared_truth(choices, u), u, const(between(choices, 0, 9), u.dtype))


def _functions(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """Narrow values that FUNCTIONs return: outside one is known no more than their dtype.

    The bounds that are compared with are those of the body.
    """
    growth = Growth(choices, (between(choices, 3, 9),), (dtype,), vocabulary)
    body = [_narrow(growth, dtype) for _ in range(between(choices, 1, 3))]
    ends = [(int(u.min_max.min), int(u.min_max.max)) for u in body if u.min_max is not None]
    returned = outlined(choices, body, between(choices, 1, 2))
    results = [
        UOp(Op.WHERE, _beside(choices, u, pick(choices, pair)), u, const(3, dtype))
        for u, pair in zip(returned, ends, strict=True)
    ]
    again = outlined(choices, results, 1) if chance(choices, 50) else results
    root = UOp(Op.TUPLE, *again, *(compared(choices, u) for u in again))
    return Program(root, batches(growth, root))


def _narrow(g: Growth, dtype: DType) -> UOp:
    """A rest of a division, which has a narrow interval, shifted, scaled or added to another."""
    made = [
        UOp(Op.MOD, g.input(dtype, g.base), const(between(g.choices, 2, 40), dtype))
        for _ in range(2)
    ]
    op = pick(g.choices, (Op.ADD, Op.MUL, Op.MAX, Op.SUB))
    return UOp(op, made[0], pick(g.choices, (made[1], const(between(g.choices, 1, 9), dtype))))


def _beside(choices: Choices, u: UOp, end: int) -> UOp:
    near = min(max(end + between(choices, -1, 1), int(u.dtype.min)), int(u.dtype.max))
    return UOp(pick(choices, (Op.CMPLT, Op.CMPNE)), u, const(near, u.dtype))
