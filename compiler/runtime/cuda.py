"""The CUDA runtime: compiles kernels with NVRTC and launches them with cupy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uop.compiler.runtime.device import Contents, Launch, check_group, require
from uop.spec.errors import BackendError, LaunchError, UnsupportedError

OPTIONS = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
"""The options of NVRTC: IEEE arithmetic, one rounding per operation."""
ARCHITECTURE = "compute_80"
MOST_ITEMS = 1024
"""The most work items of a group on any CUDA device."""


def nvrtc_compile(source: str, architecture: str = ARCHITECTURE) -> bytes:
    """The PTX of a source; needs no GPU. BackendError with the compiler's log if it fails."""
    nvrtc = require("cupy_backends.cuda.libs.nvrtc", "cuda")
    program = nvrtc.createProgram(source, "uop.cu", [], [])
    try:
        nvrtc.compileProgram(program, [f"-arch={architecture}", *OPTIONS])
        ptx: bytes = nvrtc.getPTX(program)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise BackendError(f"NVRTC refuses the source: {error}\n{log}") from error
    finally:
        nvrtc.destroyProgram(program)
    return ptx


def open_cuda() -> CUDADevice:
    """Open the current CUDA device; UnsupportedError if there is none."""
    cupy = require("cupy", "cuda")
    try:
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        version = cupy.cuda.runtime.runtimeGetVersion()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise UnsupportedError(f"no CUDA device: {error}") from error
    return CUDADevice(properties["name"].decode(), f"CUDA {version}", cupy)


@dataclass(frozen=True, slots=True, eq=False)
class BuiltCUDA:
    """A CUDA module."""

    module: Any

    def kernel(self, name: str) -> Any:
        return self.module.get_function(name)


@dataclass(frozen=True, slots=True, eq=False)
class CUDADevice:
    """The current CUDA device with its default stream."""

    name: str
    version: str
    cupy: Any

    def build(self, source: str) -> BuiltCUDA:
        module = self.cupy.RawModule(code=source, options=OPTIONS)
        try:
            module.compile()
        except self.cupy.cuda.compiler.CompileException as error:
            raise BackendError(f"{self.name} refuses the source: {error}") from error
        return BuiltCUDA(module)

    def run(
        self, built: BuiltCUDA, launches: Sequence[Launch], buffers: Sequence[Contents]
    ) -> list[Contents]:
        # As bytes, because cupy has no dtypes for small floats.
        held = [self.cupy.asarray(_as_bytes(contents)) for contents in buffers]
        try:
            for launch in filter(lambda launch: all(launch.groups), launches):
                check_group(launch, MOST_ITEMS, self.name)
                arguments = [held[i] for i in launch.buffers]
                arguments += [np.int32(i) for i in launch.integers]
                built.kernel(launch.kernel)(launch.groups, launch.local_size, tuple(arguments))
            flat = [self.cupy.asnumpy(buffer) for buffer in held]
        except self.cupy.cuda.runtime.CUDARuntimeError as error:
            raise LaunchError(f"{self.name}: {error}") from error
        return [b.view(c.dtype).reshape(c.shape) for b, c in zip(flat, buffers, strict=True)]


def _as_bytes(contents: Contents) -> Contents:
    return np.ascontiguousarray(contents).reshape(-1).view(np.uint8)
