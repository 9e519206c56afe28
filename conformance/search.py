"""Searches the optimizations of a program: a beam over sequences, each timed and checked.

A candidate is one more optimization behind a sequence of the beam, where that is legal. A child
process compiles and times it, so that one that crashes or hangs costs its time alone. What is
faster counts only if its results lie in the accepted sets. After a minute the search ends with the
best so far. The result is kept on disk for the program, the backend, the device and this version.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from uop.compiler.pipeline import compile, find_target, lower
from uop.compiler.runtime.cache import cache_folder, keep
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.axes import axes
from uop.compiler.stages.optimize.groups import chosen
from uop.compiler.stages.optimize.stage import optimize
from uop.compiler.targets.target import Target
from uop.compiler.timing import kernel_times
from uop.conformance.backends import load
from uop.conformance.backends.children import Child, EndedError
from uop.conformance.backends.compiled import CompiledBackend
from uop.conformance.backends.interpreter import in_order
from uop.conformance.checks import OptionError
from uop.conformance.judging.compare import compare
from uop.conformance.protocol import wire
from uop.conformance.protocol.types import Outputs, Program
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AxisType
from uop.spec.distribution import own_version
from uop.spec.errors import InvalidError, UnsupportedError, UopError
from uop.spec.graph import kernel_calls
from uop.spec.kernel.optimization import (
    MatrixUnit,
    Optimization,
    Split,
    Swap,
    parse_optimizations,
    print_optimizations,
)
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp

Optimizations = tuple[Optimization, ...]
STDERR = 2
FACTORS = (2, 4, 8, 16)
TYPES = (AxisType.UPCAST, AxisType.UNROLL, AxisType.LOCAL, AxisType.GROUP_REDUCE)
LONGEST = 6
"""The most optimizations of a sequence that grows."""
BETTER = 0.98
"""A round that does not shorten the time to this share of it is the last."""
HOPELESS = 3.0
"""A candidate that takes so many times as long as the best one is not timed again."""
TURNS = 5
SECONDS = 20.0
"""The limit of a candidate: build, run and time."""
WHOLE = 60.0
"""The limit of a search; each kernel has a share of what is left."""
SEARCHES = "searches"
"""The folder of results in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A candidate for the child: a program with its inputs, a sequence for each kernel."""

    program: Program
    sequences: tuple[str, ...]
    best: float
    """The seconds of the best one so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """The seconds of all kernels of a candidate, its results, and the device."""

    seconds: float
    outputs: Outputs
    machine: str


@dataclass(frozen=True, slots=True)
class Found:
    """The best sequence for each kernel, and its time; how many candidates ran, and failed."""

    sequences: tuple[str, ...]
    seconds: float
    tried: int = 0
    failed: int = 0


@dataclass(slots=True)
class Search:
    """A search for one program on one backend."""

    root: UOp
    inputs: Mapping[int, Array]
    backend: str
    width: int
    limit: float = SECONDS
    whole: float = WHOLE
    tried: int = 0
    failed: int = 0
    _adapter: CompiledBackend = field(init=False)
    _accepted: tuple[Accepted, ...] = field(init=False)
    _child: Child = field(init=False)

    def __post_init__(self) -> None:
        adapter = load(self.backend)
        if not isinstance(adapter, CompiledBackend):
            raise OptionError(f"--beam: expected a backend of the compiler, found {self.backend}")
        if self.width < 1:
            raise OptionError(f"--beam: expected 1 or more, found {self.width}")
        self._adapter, self._child = adapter, Child(self._answer, Trial)
        self._accepted = accept(self.root, self.inputs)

    def run(self) -> Found:
        """The result on disk, else that of a search, which is then kept there.

        UopError if the program does not run as the compiler makes it without a search.
        """
        try:
            return self._searched()
        finally:
            self._child.close()

    def _searched(self) -> Found:
        target = find_target(self._adapter.target)
        end = time.monotonic() + self.whole
        bodies = _bodies(self.root, target)
        first = tuple(print_optimizations(chosen(body, target)) for body in bodies)
        start = self._ask(first, float("inf"))
        if isinstance(start, str):
            raise UnsupportedError(f"the program without a search: {start}")
        place = self._place(start.machine)
        if (kept := _read(place, len(bodies))) is not None:
            return kept
        best = Found(first, start.seconds)
        for kernel, body in enumerate(bodies):
            now = time.monotonic()
            best = self._grown(best, kernel, body, now + (end - now) / (len(bodies) - kernel))
        found = Found(best.sequences, best.seconds, self.tried, self.failed)
        about = {"sequences": found.sequences, "seconds": found.seconds}
        keep(place, json.dumps(about | {"digest": _digest(found)}))
        return found

    def _grown(self, best: Found, kernel: int, body: UOp, end: float) -> Found:
        """The best sequences after a search for one kernel, which starts no candidate later."""
        target = find_target(self._adapter.target)
        seen: set[UOp] = set()
        beam: list[Optimizations] = [parse_optimizations(best.sequences[kernel]), ()]
        for _ in range(LONGEST):
            timed: list[tuple[float, Optimizations]] = []
            for sequence in (new for old in beam for new in candidates(body, old, seen, target)):
                if time.monotonic() > end:
                    break
                text = print_optimizations(sequence)
                all_of = (*best.sequences[:kernel], text, *best.sequences[kernel + 1 :])
                answer = self._ask(all_of, best.seconds)
                if isinstance(answer, Timed):
                    timed.append((answer.seconds, sequence))
            timed.sort(key=lambda pair: pair[0])
            beam = [sequence for _, sequence in timed[: self.width]]
            if not timed or timed[0][0] > best.seconds * BETTER:
                return best
            fastest = print_optimizations(beam[0])
            sequences = (*best.sequences[:kernel], fastest, *best.sequences[kernel + 1 :])
            best = Found(sequences, timed[0][0])
        return best

    def _ask(self, sequences: tuple[str, ...], best: float) -> Timed | str:
        """Time a candidate, or why it does not count."""
        self.tried += 1
        program = Program(print_program(self.root), (self.inputs,))
        deadline = time.monotonic() + self.limit
        try:
            timed = self._child.ask(Trial(program, sequences, best), Timed, deadline)
            mismatch = compare(self._accepted, timed.outputs.batches[0]).mismatch
            if mismatch is None:
                return timed
            why = f"a wrong result: {mismatch.message}"
        except EndedError as error:
            why = str(error)
        except wire.RefusedError as error:
            why = str(error)
        self.failed += 1
        return why

    def _answer(self, trial: Trial) -> Timed | wire.Refused:
        """Build, run and time a candidate, in the child."""
        # What drivers and a failing candidate print is no output of the search.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), STDERR)
        try:
            device = self._adapter.opened()
            (inputs,) = trial.program.batches
            sequences = tuple(map(parse_optimizations, trial.sequences))
            root = parse(trial.program.text)
            with compile(root, self._adapter.target, None, sequences).load(device) as loaded:
                outputs = in_order(loaded.run(inputs))
                seconds = sum(t.seconds for t in kernel_times(loaded, inputs, 1))
                if seconds < HOPELESS * trial.best:
                    seconds = sum(t.seconds for t in kernel_times(loaded, inputs, TURNS))
            return Timed(seconds, Outputs((outputs,)), device.machine)
        except UopError as error:
            return wire.Refused(f"{type(error).__name__}: {error}")

    def _place(self, machine: str) -> Path:
        """The file of the result."""
        about = [own_version(), print_program(self.root), self.backend, machine, self.width]
        name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
        return cache_folder() / SEARCHES / f"{name}.json"


def candidates(
    body: UOp, sequence: Optimizations, seen: set[UOp], target: Target
) -> Iterator[Optimizations]:
    """The sequences that are one optimization longer and legal; adds the kernels to those seen."""
    try:
        optimized = apply(body, sequence)
    except UnsupportedError:
        return
    count = len(axes(optimized))
    steps: list[Optimization] = [
        Split(axis, factor, kind) for axis in range(count) for factor in FACTORS for kind in TYPES
    ]
    steps += [Swap(axis, axis + 1) for axis in range(count - 1)]
    if not sequence:
        shapes = dict.fromkeys(f"m{a.m}n{a.n}k{a.k}" for a in target.matrices)
        steps += [MatrixUnit(axis, shape) for axis in range(count) for shape in sorted(shapes)]
    for step in steps:
        longer = (*sequence, step)
        try:
            new = apply(body, longer)
        except (InvalidError, UnsupportedError):
            continue
        if new not in seen:
            seen.add(new)
            yield longer


def _bodies(root: UOp, target: Target) -> list[UOp]:
    """The kernels that optimizations apply to."""
    return [call.src[0] for call in kernel_calls(optimize(lower(root, "rangeify", target)))]


def _read(place: Path, kernels: int) -> Found | None:
    """A result on disk; None where there is none, or a damaged one."""
    with suppress(OSError, ValueError, TypeError, LookupError, UopError):
        about = json.loads(place.read_text("utf-8"))
        found = Found(tuple(about["sequences"]), float(about["seconds"]))
        for text in found.sequences:
            parse_optimizations(text)
        if about["digest"] == _digest(found) and len(found.sequences) == kernels:
            return found
    return None


def _digest(found: Found) -> str:
    about = json.dumps([*found.sequences, found.seconds])
    return hashlib.sha256(about.encode()).hexdigest()
