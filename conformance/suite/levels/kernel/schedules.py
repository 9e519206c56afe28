"""Generate level schedule: random graphs with random optimizations, or split at random places.

Each program is judged by the graph that it is made of: only the order of a fold may change. Other
programs hold a fold that suits an optimization, or folds of neutral elements.

A loop that is padded or split runs beyond a row. There it must fold the neutral element of the op.
The rows of `_neutral` show a wrong one: they are that element, or the absorbing one, or empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from uop.compiler.pipeline import lower
from uop.compiler.stages.optimize.stage import optimize
from uop.conformance.suite import values
from uop.conformance.suite.case import Batch, Source
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import random_graph
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel import optimizations
from uop.conformance.suite.levels.kernel.kernels import LOWERED, called
from uop.conformance.suite.levels.op.elementwise import rewrite_constants
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.kernel.fragments import SHAPES
from uop.spec.args import AxisType, PadFill, WmmaArg
from uop.spec.dtype import DType, dtypes
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import calls, rebuild
from uop.spec.kernel.optimization import MatrixUnit, Optimization, PadTo, Side, Split
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

GRAPHS = LOWERED | {"small-floats": ("float16",)}
"""The dtypes that graphs start with, by the flavour in which they grow."""
FOLD_DTYPES = (
    *(dtypes.int8, dtypes.int32, dtypes.uint64, dtypes.bool),
    *(dtypes.float16, dtypes.float32, dtypes.float64),
)
COUNTS = (4, 7, 42)
"""In a full run each length meets each way to optimize."""
FACTORS = (2, 4, 3, 8, 5)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    needs = (Op.SINK, Op.CALL, Op.RANGE, Op.END)
    for name, flavour in random_graph.flavours_in(vocabulary, GRAPHS):
        for home in flavour.homes:
            # A smoke run takes each flavour once.
            counts, args = (int(home is flavour.homes[0]), 2, 30), (home, flavour)
            for kind, build in (("optimized", _optimized), ("split", _cut), ("called", called)):
                title = f"{name}-{kind}"
                yield group("schedule", None, home, title, counts, build, *args, needs=needs)
    for dtype in FOLD_DTYPES:
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
        few = (1, 3, 20)
        yield group("schedule", Op.PAD, dtype, "lengthened", few, _lengthened, dtype, needs=needs)
    ops = vocabulary.of((*FOLDS, Op.MIN))
    for dtype in FOLD_DTYPES if ops else ():
        args_ = (dtype, ops)
        yield group("schedule", Op.REDUCE, dtype, "neutral", COUNTS, _neutral, *args_, needs=needs)


def _optimized(
    home: DType, flavour: random_graph.Flavour, choices: Choices, index: int
) -> Generated:
    source = random_graph.stored_graph(home, flavour, choices)
    return _at_random(source.root, source, choices)


def _cut(home: DType, flavour: random_graph.Flavour, choices: Choices, index: int) -> Generated:
    """Build a random graph with more values in memory.

    Other kernels compute it then, and each is optimized in its own way.
    """
    source = random_graph.stored_graph(home, flavour, choices)

    def cut(u: UOp, src: list[UOp]) -> UOp:
        is_value = u.declaration.is_elementwise or u.op is Op.REDUCE
        cuts = is_value and u.shape and choices.chance(30)
        return UOp(Op.CONTIGUOUS, u.with_src(src)) if cuts else u.with_src(src)

    return _at_random(rebuild(source.root, cut), source, choices)


def _optimized_by(
    sequence: Callable[[int, UOp], Sequence[Optimization]], graph: UOp, source: Source
) -> Generated:
    """Return a graph whose kernels are optimized, each by its number and its body, and the program
    that judges it.
    """
    ranged = lower(graph, "rangeify")
    kernels = enumerate(calls(optimize(ranged)))
    sequences = [sequence(k, kernel.src[0]) for k, kernel in kernels]
    return program(optimize(ranged, sequences=sequences), *source.batches, source=source)


def _at_random(graph: UOp, source: Source, choices: Choices) -> Generated:
    return _optimized_by(
        lambda _, body: optimizations.random_sequence(choices, body), graph, source
    )


def _folded(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold rows times columns, over axes that split, that are padded, and of one element."""
    m, n, k = (choices.between(1, 12) for _ in range(3))
    a, b = param(0, (m, k), dtype), param(1, (n, k), dtype)
    wide = Tensor(a).reshape(m, 1, k), Tensor(b).reshape(1, n, k)
    terms = Tensor.of(choices.pick((Op.MUL, Op.ADD)), *wide)
    order = choices.pick(((0, 1, 2), (2, 0, 1), (1, 2, 0)))
    axes = {order.index(2), *([order.index(0)] if choices.chance(30) else [])}
    op = choices.pick((Op.ADD, Op.MUL, Op.MAX))
    source = _stored(terms.permute(order).reduce(op, sorted(axes)), (a, b), choices)
    return _at_random(source.root, source, choices)


def _tiled(dtype: DType, choices: Choices, index: int) -> Generated:
    """Multiply matrices in groups of rows times columns, each of which reads a row or column of
    tiles together.
    """
    rows, columns, steps = (choices.between(2, 4) for _ in range(3))
    m, n, k = rows * 2 * choices.between(1, 2), columns * 2, steps * choices.between(1, 5)
    a, b = param(0, (m, k), dtype), param(1, (k, n), dtype)
    terms = Tensor(a).reshape(m, k, 1) * Tensor(b).reshape(1, k, n)
    source = _stored(terms.reduce(Op.ADD, 1), (a, b), choices)
    padded: list[Optimization] = [PadTo(2, steps * 3)] if choices.chance(30) else []
    sequence = [
        *padded,
        Split(0, 2 * rows, AxisType.LOCAL),
        Split(1, choices.between(1, 2), AxisType.UPCAST),
        Split(3, 2 * columns, AxisType.LOCAL),
        Split(4, choices.between(1, 2), AxisType.UPCAST),
        Split(6, steps, AxisType.UNROLL),
    ]
    return _optimized_by(lambda _, body: sequence, source.root, source)


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
    wide = Tensor(a).reshape(m, 1, k), Tensor(b).reshape(1, n, k)
    terms = Tensor.of(Op.MUL, *(x.cast(arg.dtype_out) for x in wide))
    source = _stored(terms.reduce(Op.ADD, 2), (a, b), choices)
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
    total = Tensor(x).reduce(choices.pick((Op.ADD, Op.MAX)), 1)
    source = _stored(Tensor.of(choices.pick((Op.MUL, Op.ADD)), x, total), (x,), choices)
    items, side = choices.pick((2, 4, 8, 16)), choices.pick(tuple(Side))
    first = [Split(0, shape[0], AxisType.LOCAL)] if choices.chance(50) else []
    split = partial(optimizations.with_folds_split, first, items, AxisType.GROUP_REDUCE, side)
    return _optimized_by(split, source.root, source)


def _kept(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold a costly function along rows, and use it again with the result of its row."""
    shape = choices.between(2, 4), 2 * choices.between(2, 8)
    x = Tensor(param(0, shape, dtype))
    value = (x + x.reduce(Op.MAX, 1) if choices.chance(50) else x).exp2()
    terms = value + (-x).exp2() if choices.chance(50) else value
    total = terms.reduce(choices.pick((Op.ADD, Op.MAX)), 1)
    source = _stored(Tensor.of(choices.pick((Op.DIV, Op.ADD)), value, total), (x.uop,), choices)
    first = [Split(0, shape[0] if index % 2 else 1, AxisType.UPCAST)]
    split = partial(optimizations.with_folds_split, first, 2, AxisType.UNROLL, Side.INNER)
    return _optimized_by(split, source.root, source)


def _lengthened(dtype: DType, choices: Choices, index: int) -> Generated:
    """Build loops longer than their axes, which a PAD has made longer before.

    A read has two gates then, and so has a store of what a workgroup folds. Only a fold of sums may
    read a zero from outside.
    """
    shape = (choices.between(1, 6), choices.between(2, 6))
    before = [choices.between(1, 3), choices.below(2)]
    sizes = tuple(b + s for b, s in zip(before, shape, strict=True))
    a, b = param(0, shape, dtype), param(1, sizes, dtype)
    value = Tensor(nodes.pad(a, before, sizes, PadFill.ZERO)) + b
    op = (Op.MUL, Op.MAX, None)[index % 3]
    if op is not None:
        value = value.reduce(op, 1)
    source = _stored(value, (a, b), choices)
    rows, columns = (size + choices.between(1, 3) for size in sizes)
    sequence: list[Optimization] = [PadTo(0, rows), PadTo(1, 2 * columns)]
    if op is not None:
        sequence.append(Split(1, 2, AxisType.GROUP_REDUCE))
    return _optimized_by(lambda _, body: sequence, source.root, source)


def _stored(value: Tensor, inputs: Sequence[UOp], choices: Choices) -> Source:
    """Return the graph that stores a value of inputs 0, 1, ..., and data for these."""
    target = nodes.buffer(len(inputs), value.shape, value.dtype)
    batches = tuple(
        Batch({k: values.sample(draw, u.dtype, u.shape, choices) for k, u in enumerate(inputs)})
        for draw in (values.draw_ordinary, values.draw_mixed)
    )
    return Source(UOp(Op.SINK, nodes.store(target, value.uop)), batches)


def _neutral(dtype: DType, ops: Sequence[Op], choices: Choices, index: int) -> Generated:
    """Fold the same rows by each op, each kernel in another way: rows of each constant alone, then
    ordinary rows with it in the last place.
    """
    factor = FACTORS[index % len(FACTORS)]
    # None, one, the factor, and lengths that it does not divide.
    lengths = (factor - 1, factor + 1, factor, 2 * factor + 1, 1, 0)
    length = lengths[index % len(lengths)]
    alone = np.repeat(rewrite_constants(dtype)[:, None], length, axis=1)
    mixed = values.sample(values.draw_ordinary, dtype, alone.shape, choices)
    mixed[:, -1:] = alone[:, -1:]
    # Their number is odd, so that no factor divides it.
    data = np.concatenate([alone, mixed, mixed[:1]])
    rows = param(0, data.shape, dtype)
    folds = [nodes.fold(op, rows, (1,)) for op in ops]
    effects = [nodes.store(nodes.buffer(k, u.shape, dtype), u) for k, u in enumerate(folds, 1)]
    source = Source(UOp(Op.SINK, *effects), (Batch({0: data}),))
    ways = partial(optimizations.way_to_lengthen, factor, index)
    return _optimized_by(ways, source.root, source)
