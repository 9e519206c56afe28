"""Runs many programs together: one source for their kernels, one arena per device for buffers.

Building a source takes much longer than running it. For many small kernels it takes hardly longer
than for a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from uop.compiler.execute import Array, CopyStep, Executable, Inputs, KernelRun, Output, open_device
from uop.compiler.loaded import Compiled
from uop.compiler.runtime.device import Device, Launch, Transfer, run_on
from uop.compiler.stages.render.grid import grid_of, is_grouped, runs
from uop.compiler.stages.render.stage import BundledKernel, grouped_name, render_bundle
from uop.compiler.targets.c import CTarget
from uop.spec.errors import BackendError, LaunchError, UopError

KERNELS = 256
"""The most kernels in one source."""
FENCE = 64
"""Bytes between buffers, which no kernel may write; also their alignment."""
FENCES = (0xA5, 0x3C)
"""What these bytes hold in the first run and in the second: no result may depend on it."""
NAME = "bundle"


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A program and the inputs of each of its runs."""

    program: Compiled
    inputs: Sequence[Inputs]


RunResults = list[Output] | UopError
"""The result of each run, or the error of the job."""


def run_many(jobs: Sequence[Job], device: Device | None = None) -> list[RunResults]:
    """Run jobs; an error of one does not affect the others.

    Jobs of a target in C share sources, except those with variables or with steps on the host.
    Without a device each job runs on the default device of its target.
    """
    outcomes: dict[int, RunResults] = {}
    for number, job in enumerate(jobs):
        program = job.program.executable
        if program.has_variables:
            outcomes[number] = _alone(job, device)
            continue
        try:
            for inputs in job.inputs:
                program.check_inputs(inputs)
            # What keeps a kernel from being rendered, so that the other jobs have their source.
            if isinstance(program.target, CTarget):
                for linear, name in program.names.items():
                    program.target.check(linear, name)
        except UopError as error:
            outcomes[number] = error
            continue
        if not job.inputs:
            outcomes[number] = []
        elif not (isinstance(program.target, CTarget) and program.is_one_source):
            outcomes[number] = _alone(job, device)
    fitting = [number for number in range(len(jobs)) if number not in outcomes]
    for chosen in _sources(jobs, fitting):
        outcomes.update(_bisected(jobs, chosen, device))
    return [outcomes[number] for number in range(len(jobs))]


def _alone(job: Job, device: Device | None) -> RunResults:
    try:
        return [job.program.run(inputs, device) for inputs in job.inputs]
    except UopError as error:
        return error


def _sources(jobs: Sequence[Job], numbers: Sequence[int]) -> Iterator[list[int]]:
    """Group the jobs by target, and those on several devices; as many as fit into one source."""
    programs = {n: jobs[n].program.executable for n in numbers}
    kind_of = {n: (program.target, len(program.devices) > 1) for n, program in programs.items()}
    for kind in dict.fromkeys(kind_of.values()):
        chosen: list[int] = []
        count = 0
        for n in (n for n in numbers if kind_of[n] == kind):
            program = jobs[n].program.executable
            if chosen and count + len(program.kernels) > KERNELS:
                yield chosen
                chosen, count = [], 0
            chosen.append(n)
            count += len(program.kernels)
        yield chosen


def _bisected(
    jobs: Sequence[Job], numbers: list[int], device: Device | None
) -> dict[int, RunResults]:
    """The outcomes of some jobs. If they fail together, each half is run again."""
    outcomes: dict[int, RunResults] = {}
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
    """The offsets of a program's buffers in the arenas, and the end of its part of each."""

    offsets: tuple[int, ...]
    stops: tuple[int, ...]


class Bundle:
    """Jobs of one target, each with inputs, in one source and one arena for each device."""

    def __init__(self, jobs: Sequence[Job], device: Device | None = None) -> None:
        self.jobs, self.device = jobs, device
        self._programs = [job.program.executable for job in jobs]
        self._count = max(len(program.devices) for program in self._programs)
        self._places = list(_places(self._programs, self._count))
        self._cases: list[BundledKernel] = []
        self._grouped: list[BundledKernel] = []
        """The kernels that use workgroups; the others are cases. Both in launch order."""
        self._work: list[Launch | Transfer] = []
        # The first steps of all programs are independent, then the second ones.
        for number in range(max(len(program.steps) for program in self._programs)):
            steps = {
                p: program.steps[number]
                for p, program in enumerate(self._programs)
                if number < len(program.steps)
            }
            kernels = {p: step for p, step in steps.items() if isinstance(step, KernelRun)}
            copies = {p: step for p, step in steps.items() if isinstance(step, CopyStep)}
            for place in range(self._count):
                self._launch({p: k for p, k in kernels.items() if k.place == place}, place)
            self._work += [self._transfer(p, step) for p, step in copies.items()]

    @property
    def source(self) -> str:
        dialect = cast(CTarget, self._programs[0].target).dialect
        return render_bundle(self._cases, NAME, dialect, self._grouped)

    def _launch(self, steps: Mapping[int, KernelRun], place: int) -> None:
        """Launch the kernels on a device: all cases at once."""
        first = len(self._cases)
        grouped: list[Launch] = []
        for p, step in steps.items():
            if not runs(step.linear):
                continue
            offsets = self._places[p].offsets
            kernel = BundledKernel(
                step.linear, {slot: offsets[b] for slot, b in step.buffers.items()}
            )
            if not is_grouped(step.linear):
                self._cases.append(kernel)
                continue
            grid, name = grid_of(step.linear), grouped_name(NAME, len(self._grouped))
            grouped.append(Launch(name, (place,), grid.groups, grid.items, place=place))
            self._grouped.append(kernel)
        if count := len(self._cases) - first:
            self._work.append(Launch(NAME, (place,), (count,), (1,), (first,), place=place))
        self._work += grouped

    def _transfer(self, p: int, step: CopyStep) -> Transfer:
        program, offsets = self._programs[p], self._places[p].offsets
        source, to = (program.places[k] for k in (step.source, step.to))
        at = offsets[step.source], offsets[step.to]
        return Transfer(source, to, program.sizes[step.to], *at)

    def run(self) -> list[RunResults]:
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

    def _runs(self) -> Callable[[list[Array]], list[Array]]:
        """A function from the arenas before the work to the arenas after it."""
        if not self._work:
            return lambda arenas: arenas
        device = self.device or open_device(self._programs[0].target)
        devices = (device,) if self._count == 1 else device.peers(self._count)
        return partial(run_on, devices, devices[0].build(self.source), self._work)

    def _filled(self, row: int) -> list[Array]:
        """The arenas before a run; a job with fewer inputs runs on its first inputs again."""
        fence = FENCES[row % len(FENCES)]
        arenas = [np.full(stop, fence, np.uint8) for stop in self._places[-1].stops]
        for job, program, place in zip(self.jobs, self._programs, self._places, strict=True):
            contents = program.contents(job.inputs[row if row < len(job.inputs) else 0])
            for k, offset, held in zip(program.places, place.offsets, contents, strict=True):
                arenas[k][offset : offset + held.size] = held
        return arenas

    def _output(self, p: int, arenas: Sequence[Array]) -> Output:
        program = self._programs[p]
        held = zip(program.places, self._places[p].offsets, program.sizes, strict=True)
        return program.output([arenas[k][at : at + size].copy() for k, at, size in held])

    def _trespassers(self, before: Sequence[Array], after: Sequence[Array]) -> dict[int, UopError]:
        """The programs in whose part of an arena bytes outside their outputs changed."""
        kept = [np.ones(arena.size, np.bool_) for arena in before]
        for program, place in zip(self._programs, self._places, strict=True):
            sizes = program.sizes
            for written in program.written:
                at = place.offsets[written]
                kept[program.places[written]][at : at + sizes[written]] = False
        found: set[int] = set()
        for k, own in enumerate(kept):
            changed = np.flatnonzero(own & (before[k] != after[k]))
            stops = [place.stops[k] for place in self._places]
            found.update(map(int, np.searchsorted(stops, changed, side="right")))
        return {p: LaunchError("a kernel wrote outside its output") for p in sorted(found)}


def _places(programs: Sequence[Executable], count: int) -> Iterator[_Place]:
    ends = [FENCE] * count
    for program in programs:
        offsets = []
        for place, size in zip(program.places, program.sizes, strict=True):
            offsets.append(ends[place])
            ends[place] += (size + 2 * FENCE - 1) // FENCE * FENCE
        yield _Place(tuple(offsets), tuple(ends))
