"""A step of a growing graph: a movement of a value that keeps its shape."""

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
    """A movement that keeps the shape: FLIP, a shift by PAD and SHRINK, another shape and back."""
    views = [(view, weight) for view, weight, ops in VIEWS if g.vocabulary.has(*ops)]
    return weighted(g.choices, views)(g.choices, u) if views else None


def _long_axis(choices: Choices, u: UOp) -> int:
    """An axis longer than 1."""
    return pick(choices, [k for k, s in enumerate(u.shape) if s > 1])


def _flip(choices: Choices, u: UOp) -> UOp:
    flags = [chance(choices, 50) for _ in u.shape]
    flags[choices.below(len(flags))] = True
    return nodes.flip(u, flags)


def shift(choices: Choices, u: UOp, fill: PadFill = PadFill.ZERO) -> UOp:
    """The fill comes in on one side of an axis longer than 1, as much goes on the other."""
    axis = _long_axis(choices, u)
    by = between(choices, 1, u.shape[axis] - 1)
    none = [0] * len(u.shape)
    step = [by * (k == axis) for k in range(len(u.shape))]
    sizes = [s + b for s, b in zip(u.shape, step, strict=True)]
    before, after = (step, none) if chance(choices, 50) else (none, step)
    return nodes.shrink(nodes.pad(u, before, sizes, fill), after, u.shape)


def _there_and_back(choices: Choices, u: UOp) -> UOp:
    """Flattened, reversed or transposed, and back: the order of elements shows."""
    *outer, last = u.shape
    if outer and chance(choices, 60):
        return nodes.reshape(nodes.permute(nodes.reshape(u, (last, prod(outer))), (1, 0)), u.shape)
    return nodes.reshape(nodes.flip_all(nodes.reshape(u, (prod(u.shape),))), u.shape)


def _row(choices: Choices, u: UOp) -> UOp:
    """One position along an axis, which then broadcasts."""
    axis = _long_axis(choices, u)
    offset = [choices.below(s) if k == axis else 0 for k, s in enumerate(u.shape)]
    return nodes.shrink(u, offset, (1 if k == axis else s for k, s in enumerate(u.shape)))


def _regrouped(choices: Choices, u: UOp) -> UOp:
    """In other axes, and back."""
    shape = (prod(u.shape),) if chance(choices, 50) else (*u.shape[1:], u.shape[0])
    return nodes.reshape(nodes.reshape(u, shape), u.shape)


def _repeated(choices: Choices, u: UOp) -> UOp:
    """Copies along a new axis, maybe read as one axis with another, and folded again."""
    n = between(choices, 2, 3)
    repeated = nodes.copies(u, n)
    if chance(choices, 50):
        repeated = nodes.reshape(
            nodes.reshape(repeated, (n * u.shape[0], *u.shape[1:])), (n, *u.shape)
        )
    # Of a float there is one sum of two equal terms, whatever the order.
    op = Op.ADD if n == 2 or not u.dtype.is_float else Op.MAX
    return nodes.reshape(nodes.fold(op, repeated, (0,)), u.shape)


def _spread(choices: Choices, u: UOp) -> UOp:
    """Folded along an axis, and as long again."""
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
"""Each with its weight and the ops that it is made of."""
