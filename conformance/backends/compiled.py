"""Runs the project's compiler as a backend; memory is poisoned before each run and fenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from uop.compiler.bundle import FENCE, FENCES, Job, run_many
from uop.compiler.execute import open_device
from uop.compiler.loaded import Compiled
from uop.compiler.pipeline import Observe, compile, find_target, rules_of
from uop.compiler.runtime.device import Around, Built, Contents, Device, Launch, Memory, upload
from uop.compiler.runtime.opencl import NOT_OPTIMIZED, OpenCLDevice, open_opencl
from uop.compiler.stages.stage import Setting
from uop.conformance.backends.attempt import attempt, own_problem
from uop.conformance.backends.interpreter import hello_of, in_order
from uop.conformance.checks import OptionError
from uop.conformance.protocol.types import (
    Hello,
    Limits,
    Outcome,
    Outputs,
    Problem,
    Program,
    StageText,
)
from uop.spec.errors import LaunchError, UopError
from uop.spec.text.program import parse, print_program

FENCE_BYTES = np.full(FENCE, FENCES[0], np.uint8)
PROGRAMS = 128
"""The most programs in one source: a driver takes as long for a few as for one."""

OFF, OPTIMIZED = "off", "optimized"


class CompiledBackend:
    """Compiles programs for one target by the eight stages.

    It runs many of them as one source, and one alone as `compile(...).run` does. Where its
    argument ends in `off`, the compiler chooses no optimizations; before that it may name a place.
    OptionError for a place where the target has none to choose from.
    """

    target: str
    has_places = False
    quick = ""
    """How quick programs that come together are built, as in the hello."""

    def __init__(self, argument: str = "") -> None:
        before, _, last = argument.rpartition(":")
        self.optimizations = () if last == OFF else None
        self.place = before if last == OFF else argument
        if self.place and not self.has_places:
            raise OptionError(f"{self.target}: expected {OFF} or nothing; found {argument!r}")

    def hello(self) -> Hello:
        self.device, hello = self.opened(), hello_of(self.target)
        return replace(
            hello,
            device=f"{self.device.name} ({self.device.version})",
            limits=Limits(PROGRAMS),
            offers=hello.offers | {"stages"},
            variant=self.variant,
            quick=self.quick,
        )

    @property
    def variant(self) -> str:
        """`off` for a compiler that chooses no optimizations, else empty."""
        return "" if self.optimizations is None else OFF

    def opened(self) -> Device:
        """The device that runs the programs."""
        return open_device(find_target(self.target))

    @cached_property
    def quick_device(self) -> Device:
        """The device that builds quick programs."""
        return self.device

    @cached_property
    def fenced(self) -> Fenced:
        """The device, with fences."""
        return Fenced(self.device)

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        bundled = len(programs) > 1
        compiled = [self._counted(program, bundled and program.quick) for program in programs]
        if not bundled:
            return [self._alone(c, program) for c, program in zip(compiled, programs, strict=True)]
        outcomes: dict[int, Outcome] = {}
        jobs: dict[Device, dict[int, Job]] = {}
        for k, (c, program) in enumerate(zip(compiled, programs, strict=True)):
            if isinstance(c, Problem):
                outcomes[k] = c
            else:
                device = self.quick_device if self.quick and program.quick else self.device
                jobs.setdefault(device, {})[k] = Job(c, program.batches)
        for device, some in jobs.items():
            results = run_many([*some.values()], device=device)
            for k, result in zip(some, results, strict=True):
                if isinstance(result, UopError):
                    outcomes[k] = own_problem(result)
                else:
                    outcomes[k] = Outputs(tuple(map(in_order, result)))
        return [outcomes[k] for k in range(len(programs))]

    def fired(self) -> Counter[str]:
        """For each rule of the compiler the number of programs it fired in since the last call."""
        counts = self._counts
        del self._counts
        return counts

    def stages(self, program: Program) -> list[StageText]:
        """What the stages leave, and the slots of its results."""
        compiled = self._compiled(program)
        if isinstance(compiled, Problem):
            return []
        slots = compiled.executable.results
        return [StageText(n, print_program(u), slots) for n, u in compiled.stages.items()]

    def locate(self, program: Program) -> str:
        """The stage and the firing of a rule that are to blame, or what comes after the stages."""
        from uop.conformance.locate.device import check_device, sentence
        from uop.conformance.locate.stages import check_stages

        setting = Setting(find_target(self.target), self.optimizations)
        try:
            root = parse(program.text)
            checked = check_stages(root, program.batches, setting)
            if checked.blame is None:
                checked = check_device(root, program.batches, checked, setting, self.fenced)
        except UopError as error:
            return f"what is to blame is not known: {error}"
        return "" if checked.blame is None else sentence(checked.blame)

    def _alone(self, compiled: Compiled | Problem, program: Program) -> Outcome:
        if isinstance(compiled, Problem):
            return compiled
        runs = (compiled.run(inputs, self.fenced) for inputs in program.batches)
        return attempt(lambda: Outputs(tuple(map(in_order, runs))))

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(dict.fromkeys(rules_of(self.target), 0))

    def _counted(self, program: Program, quick: bool) -> Compiled | Problem:
        """The program compiled; counts the rules that fire in it."""
        seen: set[tuple[str, str]] = set()
        compiled = self._compiled(program, lambda stage, rule, *_: seen.add((stage, rule)), quick)
        if isinstance(compiled, Compiled):
            self._counts.update(f"{stage}/{rule}" for stage, rule in seen if rule)
        return compiled

    def _compiled(
        self, program: Program, observe: Observe | None = None, quick: bool = False
    ) -> Compiled | Problem:
        """The program compiled, or why it is not."""
        try:
            return compile(parse(program.text), self.target, observe, self.optimizations, quick)
        except UopError as error:
            return own_problem(error)


@dataclass(frozen=True, slots=True)
class Fence:
    """Memory of a device with a fence behind its bytes; empty memory has none."""

    memory: Memory
    size: int


class Fenced(Around):
    """A device that fences the buffers of a run: a kernel that writes behind one is found."""

    __slots__ = ()

    def allocate(self, size: int) -> Fence:
        # An empty buffer stays empty: devices treat it in a way of its own.
        fence = FENCE_BYTES if size else FENCE_BYTES[:0]
        return Fence(upload(self.device, np.append(np.zeros(size, np.uint8), fence)), size)

    def write(self, memory: Fence, contents: Contents) -> None:
        self.device.write(memory.memory, contents)

    def read(self, memory: Fence, size: int) -> Contents:
        return self.device.read(memory.memory, size)

    def copy(self, source: Fence, to: Fence, size: int, source_at: int = 0, to_at: int = 0) -> None:
        self.device.copy(source.memory, to.memory, size, source_at, to_at)

    def launch(self, built: Built, launch: Launch, held: Sequence[Fence]) -> None:
        self.device.launch(built, launch, [fence.memory for fence in held])

    def free(self, memory: Fence) -> None:
        """Free memory. LaunchError where bytes behind it have changed."""
        held = memory.size + FENCE_BYTES.size if memory.size else 0
        behind = self.device.read(memory.memory, held)[memory.size :]
        self.device.free(memory.memory)
        if held and (behind != FENCE_BYTES).any():
            raise LaunchError("a kernel wrote behind a buffer")


class OpenCLBackend(CompiledBackend):
    """The first OpenCL device that can be used, or the one that a place names: pocl, intel, 0:1.

    Its driver builds quick programs without optimization, which takes half of its time, unless the
    argument ends in `optimized`.
    """

    target = "opencl"
    has_places = True
    quick = NOT_OPTIMIZED

    def __init__(self, argument: str = "") -> None:
        before, _, last = argument.rpartition(":")
        if last == OPTIMIZED:
            self.quick, argument = "", before
        super().__init__(argument)

    @cached_property
    def quick_device(self) -> Device:
        """The device without the optimizations of its driver."""
        return cast(Device, cast(OpenCLDevice, self.device).not_optimized())

    @property
    def variant(self) -> str:
        """The short name of the device's driver, and `off`: `pocl`, `pocl-off`."""
        return "-".join(filter(None, [cast(OpenCLDevice, self.device).variant, super().variant]))

    def opened(self) -> Device:
        return cast(Device, open_opencl(self.place)) if self.place else super().opened()


class CUDABackend(CompiledBackend):
    """The current CUDA device."""

    target = "cuda"


class CUDAHostBackend(CompiledBackend):
    """CUDA sources on the CPU, where there is no GPU."""

    target = "cuda-host"
