"""addrspace: set for a location (memory one can store to), null for a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from uop.spec.args import AddrSpace, BufferArg, ParamArg

if TYPE_CHECKING:
    from uop.spec.registry import Node


def value(u: Node) -> AddrSpace | None:
    return None


def from_arg(u: Node) -> AddrSpace | None:
    return cast(ParamArg | BufferArg, u.arg).addrspace


def of_first(u: Node) -> AddrSpace | None:
    return u.src[0].addrspace
