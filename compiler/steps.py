"""Makes the steps of a planned program: kernels, copies between devices, functions of the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uop.compiler.execute import CopyStep, Executable, HostStep, KernelRun
from uop.compiler.runtime.binary import Binary
from uop.compiler.stages.render.stage import named, written_slots
from uop.compiler.targets.target import Target
from uop.interpreter.numeric.storage import constant
from uop.spec.args import ConstArg, CustomFunctionArg, GetAddrArg, arg_of
from uop.spec.conditions.clauses import lacking
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import base_of, calls, slot_of, slots_of
from uop.spec.kernel.functions import function_named
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_size
from uop.spec.shards import devices_of
from uop.spec.uop import UOp


def executable(
    root: UOp,
    stored: Sequence[UOp],
    planned: UOp,
    target: Target,
    binaries: Mapping[UOp, Binary],
) -> Executable:
    """Make the Executable of a planned program. `stored` are the buffers of the results, `binaries`
    the machine code of some of its kernels.
    """
    devices = devices_of(root) or ("",)
    found = _Steps(devices, binaries)
    for call in calls(planned):
        found.add(call, has_copies=not calls(root))
    _check_addresses(found.steps, target)
    kind = root.op if root.dtype is dtypes.void else Op.LOAD
    kind = {Op.TUPLE: Op.TUPLE, Op.FUNCTION: Op.TUPLE, Op.LOAD: Op.LOAD}.get(kind, Op.SINK)
    buffers = tuple(buffer.memory for buffer in found.buffers)
    places = tuple(buffer.place for buffer in found.buffers)
    results = tuple(map(slot_of, stored))
    written: dict[UOp, UOp | None] = {}
    for step in found.steps:
        if isinstance(step, KernelRun):
            slots = written_slots(step.linear)
            first = buffers[step.buffers[slots[0]]] if slots else None
            written.setdefault(step.linear, first)
    parts = buffers, tuple(found.steps), results, devices, places
    return Executable(target, kind, slots_of(root), *parts, named(written))


@dataclass(frozen=True, slots=True)
class _Placed:
    """A BUFFER or BINARY in the memory of a device."""

    memory: UOp
    place: int


class _Steps:
    """The steps of a program, and the buffers that they use by number."""

    def __init__(self, devices: Sequence[str], binaries: Mapping[UOp, Binary]) -> None:
        self._devices, self._binaries = devices, binaries
        self.buffers: dict[_Placed, int] = {}
        self.steps: list[KernelRun | HostStep | CopyStep] = []

    def add(self, call: UOp, has_copies: bool) -> None:
        """Add the step of a CALL. A kernel with buffers on two devices is a copy if the compiler
        made it, else UnsupportedError.
        """
        body, arguments = call.src[0], dict(enumerate(call.src[1:]))
        sizes = {slot: a for slot, a in arguments.items() if is_size(a)}
        bases = {slot: base_of(a) for slot, a in arguments.items() if slot not in sizes}
        there = dict.fromkeys(self._place(u) for u in bases.values() if u.op is not Op.BINARY)
        first, *others = there or (0,)
        if body.op is Op.CUSTOMFUNCTION:
            numbers = (self._number(u, self._place(u)) for u in bases.values())
            self.steps.append(_host_step(body, tuple(numbers)))
        elif not others:
            places = {slot: self._number(u, first) for slot, u in bases.items()}
            self.steps.append(KernelRun(body, places, sizes, self._binaries.get(body), first))
        elif has_copies and len(bases) == 2:
            to, source = (self._number(u, self._place(u)) for u in bases.values())
            self.steps.append(CopyStep(source, to))
        else:
            names = ", ".join(self._devices[k] for k in (first, *others))
            raise UnsupportedError(f"a kernel with buffers on the devices ({names})")

    def _place(self, buffer: UOp) -> int:
        """The device of a buffer: the first one where it names none."""
        name = buffer.device
        return self._devices.index(name) if isinstance(name, str) and len(self._devices) > 1 else 0

    def _number(self, buffer: UOp, place: int) -> int:
        return self.buffers.setdefault(_Placed(buffer, place), len(self.buffers))


def _check_addresses(steps: Sequence[KernelRun | HostStep | CopyStep], target: Target) -> None:
    """UnsupportedError for addresses that may differ where the program has one (D-103)."""
    taken: dict[int, list[UOp]] = {}
    for number, step in enumerate(steps):
        found = step.linear.src if isinstance(step, KernelRun) else ()
        if addresses := [u for u in found if u.op is Op.GETADDR]:
            taken[number] = addresses
    devices = {arg_of(u, GetAddrArg).device for found in taken.values() for u in found}
    if len(devices) > 1:
        names = ", ".join(sorted(devices))
        raise UnsupportedError(f"GETADDR on {names}: a program is compiled for one device")
    first, last = min(taken, default=0), max(taken, default=0)
    if first != last and not target.keeps_addresses:
        raise UnsupportedError(
            f"GETADDR in {len(taken)} launches: on {target.name} memory may move between them"
        )
    if any(isinstance(step, HostStep) for step in steps[first:last]):
        raise UnsupportedError("GETADDR before and after a function of the host")


def _host_step(body: UOp, buffers: tuple[int, ...]) -> HostStep:
    for u in body.src:
        if u.op is not Op.CONST:
            raise lacking("CUSTOMFUNCTION.n2", u.op.name, u)
    numbers = tuple(constant(arg_of(u, ConstArg).bits, u.dtype) for u in body.src)
    function = function_named(arg_of(body, CustomFunctionArg).name, len(buffers), len(numbers))
    return HostStep(function, numbers, buffers)
