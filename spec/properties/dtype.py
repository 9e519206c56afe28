"""Rules of dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from uop.spec.args import BufferArg, ConstArg, DTypeArg, GetTupleArg, ParamArg, SliceArg, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.properties.words import says

if TYPE_CHECKING:
    from uop.spec.registry import Node


def of_src(position: int) -> Callable[[Node], DType]:
    @says(f"that of {{src[{position}]}}")
    def dtype(u: Node) -> DType:
        return u.src[position].dtype

    return dtype


def always(fixed: DType) -> Callable[[Node], DType]:
    @says(fixed.name)
    def dtype(u: Node) -> DType:
        return fixed

    return dtype


@says("that of the arg")
def from_arg(u: Node) -> DType:
    match u.arg:
        case ConstArg(dtype=dtype) | DTypeArg(dtype=dtype) | SliceArg(dtype=dtype):
            return dtype
    return arg_of(u, ParamArg, BufferArg).dtype


def stack(u: Node) -> DType:
    """The dtype of the operands; index for an empty STACK, which is the shape of a scalar."""
    return u.src[0].dtype if u.src else dtypes.index


def returned(u: Node) -> Node:
    """GETTUPLE: the element it extracts, from a TUPLE or from the body of a FUNCTION."""
    source = u.src[0]
    body = source if source.op is Op.TUPLE else source.src[0]
    return body.src[arg_of(u, GetTupleArg).idx]


@says("that of the element")
def element(u: Node) -> DType:
    return returned(u).dtype
