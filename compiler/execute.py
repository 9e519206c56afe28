"""What a planned program needs to run: its buffers, its launches in order, and where its results
are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uop.compiler.runtime.binary import Binary
from uop.compiler.runtime.device import Built, Device, Launch
from uop.compiler.stages.grid import grid_of, is_grouped, runs, work_items
from uop.compiler.stages.render import numbers, params, written_params
from uop.compiler.targets.target import Target
from uop.interpreter.numeric.storage import constant, np_dtype
from uop.spec.args import BinaryArg, ConstArg, CustomFunctionArg, GetAddrArg, ParamArg, arg_of
from uop.spec.conditions.clauses import lacking
from uop.spec.conditions.inputs import check_slots, misfit
from uop.spec.conditions.labels import INPUT_C5
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import base_of, calls, slot_of, slots_of
from uop.spec.kernel.functions import CustomFunction, function_named
from uop.spec.ops.names import Op
from uop.spec.properties.shape import index_value, is_fixed, size
from uop.spec.properties.symbolic import bind, is_size, is_variable
from uop.spec.uop import UOp

Array = NDArray[Any]
Inputs = Mapping[int, Array]
Output = Array | tuple[Array, ...] | dict[int, Array]

POISON = 0xA5
"""The value of every unwritten byte of memory."""


@dataclass(frozen=True, slots=True)
class Step:
    """One launch: a kernel and its arguments."""

    linear: UOp
    buffers: Mapping[int, int]
    """The numbers of its buffers in the program, by slot."""
    sizes: Mapping[int, UOp]
    """What its variables are, by slot: sizes of the program."""
    binary: Binary | None = None
    """The machine code that runs it, if not that of its source."""

    @property
    def arguments(self) -> tuple[int, ...]:
        """The buffers that the rendered kernel takes; simplification may drop some."""
        return tuple(self.buffers[slot_of(u)] for u in params(self.linear))

    @property
    def written(self) -> frozenset[int]:
        """The buffers that the kernel writes to."""
        return frozenset(self.buffers[slot_of(u)] for u in written_params(self.linear))

    @property
    def numbers(self) -> dict[UOp, int]:
        """The numbers that the rendered kernel takes for its variables, in their order."""
        return {u: index_value(self.sizes[slot_of(u)]) for u in numbers(self.linear)}

    def bound(self, values: Mapping[UOp, int]) -> Step:
        """The launch with numbers for the variables of the program."""
        return replace(self, sizes={slot: bind(u, values) for slot, u in self.sizes.items()})


@dataclass(frozen=True, slots=True, eq=False)
class HostStep:
    """A function that the host runs by name between launches, and its buffers by number."""

    function: CustomFunction
    numbers: tuple[Array, ...]
    buffers: tuple[int, ...]

    def run(self, contents: Sequence[Array], buffers: Sequence[UOp]) -> list[Array]:
        """The contents of all buffers after the function."""
        given = [_typed(contents[k], buffers[k]).flatten() for k in self.buffers]
        results = self.function.meaning(given, *self.numbers)
        after = list(contents)
        for position, data in zip(self.function.writes, results, strict=True):
            number = self.buffers[position]
            written = np.array(data, np_dtype(buffers[number].dtype))
            after[number] = written.reshape(-1).view(np.uint8)
        return after


@dataclass(frozen=True, slots=True, eq=False)
class Executable:
    """A compiled program as data: buffers to allocate, kernels to launch, slots of the results."""

    target: Target
    root: Op
    slots: Mapping[int, UOp]
    """The PARAM or BUFFER of each input slot; its variables too until they are bound."""
    buffers: tuple[UOp, ...]
    """BUFFERs and BINARYs, in the order of their first use."""
    steps: tuple[Step | HostStep, ...]
    results: tuple[int, ...]
    """The slots that hold the results."""

    def names(self) -> dict[UOp, str]:
        """The distinct kernels with their names in the source."""
        linears = dict.fromkeys(step.linear for step in self.kernels)
        return {linear: f"kernel_{number}" for number, linear in enumerate(linears)}

    @property
    def kernels(self) -> tuple[Step, ...]:
        """The steps that the device runs."""
        return tuple(step for step in self.steps if isinstance(step, Step))

    @property
    def is_one_source(self) -> bool:
        """Whether every step is a kernel of the source."""
        return all(isinstance(step, Step) and step.binary is None for step in self.steps)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each buffer in bytes."""
        return tuple(size(u.shape) * u.dtype.itemsize for u in self.buffers)

    @property
    def has_variables(self) -> bool:
        """Whether kernels of the program take numbers beside their buffers."""
        return any(step.sizes for step in self.kernels) or any(
            map(is_variable, self.slots.values())
        )

    def bound(self, inputs: Inputs) -> Executable:
        """The same kernels for one binding: the variables are bound to their inputs.

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
                step.bound(values) if isinstance(step, Step) else step for step in self.steps
            ),
        )

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
        bound = self.bound(inputs)
        numbers = self.slots.keys() - bound.slots.keys()
        rest = {slot: data for slot, data in inputs.items() if slot not in numbers}
        return bound.run_bound(rest, source, device)

    def run_bound(self, inputs: Inputs, source: str, device: Device | None = None) -> Output:
        """Run a program whose variables are bound."""
        self.check_inputs(inputs)
        contents = self.contents(inputs)
        for of, group in groupby(self.steps, _runner):
            if isinstance(of, HostStep):
                contents = of.run(contents, self.buffers)
                continue
            device = device or open_device(self.target)
            built = build(device, source) if of is None else load(device, of)
            launches = self.launches(step for step in group if isinstance(step, Step))
            contents = device.run(built, launches, contents)
        return self.output(contents)

    def launches(self, steps: Iterable[Step] | None = None) -> list[Launch]:
        """The launches of some steps, by default of all its kernels, in order."""
        names = self.names()
        return [
            launch_of(step, step.binary.kernel if step.binary else names[step.linear], self.target)
            for step in (self.kernels if steps is None else steps)
            if runs(step.linear, step.numbers)
        ]

    def unwritten(self, inputs: Inputs) -> frozenset[int]:
        """The buffers without initial contents."""
        return frozenset(
            number
            for number, u in enumerate(self.buffers)
            if u.op is Op.BUFFER and slot_of(u) not in inputs
        )


def _runner(step: Step | HostStep) -> HostStep | Binary | None:
    """What runs a step: itself, machine code, or for None the source."""
    return step if isinstance(step, HostStep) else step.binary


def launch_of(step: Step, name: str, target: Target) -> Launch:
    """The launch of a kernel, in the workgroups that it requires or else of the target's size."""
    integers = tuple(step.numbers.values())
    if is_grouped(step.linear):
        grid = grid_of(step.linear, step.numbers)
        return Launch(name, step.arguments, grid.groups, grid.items, integers)
    items = work_items(step.linear, step.numbers)
    size = target.local_size if items else 1
    return Launch.covering(name, step.arguments, items, size, integers)


def checked_number(variable: UOp, array: Array) -> int:
    """The number in an input for a variable; InvalidError for one that does not fit it."""
    actual, slot, arg = np.asarray(array), slot_of(variable), arg_of(variable, ParamArg)
    if actual.shape != () or actual.dtype != np_dtype(variable.dtype):
        raise misfit(slot, variable, f"{actual.dtype}{list(actual.shape)}")
    number = int(actual)
    if arg.min is None or arg.max is None or not arg.min <= number <= arg.max:
        said = f"slot {slot}: from {arg.min} to {arg.max}"
        raise INPUT_C5.error_at(variable, said, str(number))
    return number


def executable(
    root: UOp,
    stored: Sequence[UOp],
    planned: UOp,
    target: Target,
    binaries: Mapping[UOp, Binary],
) -> Executable:
    """Read the launches off a planned program; `stored` are the buffers of the results, `binaries`
    the machine code of some of its kernels.
    """
    buffers: dict[UOp, int] = {}
    steps: list[Step | HostStep] = []
    for call in calls(planned):
        body, arguments = call.src[0], dict(enumerate(call.src[1:]))
        sizes = {slot: a for slot, a in arguments.items() if is_size(a)}
        places = {slot: buffers.setdefault(base_of(a), len(buffers))
                  for slot, a in arguments.items() if slot not in sizes}  # fmt: skip
        if body.op is Op.CUSTOMFUNCTION:
            steps.append(_host_step(body, tuple(places.values())))
        else:
            steps.append(Step(body, places, sizes, binaries.get(body)))
    _check_addresses(steps, target)
    kind = root.op if root.dtype is dtypes.void else Op.LOAD
    kind = {Op.TUPLE: Op.TUPLE, Op.FUNCTION: Op.TUPLE, Op.LOAD: Op.LOAD}.get(kind, Op.SINK)
    return Executable(
        target, kind, slots_of(root), tuple(buffers), tuple(steps), tuple(map(slot_of, stored))
    )


def _check_addresses(steps: Sequence[Step | HostStep], target: Target) -> None:
    """UnsupportedError for addresses that may differ where the program has one (D-103)."""
    taken: dict[int, list[UOp]] = {}
    for number, step in enumerate(steps):
        found = [] if isinstance(step, HostStep) else step.linear.src
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
        raise UnsupportedError("GETADDR before and behind a function of the host")


def _host_step(body: UOp, buffers: tuple[int, ...]) -> HostStep:
    for u in body.src:
        if u.op is not Op.CONST:
            raise lacking("CUSTOMFUNCTION.n2", u.op.name, u)
    numbers = tuple(constant(arg_of(u, ConstArg).bits, u.dtype) for u in body.src)
    function = function_named(arg_of(body, CustomFunctionArg).name, len(buffers), len(numbers))
    return HostStep(function, numbers, buffers)


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
def load(device: Device, binary: Binary) -> Built:
    """Load machine code, with a cache. UnsupportedError for that of another machine."""
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
