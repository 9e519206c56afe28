"""Building and launching OpenCL kernels with pyopencl, imported when a device is opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from uop.compiler.runtime.device import Contents, Launch, check_group, empty_like, require
from uop.spec.errors import BackendError, LaunchError, UnsupportedError

POCL = "Portable Computing Language"
PLATFORM_VARIABLE = "UOP_OPENCL_PLATFORM"
NO_WARNINGS = "-w"
CORRECTLY_ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"
TRIAL = "kernel void trial() {}"
NEWER = "on a processor newer than PoCL's LLVM, Debian's pocl-opencl-icd may do"


def use_cache_dir(folder: Path) -> None:
    """Keep PoCL's compiled kernels in `folder`: processes that share one wait for each other.

    PoCL reads the variable once, so this comes before the first device of the process is opened.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["POCL_CACHE_DIR"] = str(folder)


def open_opencl(platform: str | None = None) -> OpenCLDevice:
    """Open a device of the platform with `platform` in its name.

    Without it: as UOP_OPENCL_PLATFORM says; else PoCL, which runs on every CPU; else any that has
    float64. A device that builds no kernel at all is passed over: PoCL does so on a processor that
    is newer than its LLVM. Which platforms a process sees is decided by the loader
    (OCL_ICD_VENDORS). UnsupportedError where no device is left, with what each one said.
    """
    cl = require("pyopencl", "opencl")
    wanted = platform or os.environ.get(PLATFORM_VARIABLE, "")
    platforms = _devices(cl)
    devices = [device for found in platforms for device in found]
    usable = [d for d in devices if d.double_fp_config and wanted in d.platform.name]
    if not usable:
        seen = ", ".join(sorted({d.platform.name for d in devices})) or "none"
        raise UnsupportedError(
            f"no OpenCL device with float64 on a platform named *{wanted}*; seen: {seen}"
        )
    return _first_that_builds(cl, sorted(usable, key=lambda d: d.platform.name != POCL))


def open_opencl_by_number(place: str) -> OpenCLDevice:
    """Open the device at `place`: the numbers of its platform and of it there, such as 0:1.

    UnsupportedError where there is none, with those that there are.
    """
    cl = require("pyopencl", "opencl")
    found = {
        f"{p}:{d}": device
        for p, devices in enumerate(_devices(cl))
        for d, device in enumerate(devices)
    }
    if place not in found:
        seen = ", ".join(f"{place} {device.name.strip()}" for place, device in found.items())
        raise UnsupportedError(f"no OpenCL device {place!r}, expected one of: {seen}")
    if not found[place].double_fp_config:
        raise UnsupportedError(f"OpenCL device {place} has no float64")
    return _first_that_builds(cl, [found[place]])


def _devices(cl: Any) -> list[list[Any]]:
    """The devices of each platform. UnsupportedError where there is no platform."""
    try:
        return [platform.get_devices() for platform in cl.get_platforms()]
    except cl.Error as error:
        raise UnsupportedError(
            f'no OpenCL platform ({error}); install one with: pip install "uop[opencl]"'
        ) from error


def _first_that_builds(cl: Any, devices: Sequence[Any]) -> OpenCLDevice:
    refusals = []
    for opened in (OpenCLDevice.of(cl, device) for device in devices):
        try:
            opened.build(TRIAL)
        except BackendError as error:
            refusals.append(f"{opened.version}: {error}")
        else:
            return opened
    raise UnsupportedError(
        f"no OpenCL device builds an empty kernel; {NEWER}: " + "; ".join(refusals)
    )


@dataclass(slots=True, eq=False)
class BuiltOpenCL:
    """An OpenCL program and the kernels asked of it so far."""

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
    options: tuple[str, ...]
    cl: Any
    context: Any
    queue: Any

    @classmethod
    def of(cls, cl: Any, device: Any) -> OpenCLDevice:
        context = cl.Context([device])
        # The specification allows 2.5 ULP for a float32 division without this option.
        rounds = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return cls(
            name=device.name.strip(),
            version=f"{device.version.strip()} {device.driver_version.strip()}",
            options=(NO_WARNINGS, CORRECTLY_ROUNDED) if rounds else (NO_WARNINGS,),
            cl=cl,
            context=context,
            queue=cl.CommandQueue(context),
        )

    def alone(self) -> OpenCLDevice:
        """The same device in a context of its own."""
        context = self.cl.Context(self.context.devices)
        return replace(self, context=context, queue=self.cl.CommandQueue(context))

    def build(self, source: str) -> BuiltOpenCL:
        program = self.cl.Program(self.context, source)
        try:
            # Only the driver caches: a second cache above it would hide which sources were built.
            return BuiltOpenCL(program.build(list(self.options), cache_dir=False), self.cl)
        except self.cl.Error as error:
            raise BackendError(f"{self.name} refuses the source: {error}") from error

    def run(
        self,
        built: BuiltOpenCL,
        launches: Sequence[Launch],
        buffers: Sequence[Contents],
        unwritten: frozenset[int] = frozenset(),
    ) -> list[Contents]:
        """As `Device.run`; of the buffers `unwritten` nothing is uploaded."""
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
        kernel.set_args(*(held[i] for i in launch.buffers), *map(np.int32, launch.integers))
        size = tuple(g * n for g, n in zip(launch.groups, launch.local_size, strict=True))
        self.cl.enqueue_nd_range_kernel(self.queue, kernel, size, launch.local_size)
