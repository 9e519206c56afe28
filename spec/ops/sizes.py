"""Constants and sizes, for rules that build graphs with the constructor that they are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from uop.spec.args import ConstArg
from uop.spec.dtype import Number, dtypes
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.registry import Build, Node


def const_like(build: Build, like: Node, value: Number) -> Node:
    """A CONST of the dtype of a node."""
    return build(Op.CONST, arg=ConstArg.of(value, like.dtype))


def size_node(build: Build, size: int | Node) -> Node:
    """The ()-shaped index of a size; a symbolic one is that node."""
    if isinstance(size, int):
        return build(Op.CONST, arg=ConstArg.of(size, dtypes.index))
    return size


def shape_node(build: Build, shape: Iterable[int | Node]) -> Node:
    """A shape or offset operand."""
    return build(Op.STACK, *(size_node(build, size) for size in shape))
