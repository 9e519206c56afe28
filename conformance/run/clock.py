"""Keeps the time of a run: its end, and the ends of its parts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from uop.conformance.report.tally import Tally
from uop.conformance.run.tasks import CHUNKS

JUDGING, AGAIN, SEARCHING = 0.45, 0.5, 0.95
"""The parts of the time after which judging ends, judging again, and the search for causes."""
PART, SHORTEST = 0.2, 1.0
"""A task lasts at most this part of the time that is left, but may last these seconds."""


@dataclass(slots=True, eq=False)
class Clock:
    """The time of a run that may last `limit` seconds; None is no limit."""

    limit: float | None
    begun: float = field(default_factory=time.monotonic)
    judging_since: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds since the run began."""
        return time.monotonic() - self.begun

    @property
    def deadline(self) -> float | None:
        """The end of the run by time.monotonic; None without a limit."""
        return self.at(1.0)

    def at(self, part: float) -> float | None:
        """When a part of the time is over, by time.monotonic; None without a limit."""
        return None if self.limit is None else self.begun + part * self.limit

    @property
    def is_in_time(self) -> bool:
        return self.limit is None or self.seconds < self.limit

    def cases_in_time(self, tally: Tally, workers: int) -> int:
        """How many cases a process judges in a part of the time that is left."""
        judged = sum(tally.counts.values())
        if self.limit is None or not judged:
            return CHUNKS[0]
        seconds = max(SHORTEST, (self.limit - self.seconds) * PART)
        rate = judged / (time.monotonic() - self.judging_since) / workers
        return max(1, int(rate * seconds))
