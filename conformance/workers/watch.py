"""Watches the processes of a session: what they hold, and the time that they had."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

TICK = 1.0
"""The seconds between two measurements: one takes a few milliseconds."""
NANO = 1e-9
COUNTERS = (Path("/proc/vmstat"), Path("/sys/fs/cgroup/memory.events"))
"""The files in which the system counts the processes that it has killed for want of memory."""


@dataclass(slots=True, eq=False)
class Watch:
    """The leader of a session and all that belongs to it, as they were when last looked at."""

    leader: int
    pids: frozenset[int] = frozenset()
    resident: int = 0
    """The bytes that they hold."""
    peak: int = 0
    processor: float = 0.0
    """The seconds of processor time that they have taken, those that have ended included."""
    waited: float = 0.0
    """The seconds in which one of them waited for a processor, since the first look."""
    looked: float = 0.0
    """When they were looked at, by time.monotonic."""
    delays: dict[int, float] = field(default_factory=dict)
    """By thread the seconds that it has waited for a processor."""

    def look(self) -> None:
        """Measure them now; those that have ended since keep what they had."""
        now = time.monotonic()
        self.pids, self.resident, processor = frozenset(tree_of(self.leader)), 0, 0.0
        delays: dict[int, float] = {}
        for pid in self.pids:
            with suppress(psutil.Error, OSError):
                process = psutil.Process(pid)
                with process.oneshot():
                    self.resident += process.memory_info().rss
                    processor += sum(process.cpu_times()[:4])
                delays.update(_delays(pid))
        if self.looked:
            before = self.delays
            waited = sum(max(0.0, delay - before.get(t, delay)) for t, delay in delays.items())
            self.waited += min(now - self.looked, waited or _by_load(now - self.looked, delays))
        self.processor, self.delays = max(self.processor, processor), delays
        self.peak, self.looked = max(self.peak, self.resident), now

    def glance(self, tick: float | None = None) -> None:
        """Measure them, unless that was done less than `tick` seconds ago, by default TICK."""
        if time.monotonic() - self.looked > (TICK if tick is None else tick):
            self.look()


@dataclass(slots=True, eq=False)
class Patience:
    """The time that processes have for an answer, from now on.

    The time in which one of them waits for a processor does not count: a busy machine is no fault
    of theirs. They may take as much processor time as all processors give in these seconds. With
    `is_wall` the seconds are those of a clock, whatever the machine does.
    """

    watch: Watch
    seconds: float
    is_wall: bool = False
    begun: float = 0.0
    waited: float = 0.0
    processor: float = 0.0

    def __post_init__(self) -> None:
        self.watch.glance()
        self.begun = time.monotonic()
        self.waited, self.processor = self.watch.waited, self.watch.processor

    def left(self) -> float:
        """The seconds until the next question; 0 where the time is over."""
        passed = time.monotonic() - self.begun
        if self.is_wall:
            return max(0.0, self.seconds - passed)
        self.watch.glance()
        most = self.seconds * (os.cpu_count() or 1)
        passed -= self.watch.waited - self.waited
        if self.watch.processor - self.processor > most or passed >= self.seconds:
            return 0.0
        return min(TICK, self.seconds - passed)


def tree_of(leader: int) -> set[int]:
    """The processes that belong to the leader of a session: those of the session, and below."""
    found: dict[int, psutil.Process] = {}
    for pid in [leader, *filter(lambda pid: _session(pid) == leader, psutil.pids())]:
        if pid not in found:
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                found |= {p.pid: p for p in (process, *process.children(recursive=True))}
    return {pid for pid, process in found.items() if _runs(process)}


def _session(pid: int) -> int:
    """The session of a process; 0 where it has ended."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _runs(process: psutil.Process) -> bool:
    """Whether a process has not ended: one that has may wait for somebody to ask how."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def kills() -> int:
    """How many processes the system has killed for want of memory, here and in the container."""
    count = 0
    for path in COUNTERS:
        with suppress(OSError, ValueError):
            words = (line.split() for line in path.read_text("ascii").splitlines())
            count += sum(int(number) for name, number in words if name == "oom_kill")
    return count


def _delays(pid: int) -> Iterator[tuple[int, float]]:
    """The seconds that each thread of a process has waited for a processor; none elsewhere."""
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError, ValueError, IndexError):
            yield int(thread.name), int((thread / "schedstat").read_text("ascii").split()[1]) * NANO


def _by_load(seconds: float, delays: dict[int, float]) -> float:
    """Where the system does not say how long threads waited, what its load lets expect."""
    if delays:
        return 0.0
    load = psutil.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * max(0.0, 1 - 1 / load) if load > 0 else 0.0
