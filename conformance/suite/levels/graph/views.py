"""Define the step of a growing graph that moves a value and keeps its shape."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from uop.conformance.suite.choices import Choices, between, chance, pick, weighted
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.growth import Growth, is_long, on_candidate
from uop.spec.args import PadFill
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


@on_candidate(is_long)
def view(g: Growth, u: UOp) -> UOp | None:
    """Move a value and keep its shape: FLIP, a shift by PAD and SHRINK, another shape and back."""
    views = [(view, weight) for view, weight, ops in VIEWS if g.vocabulary.has(*ops)]
    return weighted(g.choices, views)(g.choices, u) if views else None


def _long_axis(choices: Choices, u: UOp) -> int:
    """Return an axis longer than 1."""
    return pick(choices, [k for k, s in enumerate(u.shape) if s > 1])


def _flip(choices: Choices, u: UOp) -> UOp:
    flags = [chance(choices, 50) for _ in u.shape]
    flags[choices.below(len(flags))] = True
    return nodes.flip(u, flags)


def shift(choices: Choices, u: UOp, fill: PadFill = PadFill.ZERO) -> UOp:
    """Shift along an axis longer than 1; the fill enters on one side."""
    axis = _long_axis(choices, u)
    by = between(choices, 1, u.shape[axis] - 1)
    none = [0] * len(u.shape)
    step = [by * (k == axis) for k in range(len(u.shape))]
    sizes = [s + b for s, b in zip(u.shape, step, strict=True)]
    before, after = (step, none) if chance(choices, 50) else (none, step)
    return nodes.shrink(nodes.pad(u, before, sizes, fill), after, u.shape)


def _there_and_back(choices: Choices, u: UOp) -> UOp:
    """Flatten, reverse or transpose, and return: the order of elements shows."""
    *outer, last = u.shape
    if outer and chance(choices, 60):
        return nodes.reshape(nodes.permute(nodes.reshape(u, (last, prod(outer))), (1, 0)), u.shape)
    return nodes.reshape(nodes.flip_all(nodes.reshape(u, (prod(u.shape),))), u.shape)


def _row(choices: Choices, u: UOp) -> UOp:
    """Select one position along an axis, which then broadcasts."""
    axis = _long_axis(choices, u)
    offset = [choices.below(s) if k == axis else 0 for k, s in enumerate(u.shape)]
    return nodes.shrink(u, offset, (1 if k == axis else s for k, s in enumerate(u.shape)))


def _regrouped(choices: Choices, u: UOp) -> UOp:
    """Reshape to other axes, and back."""
    shape = (prod(u.shape),) if chance(choices, 50) else (*u.shape[1:], u.shape[0])
    return nodes.reshape(nodes.reshape(u, shape), u.shape)


def _repeated(choices: Choices, u: UOp) -> UOp:
    """Repeat along a new axis, maybe merge it with another one, and fold again."""
    n = between(choices, 2, 3)
    repeated = nodes.copies(u, n)
    if chance(choices, 50):
        repeated = nodes.reshape(
            nodes.reshape(repeated, (n * u.shape[0], *u.shape[1:])), (n, *u.shape)
        )
    # The sum of two equal floats is the same in any order.
    op = Op.ADD if n == 2 or not u.dtype.is_float else Op.MAX
    return nodes.reshape(nodes.fold(op, repeated, (0,)), u.shape)


def _spread(choices: Choices, u: UOp) -> UOp:
    """Fold along an axis, and expand it again."""
    axis = _long_axis(choices, u)
    op = Op.MAX if u.dtype.is_float else pick(choices, (Op.ADD, Op.MUL, Op.MAX))
    return nodes.expand(nodes.fold(op, u, (axis,)), u.shape)


VIEWS: tuple[tuple[Callable[[Choices, UOp], UOp], int, tuple[Op, ...]], ...] = (
    (_flip, 4, (Op.FLIP,)),
    (shift, 3, (Op.PAD, Op.SHRINK)),
    (_there_and_back, 3, (Op.RESHAPE, Op.PERMUTE, Op.FLIP)),
    (_row, 1, (Op.SHRINK,)),
    (_regrouped, 1, (Op.RESHAPE,)),
    (_repeated, 1, (Op.RESHAPE, Op.EXPAND, Op.REDUCE)),
    (_spread, 1, (Op.EXPAND, Op.REDUCE)),
)
"""The ways to move a value, with their weights and ops."""
