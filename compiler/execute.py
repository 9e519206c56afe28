"""What a planned program needs to run: its buffers, its launches in order, and where its results
are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uop.compiler.runtime.device import Built, Device, Launch
from uop.compiler.stages.grid import grid_of, is_grouped, runs, work_items
from uop.compiler.stages.render import params, written_params
from uop.compiler.targets.target import Target
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import BinaryArg, arg_of
from uop.spec.conditions.inputs import check_slots, misfit
from uop.spec.dtype import dtypes
from uop.spec.graph import base_of, calls, slot_of, slots_of
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size
from uop.spec.uop import UOp

Array = NDArray[Any]
Inputs = Mapping[int, Array]
Output = Array | tuple[Array, ...] | dict[int, Array]

POISON = 0xA5
"""The value of every unwritten byte of memory."""


@dataclass(frozen=True, slots=True)
class Step:
    """One launch: a kernel and its buffers, by their number in the program."""

    linear: UOp
    buffers: tuple[int, ...]

    @property
    def arguments(self) -> tuple[int, ...]:
        """The buffers that the rendered kernel takes; simplification may drop some."""
        return tuple(self.buffers[slot_of(u)] for u in params(self.linear))

    @property
    def written(self) -> frozenset[int]:
        """The buffers that the kernel writes to."""
        return frozenset(self.buffers[slot_of(u)] for u in written_params(self.linear))


@dataclass(frozen=True, slots=True, eq=False)
class Executable:
    """A compiled program as data: buffers to allocate, kernels to launch, slots of the results."""

    target: Target
    root: Op
    slots: Mapping[int, UOp]
    """The PARAM or BUFFER of each input slot."""
    buffers: tuple[UOp, ...]
    """BUFFERs and BINARYs, in the order of their first use."""
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    """The slots that hold the results."""

    def names(self) -> dict[UOp, str]:
        """The distinct kernels with their names in the source."""
        linears = dict.fromkeys(step.linear for step in self.steps)
        return {linear: f"kernel_{number}" for number, linear in enumerate(linears)}

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each buffer in bytes."""
        return tuple(size(u.shape) * u.dtype.itemsize for u in self.buffers)

    def check_inputs(self, inputs: Inputs) -> None:
        """InvalidError for a missing or unknown input, and for one of a wrong shape or dtype."""
        check_slots(self.slots, inputs.keys())
        for slot, array in inputs.items():
            actual, u = np.asarray(array), self.slots[slot]
            if actual.shape != u.shape or actual.dtype != np_dtype(u.dtype):
                raise misfit(slot, u, f"{actual.dtype}{list(actual.shape)}")

    def contents(self, inputs: Inputs) -> list[Array]:
        """The initial contents of each buffer, as bytes."""
        return [_initial(u, inputs) for u in self.buffers]

    def output(self, contents: Sequence[Array]) -> Output:
        """The results in the final contents of the buffers."""
        by_slot = {
            slot_of(u): _typed(held, u)
            for u, held in zip(self.buffers, contents, strict=True)
            if u.op is Op.BUFFER
        }
        if self.root is Op.TUPLE:
            return tuple(by_slot[slot] for slot in self.results)
        if self.root is Op.SINK:
            return {slot: by_slot[slot] for slot in self.results}
        return by_slot[self.results[0]]

    def run(self, inputs: Inputs, source: str, device: Device | None = None) -> Output:
        """Run on a device, by default that of the target."""
        self.check_inputs(inputs)
        contents = self.contents(inputs)
        if not self.steps:
            return self.output(contents)
        device = device or open_device(self.target)
        return self.output(device.run(build(device, source), self.launches(), contents))

    def launches(self) -> list[Launch]:
        """The launches of its kernels, in order."""
        names = self.names()
        return [
            launch_of(step.linear, names[step.linear], step.arguments, self.target)
            for step in self.steps
            if runs(step.linear)
        ]

    def unwritten(self, inputs: Inputs) -> frozenset[int]:
        """The buffers without initial contents."""
        return frozenset(
            number
            for number, u in enumerate(self.buffers)
            if u.op is Op.BUFFER and slot_of(u) not in inputs
        )


def launch_of(linear: UOp, name: str, buffers: tuple[int, ...], target: Target) -> Launch:
    """The launch of a kernel, in the workgroups that it requires or else of the target's size."""
    if is_grouped(linear):
        grid = grid_of(linear)
        return Launch(name, buffers, grid.groups, grid.items)
    items = work_items(linear)
    return Launch.covering(name, buffers, items, target.local_size if items else 1)


def executable(root: UOp, stored: Sequence[UOp], planned: UOp, target: Target) -> Executable:
    """Read the launches off a planned program; `stored` are the buffers of the results."""
    buffers: dict[UOp, int] = {}
    steps = []
    for call in calls(planned):
        places = [buffers.setdefault(base_of(a), len(buffers)) for a in call.src[1:]]
        steps.append(Step(call.src[0], tuple(places)))
    kind = root.op if root.dtype is dtypes.void else Op.LOAD
    kind = {Op.TUPLE: Op.TUPLE, Op.FUNCTION: Op.TUPLE, Op.LOAD: Op.LOAD}.get(kind, Op.SINK)
    return Executable(
        target, kind, slots_of(root), tuple(buffers), tuple(steps), tuple(map(slot_of, stored))
    )


def _initial(u: UOp, inputs: Inputs) -> Array:
    if u.op is Op.BINARY:
        return np.frombuffer(arg_of(u, BinaryArg).data, np.uint8)
    if slot_of(u) in inputs:
        return np.ascontiguousarray(inputs[slot_of(u)]).reshape(-1).view(np.uint8)
    return np.full(size(u.shape) * u.dtype.itemsize, POISON, np.uint8)


def _typed(contents: Array, u: UOp) -> Array:
    """Bytes as the elements of a buffer; any nonzero byte of a bool is 1."""
    if u.dtype is dtypes.bool:
        return np.not_equal(contents, 0).reshape(u.shape)
    return contents.view(np_dtype(u.dtype)).reshape(u.shape)


@cache
def open_device(target: Target) -> Device:
    """The device of a target, opened once per process."""
    return target.open()


@lru_cache(maxsize=64)
def build(device: Device, source: str) -> Built:
    """Build a source, with a cache."""
    return device.build(source)
