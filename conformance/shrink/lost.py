"""Shrinks what ends or stops a backend: a few runs, one at a time, and data by halves.

No failing element is known of such a failure.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.shrink.axes import shorter_axes
from uop.conformance.shrink.reduce import (
    Candidate,
    Found,
    Probe,
    at_elements,
    is_computing,
    single_outputs,
    without_functions,
)
from uop.conformance.shrink.search import Search, Step
from uop.spec.graph import outside
from uop.spec.ops.names import Op

LOSSES: Mapping[Symptom, int] = {Symptom.CRASH: 32, Symptom.HANG: 3}
"""How often the backend may be lost for one failure.

A crash costs a start of the backend, and a session allows 40. A hang costs the time that a program
may take, by default half a minute: one confirms it, and two find 4 elements among 1,000. Where it
costs less, there may be more, as many as crashes.
"""
HANGING = 20.0
"""The seconds in all that hangs of one failure may cost at least."""
PARTS = 16
"""The parts that elements are split into. Parts that pass cost little, and one loss finds the part
that does not."""


@dataclass(slots=True)
class Sparing:
    """Runs candidates one at a time, up to the first that fails, while the backend may be lost."""

    run: Probe
    symptom: Symptom
    losses: int = 0
    seconds: float = 0.0
    """The time that the losses took."""

    @property
    def is_over(self) -> bool:
        is_cheap = self.symptom is Symptom.HANG and self.seconds < HANGING
        return self.losses >= LOSSES[Symptom.CRASH if is_cheap else self.symptom]

    def __call__(self, candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
        faults: list[CaseFailure | None] = [None] * len(candidates)
        for k, candidate in enumerate(candidates):
            if self.is_over:
                break
            begun = time.monotonic()
            (faults[k],) = self.run([candidate])
            if (failure := faults[k]) is not None:
                if failure.symptom in LOSSES:
                    self.losses += 1
                    self.seconds += time.monotonic() - begun
                break
        return faults


def reduce_elements(found: Found, probe: Probe) -> Found:
    """Shrink the data of a tensor program that fails where the failing elements are not known."""
    search = Search(*found, probe)
    search.take(without_functions(search.best))
    search.take(single_outputs(search.best.root, search.best.inputs))
    search.repeat(parts_of_elements)
    search.repeat(shorter_axes)
    return search.found


def parts_of_elements(candidate: Candidate) -> Iterator[Step]:
    """The program on parts of its elements, if it is elementwise."""
    root = candidate.root
    nodes = outside(root)
    computing = [u for u in nodes if is_computing(u)]
    is_plain = root.op is not Op.TUPLE and all(u.op is not Op.BUFFER for u in nodes)
    if is_plain and root.shape and all(u.declaration.is_elementwise for u in computing):
        for part in np.array_split(np.arange(np.prod(root.shape)), PARTS):
            if part.size:
                yield partial(at_elements, candidate, part)
