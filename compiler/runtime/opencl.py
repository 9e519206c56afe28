"""The OpenCL runtime: builds and launches kernels with pyopencl."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from math import prod
from typing import Any, cast

import numpy as np

from uop.compiler.runtime.device import (
    Built,
    Contents,
    Device,
    Launch,
    Runs,
    as_bytes,
    check_group,
    require,
)
from uop.compiler.runtime.drivers import Driver, alone, open_loader
from uop.compiler.runtime.trials import TriedDevice, choose
from uop.spec.errors import BackendError, LaunchError, OutOfMemoryError, UnsupportedError

SHORT = {"Portable Computing Language": "pocl", "Intel(R) OpenCL": "intel"}
"""Short names of the platforms in wheels."""
NO_WARNINGS = "-w"
CORRECTLY_ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"
NOT_OPTIMIZED = "-cl-opt-disable"
TRIAL = "kernel void trial() {}"
ALIGNMENT = 128
"""The bytes of the largest type of OpenCL, to which memory of the host is aligned."""


def open_opencl(place: str = "") -> OpenCLDevice:
    """Open the first device that builds kernels and has float64; those of the system come first.

    `place` is the short name of a platform (pocl, intel), or the numbers of platform and device
    (0:1); the default is UOP_OPENCL_PLATFORM. UnsupportedError, with the reason for each device,
    if none can be used.
    """
    cl = _pyopencl()
    found = choose(place)
    seen = found.seen
    platforms = _platforms(cl, found.driver)
    for each in platforms:
        if (each.name, each.version) == (seen.platform, seen.version):
            return OpenCLDevice.of(cl, each.get_devices()[seen.device])
    there = ", ".join(each.name for each in platforms) or "none"
    raise UnsupportedError(
        f"a process opens one OpenCL driver, and this one has opened {there}, not {seen.platform}"
    )


def open_driver(driver: Driver) -> OpenCLDevice:
    """Open the first device of a driver, which may crash the process."""
    cl = _pyopencl()
    for device in (d for each in _platforms(cl, driver) for d in each.get_devices()):
        return OpenCLDevice.of(cl, device)
    raise UnsupportedError(f"{driver.source}: {_why_none(driver)}")


def variant_of(platform: str) -> str:
    """The short name of a platform: pocl, intel, or its name in lower case, such as nvidia-cuda."""
    return SHORT.get(platform) or re.sub(r"[^a-z0-9]+", "-", platform.lower()).strip("-")


def _pyopencl() -> Any:
    """Import pyopencl, after its loader was opened."""
    open_loader()
    return require("pyopencl", "opencl")


def _platforms(cl: Any, driver: Driver) -> list[Any]:
    """The platforms of a driver, if it is the one that this process opens."""
    with alone(driver):
        try:
            return list(cl.get_platforms())
        except cl.Error:
            # The loader reports a machine without platforms in this way.
            return []


def _try(library: str) -> dict[str, Any]:
    """Open a driver; return its devices or the failure, in the JSON form of `trials.Trial`."""
    driver = Driver(library, library)
    cl = _pyopencl()
    seen = [
        asdict(_see(cl, each, number, device))
        for number, each in enumerate(_platforms(cl, driver))
        for device in range(len(each.get_devices()))
    ]
    return {"devices": seen, "failure": "" if seen else _why_none(driver)}


def _see(cl: Any, platform: Any, number: int, device: int) -> TriedDevice:
    found = platform.get_devices()[device]
    refusal = "" if found.double_fp_config else "it has no float64"
    try:
        OpenCLDevice.of(cl, found).build(TRIAL)
    except (cl.Error, BackendError) as error:
        refusal = _brief(str(error))
    names = platform.name, platform.version, variant_of(platform.name)
    return TriedDevice(*names, number, device, found.name.strip(), refusal)


def _brief(log: str) -> str:
    """The first line of a driver's message that names an error, else the whole message."""
    lines = [line.strip() for line in log.splitlines()]
    return next((line for line in lines if line.startswith("error:")), " ".join(lines))


def _why_none(driver: Driver) -> str:
    """The system's error for a driver without device."""
    try:
        ctypes.CDLL(driver.library)
    except OSError as error:
        return str(error)
    return "it has no device"


@dataclass(slots=True, eq=False)
class BuiltOpenCL:
    """A built OpenCL program, with a cache of its kernels."""

    program: Any
    cl: Any
    kernels: dict[str, Any] = field(default_factory=dict)

    def kernel(self, name: str) -> Any:
        if name not in self.kernels:
            try:
                self.kernels[name] = self.cl.Kernel(self.program, name)
            except self.cl.Error as error:
                raise BackendError(f"kernel {name}: {error}") from error
        return self.kernels[name]


@dataclass(frozen=True, slots=True, eq=False)
class OpenCLDevice(Runs):
    """One OpenCL device with its context and an in-order queue."""

    name: str
    version: str
    variant: str
    """The short name of its platform, the same on every machine: pocl, intel."""
    options: tuple[str, ...]
    cl: Any
    context: Any
    queue: Any

    @classmethod
    def of(cls, cl: Any, device: Any) -> OpenCLDevice:
        context = cl.Context([device])
        # Without this option OpenCL allows 2.5 ULP for a float32 division.
        rounds = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return cls(
            name=device.name.strip(),
            version=f"{device.version.strip()} {device.driver_version.strip()}",
            variant=variant_of(device.platform.name),
            options=(NO_WARNINGS, CORRECTLY_ROUNDED) if rounds else (NO_WARNINGS,),
            cl=cl,
            context=context,
            queue=cl.CommandQueue(context),
        )

    def alone(self) -> OpenCLDevice:
        """The same device in a new context."""
        context = self.cl.Context(self.context.devices)
        return replace(self, context=context, queue=self.cl.CommandQueue(context))

    def not_optimized(self) -> OpenCLDevice:
        """The same device, whose driver builds without optimization."""
        return replace(self, options=(*self.options, NOT_OPTIMIZED))

    @property
    def machine(self) -> str:
        return f"{self.context.devices[0].name.strip()} ({self.version})"

    def build(self, source: str) -> BuiltOpenCL:
        return self._built(self.cl.Program(self.context, source), "source")

    def compile(self, source: str) -> bytes:
        program = self.build(source).program
        (code,) = program.get_info(self.cl.program_info.BINARIES)
        return bytes(code)

    def load(self, code: bytes) -> BuiltOpenCL:
        try:
            there = self.context.devices
            program = self.cl.Program(self.context, there, [code] * len(there))
        except self.cl.Error as error:
            raise BackendError(f"{self.name} refuses the binary: {error}") from error
        return self._built(program, "binary")

    def _built(self, program: Any, what: str) -> BuiltOpenCL:
        try:
            with warnings.catch_warnings():
                # A driver may warn about a correct source.
                warnings.simplefilter("ignore", self.cl.CompilerWarning)
                # Only the driver may cache: another cache would hide which sources were built.
                return BuiltOpenCL(program.build(list(self.options), cache_dir=False), self.cl)
        except self.cl.Error as error:
            raise BackendError(f"{self.name} refuses the {what}: {error}") from error

    def allocate(self, size: int) -> Any:
        try:
            return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, max(size, 1))
        except self.cl.Error as error:
            raise OutOfMemoryError(f"{self.name}: {size:,} bytes: {error}") from error

    def write(self, memory: Any, contents: Contents) -> None:
        if contents.nbytes:
            with self._reported():
                self.cl.enqueue_copy(self.queue, memory, as_bytes(contents))

    def read(self, memory: Any, size: int) -> Contents:
        result = np.empty(size, np.uint8)
        if size:
            with self._reported():
                self.cl.enqueue_copy(self.queue, result, memory)
        return result

    def copy(self, source: Any, to: Any, size: int, source_at: int = 0, to_at: int = 0) -> None:
        if size:
            at = {"src_offset": source_at, "dst_offset": to_at}
            with self._reported():
                self.cl.enqueue_copy(self.queue, to, source, byte_count=size, **at)

    def launch(self, built: Built, launch: Launch, held: Sequence[Any]) -> None:
        if not all(launch.groups):
            return
        check_group(launch, int(self.context.devices[0].max_work_group_size), self.name)
        kernel = built.kernel(launch.kernel)
        size = tuple(g * n for g, n in zip(launch.groups, launch.local_size, strict=True))
        with self._reported():
            kernel.set_args(*(held[i] for i in launch.buffers), *map(np.int64, launch.integers))
            self.cl.enqueue_nd_range_kernel(self.queue, kernel, size, launch.local_size)

    def wait_for(self, other: Device) -> None:
        queue = cast(OpenCLDevice, other).queue
        with self._reported():
            event = self.cl.enqueue_marker(queue)
            # Only what was flushed is certain to run while another queue waits for it.
            queue.flush()
            self.cl.enqueue_barrier(self.queue, wait_for=[event])

    def finish(self) -> None:
        with self._reported():
            self.queue.finish()

    def peers(self, count: int) -> Sequence[OpenCLDevice]:
        """Devices in one context: other devices of the platform that are equal to this one, else
        equal parts of it, else queues that share it.
        """
        return _peers(self, count)

    def free(self, memory: Any) -> None:
        # The queue keeps what its launches use.
        memory.release()

    def lend(self, memory: Any, dtype: np.dtype[Any], shape: Sequence[int]) -> Any:
        """The memory as an array of numpy: a CPU has it in the process."""
        if not self._is_host:
            raise UnsupportedError(f"{self.name} has memory of its own: numpy() copies from there")
        reading = self.cl.map_flags.READ
        size = prod(shape)
        if not size:
            return np.empty(shape, dtype)
        with self._reported():
            array, _ = self.cl.enqueue_map_buffer(self.queue, memory, reading, 0, (size,), dtype)
        array.flags.writeable = False
        return array.reshape(shape)

    def borrow(self, array: Any) -> Any:
        """A CPU uses memory of the host in place, if it is aligned for vectors."""
        if not self._is_host or array.ctypes.data % ALIGNMENT or not array.nbytes:
            return None
        flags = self.cl.mem_flags
        access = flags.READ_WRITE if array.flags.writeable else flags.READ_ONLY
        # pyopencl keeps the array alive for the buffer.
        return self.cl.Buffer(self.context, access | flags.USE_HOST_PTR, hostbuf=array)

    @property
    def _is_host(self) -> bool:
        return bool(self.context.devices[0].type & self.cl.device_type.CPU)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except self.cl.Error as error:
            raise LaunchError(f"{self.name}: {error}") from error


@cache
def _peers(device: OpenCLDevice, count: int) -> Sequence[OpenCLDevice]:
    cl, own = device.cl, device.context.devices[0]
    others = [d for d in own.platform.get_devices() if d.name == own.name and d != own]
    there, what = [own, *others], "device"
    if len(there) < count:
        parts = _parts(cl, own, count)
        there, what = (parts, "part") if parts else (there, "queue")
    context = cl.Context(there[:count])
    return [
        replace(
            device,
            name=f"{device.name}, {what} {k + 1} of {count}",
            context=context,
            queue=cl.CommandQueue(context, there[k % len(there)]),
        )
        for k in range(count)
    ]


def _parts(cl: Any, device: Any, count: int) -> list[Any]:
    """Equal parts of a device; none where it has too few compute units, or cannot be divided."""
    units, equally = device.max_compute_units // count, cl.device_partition_property.EQUALLY
    if not units or equally not in device.partition_properties:
        return []
    return list(device.create_sub_devices([equally, units]))[:count]


def main(library: str) -> None:
    """Try a driver, and print its devices as JSON and nothing else."""
    out = os.dup(1)
    # A driver may print to stdout too.
    os.dup2(2, 1)
    found = json.dumps(_try(library))
    os.write(out, found.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
