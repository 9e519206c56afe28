"""Hunts many mutants in worker processes, and counts those killed (`uop-mutants/1`)."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from uop.conformance.mutants.catalogue import Mutant
from uop.conformance.mutants.hunt import Fate, Hunt, Hunted
from uop.conformance.protocol.codec import to_json
from uop.conformance.run.pool import Pool

SCHEMA = "uop-mutants/1"
HUNTER = "uop.conformance.mutants.hunt"


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a campaign; an interrupted one has the mutants hunted so far."""

    hunted: tuple[Hunted, ...]
    interrupted: bool = False

    @property
    def killed(self) -> list[Hunted]:
        return [h for h in self.hunted if h.fate is Fate.KILLED]

    @property
    def survivors(self) -> list[Hunted]:
        return [h for h in self.hunted if h.fate is Fate.SURVIVED]

    def to_json(self) -> dict[str, Any]:
        """The counts, also by class, and every mutant with the case that killed it."""
        seconds = [h.seconds for h in self.killed]
        return {
            "schema": SCHEMA,
            "summary": {
                **_counts(self.hunted),
                "killed_by_name": sum(h.by_name for h in self.killed),
                "median_seconds": statistics.median(seconds) if seconds else None,
                "worst_seconds": max(seconds, default=None),
                "interrupted": self.interrupted,
            },
            "classes": {
                kind: _counts([h for h in self.hunted if h.kind == kind])
                for kind in dict.fromkeys(h.kind for h in self.hunted)
            },
            "mutants": list(map(to_json, self.hunted)),
        }


def hunt_all(chosen: Sequence[Mutant], workers: int) -> Iterator[Hunted]:
    """Hunt mutants in worker processes, results as they come. BackendError where none starts."""
    pool = Pool.of(HUNTER, processes=min(workers, len(chosen)), first=None)
    try:
        yield from pool.answers(Hunt(mutant.name) for mutant in chosen)
    finally:
        pool.end()


def _counts(hunted: Sequence[Hunted]) -> dict[str, int]:
    fates = Counter(h.fate for h in hunted)
    return {"total": len(hunted), **{fate.value: fates[fate] for fate in Fate}}
