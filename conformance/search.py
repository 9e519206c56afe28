"""Searches the optimizations of a program (`compiler/beam.py`), and checks each candidate.

A child process compiles and times it, so that one that crashes or hangs costs its time alone. What
is faster counts only if its results lie in the accepted sets. After a minute the search ends with
the best so far. The result is kept on disk for the program, the backend, the device and this
version.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from uop.compiler.beam import Beam, Optimizations, timed_run
from uop.compiler.pipeline import find_target
from uop.compiler.runtime.cache import cache_folder, keep
from uop.conformance.backends import load
from uop.conformance.backends.compiled import CompiledBackend
from uop.conformance.backends.interpreter import in_order
from uop.conformance.checks import OptionError
from uop.conformance.judging.compare import compare
from uop.conformance.protocol import wire
from uop.conformance.protocol.types import Outputs, Program
from uop.conformance.workers.children import Child, EndedError
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.storage import Array
from uop.spec.distribution import own_version
from uop.spec.errors import UnsupportedError, UopError
from uop.spec.kernel.optimization import parse_optimizations, print_optimizations
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp

STDERR = 2
SECONDS = 20.0
"""The limit of a candidate: build, run and time."""
WHOLE = 60.0
"""The limit of a search; each kernel has a share of what is left."""
SEARCHES = "searches"
"""The folder of results in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
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
        self._adapter, self._child = adapter, Child(self._answer, Proposal)
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
        end = time.monotonic() + self.whole
        beam = Beam(self.root, find_target(self._adapter.target), self.width, self._seconds)
        start = self._ask(beam.first, float("inf"))
        if isinstance(start, str):
            raise UnsupportedError(f"the program without a search: {start}")
        place = self._place(start.machine)
        if (kept := _read(place, len(beam.bodies))) is not None:
            return kept
        best = beam.run(start.seconds, end)
        texts = tuple(map(print_optimizations, best.sequences))
        found = Found(texts, best.seconds, self.tried, self.failed)
        about = {"sequences": found.sequences, "seconds": found.seconds}
        keep(place, json.dumps(about | {"digest": _digest(found)}))
        return found

    def _seconds(self, sequences: tuple[Optimizations, ...], best: float) -> float | None:
        answer = self._ask(sequences, best)
        return answer.seconds if isinstance(answer, Timed) else None

    def _ask(self, sequences: tuple[Optimizations, ...], best: float) -> Timed | str:
        """Time a candidate, or why it does not count."""
        self.tried += 1
        program = Program(print_program(self.root), (self.inputs,))
        deadline = time.monotonic() + self.limit
        try:
            texts = tuple(map(print_optimizations, sequences))
            timed = self._child.ask(Proposal(program, texts, best), Timed, deadline)
            mismatch = compare(self._accepted, timed.outputs.batches[0]).mismatch
            if mismatch is None:
                return timed
            why = f"a wrong result: {mismatch.message}"
        except (EndedError, wire.RefusedError) as error:
            why = str(error)
        self.failed += 1
        return why

    def _answer(self, trial: Proposal) -> Timed | wire.Refused:
        """Build, run and time a candidate, in the child."""
        # What drivers and a failing candidate print is no output of the search.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), STDERR)
        try:
            device = self._adapter.opened()
            (inputs,) = trial.program.batches
            sequences = tuple(map(parse_optimizations, trial.sequences))
            root = parse(trial.program.text)
            target = find_target(self._adapter.target)
            output, seconds = timed_run(root, target, sequences, inputs, trial.best, device)
            return Timed(seconds, Outputs((in_order(output),)), device.machine)
        except UopError as error:
            return wire.Refused(f"{type(error).__name__}: {error}")

    def _place(self, machine: str) -> Path:
        """The file of the result."""
        about = [own_version(), print_program(self.root), self.backend, machine, self.width]
        name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
        return cache_folder() / SEARCHES / f"{name}.json"


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
