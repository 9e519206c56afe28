"""The project's own compiler on an OpenCL device; memory is poisoned before each run and fenced."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from uop.compiler.batch import Job, run_many
from uop.compiler.execute import open_device
from uop.compiler.pipeline import Compiled, compile
from uop.conformance.backends.attempt import problem_of
from uop.conformance.backends.interpreter import EVERY_DTYPE, EVERY_OP, in_order, is_sharded
from uop.conformance.protocol import Hello, Limits, Outcome, Outputs, Problem, Program
from uop.spec.errors import UnsupportedError, UopError
from uop.spec.text import parse

PROGRAMS = 64
"""Programs that share one source: the driver takes as long for a few as for one."""


class OpenCLBackend:
    """Compiles programs by the eight stages and runs many of them as one source."""

    def hello(self) -> Hello:
        device = open_device("opencl")
        name = f"{device.name} ({device.version})"
        return Hello("opencl", version("uop"), name, EVERY_OP, EVERY_DTYPE, Limits(PROGRAMS))

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        built = [compiled(program) for program in programs]
        jobs = [
            Job(found, program.batches)
            for found, program in zip(built, programs, strict=True)
            if isinstance(found, Compiled)
        ]
        results = iter(run_many(jobs))
        outcomes: list[Outcome] = []
        for found in built:
            result = next(results) if isinstance(found, Compiled) else found
            if isinstance(result, Problem):
                outcomes.append(result)
            elif isinstance(result, UopError):
                outcomes.append(problem_of(result))
            else:
                outcomes.append(Outputs(tuple(map(in_order, result))))
        return outcomes


def compiled(program: Program) -> Compiled | Problem:
    """The program compiled, or why it is not."""
    try:
        root = parse(program.text)
        if is_sharded(root):
            raise UnsupportedError("a program for several devices; the compiler builds for one")
        return compile(root, "opencl")
    except UopError as error:
        return problem_of(error)
