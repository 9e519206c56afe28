"""Generate level property: programs whose intervals are neither a point nor the whole dtype.

Every result must lie in the min_max of its node. A compiler that simplifies by intervals must not
go further than they do. Intervals of counters, elements of memory, results and copies are compared
with a number at a bound or next to it, where a rule that is off by one decides wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import growth, steps
from uop.conformance.suite.levels.graph.functions import outlined
from uop.conformance.suite.levels.graph.random_graph import bases_in, on_data, rooted
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel import scalar
from uop.conformance.suite.levels.op.memory import MARKERS
from uop.conformance.suite.levels.op.movement import VIEWS
from uop.conformance.suite.values import draw_bits, draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import AxisType, DTypeArg, LanesArg
from uop.spec.dtype import DTYPES, INTS, DType, dtypes
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.properties.interval import full
from uop.spec.uop import UOp, const, index_const, param, variable

LARGEST_MASK = 127
COUNTS = (1, 2, 3, 5, 8, 40, 127, 128, 129, 130, 255, 256, 257)
"""How often loops run and how many work items there are, also just inside and outside 8 bits."""
MOST_ITEMS = 1 << 11
FURTHEST = 300
"""The largest number that a counter meets."""
LONGEST = 4
"""The most ops in a row on a counter."""
COPIED = (dtypes.int32, dtypes.uint8)
LENGTH = 12
OTHER, KEPT = 1, 2
"""The slots of what a copy also reads, and of what it stores to."""

Copy = Callable[[Choices, UOp], UOp]

FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16)
RETURNED = (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint64)
SMALL = (dtypes.int8, dtypes.uint8, dtypes.bool)
NARROW = (dtypes.uint8, dtypes.int8, dtypes.int16)
"""The dtypes of narrow memory."""
LARGEST = 40
"""The largest constant: products of a few leave an 8-bit dtype sometimes, not always."""
STEPS, STEPS_OF_PART = 40, 160
"""The most steps that are tried; a part of the language rules out many of them."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    # A value is compared at a bound by these.
    compared = (Op.WHERE, Op.CMPLT, Op.CMPNE, Op.CAST, Op.CONST)
    for dtype in (*INTS, dtypes.index, *FLOATS):
        args, counts = (dtype, vocabulary), (2, 10, 100)
        yield group("property", None, dtype, "intervals", counts, _intervals, *args)
    for dtype in INTS:
        for name, kernel, counters in KERNELS:
            args, needs = (dtype, vocabulary), (*scalar.KERNEL_OPS, *compared, *counters)
            yield group("property", None, dtype, name, (1, 3, 40), kernel, *args, needs=needs)
    for name, kinds, counts, build, ops in NARROWED:
        for dtype in kinds:
            args, needs = (dtype, vocabulary), (*compared, *ops)
            yield group("property", None, dtype, name, counts, build, *args, needs=needs)
    needs = (Op.CMPLT, Op.CMPNE, Op.IDIV, Op.MOD, Op.MAX)
    yield group("property", Op.PARAM, dtypes.index, "ends", (3, 3, 8), _at_ends, needs=needs)


def groups_of_copies() -> Iterator[Group]:
    """Yield groups on ops that return elements as they are, and on variables with a range.

    The interval of a copy is that of the operand, which a compiler can lose or confuse.
    """
    counts = (0, 1, 8)
    for dtype in COPIED:
        for op, copy in COPIES.items():
            yield group("property", op, dtype, "handed-on", counts, _through_copy, copy, dtype)
    for op in (Op.PARAM, Op.BIND):
        yield group("property", op, dtypes.index, "range", counts, _ranged, op)


def _intervals(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build narrow values, then ops on them until there are about ten nodes."""
    base = choices.weighted(bases_in(vocabulary))
    g = growth.Growth(choices, base, (dtype,), vocabulary)
    tries = STEPS if vocabulary.is_whole else STEPS_OF_PART
    with np.errstate(all="ignore"):
        for _ in range(2):
            g.add(narrow(g, dtype))
        for _ in range(tries):
            if len(g.live) >= 14:
                break
            candidate = choices.weighted(TABLE)(g)
            if candidate is not None and candidate.min_max != full(candidate.dtype):
                g.add_if_useful(candidate)
    return on_data(g, rooted(g, choices))


def narrow(g: growth.Growth, dtype: DType) -> UOp:
    """Make inputs narrow: by MOD, by CAST from a smaller dtype, by WHERE between constants.

    An input stays as it is where the vocabulary has none of these.
    """
    kind, has = g.choices.below(3), g.vocabulary.has
    smaller = [d for d in g.vocabulary.of_dtypes(SMALL) if d is not dtype and has(Op.CAST, on=d)]
    if kind == 0 and not dtype.is_float and has(Op.MOD, Op.CONST, on=dtype):
        x = g.input(dtype, g.base)
        return UOp(Op.MOD, x, const(g.choices.between(2, LARGEST), dtype))
    if kind == 1 and smaller:
        return nodes.cast(g.input(g.choices.pick(smaller), g.base), dtype)
    if not has(Op.WHERE, Op.CONST, on=dtype):
        return g.input(dtype, g.base)
    if g.vocabulary.of_dtypes((dtypes.bool,)):
        condition = g.input(dtypes.bool, g.base)
    elif has(Op.CMPLT, on=dtype):
        condition = UOp(Op.CMPLT, *(g.input(dtype, g.base) for _ in range(2)))
    else:
        return g.input(dtype, g.base)
    return UOp(Op.WHERE, condition, _constant(g, dtype), _constant(g, dtype))


def _constant(g: growth.Growth, dtype: DType) -> UOp:
    low = 0 if dtype.min == 0 else -LARGEST
    return const(g.choices.between(low, LARGEST), dtype)


def _operand(g: growth.Growth, u: UOp) -> UOp:
    """Return a constant, another narrow value, or a new one."""
    if g.choices.chance(40):
        return _constant(g, u.dtype)
    other = g.take(lambda v: v.dtype is u.dtype)
    return narrow(g, u.dtype) if other is None else other


def _is_integer(g: growth.Growth, v: UOp) -> bool:
    return growth.is_number(g, v) and not v.dtype.is_float


@growth.on_candidate(growth.is_number)
def arithmetic(g: growth.Growth, u: UOp) -> UOp | None:
    ops = g.vocabulary.of((Op.ADD, Op.SUB, Op.MUL, Op.MAX, Op.MIN))
    return UOp(g.choices.pick(ops), u, _operand(g, u)) if ops else None


@growth.on_candidate(_is_integer)
def division(g: growth.Growth, u: UOp) -> UOp | None:
    """Divide by a positive constant, which may exceed every dividend."""
    divisor = const(g.choices.between(1, 3 * LARGEST), u.dtype)
    return UOp(g.choices.pick(g.vocabulary.of(FLOOR_DIVISIONS) or FLOOR_DIVISIONS), u, divisor)


@growth.on_candidate(growth.is_number)
def sign(g: growth.Growth, u: UOp) -> UOp | None:
    ops = Op.NEG, Op.TRUNC
    return UOp(g.choices.pick(g.vocabulary.of(ops) or ops), u)


@growth.on_candidate(_is_integer)
def comparison(g: growth.Growth, u: UOp) -> UOp | None:
    """Compare with a constant at or near a bound of the operand's interval."""
    if u.min_max is None:
        return None
    bound = int(g.choices.pick((u.min_max.min, u.min_max.max))) + g.choices.between(-1, 1)
    if not u.dtype.min <= bound <= u.dtype.max:
        return None
    ops = Op.CMPLT, Op.CMPNE
    compared = UOp(g.choices.pick(g.vocabulary.of(ops) or ops), u, const(bound, u.dtype))
    return UOp(Op.WHERE, compared, u, _constant(g, u.dtype))


@growth.on_candidate(growth.is_number)
def padded(g: growth.Growth, u: UOp) -> UOp | None:
    """Pad with zeros, which join the interval."""
    if not u.shape:
        return None
    shifted = steps.shift(g.choices, u) if max(u.shape) > 1 else u
    return UOp(Op.ADD, shifted, _constant(g, u.dtype))


@growth.on_candidate(growth.is_long)
def largest(g: growth.Growth, u: UOp) -> UOp | None:
    return nodes.fold(Op.MAX, u, (len(u.shape) - 1,))


@growth.on_candidate(_is_integer)
def converted(g: growth.Growth, u: UOp) -> UOp | None:
    """Convert to a smaller dtype and back: what does not fit wraps."""
    smaller = [d for d in g.vocabulary.of_dtypes(SMALL) if d is not u.dtype]
    if not smaller:
        return None
    return nodes.cast(nodes.cast(u, g.choices.pick(smaller)), u.dtype)


TABLE: tuple[tuple[growth.GrowthStep, int], ...] = (
    (arithmetic, 8),
    (division, 3),
    (comparison, 3),
    (converted, 2),
    (sign, 2),
    (padded, 1),
    (largest, 1),
)


def _bits(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Combine the bits of narrow values with constants and with each other, and shift them."""
    g = growth.Growth(choices, (choices.between(3, 9),), (dtype,), vocabulary)
    results = []
    for op in (Op.AND, Op.OR, Op.XOR, Op.SHL, Op.SHR):
        few = _remainder(g, dtype)
        most = dtype.bits - 1 if op in (Op.SHL, Op.SHR) else LARGEST_MASK
        other = const(choices.between(0, most), dtype)
        if op not in (Op.SHL, Op.SHR) and choices.chance(30):
            other = _remainder(g, dtype)
        results.append(compared(choices, UOp(op, few, other)))
    truths = [UOp(Op.NOT, compared_truth(choices, _remainder(g, dtype))) for _ in range(3)]
    return on_data(g, nodes.outputs(*results, *truths))


def _roots(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Take roots of narrow values, and the bits of constants."""
    small = dtypes.uint8
    g = growth.Growth(choices, (choices.between(3, 9),), (small,), vocabulary)
    root = UOp(Op.SQRT, nodes.cast(_remainder(g, small), dtype))
    bits = DTYPES[f"uint{dtype.bits}"]
    known = UOp(Op.BITCAST, const(float(choices.between(1, 40)), dtype), arg=DTypeArg(bits))
    any_ = nodes.cast(g.input(small, g.base), bits)
    results = [compared(choices, nodes.cast(root, dtypes.int32)), UOp(Op.CMPLT, any_, known)]
    return on_data(g, nodes.outputs(root, *results))


def _remainder(g: growth.Growth, dtype: DType) -> UOp:
    """Return a value with a narrow interval."""
    return UOp(Op.MOD, g.input(dtype, g.base), const(g.choices.between(2, 40), dtype))


def _loops(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build loops over the outputs, and folds over loops of their own; there are no work items."""
    scalars = scalar.Scalars(choices, dtype, vocabulary)
    counters = [scalar.loop(k, n) for k, n in enumerate(_counts(choices))]
    folded = [_folded(scalars, counters)] if choices.chance(50) else []
    return _kernel(scalars, counters, counters, folded)


def _items(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build work items, and a loop over the outputs in each."""
    items, *more = _counts(choices)
    counters = [scalar.special("gidx0", items)]
    counters += [scalar.loop(1, n, AxisType.REDUCE) for n in more]
    return _kernel(scalar.Scalars(choices, dtype, vocabulary), counters, counters[1:], [])


KERNELS = (
    ("loops", _loops, (Op.RANGE, Op.END)),
    ("items", _items, (Op.SPECIAL, Op.RANGE, Op.END)),
)
"""Each with the ops of its counters."""


def _counts(choices: Choices) -> list[int]:
    """Return how far one or two counters count, together no more than MOST_ITEMS."""
    n = choices.pick(COUNTS)
    if choices.chance(40):
        return [n]
    return [n, choices.pick([m for m in COUNTS if m * n <= MOST_ITEMS])]


def _kernel(
    scalars: scalar.Scalars, counters: Sequence[UOp], loops: Sequence[UOp], terms: Sequence[UOp]
) -> Generated:
    """Build counters and elements of narrow memory, compared at the ends of their intervals."""
    choices = scalars.choices
    kinds = scalars.vocabulary.of_dtypes(NARROW) or (scalars.dtype,)
    narrow = scalar.Memory(3, choices.between(5, 40), choices.pick(kinds))
    scalars.memories.append(narrow)
    value = _counted(scalars, counters)
    for term in (_counted(scalars, counters), _read(scalars, narrow, counters), *terms):
        ops = scalars.vocabulary.of((Op.ADD, Op.MUL, Op.XOR, Op.MAX))
        value = UOp(choices.pick(ops), value, term)
    return scalars.program(UOp(Op.SINK, scalar.closed(scalars.stored(value, counters), loops)))


def _counted(scalars: scalar.Scalars, counters: Sequence[UOp]) -> UOp:
    """Compute on a counter, compare at a bound, and convert to the dtype of the kernel."""
    choices = scalars.choices
    i = choices.pick(counters)
    for _ in range(choices.between(1, LONGEST)):
        i = _stepped(scalars, i)
    return nodes.cast(compared(choices, i), scalars.dtype)


def _stepped(scalars: scalar.Scalars, i: UOp) -> UOp:
    """Return a sum, product, quotient or remainder; the divisor may exceed every dividend."""
    ops = scalars.vocabulary.of((Op.ADD, Op.SUB, Op.MUL, Op.IDIV, Op.MOD, Op.MAX))
    op = scalars.choices.pick(ops)
    ends = {Op.IDIV: (1, FURTHEST), Op.MOD: (1, FURTHEST), Op.MUL: (-3, 3)}
    low, high = ends.get(op, (-FURTHEST, FURTHEST))
    return UOp(op, i, index_const(scalars.choices.between(low, high)))


def _read(scalars: scalar.Scalars, narrow: scalar.Memory, counters: Sequence[UOp]) -> UOp:
    """Read an element of narrow memory, maybe under a gate, with an alt outside its interval."""
    choices, dtype = scalars.choices, scalars.dtype
    element = narrow.load(scalars.place(counters, narrow.count))
    if choices.chance(50):
        gate = compared_truth(choices, choices.pick(counters))
        alt = const(choices.between(0, 9), narrow.dtype)
        element = UOp(Op.LOAD, *element.src, alt, gate)
    return compared(choices, element if narrow.dtype is dtype else nodes.cast(element, dtype))


def _folded(scalars: scalar.Scalars, counters: Sequence[UOp]) -> UOp:
    """Return the largest of some values, or their sum, over a loop of its own."""
    choices = scalars.choices
    inner = scalar.loop(9, choices.between(1, 5), AxisType.REDUCE)
    op = choices.pick((Op.ADD, Op.MAX))
    return compared(choices, scalar.folded(op, _counted(scalars, [*counters, inner]), inner))


def compared_truth(choices: Choices, u: UOp) -> UOp:
    """Compare a value with a number at or next to an end of its interval, by CMPLT or CMPNE."""
    if u.min_max is None:
        return const(True, dtypes.bool)
    return _near_end(choices, u, int(choices.pick((u.min_max.min, u.min_max.max))))


def compared(choices: Choices, u: UOp) -> UOp:
    """Select the value where such a comparison is true, else another number."""
    return UOp(Op.WHERE, compared_truth(choices, u), u, const(choices.between(0, 9), u.dtype))


def _functions(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Return narrow values from FUNCTIONs: outside, only the interval of their dtype is known.

    The comparisons are at the bounds inside the body.
    """
    g = growth.Growth(choices, (choices.between(3, 9),), (dtype,), vocabulary)
    body = [_narrow(g, dtype) for _ in range(choices.between(1, 3))]
    ends = [(int(u.min_max.min), int(u.min_max.max)) for u in body if u.min_max is not None]
    returned = outlined(choices, body, choices.between(1, 2))
    results = [
        UOp(Op.WHERE, _near_end(choices, u, choices.pick(pair)), u, const(3, dtype))
        for u, pair in zip(returned, ends, strict=True)
    ]
    again = outlined(choices, results, 1) if choices.chance(50) else results
    return on_data(g, nodes.outputs(*again, *(compared(choices, u) for u in again)))


def _narrow(g: growth.Growth, dtype: DType) -> UOp:
    """Return a remainder, which has a narrow interval, shifted, scaled or added to another."""
    first, second = _remainder(g, dtype), _remainder(g, dtype)
    op = g.choices.pick((Op.ADD, Op.MUL, Op.MAX, Op.SUB))
    return UOp(op, first, g.choices.pick((second, const(g.choices.between(1, 9), dtype))))


def _near_end(choices: Choices, u: UOp, end: int) -> UOp:
    """Compare a value with a number at or next to an end, by CMPLT or CMPNE."""
    near = end + choices.between(-1, 1)
    if u.dtype is not dtypes.index:
        near = min(max(near, int(u.dtype.min)), int(u.dtype.max))
    return UOp(choices.pick((Op.CMPLT, Op.CMPNE)), u, const(near, u.dtype))


def _through_copy(copy: Copy, dtype: DType, choices: Choices, index: int) -> Generated:
    """Put a remainder, which has a narrow interval, through the op and compare it at a bound."""
    narrow = UOp(Op.MOD, param(0, (LENGTH,), dtype), const(choices.between(2, 100), dtype))
    root = compared(choices, copy(choices, narrow))
    data = sample(draw_bits, dtype, LENGTH, choices)
    return program(root, [data, sample(draw_within(0, LENGTH - 1), dtypes.int32, 4, choices)])


def _alone(op: Op, choices: Choices, t: UOp) -> UOp:
    return UOp(op, t)


def _lanes(choices: Choices, t: UOp) -> UOp:
    lanes = LanesArg((0,), (LENGTH,))
    return UOp(Op.CONTRACT, compared(choices, UOp(Op.UNROLL, t, arg=lanes)), arg=lanes)


def _unpacked(choices: Choices, t: UOp) -> UOp:
    """Return the second of three values, of which the others have other intervals."""
    first, last = (UOp(Op.ADD, t, const(k, t.dtype)) for k in (100, 50))
    return nodes.member(nodes.outputs(first, t, last), 1)


EACH = scalar.loop(0, LENGTH)
COPIES: dict[Op, Copy] = {
    **VIEWS,
    **{op: partial(_alone, op) for op in (*MARKERS, Op.NOOP, Op.PRECAST, Op.LOAD)},
    Op.INDEX: lambda choices, t: UOp(Op.INDEX, t, param(OTHER, (4,), dtypes.int32)),
    Op.REPLICATED: lambda choices, t: nodes.replicated(nodes.copies(t, choices.between(1, 4))),
    Op.AFTER: lambda choices, t: UOp(
        Op.AFTER, t, nodes.store(nodes.buffer(KEPT, t.shape, t.dtype), t)
    ),
    Op.STAGE: lambda choices, t: UOp(Op.STAGE, UOp(Op.INDEX, t, EACH), EACH),
    Op.UNROLL: _lanes,
    Op.CONTRACT: _lanes,
    Op.GETTUPLE: _unpacked,
}
"""How each op copies a vector; the comparison may have to be inside."""


def _ranged(op: Op, choices: Choices, index: int) -> Generated:
    """Build a variable whose value is data, or stands in the program: an end, or between them."""
    low = choices.between(-20, 20)
    high = low + choices.between(1, 30)
    size, draw = variable(0, low, high), draw_within(low, high)
    if op is Op.PARAM:
        root = compared(choices, size)
        return program(root, [sample(draw, dtypes.index, (), choices)])
    value = int(sample(draw, dtypes.index, (), choices))
    return program(compared(choices, UOp(Op.BIND, size, index_const(value))))


def _at_ends(choices: Choices, index: int) -> Generated:
    """Compare and divide a variable by numbers around its ends, at both ends of its range."""
    low, high = choices.below(4), choices.between(4, 30)
    by = [(op, n) for op in (Op.CMPLT, Op.CMPNE) for n in (low - 1, low, high, high + 1)]
    by += [(op, n) for op in (Op.IDIV, Op.MOD, Op.MAX) for n in (high, high + 1)]
    found = [UOp(op, variable(0, low, high), index_const(n)) for op, n in by]
    return program(nodes.outputs(*found), *([np.asarray(n, np.int64)] for n in (low, high)))


NARROWED = (
    (
        *("functions", RETURNED, (1, 4, 60), _functions),
        (*steps.CALLED, Op.MOD, Op.ADD, Op.MUL, Op.MAX, Op.SUB),
    ),
    ("bits", RETURNED, (1, 3, 40), _bits, (Op.AND, Op.OR, Op.XOR, Op.NOT, Op.SHL, Op.SHR, Op.MOD)),
    ("roots", FLOATS, (1, 3, 40), _roots, (Op.SQRT, Op.BITCAST, Op.MOD)),
)
"""Values with narrow intervals: the dtypes, the counts, and ops that each program holds."""
