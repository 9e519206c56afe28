"""Runs OpenCL kernels on Oclgrind, a simulator that checks memory; what it reports is a failure.

Oclgrind runs kernels work item by work item, and logs accesses out of bounds, races, divergent
barriers and uses of uninitialized memory. Each report names the node that its source line renders.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from uop.compiler.loaded import Compiled
from uop.compiler.runtime.device import Device
from uop.compiler.runtime.drivers import Driver
from uop.compiler.runtime.opencl import open_driver
from uop.compiler.stages.render.stage import node_at
from uop.compiler.targets.opencl import DIALECT
from uop.conformance.backends.compiled import CompiledBackend
from uop.conformance.backends.interpreter import in_order
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind, Program
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import UnsupportedError, UopError
from uop.spec.uop import described

UNOPTIMIZED = "-cl-opt-disable"
"""Optimised code has instructions that the simulator does not know."""
LIBRARY = Path("lib", "oclgrind", "liboclgrind-rt-icd.so")
WATCHED = ("OCLGRIND_DATA_RACES", "OCLGRIND_UNINITIALIZED")
KERNEL = re.compile(r"Kernel:\s+(\w+)")
LINE = re.compile(r"At line (\d+)")
ADDRESS = re.compile(r" address 0x[0-9a-f]+")
OWN_FAULT = "OCLGRIND FATAL ERROR"
REPORTS = 3
"""The most reports shown for a program; one fault gives one per work item."""


class OclgrindBackend(CompiledBackend):
    """Runs every program alone, with buffers of its own."""

    target = "opencl"

    def opened(self) -> Device:
        self.folder = TemporaryDirectory(prefix="uop-oclgrind-")
        self.log = Path(self.folder.name, "log")
        os.environ.update({"OCLGRIND_LOG": str(self.log), **dict.fromkeys(WATCHED, "1")})
        opened = open_driver(Driver(str(library()), "Oclgrind"))
        self.simulator = replace(opened, options=(*opened.options, UNOPTIMIZED))
        return cast(Device, self.simulator)

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self._watched(program) for program in programs]

    def _watched(self, program: Program) -> Outcome:
        compiled = self._compiled(program)
        if isinstance(compiled, Problem):
            return compiled
        if not compiled.executable.is_one_source:
            return Problem(ProblemKind.UNSUPPORTED, "the simulator runs kernels of a source alone")
        outputs: list[tuple[Array, ...]] = []
        for inputs in program.batches:
            try:
                outputs.append(self._run(compiled, inputs))
            except UopError as error:
                return Problem(ProblemKind.COMPILE, str(error))
            # Each context starts a new log.
            log = self.log.read_text("utf-8", "replace").strip() if self.log.exists() else ""
            if OWN_FAULT in log:
                # Behind the line with the place in its own source stands what it lacks.
                why = log.partition(OWN_FAULT)[2].partition("\n")[2].strip().partition("\n")[0]
                return Problem(ProblemKind.UNSUPPORTED, f"the simulator gives up: {why}")
            if reports := list(dict.fromkeys(_reports(log, compiled))):
                return Problem(ProblemKind.TRAP, "\n".join(reports[:REPORTS]))
        return Outputs(tuple(outputs))

    def _run(self, compiled: Compiled, inputs: Mapping[int, Array]) -> tuple[Array, ...]:
        program = compiled.executable
        program.check_inputs(inputs)
        contents = program.contents(inputs)
        if program.steps:
            # The state of its memory checker outlives a buffer, but not a context.
            simulator = self.simulator.alone()
            built = simulator.build(compiled.source)
            unwritten = program.unwritten(inputs)
            held = [simulator.allocate(c.nbytes) for c in contents]
            for number in set(range(len(held))) - unwritten:
                simulator.write(held[number], contents[number])
            for launch in program.launches():
                simulator.launch(built, launch, held)
            contents = [simulator.read(m, c.nbytes) for m, c in zip(held, contents, strict=True)]
        return in_order(program.output(contents))


def _reports(log: str, compiled: Compiled) -> Iterator[str]:
    """The paragraphs of a log, one line each, with the nodes that they are about."""
    source = compiled.source.splitlines()
    linears = {name: linear for linear, name in compiled.executable.names.items()}
    for paragraph in log.split("\n\n"):
        kernel = KERNEL.search(paragraph)
        if kernel is None or kernel[1] not in linears:
            continue
        lines = [source[int(number) - 1].strip() for number in LINE.findall(paragraph)]
        nodes = [(line, node_at(line, linears[kernel[1]], DIALECT)) for line in lines]
        places = " and ".join(line if u is None else described(u) for line, u in nodes)
        what = ADDRESS.sub("", paragraph.partition("\n")[0].strip())
        yield f"{what} in {kernel[1]}: {places}"


def library() -> Path:
    """The simulator's driver. UnsupportedError where it is not installed."""
    command = shutil.which("oclgrind")
    path = None if command is None else Path(command).resolve().parent.parent / LIBRARY
    if path is None or not path.exists():
        raise UnsupportedError(
            "Oclgrind is not installed; on Debian and Ubuntu: apt install oclgrind"
        )
    return path
