"""Generate level schedule, neutral: folds whose rows are one value, under each optimization.

A loop that is padded or split runs beyond the row. There it must fold the neutral element of the
op. The rows here show a wrong one: they hold only that element, only the absorbing one, or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from uop.compiler.pipeline import lower
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.axes import axes, type_of
from uop.compiler.stages.optimize.stage import optimize
from uop.conformance.suite import values
from uop.conformance.suite.case import Batch, Source
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.kernel.schedules import FOLD_DTYPES, NEEDS
from uop.conformance.suite.levels.nodes import buffer, fold, store
from uop.conformance.suite.levels.op.elementwise import rewrite_constants
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AxisType
from uop.spec.dtype import DTYPES, DType
from uop.spec.errors import InvalidError
from uop.spec.graph import calls
from uop.spec.kernel.optimization import Optimization, PadTo, Side, Split
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

COUNTS = (1, 7, 42)
"""In a full run each length meets each way to optimize."""
FACTORS = (2, 4, 3, 8, 5)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    ops = vocabulary.of((*FOLDS, Op.MIN))
    for dtype in (DTYPES[name] for name in FOLD_DTYPES) if ops else ():
        yield group(
            "schedule", Op.REDUCE, dtype, "neutral", COUNTS, _neutral, dtype, ops, needs=NEEDS
        )


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
    data = _rows(dtype, lengths[index % len(lengths)], choices)
    rows = param(0, data.shape, dtype)
    folds = [fold(op, rows, (1,)) for op in ops]
    effects = [store(buffer(k, u.shape, dtype), u) for k, u in enumerate(folds, 1)]
    source = Source(UOp(Op.SINK, *effects), (Batch({0: data}),))
    ranged = lower(source.root, "rangeify")
    kernels = enumerate(calls(optimize(ranged)))
    sequences = [_sequence(call.src[0], factor, index + k) for k, call in kernels]
    return program(optimize(ranged, sequences=sequences), *source.batches, source=source)


def _rows(dtype: DType, length: int, choices: Choices) -> Array:
    """Return rows of each constant alone, then ordinary rows with it in the last place."""
    alone = np.repeat(rewrite_constants(dtype)[:, None], length, axis=1)
    mixed = values.sample(values.draw_ordinary, dtype, alone.shape, choices)
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
