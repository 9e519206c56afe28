"""A step of a growing graph: a movement of a value that keeps its shape."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from uop.conformance.suite.choices import Choices, between, chance, pick, weighted
from uop.conformance.suite.levels.graph.growth import Growth, dims, pad
from uop.spec.args import FlipArg, PadFill, PermuteArg, ReduceArg
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


def view(g: Growth) -> UOp | None:
    """A movement that keeps the shape: FLIP, a shift by PAD and SHRINK, another shape and back."""
    u = g.take(lambda v: any(s > 1 for s in v.shape))
    views = [(made, weight) for made, weight, ops in VIEWS if g.vocabulary.has(*ops)]
    return None if u is None or not views else weighted(g.choices, views)(g.choices, u)


def _flip(choices: Choices, u: UOp) -> UOp:
    flags = [chance(choices, 50) for _ in u.shape]
    flags[choices.below(len(flags))] = True
    return UOp(Op.FLIP, u, arg=FlipArg(tuple(flags)))


def _shift(choices: Choices, u: UOp) -> UOp:
    return shift(choices, u, PadFill.ZERO)


def shift(choices: Choices, u: UOp, fill: PadFill) -> UOp:
    """The fill comes in on one side of an axis longer than 1, as much goes on the other."""
    axis = pick(choices, [k for k, s in enumerate(u.shape) if s > 1])
    by = between(choices, 1, u.shape[axis] - 1)
    none = [0] * len(u.shape)
    step = [by * (k == axis) for k in range(len(u.shape))]
    sizes = [s + b for s, b in zip(u.shape, step, strict=True)]
    before, after = (step, none) if chance(choices, 50) else (none, step)
    return UOp(Op.SHRINK, pad(u, before, sizes, fill), dims(tuple(after)), dims(u.shape))


def _there_and_back(choices: Choices, u: UOp) -> UOp:
    """Flattened, reversed or transposed, and back: the order of elements shows."""
    shape = u.shape
    if len(shape) > 1 and chance(choices, 60):
        turned = UOp(Op.RESHAPE, u, dims((shape[-1], prod(shape[:-1]))))
        back = UOp(Op.PERMUTE, turned, arg=PermuteArg((1, 0)))
        return UOp(Op.RESHAPE, back, dims(shape))
    flat = UOp(Op.RESHAPE, u, dims((prod(shape),)))
    return UOp(Op.RESHAPE, UOp(Op.FLIP, flat, arg=FlipArg((True,))), dims(shape))


def _row(choices: Choices, u: UOp) -> UOp:
    """One position along an axis, which then broadcasts."""
    axis = pick(choices, [k for k, s in enumerate(u.shape) if s > 1])
    offset = [choices.below(s) if k == axis else 0 for k, s in enumerate(u.shape)]
    sizes = [1 if k == axis else s for k, s in enumerate(u.shape)]
    return UOp(Op.SHRINK, u, dims(tuple(offset)), dims(tuple(sizes)))


def _regrouped(choices: Choices, u: UOp) -> UOp:
    """In other axes, and back."""
    flat = UOp(Op.RESHAPE, u, dims((*u.shape[1:], u.shape[0])))
    if chance(choices, 50):
        flat = UOp(Op.RESHAPE, u, dims((prod(u.shape),)))
    return UOp(Op.RESHAPE, flat, dims(u.shape))


def _repeated(choices: Choices, u: UOp) -> UOp:
    """Copies along a new axis, maybe read as one axis with another, and folded again."""
    n = between(choices, 2, 3)
    copies = UOp(Op.EXPAND, UOp(Op.RESHAPE, u, dims((1, *u.shape))), dims((n, *u.shape)))
    if chance(choices, 50):
        rows = UOp(Op.RESHAPE, copies, dims((n * u.shape[0], *u.shape[1:])))
        copies = UOp(Op.RESHAPE, rows, dims((n, *u.shape)))
    # Of a float there is one sum of two equal terms, whatever the order.
    op = Op.ADD if n == 2 or not u.dtype.is_float else Op.MAX
    folded = UOp(Op.REDUCE, copies, arg=ReduceArg(op, (0,)))
    return UOp(Op.RESHAPE, folded, dims(u.shape))


def _spread(choices: Choices, u: UOp) -> UOp:
    """Folded along an axis, and as long again."""
    axis = pick(choices, [k for k, s in enumerate(u.shape) if s > 1])
    op = Op.MAX if u.dtype.is_float else pick(choices, (Op.ADD, Op.MUL, Op.MAX))
    folded = UOp(Op.REDUCE, u, arg=ReduceArg(op, (axis,)))
    return UOp(Op.EXPAND, folded, dims(u.shape))


VIEWS: tuple[tuple[Callable[[Choices, UOp], UOp], int, tuple[Op, ...]], ...] = (
    (_flip, 4, (Op.FLIP,)),
    (_shift, 3, (Op.PAD, Op.SHRINK)),
    (_there_and_back, 3, (Op.RESHAPE, Op.PERMUTE, Op.FLIP)),
    (_row, 1, (Op.SHRINK,)),
    (_regrouped, 1, (Op.RESHAPE,)),
    (_repeated, 1, (Op.RESHAPE, Op.EXPAND, Op.REDUCE)),
    (_spread, 1, (Op.EXPAND, Op.REDUCE)),
)
"""Each with its weight and the ops that it is made of."""
