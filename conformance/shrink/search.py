"""Searches for a smaller failing program: builds candidates in order and takes what still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice, repeat

import numpy as np

from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.shrink.reduce import Candidate, Found, Probe, is_computing
from uop.interpreter.inputs import bind_inputs
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AddrSpace, AxisType, BufferArg, LoadArg, ParamArg, RangeArg, StageArg
from uop.spec.errors import UopError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

Step = Callable[[], Candidate | None]
"""Builds a candidate; None, or a UopError, where there is none."""
Steps = Callable[[Candidate], Iterable[Step]]

CHUNKS = (4, 8, 16)
"""How many candidates run together: few at first, as the first ones are the smallest."""
PROBES = 2000
"""The most candidates that run for one failure."""
PLACED = (ParamArg, BufferArg, LoadArg, StageArg)
"""The args that name devices."""


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """The size of a candidate. It is smaller where the first unequal number is."""

    iterations: int
    devices: int
    """The devices that memory is on, each counted where it occurs."""
    nodes: int
    special: int
    """Loops of another type than LOOP, and memory inside of kernels."""
    elements: int
    data: int
    """Elements that are neither 0 nor 1."""


def size_of(candidate: Candidate) -> Size:
    nodes = candidate.root.toposort()
    stated = (Op.BUFFER, Op.EXPAND, Op.PAD)
    memory = {u for u in nodes if u.op in stated or (u.op is Op.PARAM and u.addrspace is None)}
    arrays = candidate.inputs.values()
    return Size(
        sum(count_of(u) for u in nodes if u.declaration.is_counter),
        sum(len(devices_of(u)) for u in nodes),
        sum(map(is_computing, nodes)),
        sum(map(_is_special, nodes)),
        sum(int(np.prod(u.shape)) for u in memory) + sum(a.size for a in arrays),
        sum(int(np.count_nonzero(_is_ragged(a))) for a in arrays),
    )


# Comparing a signalling NaN raises a flag, which is irrelevant here.
@np.errstate(all="ignore")
def _is_ragged(array: Array) -> Array:
    ragged: Array = (array != 0) & (array != 1)
    return ragged


def count_of(loop: UOp) -> int:
    """The most iterations of a RANGE, or work items of a SPECIAL."""
    return 0 if loop.min_max is None else int(loop.min_max.max) + 1


def devices_of(u: UOp) -> Sequence[str]:
    """The devices that the arg of a node names."""
    device = u.arg.device if isinstance(u.arg, PLACED) else None
    if device is None:
        return ()
    return (device,) if isinstance(device, str) else device


def _is_special(u: UOp) -> bool:
    if isinstance(u.arg, RangeArg):
        return u.arg.axis_type is not AxisType.LOOP
    return isinstance(u.arg, BufferArg) and u.arg.addrspace is not AddrSpace.GLOBAL


def repeated(found: Found, probe: Probe, steps: Steps) -> Found:
    """Take steps while one leads to a smaller program that fails."""
    search = Search(*found, probe)
    search.repeat(steps)
    return search.found


@dataclass(slots=True)
class Search:
    """The smallest failing program so far, with its failure."""

    best: Candidate
    failure: CaseFailure
    probe: Probe
    room: int = PROBES
    tried: dict[tuple[UOp, tuple[int, ...]], Candidate] = field(default_factory=dict)

    @property
    def found(self) -> Found:
        return self.best, self.failure

    def repeat(self, steps: Steps) -> bool:
        """Take steps while one leads to a smaller program that fails."""
        found = False
        while self.take(steps(self.best)):
            found = True
        return found

    def take(self, steps: Iterable[Step]) -> bool:
        """Take the first step to a smaller program that fails."""
        size = size_of(self.best)
        return self._taken(self._new_candidates(steps, lambda candidate: size_of(candidate) < size))

    def take_any(self, steps: Iterable[Step]) -> bool:
        """Take the first step to a program that fails, whatever its size."""
        return self._taken(self._new_candidates(steps, lambda candidate: True))

    def _taken(self, candidates: Iterator[Candidate]) -> bool:
        for size in chain(CHUNKS, repeat(CHUNKS[-1])):
            chunk = list(islice(candidates, min(size, self.room)))
            if not chunk:
                return False
            self.room -= len(chunk)
            for candidate, failure in zip(chunk, self.probe(chunk), strict=True):
                if failure is not None:
                    self.best, self.failure = candidate, failure
                    return True
        return False

    def _new_candidates(
        self, steps: Iterable[Step], is_wanted: Callable[[Candidate], bool]
    ) -> Iterator[Candidate]:
        for step in steps:
            with suppress(UopError):
                candidate = step()
                if candidate is None:
                    continue
                key = candidate.root, tuple(map(id, candidate.inputs.values()))
                if key in self.tried or not is_wanted(candidate):
                    continue
                # It keeps the arrays, so that their ids stay theirs.
                self.tried[key] = candidate
                bind_inputs(candidate.root, candidate.inputs)
                yield candidate
