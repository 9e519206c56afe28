"""Probes: judge candidates for a failing program, each once, and lose the backend seldom."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import CaseFailure, Verdict
from uop.conformance.shrink.reduce import Candidate, Probe
from uop.conformance.suite.case import Batch, Case, CaseId, Evaluated
from uop.conformance.suite.vocabulary import computed
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.footprint import SMALL, at_most, metered
from uop.spec.errors import UndefinedError, UnsupportedError

LOSSES: Mapping[Symptom, int] = {Symptom.CRASH: 32, Symptom.HANG: 3}
"""How often the backend may be lost for one failure.

A crash costs a start of the backend, and a session allows 40. A hang costs the time that a program
may take, by default half a minute: one confirms it, and two find 4 elements among 1,000. Where it
costs less, there may be more, as many as crashes.
"""
HANGING = 20.0
"""The seconds in all that hangs of one failure may cost at least."""
LEAST_WORK = 256
"""A candidate may compute so many elements, however few the failing program computes: it may have
nodes that stand for others.
"""
Seen = dict[tuple[object, ...], CaseFailure | None]
"""The outcomes of candidates: their root and hashed inputs, with the failure if they fail."""
MOST_SEEN = 4096
"""The most outcomes that are kept: each keeps its graph."""


def probe_of(judge: Judge, start: Candidate | None) -> Probe:
    """The probe of the candidates for a failing program.

    A candidate fails, or it passes, is skipped or is undefined. One with ops that neither the
    backend lists nor the failing program has is not sent, nor one that computes more than that.
    """
    ops = judge.session.hello.ops | (frozenset() if start is None else _ops_of(start))
    most = LEAST_WORK if start is None else max(LEAST_WORK, work_of(start))
    return lambda candidates: [
        None if v is None else v.failure for v in verdicts(judge, candidates, ops, most)
    ]


def work_of(start: Candidate) -> int:
    """The elements that a program computes, up to where it is undefined."""
    with metered() as meter, at_most(SMALL), suppress(UndefinedError, UnsupportedError):
        evaluate_full(start.root, start.inputs)
    return meter.spent


def verdicts(
    judge: Judge, candidates: Sequence[Candidate], ops: Set[str], most: int
) -> list[Verdict | None]:
    """Judge those candidates that have no other ops and compute no more than `most` elements.

    One without a meaning is not sent: it may end the backend, or leave its memory damaged.
    """
    cases: dict[int, Case] = {}
    for k, c in enumerate(candidates):
        if not _ops_of(c) <= ops:
            continue
        with metered(most), at_most(SMALL), suppress(UndefinedError, UnsupportedError):
            batch = Batch(c.inputs, Evaluated(c.root, evaluate_full(c.root, c.inputs)))
            id = CaseId("reduce", "MIXED", "MIXED", "candidate", k)
            cases[k] = Case(id, c.root, (batch,))
    found = dict(zip(cases, judge.judge(list(cases.values())), strict=True))
    return [found.get(k) for k in range(len(candidates))]


def _ops_of(candidate: Candidate) -> frozenset[str]:
    return frozenset(u.op.name for u in computed(candidate.root))


def remembering(probe: Probe, seen: Seen) -> Probe:
    """A probe that runs no candidate twice: the image of a repro is that of many cases."""

    def run(candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
        keys = [_key(candidate) for candidate in candidates]
        new = {key: c for key, c in zip(keys, candidates, strict=True) if key not in seen}
        found = {key: seen.pop(key) for key in dict.fromkeys(keys) if key in seen}
        if new:
            found |= zip(new, probe(list(new.values())), strict=True)
        seen.update(found)
        for key in list(seen)[:-MOST_SEEN]:
            del seen[key]
        return [found[key] for key in keys]

    return run


def _key(candidate: Candidate) -> tuple[object, ...]:
    held = sorted(candidate.inputs.items())
    return candidate.root, *((slot, blake2b(a.tobytes()).digest()) for slot, a in held)


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
