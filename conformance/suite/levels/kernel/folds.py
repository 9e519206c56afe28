"""Generate level schedule, folds: folds that suit an optimization, and folds of neutral elements.

A loop that is padded or split runs beyond a row. There it must fold the neutral element of the op.
The rows of `_neutral` show a wrong one: they are that element, or the absorbing one, or empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from uop.compiler.pipeline import lower
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.axes import axes, type_of
from uop.compiler.stages.optimize.stage import optimize
from uop.conformance.suite.case import Batch, Source
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel.schedules import NEEDS, with_sequences
from uop.conformance.suite.levels.nodes import buffer, cast, fold, pad, permute, reshape, store
from uop.conformance.suite.levels.op.elementwise import rewrite_constants
from uop.conformance.suite.values import draw_mixed, draw_ordinary, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.kernel.fragments import SHAPES
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AxisType, PadFill, WmmaArg
from uop.spec.dtype import DTYPES, DType
from uop.spec.errors import InvalidError
from uop.spec.graph import calls
from uop.spec.kernel.optimization import MatrixUnit, Optimization, PadTo, Side, Split
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

FOLD_DTYPES = ("int8", "int32", "uint64", "bool", "float16", "float32", "float64")
KEPT = ("float16", "float32")
TILED = ("int32", "float16", "float32")
LENGTHENED = ("int32", "float32")
COUNTS = (4, 7, 42)
"""In a full run each length meets each way to optimize."""
FACTORS = (2, 4, 3, 8, 5)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in (DTYPES[name] for name in FOLD_DTYPES):
        yield group("schedule", Op.REDUCE, dtype, "folds", (1, 3, 40), _folded, dtype, needs=NEEDS)
    for dtype in (DTYPES[name] for name in TILED):
        yield group("schedule", Op.REDUCE, dtype, "tiled", (1, 3, 40), _tiled, dtype, needs=NEEDS)
        yield group("schedule", Op.REDUCE, dtype, "rows", (1, 3, 40), _rows, dtype, needs=NEEDS)
    for dtype in (DTYPES[name] for name in KEPT):
        yield group("schedule", Op.EXP2, dtype, "kept", (1, 2, 40), _kept, dtype, needs=NEEDS)
    for arg in SHAPES:
        factor, total = arg.dtype_in.format, arg.dtype_out.format
        if total.holds_products_of(factor):
            name, dtype = f"m{arg.m}n{arg.n}k{arg.k}", arg.dtype_in
            yield group("schedule", Op.WMMA, dtype, name, (1, 2, 12), _multiplied, arg, needs=NEEDS)
    for dtype in (DTYPES[name] for name in LENGTHENED):
        yield group(
            "schedule", Op.PAD, dtype, "lengthened", (1, 3, 20), _lengthened, dtype, needs=NEEDS
        )
    ops = vocabulary.of((*FOLDS, Op.MIN))
    for dtype in (DTYPES[name] for name in FOLD_DTYPES) if ops else ():
        yield group(
            "schedule", Op.REDUCE, dtype, "neutral", COUNTS, _neutral, dtype, ops, needs=NEEDS
        )


def _folded(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold rows times columns, over axes that split, that are padded, and of one element."""
    m, n, k = (choices.between(1, 12) for _ in range(3))
    a, b = param(0, (m, k), dtype), param(1, (n, k), dtype)
    op = choices.pick((Op.MUL, Op.ADD))
    terms = UOp(op, reshape(a, (m, 1, k)), reshape(b, (1, n, k)))
    order = choices.pick(((0, 1, 2), (2, 0, 1), (1, 2, 0)))
    axes = {order.index(2), *([order.index(0)] if choices.chance(30) else [])}
    op = choices.pick((Op.ADD, Op.MUL, Op.MAX))
    source = _stored(fold(op, permute(terms, order), sorted(axes)), (a, b), choices)
    return with_sequences(source.root, source, choices)


def _tiled(dtype: DType, choices: Choices, index: int) -> Generated:
    """Multiply matrices in groups of rows times columns, each of which reads a row or column of
    tiles together.
    """
    rows, columns, steps = (choices.between(2, 4) for _ in range(3))
    m, n, k = rows * 2 * choices.between(1, 2), columns * 2, steps * choices.between(1, 5)
    a, b = param(0, (m, k), dtype), param(1, (k, n), dtype)
    value = fold(Op.ADD, UOp(Op.MUL, reshape(a, (m, k, 1)), reshape(b, (1, k, n))), (1,))
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
    root = lower(source.root, "optimize", optimizations=[sequence])
    return program(root, *source.batches, source=source)


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
    wide = (reshape(a, (m, 1, k)), reshape(b, (1, n, k)))
    terms = UOp(Op.MUL, *(cast(x, arg.dtype_out) for x in wide))
    source = _stored(fold(Op.ADD, terms, (2,)), (a, b), choices)
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
    total = fold(choices.pick((Op.ADD, Op.MAX)), x, (1,))
    source = _stored(UOp(choices.pick((Op.MUL, Op.ADD)), x, total), (x,), choices)
    items, side = choices.pick((2, 4, 8, 16)), choices.pick(tuple(Side))
    (kernel,) = calls(lower(source.root, "optimize", optimizations=()))
    first = [Split(0, shape[0], AxisType.LOCAL)] if choices.chance(50) else []
    sequence = _with_folds_split(first, kernel.src[0], items, AxisType.GROUP_REDUCE, side)
    root = lower(source.root, "optimize", optimizations=[sequence])
    return program(root, *source.batches, source=source)


def _kept(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold a costly function along rows, and use it again with the result of its row."""
    shape = choices.between(2, 4), 2 * choices.between(2, 8)
    x = param(0, shape, dtype)
    value = UOp(Op.EXP2, UOp(Op.ADD, x, fold(Op.MAX, x, (1,))) if choices.chance(50) else x)
    terms = UOp(Op.ADD, value, UOp(Op.EXP2, UOp(Op.NEG, x))) if choices.chance(50) else value
    total = fold(choices.pick((Op.ADD, Op.MAX)), terms, (1,))
    source = _stored(UOp(choices.pick((Op.DIV, Op.ADD)), value, total), (x,), choices)
    first = [Split(0, shape[0] if index % 2 else 1, AxisType.UPCAST)]
    kernels = calls(lower(source.root, "optimize", optimizations=()))
    sequences = [_with_folds_split(first, c.src[0], 2, AxisType.UNROLL) for c in kernels]
    root = lower(source.root, "optimize", optimizations=sequences)
    return program(root, *source.batches, source=source)


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
    value = UOp(Op.ADD, pad(a, before, sizes, PadFill.ZERO), b)
    op = (Op.MUL, Op.MAX, None)[index % 3]
    if op is not None:
        value = fold(op, value, (1,))
    source = _stored(value, (a, b), choices)
    rows, columns = (size + choices.between(1, 3) for size in sizes)
    sequence: list[Optimization] = [PadTo(0, rows), PadTo(1, 2 * columns)]
    if op is not None:
        sequence.append(Split(1, 2, AxisType.GROUP_REDUCE))
    root = lower(source.root, "optimize", optimizations=[sequence])
    return program(root, *source.batches, source=source)


def _stored(value: UOp, inputs: Sequence[UOp], choices: Choices) -> Source:
    """Return the graph that stores a value of inputs 0, 1, ..., and data for these."""
    target = buffer(len(inputs), value.shape, value.dtype)
    batches = tuple(
        Batch({k: sample(draw, u.dtype, u.shape, choices) for k, u in enumerate(inputs)})
        for draw in (draw_ordinary, draw_mixed)
    )
    return Source(UOp(Op.SINK, store(target, value)), batches)


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
    folds = [fold(op, rows, (1,)) for op in ops]
    effects = [store(buffer(k, u.shape, dtype), u) for k, u in enumerate(folds, 1)]
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
