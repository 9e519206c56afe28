"""Rules of shape. They run after the constraints, so their operands fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from uop.spec.args import (
    BinaryArg,
    ConstArg,
    PermuteArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
    arg_of,
)
from uop.spec.conditions.labels import CONDITIONS
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.properties.words import of_src, says

if TYPE_CHECKING:
    from uop.spec.registry import Node, Shape, Sizes


def is_fixed(sizes: Sizes) -> bool:
    """Whether a shape consists of integers."""
    return all(isinstance(size, int) for size in sizes)


def fixed(u: Node, axes: Iterable[int] | None = None) -> Shape:
    """The sizes of a node, or of some of its axes, as integers; LackingError (SIZES.c2) for a
    symbolic one.
    """
    sizes = u.shape if axes is None else tuple(u.shape[axis] for axis in axes)
    if not is_fixed(sizes):
        raise CONDITIONS["SIZES.c2"].lacking(repr(u), "variables that are not bound to numbers")
    return sizes


of_first = of_src(0, "shape")


@says("()")
def scalar(u: Node) -> Shape:
    return ()


def index_values(operand: Node) -> tuple[int, ...]:
    """The integers of a shape or offset operand: a STACK of ()-shaped index CONSTs."""
    return tuple(index_value(dim) for dim in operand.src)


def index_value(dim: Node) -> int:
    """The integer of a ()-shaped index CONST or of a BIND; UnsupportedError for a symbolic size."""
    if dim.op is Op.BIND:
        dim = dim.src[1]
    if dim.op is not Op.CONST:
        raise UnsupportedError(
            f"symbolic sizes: expected a CONST as dimension, found {dim.op.name}"
        )
    return int(arg_of(dim, ConstArg).value)


def size_of(dim: Node) -> int | Node:
    """The size that a ()-shaped index stands for: an integer, or the index itself."""
    value = dim.src[1] if dim.op is Op.BIND else dim
    return int(arg_of(value, ConstArg).value) if value.op is Op.CONST else value


def operand(position: int) -> Callable[[Node], Sizes]:
    """The shape that is operand number `position`."""

    @says(f"the numbers of {{src[{position}]}}")
    def shape(u: Node) -> Sizes:
        return tuple(map(size_of, u.src[position].src))

    return shape


@says("(the number of bytes,)")
def of_data(u: Node) -> Shape:
    return (len(arg_of(u, BinaryArg).data),)


@says("the axes of {src[0]} in the order of the arg")
def permute(u: Node) -> Sizes:
    return tuple(u.src[0].shape[axis] for axis in arg_of(u, PermuteArg).order)


@says("the number of operands, then the shape of one")
def stack(u: Node) -> Sizes:
    return (len(u.src), *(u.src[0].shape if u.src else ()))


def index(u: Node) -> Sizes:
    """A ()-shaped index removes its axis, a (k,)-shaped one makes its size k (D-011)."""
    kept = tuple(dim for i in u.src[1:] for dim in i.shape)
    return kept + u.src[0].shape[len(u.src) - 1 :]


def bitcast(u: Node) -> Sizes:
    """The last axis scales by the ratio of the item sizes (D-022)."""
    shape, old, new = u.src[0].shape, u.src[0].dtype.itemsize, u.dtype.itemsize
    if old == new:
        return shape
    return (*shape[:-1], shape[-1] * old // new)


@says("that of {src[0]}, 1 on the folded axes")
def reduce(u: Node) -> Sizes:
    axes = arg_of(u, ReduceArg).axes
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(u.src[0].shape))


@says("that of {src[0]}, 1 on the axes of the arg")
def replicated(u: Node) -> Sizes:
    axes = arg_of(u, ReplicatedArg).axes
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(u.src[0].shape))


@says("(size,) of the arg")
def of_slice(u: Node) -> Shape:
    return (arg_of(u, SliceArg).size,)


def broadcast_shapes(*shapes: Sizes) -> Sizes | None:
    """The shapes right-aligned, each axis equal or 1 (D-019); None if they do not fit."""
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    rank = max((len(s) for s in shapes), default=0)
    aligned = [(1,) * (rank - len(s)) + s for s in shapes]
    result = []
    for dims in zip(*aligned, strict=True):
        wide = {d for d in dims if d != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return tuple(result)


@says("the operands' shapes right-aligned, each axis the larger of equal or 1")
def broadcast(u: Node) -> Sizes:
    return cast("Sizes", broadcast_shapes(*[s.shape for s in u.src]))


def size(shape: Shape) -> int:
    return math.prod(shape)
