"""Choose optimizations of a kernel: at random, one for each fold, or ways to lengthen a fold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod

from uop.compiler.loops import axes, type_of
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.stages.optimize.apply import apply
from uop.conformance.suite.choices import Choices
from uop.spec.args import AxisType
from uop.spec.errors import InvalidError
from uop.spec.kernel.optimization import (
    SPLIT_FROM,
    NoLocals,
    Optimization,
    PadTo,
    Side,
    Split,
    Swap,
)
from uop.spec.uop import UOp

MOST = {AxisType.UPCAST: 16, AxisType.UNROLL: 16, AxisType.LOCAL: 16, AxisType.GROUP_REDUCE: 16}
"""The most positions of a kernel on its axes of a type, so that no source gets long."""
STEPS = 5


def random_sequence(choices: Choices, body: UOp) -> tuple[Optimization, ...]:
    """Return random optimizations that a kernel allows, one after the other."""
    sequence: list[Optimization] = []
    optimized = body
    for _ in range(choices.between(1, STEPS)):
        order = axes(optimized)
        step = _random(choices, order) if order else NoLocals()
        if _fits(step, order):
            with suppress(InvalidError):
                optimized = apply(body, [*sequence, step])
                sequence.append(step)
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


def with_folds_split(
    first: Sequence[Split], factor: int, target: AxisType, side: Side, number: int, body: UOp
) -> list[Optimization]:
    """Return some SPLITs of outputs, then one of each fold: the same for each kernel."""
    sequence: list[Optimization] = [*first]
    for place, axis in enumerate(axes(body)):
        if type_of(axis) is AxisType.REDUCE:
            sequence.append(Split(place + len(sequence), factor, target, side))
    return sequence


def way_to_lengthen(factor: int, first: int, number: int, body: UOp) -> list[Optimization]:
    """Return a way to optimize a kernel, without the steps that it does not allow."""
    types, wanted = [*map(type_of, axes(body))], (AxisType.GLOBAL, AxisType.REDUCE)
    outer, folded = (types.index(t) if t in types else len(types) for t in wanted)
    ways = _ways(outer, folded, factor)
    sequence: list[Optimization] = []
    for step in ways[(first + number) % len(ways)]:
        with suppress(InvalidError):
            apply(body, [*sequence, step])
            sequence.append(step)
    return sequence


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
