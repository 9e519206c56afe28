"""Runs many programs together: their kernels in one source, their buffers in one arena.

Building a source takes much longer than running it, and hardly longer for many small kernels than
for a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from uop.compiler.execute import Array, Executable, Inputs, Output, open_device
from uop.compiler.pipeline import Compiled
from uop.compiler.runtime.device import Device, Launch
from uop.compiler.stages.grid import grid_of, is_grouped, runs
from uop.compiler.stages.render import BundledKernel, grouped_name, render_bundle
from uop.compiler.targets.c import CTarget
from uop.spec.errors import BackendError, LaunchError, UopError

KERNELS = 256
"""The most kernels in one source."""
FENCE = 64
"""Bytes between buffers, which no kernel may write; also their alignment."""
FENCES = (0xA5, 0x3C)
"""What these bytes hold in the first run and in the second: results do not depend on it."""
NAME = "bundle"


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A program and the inputs of each of its runs."""

    program: Compiled
    inputs: Sequence[Inputs]


Outcome = list[Output] | UopError
"""The result of each run, or the error of the job."""


def run_many(
    jobs: Sequence[Job], kernels: int = KERNELS, device: Device | None = None
) -> list[Outcome]:
    """Run jobs; each has its own outcome, whatever happens to the others.

    Jobs of a target in C share sources, but for those with variables or with steps on the host.
    Without a device each job runs on the default device of its target.
    """
    outcomes: dict[int, Outcome] = {}
    for number, job in enumerate(jobs):
        if job.program.executable.has_variables:
            outcomes[number] = _alone(job, device)
            continue
        try:
            for inputs in job.inputs:
                job.program.executable.check_inputs(inputs)
        except UopError as error:
            outcomes[number] = error
        if not job.inputs:
            outcomes[number] = []
        elif not _is_bundled(job.program.executable):
            outcomes.setdefault(number, _alone(job, device))
    fitting = [number for number in range(len(jobs)) if number not in outcomes]
    for chosen in _sources(jobs, fitting, kernels):
        outcomes.update(_bisected(jobs, chosen, device))
    return [outcomes[number] for number in range(len(jobs))]


def _is_bundled(program: Executable) -> bool:
    return isinstance(program.target, CTarget) and program.is_one_source


def _alone(job: Job, device: Device | None) -> Outcome:
    try:
        return [job.program.run(inputs, device) for inputs in job.inputs]
    except UopError as error:
        return error


def _sources(jobs: Sequence[Job], numbers: Sequence[int], kernels: int) -> Iterator[list[int]]:
    """Group the jobs by target, as many as fit into one source."""
    for target in dict.fromkeys(jobs[n].program.executable.target for n in numbers):
        chosen: list[int] = []
        count = 0
        for n in numbers:
            program = jobs[n].program.executable
            if program.target is not target:
                continue
            if chosen and count + len(program.kernels) > kernels:
                yield chosen
                chosen, count = [], 0
            chosen.append(n)
            count += len(program.kernels)
        yield chosen


def _bisected(jobs: Sequence[Job], numbers: list[int], device: Device | None) -> dict[int, Outcome]:
    """The outcomes of some jobs. If they fail together, each half is run again."""
    outcomes: dict[int, Outcome] = {}
    work = [numbers]
    while work:
        chosen = work.pop()
        try:
            results = Bundle([jobs[n] for n in chosen], device).run()
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
    """The offsets of a program's buffers in the arena, and the end of its part."""

    offsets: tuple[int, ...]
    stop: int


class Bundle:
    """Jobs of one target, each with inputs, in one source and one arena."""

    def __init__(self, jobs: Sequence[Job], device: Device | None = None) -> None:
        self.jobs, self.device = jobs, device
        self._programs = [job.program.executable for job in jobs]
        self._places = list(_places(self._programs))
        self._phases = list(_phases(self._programs))

    @property
    def source(self) -> str:
        kernels = [self._kernel(p, number) for phase in self._phases for p, number in phase]
        grouped = [k for k in kernels if is_grouped(k.linear)]
        cases = [k for k in kernels if not is_grouped(k.linear)]
        dialect = cast(CTarget, self._programs[0].target).dialect
        return render_bundle(cases, NAME, dialect, grouped)

    def _kernel(self, p: int, number: int) -> BundledKernel:
        step = self._programs[p].kernels[number]
        offsets = self._places[p].offsets
        return BundledKernel(step.linear, {slot: offsets[b] for slot, b in step.buffers.items()})

    def run(self) -> list[Outcome]:
        """Run every job on all its inputs. BackendError if the source or a launch fails."""
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
        """A function from the arena before the launches to the arena after them."""
        if not any(self._phases):
            return lambda arena: arena
        device = self.device or open_device(self._programs[0].target)
        built = device.build(self.source)
        launches, first, grouped = [], 0, 0
        for phase in self._phases:
            linears = [self._programs[p].kernels[number].linear for p, number in phase]
            cases = sum(not is_grouped(linear) for linear in linears)
            launches.append(Launch(NAME, (0,), (cases,), (1,), (first,)))
            first += cases
            for linear in filter(is_grouped, linears):
                grid, name = grid_of(linear), grouped_name(NAME, grouped)
                launches.append(Launch(name, (0,), grid.groups, grid.items))
                grouped += 1
        return lambda arena: device.run(built, launches, [arena])[0]

    def _filled(self, row: int) -> Array:
        """The arena before a run; a job with fewer inputs runs on its first inputs again."""
        arena = np.full(self._places[-1].stop, FENCES[row % len(FENCES)], np.uint8)
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
        """The programs in whose part of the arena bytes outside their outputs changed."""
        kept = np.ones(before.size, np.bool_)
        for program, place in zip(self._programs, self._places, strict=True):
            for step in program.kernels:
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
    """Groups of independent kernels: the first of each program, then the second."""
    for number in range(max((len(program.kernels) for program in programs), default=0)):
        phase = [
            (p, number)
            for p, program in enumerate(programs)
            if number < len(program.kernels) and runs(program.kernels[number].linear)
        ]
        if phase:
            yield phase
