"""Level schedule: one program, its kernels under random optimizations, or split at random places.

Each is judged by the graph it is made of, so a fold may have any order, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from uop.compiler.pipeline import lower
from uop.compiler.simplify import int_value
from uop.compiler.stages.optimize import Sequences
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.axes import axes, type_of
from uop.conformance.suite import values
from uop.conformance.suite.case import MIXED, Batch, Source
from uop.conformance.suite.choices import Choices, between, chance, data_key, pick
from uop.conformance.suite.levels.graph.random_graph import (
    Flavour,
    batches,
    flavour_in,
    grown,
    homes_in,
    stored,
)
from uop.conformance.suite.levels.group import Group, Program
from uop.conformance.suite.levels.kernel.kernels import LOWERED
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import AxisType, BufferArg, PadArg, PadFill, PermuteArg, ReduceArg
from uop.spec.dtype import DTYPES, DType
from uop.spec.errors import InvalidError
from uop.spec.graph import calls, slots_of
from uop.spec.kernel.optimization import (
    SPLIT_FROM,
    NoLocals,
    Optimization,
    PadTo,
    Side,
    Split,
    Swap,
)
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param

GRAPHS = LOWERED | {"small-floats": ("float16",)}
"""The dtypes that graphs start with, by the flavour in which they grow."""
FOLDS = ("int8", "int32", "uint64", "bool", "float16", "float32", "float64")
LENGTHENED = ("int32", "float32")
MOST = {AxisType.UPCAST: 16, AxisType.UNROLL: 16, AxisType.LOCAL: 16, AxisType.GROUP_REDUCE: 16}
"""How many positions a kernel gets on its axes of a type, so that no source gets long."""
STEPS = 5
NEEDS = (Op.SINK, Op.CALL, Op.RANGE, Op.END)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for name, chosen in GRAPHS.items():
        homes = homes_in(vocabulary, name, chosen)
        for home in homes:
            for kind, change in (("optimized", _optimized), ("split", _cut)):
                build = partial(change, DTYPES[home], flavour_in(vocabulary, name))
                # A smoke run takes each flavour once.
                counts = (int(home == homes[0]), 2, 30)
                yield Group("schedule", MIXED, home, f"{name}-{kind}", counts, build, NEEDS)
    for home in FOLDS:
        build_fold = partial(_folded, DTYPES[home])
        yield Group("schedule", Op.REDUCE.name, home, "folds", (1, 3, 40), build_fold, NEEDS)
    for home in LENGTHENED:
        build_padded = partial(_lengthened, DTYPES[home])
        yield Group("schedule", Op.PAD.name, home, "lengthened", (1, 3, 20), build_padded, NEEDS)


def random_sequence(choices: Choices, body: UOp) -> tuple[Optimization, ...]:
    """Optimizations that a kernel allows, drawn one after the other."""
    sequence: list[Optimization] = []
    for _ in range(between(choices, 1, STEPS)):
        order = axes(body if not sequence else apply(body, sequence))
        drawn = _drawn(choices, order) if order else NoLocals()
        if not _fits(drawn, order):
            continue
        try:
            apply(body, [*sequence, drawn])
        except InvalidError:
            continue
        sequence.append(drawn)
    return tuple(sequence)


def _drawn(choices: Choices, order: Sequence[UOp]) -> Optimization:
    """One that may or may not be legal: of another nest, or behind NOLOCALS."""
    axis = choices.below(len(order))
    bound = int_value(order[axis].src[0]) or 0
    kind = choices.below(10)
    if kind == 0:
        return NoLocals()
    if kind < 3:
        return PadTo(axis, between(choices, 2, 5))
    if kind < 5:
        return Swap(axis, choices.below(len(order)))
    targets = [t for t, origin in SPLIT_FROM.items() if type_of(order[axis]) in origin.types]
    if not targets:
        return PadTo(axis, 2)
    target = pick(choices, targets)
    factor = pick(choices, [k for k in range(1, bound + 1) if bound % k == 0] or [1])
    return Split(axis, factor, target, pick(choices, tuple(Side)))


def _fits(opt: Optimization, order: Sequence[UOp]) -> bool:
    """Whether the kernel keeps its size: a SPLIT adds positions, a PADTO may."""
    sizes = {t: prod(int_value(r.src[0]) or 1 for r in order if type_of(r) is t) for t in MOST}
    if isinstance(opt, Split):
        return opt.target not in MOST or sizes[opt.target] * opt.factor <= MOST[opt.target]
    if isinstance(opt, PadTo):
        axis_type = type_of(order[opt.axis])
        return axis_type not in MOST or sizes[axis_type] * opt.multiple <= MOST[axis_type]
    return True


def _optimized(home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """A random graph, its kernels optimized."""
    graph, given = _grown(home, flavour, choices)
    return _with_sequences(graph, given, choices)


def _cut(home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """A random graph with values in memory that otherwise would not be: other kernels compute it,
    and each is optimized in its own way.
    """
    graph, given = _grown(home, flavour, choices)
    new: dict[UOp, UOp] = {}
    for u in graph.toposort():
        rebuilt = u.with_src([new[s] for s in u.src])
        is_value = u.declaration.is_elementwise or u.op is Op.REDUCE
        cuts = is_value and u.shape and chance(choices, 30)
        new[u] = UOp(Op.CONTIGUOUS, rebuilt) if cuts else rebuilt
    split = _with_sequences(new[graph], given, choices)
    return Program(split.root, split.batches, Source(graph, given))


def _grown(home: DType, flavour: Flavour, choices: Choices) -> tuple[UOp, tuple[Batch, ...]]:
    with np.errstate(all="ignore"):
        growth = grown(home, flavour, choices)
    graph = UOp(Op.SINK, *(stored(growth, choices, u) for u in growth.outputs()))
    return graph, tuple(batches(growth, graph))


def _folded(dtype: DType, choices: Choices, index: int) -> Program:
    """Rows times columns, folded: axes that split, that are padded, and of one element."""
    m, n, k = (between(choices, 1, 12) for _ in range(3))
    a, b = param(0, (m, k), dtype), param(1, (n, k), dtype)
    wide = [UOp(Op.RESHAPE, a, dims((m, 1, k))), UOp(Op.RESHAPE, b, dims((1, n, k)))]
    terms = UOp(pick(choices, (Op.MUL, Op.ADD)), *wide)
    order = pick(choices, ((0, 1, 2), (2, 0, 1), (1, 2, 0)))
    turned = UOp(Op.PERMUTE, terms, arg=PermuteArg(order))
    folded = tuple(sorted({order.index(2), *([order.index(0)] if chance(choices, 30) else [])}))
    op = pick(choices, (Op.ADD, Op.MUL, Op.MAX))
    value = UOp(Op.REDUCE, turned, arg=ReduceArg(op, folded))
    target = UOp(Op.BUFFER, dims(value.shape), arg=BufferArg(2, dtype))
    graph = UOp(Op.SINK, UOp(Op.STORE, target, value))
    given = tuple(
        Batch({slot: draw(dtype, size, data_key(choices)).reshape(shape)
               for slot, size, shape in ((0, m * k, (m, k)), (1, n * k, (n, k)))})
        for draw in (values.draw_ordinary, values.draw_mixed)
    )  # fmt: skip
    return _with_sequences(graph, given, choices)


def _lengthened(dtype: DType, choices: Choices, index: int) -> Program:
    """Loops longer than their axes, which a PAD has made longer before: a read has two gates then,
    a store of what a workgroup folds as well, and only a fold of sums may meet a zero of nowhere.
    """
    shape = (between(choices, 1, 6), between(choices, 2, 6))
    before = [between(choices, 1, 3), choices.below(2)]
    sizes = tuple(b + s for b, s in zip(before, shape, strict=True))
    a, b = param(0, shape, dtype), param(1, sizes, dtype)
    value = UOp(
        Op.ADD, UOp(Op.PAD, a, dims(tuple(before)), dims(sizes), arg=PadArg(PadFill.ZERO)), b
    )
    op = (Op.MUL, Op.MAX, None)[index % 3]
    if op is not None:
        value = UOp(Op.REDUCE, value, arg=ReduceArg(op, (1,)))
    target = UOp(Op.BUFFER, dims(value.shape), arg=BufferArg(2, dtype))
    graph = UOp(Op.SINK, UOp(Op.STORE, target, value))
    given = tuple(
        Batch({slot: draw(dtype, prod(t), data_key(choices)).reshape(t)
               for slot, t in ((0, shape), (1, sizes))})
        for draw in (values.draw_ordinary, values.draw_mixed)
    )  # fmt: skip
    rows, columns = (size + between(choices, 1, 3) for size in sizes)
    sequence: list[Optimization] = [PadTo(0, rows), PadTo(1, 2 * columns)]
    if op is not None:
        sequence.append(Split(1, 2, AxisType.GROUP_REDUCE))
    return _optimized_by(graph, given, [sequence])


def _with_sequences(graph: UOp, given: tuple[Batch, ...], choices: Choices) -> Program:
    plain = calls(lower(graph, "optimize"))
    return _optimized_by(graph, given, [random_sequence(choices, call.src[0]) for call in plain])


def _optimized_by(graph: UOp, given: tuple[Batch, ...], sequences: Sequences) -> Program:
    root = lower(graph, "optimize", optimizations=sequences)
    left = slots_of(root)
    kept = tuple(Batch({s: a for s, a in b.inputs.items() if s in left}) for b in given)
    return Program(root, kept, Source(graph, given))
