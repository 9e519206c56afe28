"""A planned program as data: its buffers, its launches in order, and the slots of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from uop.compiler.runtime.binary import Binary
from uop.compiler.runtime.device import Built, Device, Launch, Memory, Transfer
from uop.compiler.stages.render.grid import grid_of, runs
from uop.compiler.stages.render.stage import numbers, params, written_params
from uop.compiler.targets.target import Target
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import BinaryArg, ParamArg, arg_of
from uop.spec.conditions.labels import check_slots, invalid, misfit
from uop.spec.errors import UnsupportedError
from uop.spec.graph import slot_of
from uop.spec.kernel.functions import CustomFunction
from uop.spec.ops.names import Op
from uop.spec.properties.shape import index_value, is_fixed, size
from uop.spec.properties.symbolic import bind, is_variable
from uop.spec.uop import UOp

Array = NDArray[Any]
Inputs = Mapping[int, Array]
Output = Array | tuple[Array, ...] | dict[int, Array]

T = TypeVar("T")

POISON = 0xA5
"""The value of every unwritten byte of memory."""


@dataclass(frozen=True, slots=True)
class KernelRun:
    """One launch: a kernel and its arguments."""

    linear: UOp
    buffers: Mapping[int, int]
    """The numbers of its buffers in the program, by slot."""
    sizes: Mapping[int, UOp]
    """The values of its variables, by slot: sizes of the program."""
    binary: Binary | None = None
    """Its machine code, if it is not built from its source."""
    place: int = 0
    """The device that runs it, by its number in the program."""

    @property
    def arguments(self) -> tuple[int, ...]:
        """The buffers that the rendered kernel takes; simplification may have removed some."""
        return tuple(self.buffers[slot_of(u)] for u in params(self.linear))

    @property
    def written(self) -> frozenset[int]:
        """The buffers that the kernel writes to."""
        return frozenset(self.buffers[slot_of(u)] for u in written_params(self.linear))

    @property
    def numbers(self) -> dict[UOp, int]:
        """The numbers that the rendered kernel takes for its variables, in their order."""
        return {u: index_value(self.sizes[slot_of(u)]) for u in numbers(self.linear)}

    def bound(self, values: Mapping[UOp, int]) -> KernelRun:
        """The launch with numbers for the variables of the program."""
        return replace(self, sizes={slot: bind(u, values) for slot, u in self.sizes.items()})


@dataclass(frozen=True, slots=True, eq=False)
class HostStep:
    """A function that the host runs by name between launches, and its buffers by number."""

    function: CustomFunction
    numbers: tuple[Array, ...]
    buffers: tuple[int, ...]

    def run(
        self, devices: Sequence[Device], held: Sequence[Memory], buffers: Sequence[UOp]
    ) -> None:
        """Run the function on the memory of all buffers and their devices, by number."""
        given = [
            typed(devices[k].read(held[k], size_of(u)), np_dtype(u.dtype), (-1,))
            for k, u in ((k, buffers[k]) for k in self.buffers)
        ]
        results = self.function.meaning(given, *self.numbers)
        for position, data in zip(self.function.writes, results, strict=True):
            number = self.buffers[position]
            devices[number].write(held[number], np.array(data, np_dtype(buffers[number].dtype)))


@dataclass(frozen=True, slots=True)
class CopyStep:
    """A copy of a buffer to one of the same size on another device, by their numbers."""

    source: int
    to: int


@dataclass(frozen=True, slots=True, eq=False)
class Executable:
    """A compiled program as data: buffers to allocate, kernels to launch, slots of the results."""

    target: Target
    root: Op
    slots: Mapping[int, UOp]
    """The PARAM or BUFFER of each input slot; its variables too until they are bound."""
    buffers: tuple[UOp, ...]
    """BUFFERs and BINARYs, in the order of their first use."""
    steps: tuple[KernelRun | HostStep | CopyStep, ...]
    results: tuple[int, ...]
    """The slots that hold the results."""
    devices: tuple[str, ...] = ("",)
    """The names of its devices."""
    places: tuple[int, ...] = ()
    """The device of each buffer, by number."""
    names: Mapping[UOp, str] = field(default_factory=dict)
    """The distinct kernels with their names in the source."""

    @property
    def kernels(self) -> tuple[KernelRun, ...]:
        """The steps that the device runs."""
        return tuple(step for step in self.steps if isinstance(step, KernelRun))

    @property
    def is_one_source(self) -> bool:
        """Whether every step is a copy or a kernel of the source."""
        is_built = all(step.binary is None for step in self.kernels)
        return is_built and not any(isinstance(step, HostStep) for step in self.steps)

    @property
    def written(self) -> frozenset[int]:
        """The buffers that its kernels and copies write to."""
        copied = (step.to for step in self.steps if isinstance(step, CopyStep))
        return frozenset(copied).union(*(step.written for step in self.kernels))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each buffer in bytes."""
        return tuple(map(size_of, self.buffers))

    @property
    def has_variables(self) -> bool:
        """Whether kernels of the program take numbers in addition to buffers."""
        return any(step.sizes for step in self.kernels) or any(
            map(is_variable, self.slots.values())
        )

    def bound(self, inputs: Mapping[int, Any]) -> Executable:
        """The program with its variables bound to their inputs.

        InvalidError for a missing variable, and for a number outside its range.
        """
        variables = {slot: u for slot, u in self.slots.items() if is_variable(u)}
        if not variables:
            return self
        check_slots(self.slots, inputs.keys())
        values = {u: checked_number(u, inputs[slot]) for slot, u in variables.items()}

        def sized(u: UOp) -> UOp:
            return u if is_fixed(u.shape) else bind(u, values)

        return replace(
            self,
            slots={slot: sized(u) for slot, u in self.slots.items() if slot not in variables},
            buffers=tuple(map(sized, self.buffers)),
            steps=tuple(
                step.bound(values) if isinstance(step, KernelRun) else step for step in self.steps
            ),
        )

    def check_inputs(self, inputs: Mapping[int, Any]) -> None:
        """InvalidError for a missing or unknown input, and for one of a wrong shape or dtype.

        An input is an array, or anything with a shape and a dtype of numpy.
        """
        check_slots(self.slots, inputs.keys())
        for slot, array in inputs.items():
            actual, u = array if hasattr(array, "dtype") else np.asarray(array), self.slots[slot]
            if actual.shape != u.shape or actual.dtype != np_dtype(u.dtype):
                raise misfit(slot, u, f"{actual.dtype}{list(actual.shape)}")

    def contents(self, inputs: Inputs) -> list[Array]:
        """The initial contents of each buffer, as bytes."""
        return [initial(u, inputs) for u in self.buffers]

    def output(self, contents: Sequence[Array]) -> Output:
        """The results in the final contents of the buffers."""
        return self.arranged(
            {
                slot_of(u): typed(held, np_dtype(u.dtype), u.shape)
                for u, held in zip(self.buffers, contents, strict=True)
                if u.op is Op.BUFFER
            }
        )

    def arranged(self, by_slot: Mapping[int, T]) -> T | tuple[T, ...] | dict[int, T]:
        """The results as the program returns them: one, a tuple, or a dict by slot."""
        if self.root is Op.TUPLE:
            return tuple(by_slot[slot] for slot in self.results)
        if self.root is Op.SINK:
            return {slot: by_slot[slot] for slot in self.results}
        return by_slot[self.results[0]]

    def launches(self) -> list[Launch]:
        """The launches of its kernels, in order."""
        return [launch for launch in self.launched() if isinstance(launch, Launch)]

    def launched(self) -> list[HostStep | Transfer | Launch]:
        """The steps that have work, in order; a kernel becomes its launch."""
        sizes = self.sizes
        found: list[HostStep | Transfer | Launch] = []
        for step in self.steps:
            if isinstance(step, CopyStep):
                found.append(Transfer(step.source, step.to, sizes[step.to]))
            elif isinstance(step, HostStep):
                found.append(step)
            elif runs(step.linear, step.numbers):
                found.append(self._launch(step))
        return found

    def _launch(self, step: KernelRun) -> Launch:
        """In the workgroups that the kernel requires, or in those of the target."""
        name = step.binary.kernel if step.binary else self.names[step.linear]
        grid = grid_of(step.linear, step.numbers, self.target.local_size)
        integers = tuple(step.numbers.values())
        sizes = grid.groups, grid.items
        return Launch(name, step.arguments, *sizes, integers, step.binary, step.place)

    def unwritten(self, inputs: Inputs) -> frozenset[int]:
        """The buffers without initial contents."""
        return frozenset(
            number
            for number, u in enumerate(self.buffers)
            if u.op is Op.BUFFER and slot_of(u) not in inputs
        )


def checked_number(variable: UOp, array: Array) -> int:
    """The number in an input for a variable; InvalidError for one that does not fit it."""
    actual, slot, arg = np.asarray(array), slot_of(variable), arg_of(variable, ParamArg)
    if actual.shape != () or actual.dtype != np_dtype(variable.dtype):
        raise misfit(slot, variable, f"{actual.dtype}{list(actual.shape)}")
    number = int(actual)
    if arg.min is None or arg.max is None or not arg.min <= number <= arg.max:
        said = f"slot {slot}: from {arg.min} to {arg.max}"
        raise invalid("INPUT.c5", said, str(number), variable)
    return number


def initial(u: UOp, inputs: Inputs) -> Array:
    if u.op is Op.BINARY:
        return np.frombuffer(arg_of(u, BinaryArg).data, np.uint8)
    if slot_of(u) in inputs:
        return np.ascontiguousarray(inputs[slot_of(u)]).reshape(-1).view(np.uint8)
    return np.full(size_of(u), POISON, np.uint8)


def size_of(u: UOp) -> int:
    """The size of a buffer in bytes."""
    return size(u.shape) * u.dtype.itemsize


def typed(contents: Array, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """Bytes as the elements of an array; any nonzero byte of a bool is 1."""
    if dtype == np.bool:
        return np.not_equal(contents, 0).reshape(shape)
    return contents.view(dtype).reshape(shape)


@cache
def open_device(target: Target) -> Device:
    """The device of a target, opened once per process."""
    return target.open()


@lru_cache(maxsize=64)
def load(device: Device, binary: Binary) -> Built:
    """Load machine code, with a cache. UnsupportedError for code of another machine."""
    if not device.runs(binary.machine):
        raise UnsupportedError(
            f"a BINARY for {binary.machine}; this is {device.machine}. "
            "With an empty BINARY the program is compiled here"
        )
    return device.load(binary.code)


@lru_cache(maxsize=64)
def build(device: Device, source: str) -> Built:
    """Build a source, with a cache."""
    return device.build(source)
