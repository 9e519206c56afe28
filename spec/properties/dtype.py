"""Rules of dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uop.spec.args import GetTupleArg, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.properties.words import says

if TYPE_CHECKING:
    from uop.spec.registry import Node


def always(fixed: DType) -> Callable[[Node], DType]:
    @says(fixed.name)
    def dtype(u: Node) -> DType:
        return fixed

    return dtype


def stack(u: Node) -> DType:
    """The dtype of the operands; index for an empty STACK, which is the shape of a scalar."""
    return u.src[0].dtype if u.src else dtypes.index


def returned(u: Node) -> Node:
    """GETTUPLE: the element it extracts, from a TUPLE or from the body of a FUNCTION."""
    source = u.src[0]
    body = source if source.op is Op.TUPLE else source.src[0]
    return body.src[arg_of(u, GetTupleArg).idx]


def of_element(name: str) -> Callable[[Node], Any]:
    """GETTUPLE: the rule that a property is that of the element."""
    return says("that of the element")(lambda u: getattr(returned(u), name))
