"""Many programs at once: their kernels are cases of one source, their buffers lie in one arena.

Building a source costs far more than running it, and one with many small kernels little more than
one with a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uop.compiler.execute import POISON, Array, Executable, Inputs, Output, open_device
from uop.compiler.pipeline import Compiled
from uop.compiler.runtime.device import Device, Launch
from uop.compiler.stages.grid import grid_of, is_grouped, runs
from uop.compiler.stages.render import Placed, grouped_name, render_batch
from uop.spec.errors import BackendError, LaunchError, UopError

KERNELS = 256
"""Kernels in one source, at most."""
FENCE = 64
"""Bytes between buffers, which nobody may write; also their alignment."""
NAME = "batch"


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A program and the inputs of each of its runs."""

    program: Compiled
    inputs: Sequence[Inputs]


Outcome = list[Output] | UopError
"""The result of each run, or why there are none."""


def run_many(
    jobs: Sequence[Job], kernels: int = KERNELS, device: Device | None = None
) -> list[Outcome]:
    """Run every job as if alone: inputs that do not fit, and failures, are its own.

    Without a device each runs on the one that its target opens by itself.
    """
    outcomes: dict[int, Outcome] = {}
    for number, job in enumerate(jobs):
        try:
            for inputs in job.inputs:
                job.program.executable.check_inputs(inputs)
        except UopError as error:
            outcomes[number] = error
        if not job.inputs:
            outcomes[number] = []
    fitting = [number for number in range(len(jobs)) if number not in outcomes]
    for chosen in _sources(jobs, fitting, kernels):
        outcomes.update(_bisected(jobs, chosen, device))
    return [outcomes[number] for number in range(len(jobs))]


def _sources(jobs: Sequence[Job], numbers: Sequence[int], kernels: int) -> Iterator[list[int]]:
    """Jobs of one target, as many as one source holds."""
    for target in dict.fromkeys(jobs[n].program.executable.target for n in numbers):
        chosen: list[int] = []
        count = 0
        for n in numbers:
            program = jobs[n].program.executable
            if program.target is not target:
                continue
            if chosen and count + len(program.steps) > kernels:
                yield chosen
                chosen, count = [], 0
            chosen.append(n)
            count += len(program.steps)
        yield chosen


def _bisected(jobs: Sequence[Job], numbers: list[int], device: Device | None) -> dict[int, Outcome]:
    """The outcomes of some jobs; where together they fail, those of each half."""
    outcomes: dict[int, Outcome] = {}
    work = [numbers]
    while work:
        chosen = work.pop()
        try:
            results = Batch([jobs[n] for n in chosen], device).run()
        except BackendError as error:
            if len(chosen) == 1:
                outcomes[chosen[0]] = error
            else:
                half = len(chosen) // 2
                work += [chosen[half:], chosen[:half]]
            continue
        outcomes.update(zip(chosen, results, strict=True))
    return outcomes


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the buffers of a program begin in the arena, and where its part of it ends."""

    offsets: tuple[int, ...]
    stop: int


class Batch:
    """Jobs of one target, each with inputs, in one source and one arena."""

    def __init__(self, jobs: Sequence[Job], device: Device | None = None) -> None:
        self.jobs, self.device = jobs, device
        self._programs = [job.program.executable for job in jobs]
        self._places = list(_places(self._programs))
        self._phases = list(_phases(self._programs))

    @property
    def source(self) -> str:
        placed = [self._placed(p, number) for phase in self._phases for p, number in phase]
        grouped = [k for k in placed if is_grouped(k.linear)]
        cases = [k for k in placed if not is_grouped(k.linear)]
        return render_batch(cases, NAME, self._programs[0].target, grouped)

    def _placed(self, p: int, number: int) -> Placed:
        step = self._programs[p].steps[number]
        return Placed(step.linear, tuple(self._places[p].offsets[b] for b in step.buffers))

    def run(self) -> list[Outcome]:
        """Run every job on all its inputs. BackendError where all of them failed together."""
        results: list[list[Output]] = [[] for _ in self.jobs]
        broken: dict[int, UopError] = {}
        runs = self._runs()
        for row in range(max(len(job.inputs) for job in self.jobs)):
            before = self._filled(row)
            after = runs(before)
            for p, job in enumerate(self.jobs):
                if row < len(job.inputs):
                    results[p].append(self._output(p, after))
            broken.update(self._trespassers(before, after))
        return [broken.get(p, result) for p, result in enumerate(results)]

    def _runs(self) -> Callable[[Array], Array]:
        """What the launches make of an arena."""
        if not any(self._phases):
            return lambda arena: arena
        device = self.device or open_device(self._programs[0].target.name)
        built = device.build(self.source)
        launches, first, grouped = [], 0, 0
        for phase in self._phases:
            linears = [self._programs[p].steps[number].linear for p, number in phase]
            cases = sum(not is_grouped(linear) for linear in linears)
            launches.append(Launch(NAME, (0,), (cases,), (1,), (first,)))
            first += cases
            for linear in filter(is_grouped, linears):
                grid, name = grid_of(linear), grouped_name(NAME, grouped)
                launches.append(Launch(name, (0,), grid.groups, grid.items))
                grouped += 1
        return lambda arena: device.run(built, launches, [arena])[0]

    def _filled(self, row: int) -> Array:
        """The arena before a run; a job with fewer inputs runs on its first ones again."""
        arena = np.full(self._places[-1].stop, POISON, np.uint8)
        for job, program, place in zip(self.jobs, self._programs, self._places, strict=True):
            contents = program.contents(job.inputs[row if row < len(job.inputs) else 0])
            for offset, held in zip(place.offsets, contents, strict=True):
                arena[offset : offset + held.size] = held
        return arena

    def _output(self, p: int, arena: Array) -> Output:
        program, offsets = self._programs[p], self._places[p].offsets
        held = zip(offsets, program.sizes, strict=True)
        return program.output([arena[offset : offset + size].copy() for offset, size in held])

    def _trespassers(self, before: Array, after: Array) -> dict[int, UopError]:
        """The programs in whose part of the arena something changed that is not theirs to write."""
        kept = np.ones(before.size, np.bool_)
        for program, place in zip(self._programs, self._places, strict=True):
            for step in program.steps:
                for written in step.written:
                    offset = place.offsets[written]
                    kept[offset : offset + program.sizes[written]] = False
        changed = np.flatnonzero(kept & (before != after))
        stops = [place.stop for place in self._places]
        found = np.unique(np.searchsorted(stops, changed, side="right"))
        return {int(p): LaunchError("a kernel wrote outside its output") for p in found}


def _places(programs: Sequence[Executable]) -> Iterator[_Place]:
    end = FENCE
    for program in programs:
        offsets = []
        for size in program.sizes:
            offsets.append(end)
            end += (size + 2 * FENCE - 1) // FENCE * FENCE
        yield _Place(tuple(offsets), end)


def _phases(programs: Sequence[Executable]) -> Iterator[list[tuple[int, int]]]:
    """Kernels that do not wait for each other: the first of each program, then the second."""
    for number in range(max((len(program.steps) for program in programs), default=0)):
        phase = [
            (p, number)
            for p, program in enumerate(programs)
            if number < len(program.steps) and runs(program.steps[number].linear)
        ]
        if phase:
            yield phase
