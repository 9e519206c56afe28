"""Generate level property: intervals of counters, elements of memory, results, and copies.

Each program compares at a bound of the interval of an operand, or next to it, where a rule that is
off by one decides wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.functions import outlined
from uop.conformance.suite.levels.graph.growth import Growth
from uop.conformance.suite.levels.graph.random_graph import on_data
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel.scalar import (
    KERNEL_OPS,
    Memory,
    Scalars,
    closed,
    load,
    loop,
    special,
)
from uop.conformance.suite.levels.op.memory import MARKERS
from uop.conformance.suite.levels.op.movement import VIEWS
from uop.conformance.suite.values import draw_bits, draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AxisType, DTypeArg, LanesArg, ParamArg, ReduceArg
from uop.spec.dtype import DTYPES, INTS, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const, param

RETURNED = tuple(DTYPES[n] for n in ("int8", "uint8", "int32", "uint64"))
FLOATS = tuple(DTYPES[n] for n in ("float32", "float64", "float16"))
LARGEST_MASK = 127
COUNTS = (1, 2, 3, 5, 8, 40, 127, 128, 129, 130, 255, 256, 257)
"""How often loops run and how many work items there are, also just inside and outside 8 bits."""
MOST_ITEMS = 1 << 11
NARROW = (DTYPES["uint8"], DTYPES["int8"], DTYPES["int16"])
LARGEST = 300

Counter = Callable[[int], UOp]
Copy = Callable[[Choices, UOp], UOp]
LONGEST = 4
"""The most ops in a row on a counter."""

DTYPES_COPIED = (dtypes.int32, dtypes.uint8)
LENGTH = 12
OTHER, KEPT = 1, 2
"""The slots of what a copy also reads, and of what it stores to."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    # A value is compared at a bound by these.
    compared = (Op.WHERE, Op.CMPLT, Op.CMPNE, Op.CAST, Op.CONST)
    calls = (Op.FUNCTION, Op.GETTUPLE, Op.TUPLE)
    for dtype in INTS:
        for name, kernel, counters in KERNELS:
            args, needs = (dtype, vocabulary), (*KERNEL_OPS, *compared, *counters)
            yield group("property", None, dtype, name, (1, 3, 40), kernel, *args, needs=needs)
    for dtype in RETURNED:
        rests = (Op.MOD, Op.ADD, Op.MUL, Op.MAX, Op.SUB)
        args, needs = (dtype, vocabulary), (*calls, *compared, *rests)
        name, counts = "functions", (1, 4, 60)
        yield group("property", None, dtype, name, counts, _functions, *args, needs=needs)

    for dtype in RETURNED:
        bits = (Op.AND, Op.OR, Op.XOR, Op.NOT, Op.SHL, Op.SHR, Op.MOD)
        args, needs = (dtype, vocabulary), (*bits, *compared)
        yield group("property", None, dtype, "bits", (1, 3, 40), _bits, *args, needs=needs)
    for dtype in FLOATS:
        args, needs = (dtype, vocabulary), (Op.SQRT, Op.BITCAST, Op.MOD, *compared)
        yield group("property", None, dtype, "roots", (1, 3, 40), _roots, *args, needs=needs)
    needs = (Op.CMPLT, Op.CMPNE, Op.IDIV, Op.MOD, Op.MAX)
    yield group("property", Op.PARAM, dtypes.index, "ends", (3, 3, 8), _at_ends, needs=needs)


def groups_of_copies() -> Iterator[Group]:
    """Yield groups on ops that return elements as they are, and on variables with a range.

    The interval of a copy is that of the operand, which a compiler can lose or confuse.
    """
    counts = (0, 1, 8)
    for dtype in DTYPES_COPIED:
        for op, copy in ops_that_copy().items():
            yield group("property", op, dtype, "handed-on", counts, _through_copy, copy, dtype)
    for op, ranged in ((Op.PARAM, _variable), (Op.BIND, _bound)):
        yield group("property", op, dtypes.index, "range", counts, ranged)


def _bits(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Combine the bits of narrow values with constants and with each other, and shift them."""
    growth = Growth(choices, (choices.between(3, 9),), (dtype,), vocabulary)
    results = []
    for op in (Op.AND, Op.OR, Op.XOR, Op.SHL, Op.SHR):
        few = _remainder(growth, dtype)
        most = dtype.bits - 1 if op in (Op.SHL, Op.SHR) else LARGEST_MASK
        other = const(choices.between(0, most), dtype)
        if op not in (Op.SHL, Op.SHR) and choices.chance(30):
            other = _remainder(growth, dtype)
        results.append(compared(choices, UOp(op, few, other)))
    truths = [UOp(Op.NOT, compared_truth(choices, _remainder(growth, dtype))) for _ in range(3)]
    return on_data(growth, nodes.outputs(*results, *truths))


def _roots(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Take roots of narrow values, and the bits of constants."""
    small = DTYPES["uint8"]
    growth = Growth(choices, (choices.between(3, 9),), (small,), vocabulary)
    root = UOp(Op.SQRT, nodes.cast(_remainder(growth, small), dtype))
    bits = DTYPES[f"uint{dtype.bits}"]
    known = UOp(Op.BITCAST, const(float(choices.between(1, 40)), dtype), arg=DTypeArg(bits))
    any_ = nodes.cast(growth.input(small, growth.base), bits)
    results = [compared(choices, nodes.cast(root, DTYPES["int32"])), UOp(Op.CMPLT, any_, known)]
    return on_data(growth, nodes.outputs(root, *results))


def _remainder(g: Growth, dtype: DType) -> UOp:
    """Return a value with a narrow interval."""
    return UOp(Op.MOD, g.input(dtype, g.base), const(g.choices.between(2, 40), dtype))


def _loops(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build loops over the outputs, and folds over loops of their own; there are no work items."""
    scalars = Scalars(choices, dtype, vocabulary)
    counters = _pair(choices, lambda n: loop(0, n), lambda n: loop(1, n))
    folded = [_folded(scalars, counters)] if choices.chance(50) else []
    return _kernel(scalars, counters, counters, folded)


def _items(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build work items, and a loop in each of them."""
    counters = _pair(choices, lambda n: special("gidx0", n), lambda n: loop(1, n, AxisType.REDUCE))
    return _kernel(Scalars(choices, dtype, vocabulary), counters, counters[1:], [])


KERNELS = (
    ("loops", _loops, (Op.RANGE, Op.END)),
    ("items", _items, (Op.SPECIAL, Op.RANGE, Op.END)),
)
"""Each with the ops of its counters."""


def _pair(choices: Choices, first: Counter, second: Counter) -> list[UOp]:
    """Return one or two counters, which together count no more than MOST_ITEMS."""
    n = choices.pick(COUNTS)
    if choices.chance(40):
        return [first(n)]
    return [first(n), second(choices.pick([m for m in COUNTS if m * n <= MOST_ITEMS]))]


def _kernel(
    scalars: Scalars, counters: Sequence[UOp], loops: Sequence[UOp], terms: Sequence[UOp]
) -> Generated:
    """Build counters and elements of narrow memory, compared at the ends of their intervals."""
    choices = scalars.choices
    kinds = scalars.vocabulary.of_dtypes(NARROW) or (scalars.dtype,)
    narrow = Memory(3, choices.between(5, 40), choices.pick(kinds))
    scalars.memories.append(narrow)
    value = _counted(scalars, counters)
    for term in (_counted(scalars, counters), _read(scalars, narrow, counters), *terms):
        ops = scalars.vocabulary.of((Op.ADD, Op.MUL, Op.XOR, Op.MAX))
        value = UOp(choices.pick(ops), value, term)
    return scalars.program(UOp(Op.SINK, closed(scalars.stored(value, counters), loops)))


def _counted(scalars: Scalars, counters: Sequence[UOp]) -> UOp:
    """Compute on a counter, compare at a bound, and convert to the dtype of the kernel."""
    choices = scalars.choices
    i = choices.pick(counters)
    for _ in range(choices.between(1, LONGEST)):
        i = _stepped(scalars, i)
    return nodes.cast(compared(choices, i), scalars.dtype)


def _stepped(scalars: Scalars, i: UOp) -> UOp:
    """Return a sum, product, quotient or remainder; the divisor may exceed every dividend."""
    ops = scalars.vocabulary.of((Op.ADD, Op.SUB, Op.MUL, Op.IDIV, Op.MOD, Op.MAX))
    op = scalars.choices.pick(ops)
    ends = {Op.IDIV: (1, LARGEST), Op.MOD: (1, LARGEST), Op.MUL: (-3, 3)}
    low, high = ends.get(op, (-LARGEST, LARGEST))
    return UOp(op, i, index_const(scalars.choices.between(low, high)))


def _read(scalars: Scalars, narrow: Memory, counters: Sequence[UOp]) -> UOp:
    """Read an element of narrow memory, maybe under a gate, with an alt outside its interval."""
    choices, dtype = scalars.choices, scalars.dtype
    element = load(narrow.param, scalars.place(counters, narrow.count))
    if choices.chance(50):
        gate = compared_truth(choices, choices.pick(counters))
        alt = const(choices.between(0, 9), narrow.dtype)
        element = UOp(Op.LOAD, *element.src, alt, gate)
    return compared(choices, element if narrow.dtype is dtype else nodes.cast(element, dtype))


def _folded(scalars: Scalars, counters: Sequence[UOp]) -> UOp:
    """Return the largest of some values, or their sum, over a loop of its own."""
    choices = scalars.choices
    inner = loop(9, choices.between(1, 5), AxisType.REDUCE)
    arg = ReduceArg(choices.pick((Op.ADD, Op.MAX)))
    return compared(choices, UOp(Op.REDUCE, _counted(scalars, [*counters, inner]), inner, arg=arg))


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
    growth = Growth(choices, (choices.between(3, 9),), (dtype,), vocabulary)
    body = [_narrow(growth, dtype) for _ in range(choices.between(1, 3))]
    ends = [(int(u.min_max.min), int(u.min_max.max)) for u in body if u.min_max is not None]
    returned = outlined(choices, body, choices.between(1, 2))
    results = [
        UOp(Op.WHERE, _near_end(choices, u, choices.pick(pair)), u, const(3, dtype))
        for u, pair in zip(returned, ends, strict=True)
    ]
    again = outlined(choices, results, 1) if choices.chance(50) else results
    return on_data(growth, nodes.outputs(*again, *(compared(choices, u) for u in again)))


def _narrow(g: Growth, dtype: DType) -> UOp:
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


def ops_that_copy() -> dict[Op, Copy]:
    """Return, by op, how it copies a vector; the comparison may have to be inside."""
    return {
        **VIEWS,
        **{op: partial(_alone, op) for op in (*MARKERS, Op.NOOP, Op.PRECAST, Op.LOAD)},
        Op.INDEX: lambda choices, t: UOp(Op.INDEX, t, param(OTHER, (4,), dtypes.int32)),
        Op.REPLICATED: lambda choices, t: nodes.replicated(nodes.copies(t, choices.between(1, 4))),
        Op.AFTER: lambda choices, t: UOp(
            Op.AFTER, t, nodes.store(nodes.buffer(KEPT, t.shape, t.dtype), t)
        ),
        Op.STAGE: _staged,
        Op.UNROLL: _lanes,
        Op.CONTRACT: _lanes,
        Op.GETTUPLE: _unpacked,
    }


def _through_copy(copy: Copy, dtype: DType, choices: Choices, index: int) -> Generated:
    """Put a remainder, which has a narrow interval, through the op and compare it at a bound."""
    narrow = UOp(Op.MOD, param(0, (LENGTH,), dtype), const(choices.between(2, 100), dtype))
    root = compared(choices, copy(choices, narrow))
    data = sample(draw_bits, dtype, LENGTH, choices)
    return program(root, [data, sample(draw_within(0, LENGTH - 1), dtypes.int32, 4, choices)])


def _alone(op: Op, choices: Choices, t: UOp) -> UOp:
    return UOp(op, t)


def _staged(choices: Choices, t: UOp) -> UOp:
    each = loop(0, LENGTH)
    return UOp(Op.STAGE, UOp(Op.INDEX, t, each), each)


def _lanes(choices: Choices, t: UOp) -> UOp:
    lanes = LanesArg((0,), (LENGTH,))
    return UOp(Op.CONTRACT, compared(choices, UOp(Op.UNROLL, t, arg=lanes)), arg=lanes)


def _unpacked(choices: Choices, t: UOp) -> UOp:
    """Return the second of three values, of which the others have other intervals."""
    first, last = (UOp(Op.ADD, t, const(k, t.dtype)) for k in (100, 50))
    return nodes.member(nodes.outputs(first, t, last), 1)


def _range(choices: Choices) -> UOp:
    """Return a variable with a range."""
    low = choices.between(-20, 20)
    arg = ParamArg(0, dtypes.index, min=low, max=low + choices.between(1, 30))
    return UOp(Op.PARAM, nodes.dims(()), arg=arg)


def _variable(choices: Choices, index: int) -> Generated:
    """Build a variable whose value is data: at one of the ends, or between them."""
    variable = _range(choices)
    return program(compared(choices, variable), [_within(choices, variable)])


def _at_ends(choices: Choices, index: int) -> Generated:
    """Compare and divide a variable by numbers around its ends, at both ends of its range."""
    low, high = choices.below(4), choices.between(4, 30)
    arg = ParamArg(0, dtypes.index, min=low, max=high)
    variable = UOp(Op.PARAM, nodes.dims(()), arg=arg)
    by = [(op, n) for op in (Op.CMPLT, Op.CMPNE) for n in (low - 1, low, high, high + 1)]
    by += [(op, n) for op in (Op.IDIV, Op.MOD, Op.MAX) for n in (high, high + 1)]
    found = [UOp(op, variable, index_const(n)) for op, n in by]
    return program(nodes.outputs(*found), *([np.asarray(n, np.int64)] for n in (low, high)))


def _bound(choices: Choices, index: int) -> Generated:
    """Build a variable whose value stands in the program."""
    variable = _range(choices)
    value = index_const(int(_within(choices, variable)))
    return program(compared(choices, UOp(Op.BIND, variable, value)))


def _within(choices: Choices, variable: UOp) -> Array:
    assert variable.min_max is not None
    low, high = (int(end) for end in (variable.min_max.min, variable.min_max.max))
    return sample(draw_within(low, high), dtypes.index, (), choices)
