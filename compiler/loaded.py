"""A compiled program, and one on a device: built once, with memory of its own, run many times.

Kernels and copies go to one queue, in their order; only reading a result waits for them. With
several devices each has a queue, and a copy waits for the queue of its source.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np

from uop.compiler import execute
from uop.compiler.execute import Array, Executable, HostStep, Inputs, Output, open_device
from uop.compiler.runtime.binary import Binary, digest
from uop.compiler.runtime.cuda_host import HOST
from uop.compiler.runtime.device import (
    Built,
    Compiler,
    Device,
    Launch,
    Memory,
    Transfer,
    transfer,
    upload,
)
from uop.compiler.stages.render.stage import kernel_names
from uop.interpreter.numeric.storage import STORED, np_dtype
from uop.spec.args import BinaryArg, SourceArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.graph import kernels, slot_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


@dataclass(slots=True, eq=False, weakref_slot=True)
class DeviceArray:
    """An array on a device. Its memory is freed when it is closed, or when nothing refers to it.

    It speaks DLPack if the memory is that of the host, or if a library can use the device. Other
    libraries get the same memory, for reading only.
    """

    device: Device
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    _memory: Memory
    _release: Callable[[Memory], None]
    is_readonly: bool = False
    """Whether its owner forbids writing to it."""
    is_closed: bool = field(default=False, init=False)
    _end: weakref.finalize[..., DeviceArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._end = weakref.finalize(self, self._release, self._memory)
        self._end.atexit = False

    @property
    def size(self) -> int:
        """The size in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def memory(self) -> Memory:
        """Its memory; UnsupportedError if it was closed."""
        if self.is_closed:
            raise UnsupportedError(f"a closed array: {self.dtype}{list(self.shape)}")
        return self._memory

    def numpy(self) -> Array:
        """A copy of its contents, after everything that was launched before."""
        return execute.typed(self.device.read(self.memory, self.size), self.dtype, self.shape)

    def close(self) -> None:
        """Free the memory, unless another library still uses it."""
        self.is_closed = True
        self._end()

    def __dlpack__(self, **options: Any) -> Any:
        return self._lent().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._lent().__dlpack_device__()
        return int(kind), int(number)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        # An array of numpy has none: then neither has this.
        found: dict[str, Any] = self._lent().__cuda_array_interface__
        return found

    def _lent(self) -> Any:
        """The array of another library on this memory, which from here on lives as long as it."""
        lent = self.device.lend(self.memory, self.dtype, self.shape)
        self._end.detach()
        return lent


def from_array(data: Array, device: Device) -> DeviceArray:
    """A copy of an array of numpy on a device; UnsupportedError for elements of no dtype."""
    array = np.asarray(data)
    _check(array)
    memory = upload(device, array)
    return DeviceArray(device, array.dtype, array.shape, memory, device.free)


def from_dlpack(data: Any, device: Device) -> DeviceArray:
    """An array of another library on a device: the same memory if it is in row-major order and the
    device can use it in place, else a copy.

    UnsupportedError for an array that the library of the device cannot take.
    """
    try:
        array = device.imported(data)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UnsupportedError(f"no array for {device.name} by DLPack: {error}") from error
    _check(array)
    memory = device.borrow(array) if array.flags.c_contiguous else None
    if memory is None:
        return from_array(array, device)
    is_readonly = not getattr(array.flags, "writeable", True)
    shape = tuple(array.shape)
    return DeviceArray(device, np.dtype(array.dtype), shape, memory, device.free, is_readonly)


def _check(array: Any) -> None:
    if np.dtype(array.dtype) not in STORED:
        raise UnsupportedError(f"an array of {array.dtype}: no dtype stores such elements")


Given = Mapping[int, Array | DeviceArray]
Kept = DeviceArray | tuple[DeviceArray, ...] | dict[int, DeviceArray]


@dataclass(frozen=True, slots=True)
class Block:
    """Memory of a device, and its size in bytes."""

    device: Device
    memory: Memory
    size: int

    def free(self) -> None:
        self.device.free(self.memory)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A program with its sizes, the memory of its buffers by number, and its results by slot."""

    bound: Executable
    held: Sequence[Memory]
    results: Mapping[int, DeviceArray]


class Loaded:
    """A program on a device, by default that of its target; a context manager that frees the memory
    at the end. The DeviceArrays it returned stay valid. One thread may use it.
    """

    def __init__(self, executable: Executable, source: str, device: Device | None = None) -> None:
        self.executable, self.source = executable, source
        self.devices = _devices_of(executable, device)
        self.is_closed = False
        self._built: dict[Binary | None, Built] = {}
        self._scratch: dict[int, Block] = {}
        """The memory of buffers that hold no result, by number."""
        self._spare: list[Block] = []
        """The memory of results that nobody has any more."""
        self._fixed = None if executable.has_variables else executable.launched()

    def run(self, inputs: Given | None = None) -> Output:
        """Run on inputs by slot, and fetch the results."""
        given = inputs or {}
        ran = self._run(given)
        fetched = {slot: array.numpy() for slot, array in ran.results.items()}
        for slot, array in ran.results.items():
            if array is not given.get(slot):
                array.close()
        return ran.bound.arranged(fetched)

    def run_kept(self, inputs: Given | None = None) -> Kept:
        """Put a run on the queue of the device, and leave its results there.

        A DeviceArray that the program stores to changes in place, and is its own result.
        """
        ran = self._run(inputs or {})
        return ran.bound.arranged(ran.results)

    def close(self) -> None:
        """Free the memory that no DeviceArray has."""
        self.is_closed = True
        for block in (*self._scratch.values(), *self._spare):
            block.free()
        self._scratch.clear()
        self._spare.clear()

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self, inputs: Given) -> Prepared:
        """Copy the inputs to memory, and allocate every other buffer; nothing is launched."""
        if self.is_closed:
            raise UnsupportedError("a program that was closed runs no more: load it again")
        bound = self.executable.bound(inputs)
        numbers = self.executable.slots.keys() - bound.slots.keys()
        given = {slot: data for slot, data in inputs.items() if slot not in numbers}
        bound.check_inputs(given)
        self._check_arrays(bound, given)
        results: dict[int, DeviceArray] = {}
        held = [self._held(n, u, bound, given, results) for n, u in enumerate(bound.buffers)]
        return Prepared(bound, held, results)

    def launch(self, step: HostStep | Transfer | Launch, prepared: Prepared) -> None:
        """Run a step on prepared memory; a kernel or a copy is put on the queue of its device."""
        bound, held = prepared.bound, prepared.held
        if isinstance(step, Launch):
            self.devices[step.place].launch(self._loaded(step.binary), step, held)
            return
        devices = [self.devices[place] for place in bound.places]
        if isinstance(step, Transfer):
            transfer(step, devices, held)
        else:
            step.run(devices, held, bound.buffers)

    def finish(self) -> None:
        """Wait until all queues are empty."""
        for device in self.devices:
            device.finish()

    def _run(self, inputs: Given) -> Prepared:
        prepared = self.prepare(inputs)
        for step in prepared.bound.launched() if self._fixed is None else self._fixed:
            self.launch(step, prepared)
        return prepared

    def _held(
        self, number: int, u: UOp, bound: Executable, given: Given, results: dict[int, DeviceArray]
    ) -> Memory:
        """The memory of a buffer with its initial contents; enters that of a result."""
        device = self.devices[bound.places[number]]
        if u.op is not Op.BUFFER:
            return self._own(number, u, None, device)
        data = given.get(slot_of(u))
        if slot_of(u) not in bound.results:
            if isinstance(data, DeviceArray):
                return data.memory
            return self._own(number, u, data, device)
        array = data if isinstance(data, DeviceArray) else self._result(u, data, device)
        results[slot_of(u)] = array
        return array.memory

    def _own(self, number: int, u: UOp, data: Array | None, device: Device) -> Memory:
        """The memory of a buffer that holds no result: kept for the next run, and grown."""
        block = self._scratch.get(number)
        if block is not None and block.size < execute.size_of(u):
            self._scratch.pop(number).free()
            block = None
        self._scratch[number] = block = _filled(block, u, data, device)
        return block.memory

    def _result(self, u: UOp, data: Array | None, device: Device) -> DeviceArray:
        """An array for a result, in the memory of an earlier one where that is free."""
        need = device, execute.size_of(u)
        block = next((b for b in self._spare if (b.device, b.size) == need), None)
        if block is not None:
            self._spare.remove(block)
        block = _filled(block, u, data, device)
        shape, release = tuple(map(int, u.shape)), partial(self._returned, block)
        return DeviceArray(device, np_dtype(u.dtype), shape, block.memory, release)

    def _returned(self, block: Block, _: Memory) -> None:
        if self.is_closed:
            block.free()
        else:
            self._spare.append(block)

    def _loaded(self, binary: Binary | None) -> Built:
        """What the first device has built, which runs on all."""
        if binary not in self._built:
            first = self.devices[0]
            made = (
                execute.build(first, self.source) if binary is None else execute.load(first, binary)
            )
            self._built[binary] = made
        return self._built[binary]

    def _check_arrays(self, bound: Executable, given: Given) -> None:
        """Errors for a DeviceArray that the program cannot use."""
        arrays = {slot: a for slot, a in given.items() if isinstance(a, DeviceArray)}
        places = {
            slot_of(u): place
            for u, place in zip(bound.buffers, bound.places, strict=True)
            if u.op is Op.BUFFER
        }
        for slot, array in arrays.items():
            device = self.devices[places.get(slot, 0)]
            if array.device is not device:
                there, here = array.device.name, device.name
                raise UnsupportedError(f"slot {slot}: an array on {there}, expected {here}")
            if slot not in bound.results:
                continue
            if array.is_readonly:
                raise UnsupportedError(f"slot {slot}: the program writes to memory for reading")
            if sum(other.memory is array.memory for other in arrays.values()) > 1:
                raise UnsupportedError(f"slot {slot}: the program writes to the array of two slots")


def _filled(block: Block | None, u: UOp, data: Array | None, device: Device) -> Block:
    """Memory with data. New memory without data has the contents of a BINARY, or bytes that no
    result has.
    """
    if block is None:
        block = Block(device, device.allocate(execute.size_of(u)), execute.size_of(u))
        data = execute.initial(u, {}) if data is None else data
    if data is not None:
        device.write(block.memory, data)
    return block


def _devices_of(executable: Executable, device: Device | None) -> Sequence[Device]:
    """The devices of a program: that of the target, its peers if there are several, or the host if
    the program has functions of the host and no kernel.
    """
    first = device
    if first is None:
        first = open_device(executable.target) if executable.kernels else cast(Device, HOST)
    count = len(executable.devices)
    return (first,) if count == 1 else first.peers(count)


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A program compiled for a target."""

    stages: Mapping[str, UOp]
    """The output of each stage by name, in their order."""
    executable: Executable

    @property
    def source(self) -> str:
        """The source of all kernels in the language of the target."""
        target = self.executable.target
        names = self.executable.names
        return target.source([target.kernel(linear, name) for linear, name in names.items()])

    def with_binaries(self, compiler: Compiler | None = None) -> UOp:
        """The output of `render`, with the machine code of each kernel in its PROGRAM.

        `compiler` is a device, by default that of the target. `compile` accepts the result, and its
        kernels then run without being built.
        """
        rendered = self.stages["render"]
        target = self.executable.target
        compiler = compiler or target.compiler()
        new: dict[UOp, UOp] = {}
        names = kernel_names(rendered)
        for body in kernels(rendered):
            linear, source, _ = body.src
            text = arg_of(source, SourceArg).text
            code = compiler.compile(text)
            about = target.name, compiler.machine, names[linear], digest(text.encode())
            data = BinaryArg(Binary(*about, code).pack())
            new[body] = UOp(Op.PROGRAM, linear, source, UOp(Op.BINARY, arg=data))
        return rendered.substitute(new)

    def run(self, inputs: Inputs | None = None, device: Device | None = None) -> Output:
        """Run the program on inputs by slot, by default on the device of the target.

        Returns an array, a tuple for a TUPLE, or for a SINK a dict of the contents by slot.
        """
        with self.load(device) as loaded:
            return loaded.run(inputs)

    def load(self, device: Device | None = None) -> Loaded:
        """Load the program on a device, by default that of the target, to run it many times there:
        on arrays, or on what earlier runs left on the device.
        """
        return Loaded(self.executable, self.source, device)
