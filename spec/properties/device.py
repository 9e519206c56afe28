"""Rules of device: None, one device, or the tuple of devices that hold the shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uop.spec.args import Device, LoadArg, arg_of
from uop.spec.properties.dtype import returned
from uop.spec.properties.words import says

if TYPE_CHECKING:
    from uop.spec.registry import Node


@says("none")
def null(u: Node) -> Device:
    return None


@says("that of the first operand")
def of_first(u: Node) -> Device:
    return u.src[0].device


@says("that of the first operand that has one")
def first_that_has_one(u: Node) -> Device:
    for s in u.src:
        if s.device is not None:
            return s.device
    return None


def load(u: Node) -> Device:
    """The device of the arg, else that of the operand."""
    target = arg_of(u, LoadArg).device
    return u.src[0].device if target is None else target


@says("that of the element")
def element(u: Node) -> Device:
    """GETTUPLE: that of the element; if it has none, that of the arguments of the call."""
    own = returned(u).device
    return u.src[0].device if own is None else own


def conflicting(u: Node) -> str | None:
    """The devices of the operands if they differ."""
    found = {s.device: None for s in u.src if s.device is not None}
    return None if len(found) < 2 else f"devices {', '.join(map(str, found))}"


def of_arguments(u: Node) -> Device:
    """FUNCTION and CALL: that of the first argument that has one."""
    return next((a.device for a in u.src[1:] if a.device is not None), None)
