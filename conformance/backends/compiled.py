"""Runs the project's compiler as a backend; memory is poisoned before each run and fenced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from uop.compiler.bundle import Job, run_many
from uop.compiler.execute import open_device
from uop.compiler.pipeline import Compiled, compile, find_target
from uop.compiler.runtime.device import Device
from uop.compiler.runtime.opencl import OpenCLDevice, open_opencl
from uop.conformance.backends.attempt import problem_of
from uop.conformance.backends.interpreter import CHECKS, EVERY_DTYPE, EVERY_OP, in_order, is_sharded
from uop.conformance.protocol.types import Hello, Limits, Outcome, Outputs, Problem, Program
from uop.interpreter.evaluate import Output
from uop.spec.distribution import own_version
from uop.spec.errors import UnsupportedError, UopError
from uop.spec.latitude import STRICT
from uop.spec.text.program import parse

PROGRAMS = 128
"""The most programs in one source: a driver takes as long for a few as for one."""


class CompiledBackend:
    """Compiles programs for one target by the eight stages, and runs many of them as one source."""

    target: str

    def hello(self) -> Hello:
        self.device = self.opened()
        name = f"{self.device.name} ({self.device.version})"
        return Hello(
            self.target,
            own_version(),
            name,
            EVERY_OP,
            EVERY_DTYPE,
            Limits(PROGRAMS),
            offers=CHECKS,
            profile=str(STRICT),
            variant=self.variant,
        )

    @property
    def variant(self) -> str:
        """The short name of the device's driver; empty where a target has only one."""
        return ""

    def opened(self) -> Device:
        """The device that runs the programs."""
        return open_device(find_target(self.target))

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        compiled = [self._compiled(program) for program in programs]
        jobs = [
            Job(c, program.batches)
            for c, program in zip(compiled, programs, strict=True)
            if isinstance(c, Compiled)
        ]
        results = iter(run_many(jobs, device=self.device))
        return [_outcome(next(results)) if isinstance(c, Compiled) else c for c in compiled]

    def _compiled(self, program: Program) -> Compiled | Problem:
        """The program compiled, or why it is not."""
        try:
            root = parse(program.text)
            if is_sharded(root):
                raise UnsupportedError("a program for several devices; the compiler builds for one")
            return compile(root, self.target)
        except UopError as error:
            return problem_of(error)


def _outcome(result: UopError | Sequence[Output]) -> Outcome:
    if isinstance(result, UopError):
        return problem_of(result)
    return Outputs(tuple(map(in_order, result)))


class OpenCLBackend(CompiledBackend):
    """The first OpenCL device that can be used, or the one that `place` names: pocl, intel, 0:1."""

    target = "opencl"

    def __init__(self, place: str = "") -> None:
        self.place = place

    @property
    def variant(self) -> str:
        return cast(OpenCLDevice, self.device).variant

    def opened(self) -> Device:
        return cast(Device, open_opencl(self.place)) if self.place else super().opened()


class CUDABackend(CompiledBackend):
    """The current CUDA device."""

    target = "cuda"


class CUDAHostBackend(CompiledBackend):
    """CUDA sources on the CPU, where there is no GPU."""

    target = "cuda-host"
