"""The OpenCL runtime: builds and launches kernels with pyopencl."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from uop.compiler.runtime.device import Contents, Launch, check_group, empty_like, require
from uop.compiler.runtime.drivers import Driver, alone, open_loader
from uop.compiler.runtime.trials import TriedDevice, choose
from uop.spec.errors import BackendError, LaunchError, UnsupportedError

SHORT = {"Portable Computing Language": "pocl", "Intel(R) OpenCL": "intel"}
"""Short names of the platforms in wheels."""
NO_WARNINGS = "-w"
CORRECTLY_ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"
TRIAL = "kernel void trial() {}"


def open_opencl(place: str = "") -> OpenCLDevice:
    """Open the first device that builds kernels and has float64: PoCL, else Intel's, else any.

    `place` is the short name of a platform (pocl, intel), or the numbers of platform and device
    (0:1); the default is UOP_OPENCL_PLATFORM. UnsupportedError, with the reason for each device,
    if none can be used.
    """
    cl = _pyopencl()
    found = choose(place)
    seen = found.seen
    with alone(found.driver):
        platforms = _platforms(cl)
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
    with alone(driver):
        platforms = _platforms(cl)
    for device in (device for each in platforms for device in each.get_devices()):
        return OpenCLDevice.of(cl, device)
    raise UnsupportedError(f"{driver.source}: {_why_none(driver)}")


def variant_of(platform: str) -> str:
    """The short name of a platform: pocl, intel, or its name in lower case, as nvidia-cuda."""
    return SHORT.get(platform) or re.sub(r"[^a-z0-9]+", "-", platform.lower()).strip("-")


def _pyopencl() -> Any:
    """Import pyopencl, after its loader was opened."""
    open_loader()
    return require("pyopencl", "opencl")


def _platforms(cl: Any) -> list[Any]:
    try:
        return list(cl.get_platforms())
    except cl.Error:
        # The loader reports a machine without platforms in this way.
        return []


def _try(library: str) -> dict[str, Any]:
    """Open a driver; return its devices or the failure, in the JSON form of `trials.Trial`."""
    driver = Driver(library, library)
    cl = _pyopencl()
    with alone(driver):
        platforms = _platforms(cl)
    seen = [
        asdict(_see(cl, each, number, device))
        for number, each in enumerate(platforms)
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
class OpenCLDevice:
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

    @property
    def machine(self) -> str:
        return f"{self.name} ({self.version})"

    def runs(self, machine: str) -> bool:
        return machine == self.machine

    def build(self, source: str) -> BuiltOpenCL:
        return self._built(self.cl.Program(self.context, source), "source")

    def compile(self, source: str) -> bytes:
        program = self.build(source).program
        (code,) = program.get_info(self.cl.program_info.BINARIES)
        return bytes(code)

    def load(self, code: bytes) -> BuiltOpenCL:
        try:
            program = self.cl.Program(self.context, self.context.devices, [code])
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

    def run(
        self,
        built: BuiltOpenCL,
        launches: Sequence[Launch],
        buffers: Sequence[Contents],
        unwritten: frozenset[int] = frozenset(),
    ) -> list[Contents]:
        """`Device.run`, without uploading the buffers `unwritten`."""
        try:
            held = [
                self._allocate(contents) if number in unwritten else self._upload(contents)
                for number, contents in enumerate(buffers)
            ]
            for launch in filter(lambda launch: all(launch.groups), launches):
                self._launch(built.kernel(launch.kernel), launch, held)
            results = [self._download(buffer, c) for buffer, c in zip(held, buffers, strict=True)]
            self.queue.finish()
        except self.cl.Error as error:
            raise LaunchError(f"{self.name}: {error}") from error
        return results

    def _allocate(self, contents: Contents) -> Any:
        flags = self.cl.mem_flags.READ_WRITE
        return self.cl.Buffer(self.context, flags, max(contents.nbytes, 1))

    def _upload(self, contents: Contents) -> Any:
        buffer = self._allocate(contents)
        if contents.nbytes:
            self.cl.enqueue_copy(self.queue, buffer, np.ascontiguousarray(contents))
        return buffer

    def _download(self, buffer: Any, contents: Contents) -> Contents:
        result = empty_like(contents)
        if contents.nbytes:
            self.cl.enqueue_copy(self.queue, result, buffer)
        return result

    def _launch(self, kernel: Any, launch: Launch, held: Sequence[Any]) -> None:
        check_group(launch, self.context.devices[0].max_work_group_size, self.name)
        kernel.set_args(*(held[i] for i in launch.buffers), *map(np.int64, launch.integers))
        size = tuple(g * n for g, n in zip(launch.groups, launch.local_size, strict=True))
        self.cl.enqueue_nd_range_kernel(self.queue, kernel, size, launch.local_size)


def main(library: str) -> None:
    """Try a driver, and print its devices as JSON and nothing else."""
    out = os.dup(1)
    # A driver may print to stdout too.
    os.dup2(2, 1)
    found = json.dumps(_try(library))
    os.write(out, found.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
