"""Rules of addrspace: set for a location (memory that a STORE can write), None for a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uop.spec.args import AddrSpace, PadArg, PadFill, arg_of
from uop.spec.properties.words import of_src, says

if TYPE_CHECKING:
    from uop.spec.registry import Node


@says("none: it is a value, not a location")
def value(u: Node) -> AddrSpace | None:
    return None


of_first = of_src(0, "addrspace")


def pad(u: Node) -> AddrSpace | None:
    """A PAD with zeros is a value, WHERE(inside, PAD, 0), because its zeros are not in memory."""
    is_zero = arg_of(u, PadArg).fill is PadFill.ZERO
    return None if is_zero else u.src[0].addrspace
