"""Makes the steps of a planned program: kernels, copies between devices, functions of the host.

A kernel with a barrier that is certain to diverge (D-063) is refused. Only branches and loops that
depend on the numbers of the work items count. A branch on data, or a loop of a length from data, is
not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from uop.compiler.execute import Array, CopyStep, Executable, HostStep, KernelRun
from uop.compiler.rewriting.fold import values_of
from uop.compiler.runtime.binary import Binary
from uop.compiler.stages.entry.stage import Entry
from uop.compiler.stages.render.grid import IN_GROUP, OVER_ALL, name_of, specials
from uop.compiler.stages.render.stage import named, written_slots
from uop.compiler.targets.target import Target
from uop.interpreter.numeric.storage import constant
from uop.spec.args import ConstArg, CustomFunctionArg, GetAddrArg, arg_of
from uop.spec.conditions.clauses import lacking, undefined
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import base_of, calls, kernels, returns_memory, slot_of, slots_of, written
from uop.spec.kernel.functions import function_named
from uop.spec.kernel.listing import BLOCK_ENDS, BLOCK_STARTS
from uop.spec.ops.names import Op
from uop.spec.properties.interval import Interval
from uop.spec.properties.symbolic import is_size
from uop.spec.uop import UOp


def result_slots(root: UOp, first: UOp) -> list[int]:
    """The slots of the memory that holds the results of a program; `first` is what its first stage
    leaves.
    """
    if returns_memory(root):
        return sorted(map(slot_of, written(root)))
    # The STOREs of callify are in the order of the outputs.
    return [slot_of(base_of(store.src[0])) for store in first.src]


def executable(
    entry: Entry, first: UOp, planned: UOp, target: Target, binaries: Mapping[UOp, Binary]
) -> Executable:
    """Make the Executable of a program, of what its first stage leaves and what `plan` leaves.
    `binaries` are the machine code of some of its kernels.

    UndefinedError for a barrier that is certain to diverge, UnsupportedError for machine code of a
    kernel that is not one of `render`.
    """
    root = entry.program
    results = tuple(result_slots(root, first))
    is_by_hand = bool(calls(root))
    if is_by_hand:
        linears = kernels(planned)
        if not binaries.keys() <= set(linears):
            raise UnsupportedError("a PROGRAM with a BINARY whose LINEAR is not one of `render`")
        for linear in linears:
            _refuse_divergent(linear)
    devices = entry.devices or ("",)
    found = _Steps(devices, binaries, has_copies=not is_by_hand)
    for call in calls(planned):
        found.add(call)
    _check_addresses(found.steps, target)
    kind = Op.TUPLE if root.dtype is dtypes.void else Op.LOAD
    kind = Op.SINK if returns_memory(root) else kind
    buffers = tuple(buffer.memory for buffer in found.buffers)
    places = tuple(buffer.place for buffer in found.buffers)
    parts = buffers, tuple(found.steps), results, devices, places
    return Executable(target, kind, slots_of(root), *parts, named(found.written))


@dataclass(frozen=True, slots=True)
class _Placed:
    """A BUFFER or BINARY in the memory of a device."""

    memory: UOp
    place: int


@dataclass(slots=True)
class _Steps:
    """The steps of a program, and the buffers that they use by number."""

    devices: Sequence[str]
    binaries: Mapping[UOp, Binary]
    has_copies: bool
    """Whether a kernel with buffers on two devices is a copy, since the compiler made it."""
    buffers: dict[_Placed, int] = field(default_factory=dict)
    steps: list[KernelRun | HostStep | CopyStep] = field(default_factory=list)
    written: dict[UOp, UOp | None] = field(default_factory=dict)
    """The kernels, with the first buffer that each writes."""

    def add(self, call: UOp) -> None:
        """Add the step of a CALL; UnsupportedError for another kernel with buffers on two
        devices.
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
            slots = written_slots(body)
            self.written.setdefault(body, bases[slots[0]] if slots else None)
            self.steps.append(KernelRun(body, places, sizes, self.binaries.get(body), first))
        elif self.has_copies and len(bases) == 2:
            to, source = (self._number(u, self._place(u)) for u in bases.values())
            self.steps.append(CopyStep(source, to))
        else:
            names = ", ".join(self.devices[k] for k in (first, *others))
            raise UnsupportedError(f"a kernel with buffers on the devices ({names})")

    def _place(self, buffer: UOp) -> int:
        """The device of a buffer: the first one where it names none."""
        name = buffer.device
        return self.devices.index(name) if isinstance(name, str) and len(self.devices) > 1 else 0

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


LAUNCHED = (*reversed(OVER_ALL), *reversed(IN_GROUP))
"""The SPECIALs in the order in which a launch counts: the last one fastest."""
MOST_GROUPS = 16
"""The most workgroups along an axis that are examined."""
MOST_ITERATIONS = 4096
"""The most iterations of a kernel's loops that are examined."""


@dataclass(slots=True)
class Block:
    """A loop or a branch that holds barriers, directly or in blocks inside."""

    opener: UOp | None
    items: list[UOp | Block] = field(default_factory=list)


def _refuse_divergent(linear: UOp) -> None:
    """UndefinedError for a BARRIER that some work items of a group reach and others skip."""
    if not any(u.op is Op.BARRIER for u in linear.src):
        return
    counters = sorted(specials(linear), key=lambda u: LAUNCHED.index(name_of(u)))
    walk = _Walk([name_of(u) for u in counters])
    for axis, u in enumerate(counters):
        # Of a symbolic number as many as there certainly are.
        certain = int(cast(Interval, u.src[0].min_max).min)
        count = certain if name_of(u) in IN_GROUP else min(certain, MOST_GROUPS)
        shape = [1] * len(counters)
        shape[axis] = count
        walk.known[u] = np.arange(count).reshape(shape)
    walk.run(_blocks(linear), np.ones((1,) * len(counters), np.bool_))


def _blocks(linear: UOp) -> Block:
    """The blocks of a kernel around its barriers."""
    opened = [Block(None)]
    for u in linear.src:
        if u.op in BLOCK_STARTS:
            opened.append(Block(u))
        elif u.op in BLOCK_ENDS:
            block = opened.pop()
            if block.items:
                opened[-1].items.append(block)
        elif u.op is Op.BARRIER:
            opened[-1].items.append(u)
    return opened[0]


@dataclass(slots=True)
class _Walk:
    """Runs the blocks around the barriers for all work items at once, each SPECIAL on its axis."""

    names: list[str]
    """The SPECIAL of each axis."""
    known: dict[UOp, Array] = field(default_factory=dict)
    """The values of the counters."""
    left: int = MOST_ITERATIONS

    def run(self, block: Block, active: Array) -> None:
        for item in block.items:
            if not isinstance(item, Block):
                self._meet(item, active)
            elif item.opener is not None and item.opener.op is Op.RANGE:
                self._repeat(item, item.opener, active)
            elif item.opener is not None:
                gate = values_of(item.opener.src[0], self.known)
                if gate is not None:
                    self.run(item, active & gate)

    def _repeat(self, block: Block, counter: UOp, active: Array) -> None:
        counts = values_of(counter.src[0], self.known)
        if counts is None:
            return
        for position in range(int(np.max(np.where(active, counts, 0), initial=0))):
            if not self.left:
                return
            self.left -= 1
            self.known[counter] = np.asarray(position)
            self.run(block, active & (position < counts))

    def _meet(self, barrier: UOp, active: Array) -> None:
        items = tuple(axis for axis, name in enumerate(self.names) if name in IN_GROUP)
        some, every = (f(axis=items, keepdims=True) for f in (active.any, active.all))
        split = some & ~every
        if split.any():
            waits, skips = self._first(split & active), self._first(split & ~active)
            raise undefined(
                "BARRIER.u1", f"divergent barrier: {waits} waits, {skips} skips it", barrier
            )

    def _first(self, where: Array) -> str:
        """The first work item of a mask, on the axes that it depends on."""
        position = np.argwhere(where)[0]
        shown = zip(self.names, position, where.shape, strict=True)
        return ", ".join(f"{name} = {int(at)}" for name, at, count in shown if count > 1)
