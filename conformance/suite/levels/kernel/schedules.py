"""Generate level schedule: random graphs with random optimizations, or split at random places.

Each program is judged by the graph that it is made of: only the order of a fold may change. Other
programs hold a fold that suits an optimization, or folds of neutral elements.

A loop that is padded or split runs beyond a row. There it must fold the neutral element of the op.
The rows of `_neutral` show a wrong one: they are that element, or the absorbing one, or empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from uop.compiler.loops import axes, type_of
from uop.compiler.pipeline import lower
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.stage import optimize
from uop.conformance.suite.case import Batch, Source
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import random_graph
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel.kernels import LOWERED
from uop.conformance.suite.levels.op.elementwise import rewrite_constants
from uop.conformance.suite.values import draw_mixed, draw_ordinary, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.kernel.fragments import SHAPES
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AxisType, PadFill, WmmaArg
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.errors import InvalidError
from uop.spec.graph import base_of, calls, leaves, outside_bodies, over, rebuild, slot_of
from uop.spec.kernel.optimization import (
    SPLIT_FROM,
    MatrixUnit,
    NoLocals,
    Optimization,
    PadTo,
    Side,
    Split,
    Swap,
)
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

GRAPHS = LOWERED | {"small-floats": ("float16",)}
"""The dtypes that graphs start with, by the flavour in which they grow."""
MOST = {AxisType.UPCAST: 16, AxisType.UNROLL: 16, AxisType.LOCAL: 16, AxisType.GROUP_REDUCE: 16}
"""The most positions of a kernel on its axes of a type, so that no source gets long."""
STEPS = 5
FOLD_DTYPES = ("int8", "int32", "uint64", "bool", "float16", "float32", "float64")
COUNTS = (4, 7, 42)
"""In a full run each length meets each way to optimize."""
FACTORS = (2, 4, 3, 8, 5)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    needs = (Op.SINK, Op.CALL, Op.RANGE, Op.END)
    for name, flavour in random_graph.flavours_in(vocabulary, GRAPHS):
        for home in flavour.homes:
            # A smoke run takes each flavour once.
            counts, args = (int(home is flavour.homes[0]), 2, 30), (home, flavour)
            for kind, build in (("optimized", _optimized), ("split", _cut), ("called", _called)):
                title = f"{name}-{kind}"
                yield group("schedule", None, home, title, counts, build, *args, needs=needs)
    for dtype in (DTYPES[name] for name in FOLD_DTYPES):
        yield group("schedule", Op.REDUCE, dtype, "folds", (1, 3, 40), _folded, dtype, needs=needs)
    for dtype in (dtypes.int32, dtypes.float16, dtypes.float32):
        yield group("schedule", Op.REDUCE, dtype, "tiled", (1, 3, 40), _tiled, dtype, needs=needs)
        yield group("schedule", Op.REDUCE, dtype, "rows", (1, 3, 40), _rows, dtype, needs=needs)
    for dtype in (dtypes.float16, dtypes.float32):
        yield group("schedule", Op.EXP2, dtype, "kept", (1, 2, 40), _kept, dtype, needs=needs)
    for arg in SHAPES:
        factor, total = arg.dtype_in.format, arg.dtype_out.format
        if total.holds_products_of(factor):
            name, dtype = f"m{arg.m}n{arg.n}k{arg.k}", arg.dtype_in
            yield group("schedule", Op.WMMA, dtype, name, (1, 2, 12), _multiplied, arg, needs=needs)
    for dtype in (dtypes.int32, dtypes.float32):
        yield group(
            "schedule", Op.PAD, dtype, "lengthened", (1, 3, 20), _lengthened, dtype, needs=needs
        )
    ops = vocabulary.of((*FOLDS, Op.MIN))
    for dtype in (DTYPES[name] for name in FOLD_DTYPES) if ops else ():
        yield group(
            "schedule", Op.REDUCE, dtype, "neutral", COUNTS, _neutral, dtype, ops, needs=needs
        )


def random_sequence(choices: Choices, body: UOp) -> tuple[Optimization, ...]:
    """Return random optimizations that a kernel allows, one after the other."""
    sequence: list[Optimization] = []
    optimized = body
    for _ in range(choices.between(1, STEPS)):
        order = axes(optimized)
        optimization = _random(choices, order) if order else NoLocals()
        if not _fits(optimization, order):
            continue
        try:
            optimized = apply(body, [*sequence, optimization])
        except InvalidError:
            continue
        sequence.append(optimization)
    return tuple(sequence)


def _random(choices: Choices, order: Sequence[UOp]) -> Optimization:
    """Return one that may be illegal: of another nest, or after NOLOCALS."""
    axis = choices.below(len(order))
    bound = int_value(order[axis].src[0]) or 0
    kind = choices.below(10)
    if kind == 0:
        return NoLocals()
    if kind < 3:
        return PadTo(axis, choices.between(2, 5))
    if kind < 5:
        return Swap(axis, choices.below(len(order)))
    targets = [t for t, origin in SPLIT_FROM.items() if type_of(order[axis]) in origin.types]
    if not targets:
        return PadTo(axis, 2)
    target = choices.pick(targets)
    factor = choices.pick([k for k in range(1, bound + 1) if bound % k == 0] or [1])
    return Split(axis, factor, target, choices.pick(tuple(Side)))


def _fits(opt: Optimization, order: Sequence[UOp]) -> bool:
    """Return whether the kernel keeps its size: a SPLIT adds positions, a PADTO may."""
    sizes = {t: prod(int_value(r.src[0]) or 1 for r in order if type_of(r) is t) for t in MOST}
    if isinstance(opt, Split):
        return opt.target not in MOST or sizes[opt.target] * opt.factor <= MOST[opt.target]
    if isinstance(opt, PadTo):
        axis_type = type_of(order[opt.axis])
        return axis_type not in MOST or sizes[axis_type] * opt.multiple <= MOST[axis_type]
    return True


def _optimized(
    home: DType, flavour: random_graph.Flavour, choices: Choices, index: int
) -> Generated:
    source = random_graph.stored_graph(home, flavour, choices)
    return with_sequences(source.root, source, choices)


def _cut(home: DType, flavour: random_graph.Flavour, choices: Choices, index: int) -> Generated:
    """Build a random graph with more values in memory.

    Other kernels compute it then, and each is optimized in its own way.
    """
    source = random_graph.stored_graph(home, flavour, choices)

    def cut(u: UOp, src: list[UOp]) -> UOp:
        is_value = u.declaration.is_elementwise or u.op is Op.REDUCE
        cuts = is_value and u.shape and choices.chance(30)
        return UOp(Op.CONTIGUOUS, u.with_src(src)) if cuts else u.with_src(src)

    return with_sequences(rebuild(source.root, cut), source, choices)


def _called(home: DType, flavour: random_graph.Flavour, choices: Choices, index: int) -> Generated:
    """Build a random graph with elementwise ops that CALLs of kernels compute.

    A kernel reads what the graph computes; half of them write over their first operand.
    """
    growth = random_graph.grown(home, flavour, choices)
    graph = UOp(Op.SINK, *(random_graph.stored(growth, choices, u) for u in growth.outputs()))
    data = random_graph.batches(growth, graph)

    def by_kernels(u: UOp, operands: list[UOp]) -> UOp:
        rebuilt = over(u, operands)
        if u.declaration.is_elementwise and choices.chance(40):
            known = [growth.value(v) for v in (u, *u.src) if v in growth.known]
            # An absent element leaves a buffer as it was, and nothing was written there before.
            if len(known) > len(u.src) and all(v.invalid is None for v in known):
                target = growth.blank(u.dtype, u.shape)
                rebuilt = _by_kernel(rebuilt, target, in_place=choices.chance(50))
        return rebuilt

    root = rebuild(graph, by_kernels, outside_bodies)
    return program(root, *data, source=Source(graph, data))


def _by_kernel(u: UOp, target: UOp, in_place: bool) -> UOp:
    """Return a buffer after a kernel that computes an elementwise op into it."""
    slots = range(1, 1 + len(u.src))
    inputs = [param(k, s.shape, s.dtype) for k, s in zip(slots, u.src, strict=True)]
    lowered = lower(
        UOp(Op.SINK, nodes.store(nodes.buffer(0, u.shape, u.dtype), u.with_src(inputs))), "rangeify"
    )
    (kernel,) = calls(lowered)
    order = [slot_of(base_of(a)) for a in kernel.src[1:]]
    body, sources = kernel.src[0], {0: target, **dict(zip(slots, u.src, strict=True))}
    first = next((p for p in leaves(body) if slot_of(p) and order[slot_of(p)] == 1), None)
    if in_place and first is not None and (u.src[0].dtype, u.src[0].shape) == (u.dtype, u.shape):
        written = next(p for p in leaves(body) if slot_of(p) == 0)
        body = body.substitute({first: written})
        sources[0] = nodes.after(target, u.src[0])
    return UOp(Op.AFTER, target, UOp(Op.CALL, body, *(sources[slot] for slot in order)))


def with_sequences(graph: UOp, source: Source, choices: Choices) -> Generated:
    """Return a graph whose kernels are optimized at random, and the program that judges it."""
    ranged = lower(graph, "rangeify")
    kernels = calls(optimize(ranged))
    sequences = [random_sequence(choices, kernel.src[0]) for kernel in kernels]
    return program(optimize(ranged, sequences=sequences), *source.batches, source=source)


def _folded(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold rows times columns, over axes that split, that are padded, and of one element."""
    m, n, k = (choices.between(1, 12) for _ in range(3))
    a, b = param(0, (m, k), dtype), param(1, (n, k), dtype)
    op = choices.pick((Op.MUL, Op.ADD))
    terms = UOp(op, nodes.reshape(a, (m, 1, k)), nodes.reshape(b, (1, n, k)))
    order = choices.pick(((0, 1, 2), (2, 0, 1), (1, 2, 0)))
    axes = {order.index(2), *([order.index(0)] if choices.chance(30) else [])}
    op = choices.pick((Op.ADD, Op.MUL, Op.MAX))
    source = _stored(nodes.fold(op, nodes.permute(terms, order), sorted(axes)), (a, b), choices)
    return with_sequences(source.root, source, choices)


def _tiled(dtype: DType, choices: Choices, index: int) -> Generated:
    """Multiply matrices in groups of rows times columns, each of which reads a row or column of
    tiles together.
    """
    rows, columns, steps = (choices.between(2, 4) for _ in range(3))
    m, n, k = rows * 2 * choices.between(1, 2), columns * 2, steps * choices.between(1, 5)
    a, b = param(0, (m, k), dtype), param(1, (k, n), dtype)
    value = nodes.fold(
        Op.ADD, UOp(Op.MUL, nodes.reshape(a, (m, k, 1)), nodes.reshape(b, (1, k, n))), (1,)
    )
    source = _stored(value, (a, b), choices)
    padded: list[Optimization] = [PadTo(2, steps * 3)] if choices.chance(30) else []
    sequence = [
        *padded,
        Split(0, 2 * rows, AxisType.LOCAL),
        Split(1, choices.between(1, 2), AxisType.UPCAST),
        Split(3, 2 * columns, AxisType.LOCAL),
        Split(4, choices.between(1, 2), AxisType.UPCAST),
        Split(6, steps, AxisType.UNROLL),
    ]
    return _with(source, [sequence])


def _multiplied(arg: WmmaArg, choices: Choices, index: int) -> Generated:
    """Multiply matrices of small floats by a matrix instruction: in warps alone or several, each
    with a tile or several. In every other program warps share what they read.
    """
    shared = index % 2 == 0
    rows, columns = choices.between(1, 4), choices.between(1, 4)
    steps = choices.between(2, 4)
    tiles = (4, 4, steps) if shared else (rows, columns, steps)
    m, n, k = (size * count for size, count in zip((arg.m, arg.n, arg.k), tiles, strict=True))
    a, b = param(0, (m, k), arg.dtype_in), param(1, (n, k), arg.dtype_in)
    wide = (nodes.reshape(a, (m, 1, k)), nodes.reshape(b, (1, n, k)))
    terms = UOp(Op.MUL, *(nodes.cast(x, arg.dtype_out) for x in wide))
    source = _stored(nodes.fold(Op.ADD, terms, (2,)), (a, b), choices)
    sequence: list[Optimization] = [MatrixUnit(2, f"m{arg.m}n{arg.n}k{arg.k}")]
    if not shared and choices.chance(60):
        sequence.append(Split(3, steps, AxisType.UNROLL))
    for axis in (1, 0):
        counts = [c for c in range(1, 5) if tiles[axis] % c == 0]
        upcast, whole = (2, True) if shared else (choices.pick(counts), choices.chance(50))
        sequence.append(Split(axis, tiles[axis] if whole else upcast, AxisType.LOCAL))
        sequence.append(Split(axis + 1, upcast, AxisType.UPCAST))
    root = lower(source.root, "optimize", optimizations=[sequence])
    # Judged by itself: a WMMA leaves more open than the sum of its source (D-067).
    return program(root, *source.batches)


def _rows(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold rows and use each result along its row: the items of a group share both loops."""
    shape = choices.between(2, 3), 16 * choices.between(4, 7)
    x = param(0, shape, dtype)
    total = nodes.fold(choices.pick((Op.ADD, Op.MAX)), x, (1,))
    source = _stored(UOp(choices.pick((Op.MUL, Op.ADD)), x, total), (x,), choices)
    items, side = choices.pick((2, 4, 8, 16)), choices.pick(tuple(Side))
    (kernel,) = calls(lower(source.root, "optimize", optimizations=()))
    first = [Split(0, shape[0], AxisType.LOCAL)] if choices.chance(50) else []
    sequence = _with_folds_split(first, kernel.src[0], items, AxisType.GROUP_REDUCE, side)
    return _with(source, [sequence])


def _kept(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold a costly function along rows, and use it again with the result of its row."""
    shape = choices.between(2, 4), 2 * choices.between(2, 8)
    x = param(0, shape, dtype)
    value = UOp(Op.EXP2, UOp(Op.ADD, x, nodes.fold(Op.MAX, x, (1,))) if choices.chance(50) else x)
    terms = UOp(Op.ADD, value, UOp(Op.EXP2, UOp(Op.NEG, x))) if choices.chance(50) else value
    total = nodes.fold(choices.pick((Op.ADD, Op.MAX)), terms, (1,))
    source = _stored(UOp(choices.pick((Op.DIV, Op.ADD)), value, total), (x,), choices)
    first = [Split(0, shape[0] if index % 2 else 1, AxisType.UPCAST)]
    kernels = calls(lower(source.root, "optimize", optimizations=()))
    sequences = [_with_folds_split(first, c.src[0], 2, AxisType.UNROLL) for c in kernels]
    return _with(source, sequences)


def _with_folds_split(
    first: Sequence[Split], kernel: UOp, factor: int, target: AxisType, side: Side = Side.INNER
) -> list[Optimization]:
    """A SPLIT of the outputs or none, then one of each fold."""
    sequence: list[Optimization] = [*first]
    for number, axis in enumerate(axes(kernel)):
        if type_of(axis) is AxisType.REDUCE:
            sequence.append(Split(number + len(sequence), factor, target, side))
    return sequence


def _lengthened(dtype: DType, choices: Choices, index: int) -> Generated:
    """Build loops longer than their axes, which a PAD has made longer before.

    A read has two gates then, and so has a store of what a workgroup folds. Only a fold of sums may
    read a zero from outside.
    """
    shape = (choices.between(1, 6), choices.between(2, 6))
    before = [choices.between(1, 3), choices.below(2)]
    sizes = tuple(b + s for b, s in zip(before, shape, strict=True))
    a, b = param(0, shape, dtype), param(1, sizes, dtype)
    value = UOp(Op.ADD, nodes.pad(a, before, sizes, PadFill.ZERO), b)
    op = (Op.MUL, Op.MAX, None)[index % 3]
    if op is not None:
        value = nodes.fold(op, value, (1,))
    source = _stored(value, (a, b), choices)
    rows, columns = (size + choices.between(1, 3) for size in sizes)
    sequence: list[Optimization] = [PadTo(0, rows), PadTo(1, 2 * columns)]
    if op is not None:
        sequence.append(Split(1, 2, AxisType.GROUP_REDUCE))
    return _with(source, [sequence])


def _with(source: Source, sequences: Sequence[Sequence[Optimization]]) -> Generated:
    root = lower(source.root, "optimize", optimizations=sequences)
    return program(root, *source.batches, source=source)


def _stored(value: UOp, inputs: Sequence[UOp], choices: Choices) -> Source:
    """Return the graph that stores a value of inputs 0, 1, ..., and data for these."""
    target = nodes.buffer(len(inputs), value.shape, value.dtype)
    batches = tuple(
        Batch({k: sample(draw, u.dtype, u.shape, choices) for k, u in enumerate(inputs)})
        for draw in (draw_ordinary, draw_mixed)
    )
    return Source(UOp(Op.SINK, nodes.store(target, value)), batches)


def _ways(outer: int, folded: int, factor: int) -> tuple[tuple[Optimization, ...], ...]:
    """Return the ways to lengthen or to split the two axes of a fold."""
    longer, wider = PadTo(folded, factor), PadTo(outer, factor)
    return (
        (longer,),
        (longer, Split(folded, factor, AxisType.UNROLL)),
        (longer, Split(folded, factor, AxisType.GROUP_REDUCE)),
        (longer, Split(folded, factor, AxisType.GROUP_REDUCE, Side.OUTER)),
        (wider, Split(outer, factor, AxisType.UPCAST), longer),
        (wider, Split(outer, factor, AxisType.LOCAL), PadTo(folded, 2 * factor)),
        (PadTo(folded, 2 * factor), Split(folded, factor, AxisType.GROUP_REDUCE), wider),
    )


def _neutral(dtype: DType, ops: Sequence[Op], choices: Choices, index: int) -> Generated:
    """Fold the same rows by each op, each kernel in another way."""
    factor = FACTORS[index % len(FACTORS)]
    # None, one, the factor, and lengths that it does not divide.
    lengths = (factor - 1, factor + 1, factor, 2 * factor + 1, 1, 0)
    data = _rows_of(dtype, lengths[index % len(lengths)], choices)
    rows = param(0, data.shape, dtype)
    folds = [nodes.fold(op, rows, (1,)) for op in ops]
    effects = [nodes.store(nodes.buffer(k, u.shape, dtype), u) for k, u in enumerate(folds, 1)]
    source = Source(UOp(Op.SINK, *effects), (Batch({0: data}),))
    ranged = lower(source.root, "rangeify")
    kernels = enumerate(calls(optimize(ranged)))
    sequences = [_sequence(call.src[0], factor, index + k) for k, call in kernels]
    return program(optimize(ranged, sequences=sequences), *source.batches, source=source)


def _rows_of(dtype: DType, length: int, choices: Choices) -> Array:
    """Return rows of each constant alone, then ordinary rows with it in the last place."""
    alone = np.repeat(rewrite_constants(dtype)[:, None], length, axis=1)
    mixed = sample(draw_ordinary, dtype, alone.shape, choices)
    mixed[:, -1:] = alone[:, -1:]
    # Their number is odd, so that no factor divides it.
    return np.concatenate([alone, mixed, mixed[:1]])


def _sequence(body: UOp, factor: int, way: int) -> tuple[Optimization, ...]:
    """Return a way to optimize a kernel, without the steps that it does not allow."""
    order = axes(body)
    folded = next((k for k, r in enumerate(order) if type_of(r) is AxisType.REDUCE), len(order))
    outer = next((k for k, r in enumerate(order) if type_of(r) is AxisType.GLOBAL), len(order))
    ways = _ways(outer, folded, factor)
    sequence: list[Optimization] = []
    for optimization in ways[way % len(ways)]:
        try:
            apply(body, [*sequence, optimization])
        except InvalidError:
            continue
        sequence.append(optimization)
    return tuple(sequence)
