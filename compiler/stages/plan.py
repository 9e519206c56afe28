"""The stage plan: temporaries whose lifetimes do not overlap share memory.

Inside kernels nothing is shared: each fold has a register, which the device compiler places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from uop.compiler.stages.callify.contents import TEMPORARY
from uop.compiler.stages.stage import Stage
from uop.spec.dtype import DType
from uop.spec.errors import PassError
from uop.spec.graph import base_of, calls, written_by
from uop.spec.kernel.forms import PLANNED
from uop.spec.ops.names import Op
from uop.spec.properties.shape import is_fixed
from uop.spec.properties.symbolic import is_size
from uop.spec.registry import Sizes
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The numbers of the first and the last CALL that use a temporary."""

    buffer: UOp
    first: int
    last: int


def plan(root: UOp) -> UOp:
    """Replace temporaries so that the kernels need fewer BUFFERs."""
    order = calls(root)
    places = shared(lifetimes(order))
    if all(buffer is place for buffer, place in places.items()):
        return root
    check_shared(order, places)
    holds: dict[UOp, UOp] = {}
    users: dict[UOp, list[UOp]] = {}
    new: dict[UOp, UOp] = {}
    for call in order:
        passed = [_passed(a) for a in call.src[1:]]
        arguments = []
        for a, buffer in zip(call.src[1:], passed, strict=True):
            place = places.get(buffer, buffer)
            before = [new[c] for c in a.src[1:]] if a.op is Op.AFTER else []
            if holds.get(place, buffer) is not buffer:
                # The first user waits for those of the buffer that had its memory before.
                before += users[holds[place]]
            holds[place] = buffer
            distinct = dict.fromkeys(before)
            arguments.append(UOp(Op.AFTER, place, *distinct) if distinct else place)
        new[call] = UOp(Op.CALL, call.src[0], *arguments)
        for buffer in passed:
            users.setdefault(buffer, []).append(new[call])
    return root.substitute(new)


def lifetimes(calls: Sequence[UOp]) -> list[Lifetime]:
    """The lifetime of each temporary, in the order of first use."""
    used: dict[UOp, list[int]] = {}
    for number, call in enumerate(calls):
        for a in call.src[1:]:
            if _passed(a).tag == TEMPORARY:
                used.setdefault(_passed(a), []).append(number)
    return [Lifetime(buffer, numbers[0], numbers[-1]) for buffer, numbers in used.items()]


def _passed(argument: UOp) -> UOp:
    """The buffer that an argument of a CALL is; a size as it is."""
    return argument if is_size(argument) else base_of(argument)


def shared(alive: Sequence[Lifetime]) -> dict[UOp, UOp]:
    """The BUFFER that each temporary uses: of the same dtype and size, and free by then."""
    places: dict[UOp, UOp] = {}
    free_after: dict[object, dict[UOp, int]] = {}
    for life in alive:
        fitting = free_after.setdefault(_need(life.buffer), {})
        free = (place for place, last in fitting.items() if last < life.first)
        places[life.buffer] = place = next(free, life.buffer)
        fitting[place] = life.last
    return places


def _need(buffer: UOp) -> tuple[DType, Sizes, object]:
    """What buffers that share memory have in common."""
    sizes = (math.prod(buffer.shape),) if is_fixed(buffer.shape) else buffer.shape
    return buffer.dtype, sizes, buffer.device


def check_shared(calls: Sequence[UOp], places: dict[UOp, UOp]) -> None:
    """PassError if a kernel would read memory that another temporary has overwritten."""
    holds: dict[UOp, UOp] = {}
    for call in calls:
        buffers = [_passed(a) for a in call.src[1:]]
        written = [buffers[k] for k in written_by(call)]
        read = [buffer for buffer in buffers if buffer not in written]
        for buffer in read:
            if buffer in places and holds.get(places[buffer]) is not buffer:
                raise PassError(f"plan: {buffer!r} is read after its memory was given away")
        for buffer in written:
            if buffer not in places:
                continue
            if any(places.get(other) is places[buffer] for other in read):
                raise PassError(f"plan: {buffer!r} takes memory that its kernel reads")
            holds[places[buffer]] = buffer


STAGE = Stage("plan", lambda u, *_: plan(u), lambda _: PLANNED)
