"""The constraints between the slots of a program and its inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from uop.spec.conditions.labels import INPUT_C1, INPUT_C2, INPUT_C3, INPUT_C4
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.spec.uop import UOp


def clash(slot: int, first: UOp, second: UOp) -> InvalidError:
    """The error INPUT.c1: two nodes have one slot. PARAM and BUFFER share a namespace (D-055)."""
    return INPUT_C1.error_at(second, f"slot {slot}", f"{_spelled(first)} and {_spelled(second)}")


def check_slots(slots: Mapping[int, UOp], inputs: Collection[int]) -> None:
    """InvalidError for an input without a slot and for a PARAM without input.

    A BUFFER may start without contents.
    """
    for slot in inputs:
        if slot not in slots:
            known = ", ".join(map(str, sorted(slots))) or "none"
            raise INPUT_C2.error_at(None, f"slot {slot}", f"slots {known}")
    for slot, u in slots.items():
        if slot not in inputs and u.op is Op.PARAM:
            raise INPUT_C3.error_at(u, f"slot {slot}: {_spelled(u)}", "none")


def misfit(slot: int, u: UOp, found: str) -> InvalidError:
    """The error INPUT.c4: an input of another shape or dtype; `found` describes the input."""
    return INPUT_C4.error_at(u, f"slot {slot}: {_spelled(u)}", found)


def _spelled(u: UOp) -> str:
    return f"{u.op.name} {u.dtype.name}{list(u.shape)}"
