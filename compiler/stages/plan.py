"""The stage plan: temporaries whose lifetimes do not overlap share memory.

Inside kernels nothing is shared: each fold has a register, which the device compiler places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from uop.compiler.stages.order import TEMPORARY, Order
from uop.compiler.stages.stage import Stage
from uop.spec.dtype import DType
from uop.spec.errors import PassError
from uop.spec.graph import base_of, calls, written_by
from uop.spec.kernel.forms import PLANNED
from uop.spec.properties.shape import is_fixed
from uop.spec.properties.symbolic import is_size
from uop.spec.registry import Sizes
from uop.spec.uop import UOp


def plan(root: UOp) -> UOp:
    """Replace temporaries so that the kernels need fewer BUFFERs."""
    called = calls(root)
    places = shared(lifetimes(called))
    if all(buffer is place for buffer, place in places.items()):
        return root
    return root.substitute(in_places(called, places))


def lifetimes(calls: Sequence[UOp]) -> dict[UOp, range]:
    """The numbers of the CALLs from the first use of each temporary to its last use."""
    used: dict[UOp, range] = {}
    for number, call in enumerate(calls):
        for buffer in _passed(call):
            if buffer.tag == TEMPORARY:
                first = used[buffer].start if buffer in used else number
                used[buffer] = range(first, number + 1)
    return used


def _passed(call: UOp) -> list[UOp]:
    """The arguments of a CALL: buffers, and sizes as they are."""
    return [a if is_size(a) else base_of(a) for a in call.src[1:]]


def shared(alive: Mapping[UOp, range]) -> dict[UOp, UOp]:
    """The BUFFER that each temporary uses: of the same dtype and size, and free by then."""
    places: dict[UOp, UOp] = {}
    free_from: dict[object, dict[UOp, int]] = {}
    for buffer, life in alive.items():
        fitting = free_from.setdefault(_need(buffer), {})
        free = (place for place, start in fitting.items() if start <= life.start)
        places[buffer] = place = next(free, buffer)
        fitting[place] = life.stop
    return places


def _need(buffer: UOp) -> tuple[DType, Sizes, object]:
    """What buffers that share memory have in common."""
    sizes = (math.prod(buffer.shape),) if is_fixed(buffer.shape) else buffer.shape
    return buffer.dtype, sizes, buffer.device


def in_places(calls: Sequence[UOp], places: Mapping[UOp, UOp]) -> dict[UOp, UOp]:
    """The CALLs on these places. PassError if a kernel would read memory that another temporary has
    overwritten.
    """
    order, holds, new = Order(), dict[UOp, UOp](), dict[UOp, UOp]()
    for call in calls:
        buffers = _passed(call)
        taken = {places.get(b, b): b for b in (buffers[k] for k in written_by(call))}
        for buffer in (b for b in buffers if b in places and b not in taken.values()):
            if holds.get(places[buffer]) is not buffer:
                raise PassError(f"plan: {buffer!r} is read after its memory was given away")
            if places[buffer] in taken:
                other = taken[places[buffer]]
                raise PassError(f"plan: {other!r} takes memory that its kernel reads")
        holds |= taken
        new[call] = order.call(call.src[0], [places.get(b, b) for b in buffers], taken)
    return new


STAGE = Stage("plan", lambda u, *_: plan(u), lambda _: PLANNED)
