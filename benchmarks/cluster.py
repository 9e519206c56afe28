"""Measures a fuzz run over Dask: two processes to one, what scheduling costs, bytes and CPU time.

`python benchmarks/cluster.py` prints a table; it needs the extra `cluster`. The scheduler is a
process of its own, and so is each worker; all are on this machine. The interpreter needs a core for
each process, so a backend that waits is measured first: what it shows is the work of Dask and us.
"""

from __future__ import annotations

import os
import pickle
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from distributed import Client

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.fuzz import cluster
from uop.conformance.fuzz.cluster import Campaign
from uop.conformance.fuzz.shard import Work
from uop.conformance.protocol.types import Outcome, Program
from uop.conformance.report.terminal import Display
from uop.conformance.run.options import Options
from uop.conformance.suite.case import FUZZ

PORT = 18799
ADDRESS = f"tcp://127.0.0.1:{PORT}"
PAIRS, SHARDS = 3, 8
PROGRAMS = {"cluster:Waiting": 16, "interpreter": 64}
"""By backend the programs of a shard."""
WAIT = 0.5
"""Seconds for each program of the backend that waits."""
WIDE, ROUNDS = 100, 20
"""Workers without a backend, and results of each, for the load of the scheduler."""


class Waiting(InterpreterBackend):
    """Waits as a device far away does: with it a process needs little of a core."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        time.sleep(WAIT * len(programs))
        return super().run(programs)


@dataclass(slots=True)
class Busy:
    """A process from the start of its first shard to the result of its last; and their seconds."""

    since: float
    until: float = 0.0
    judging: float = 0.0
    shards: int = 0


@dataclass(slots=True, eq=False)
class Measuring(Campaign):
    """Measures the messages of a run."""

    received: list[int] = field(default_factory=list)
    busy: dict[str, Busy] = field(default_factory=dict)

    async def _ask(self, address: str, function: Any, *arguments: object) -> Any:
        answer = await super(Measuring, self)._ask(address, function, *arguments)
        if isinstance(answer, bytes):
            self.received.append(len(answer))
            seconds = pickle.loads(zlib.decompress(answer)).report.summary.seconds
            now = time.monotonic()
            busy = self.busy.setdefault(address, Busy(now - seconds))
            busy.until, busy.judging, busy.shards = now, busy.judging + seconds, busy.shards + 1
        return answer


@contextmanager
def scheduler() -> Iterator[psutil.Process]:
    """A scheduler in a process of its own."""
    words = ("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--no-dashboard")
    with running(*words, "--port", str(PORT)) as process:
        yield process


@contextmanager
def running(*words: str) -> Iterator[psutil.Process]:
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.DEVNULL) as popen:
        try:
            yield psutil.Process(popen.pid)
        finally:
            popen.terminate()


@contextmanager
def workers(count: int) -> Iterator[None]:
    """So many workers of one thread, in processes of their own."""
    words = ("-m", "distributed.cli.dask_worker", ADDRESS, "--nthreads", "1", "--no-dashboard")
    with running(*words, "--nworkers", str(count)):
        with Client(ADDRESS, timeout=30) as client:
            client.wait_for_workers(count)
            client.run(__import__, "uop.conformance.fuzz.shard")
        yield


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: shards a second, and the part of the time in which the processes did not judge.

    For each shard the bytes of its result and of all messages, and seconds of CPU time.
    """

    rate: float
    cost: float
    result: float
    network: float
    scheduler: float
    client: float


def measured(backend: str, count: int, seed: int, process: psutil.Process) -> Measured:
    options = Options(backend, seed, ("graph",), effort=FUZZ, seconds=3600.0)
    with workers(count):
        before, own = sum(process.cpu_times()[:2]), time.process_time()
        network = loopback()
        work = Work(f"{seed}-{count}", options, programs=PROGRAMS[backend], seconds=3600.0)
        run = Measuring(work, Display(), print, SHARDS)
        run.result(ADDRESS)
        busy = run.busy.values()
        return Measured(
            sum(one.shards / (one.until - one.since) for one in busy),
            1 - sum(one.judging for one in busy) / sum(one.until - one.since for one in busy),
            statistics.mean(run.received),
            (loopback() - network) / SHARDS,
            (sum(process.cpu_times()[:2]) - before) / SHARDS,
            (time.process_time() - own) / SHARDS,
        )


def loopback() -> int:
    """The bytes that have gone over the loopback device: nothing else may use it."""
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def many() -> str:
    """The CPU time of the scheduler for each result, with many workers that wait and answer."""
    script = (
        "import asyncio, distributed as d\n"
        "async def main():\n"
        f"    made = [d.Worker({ADDRESS!r}, nthreads=1, dashboard=False) for _ in range({WIDE})]\n"
        "    await asyncio.gather(*made)\n"
        "    await asyncio.gather(*(one.finished() for one in made))\n"
        "asyncio.run(main())\n"
    )
    with scheduler() as process, running("-c", script), Client(ADDRESS, timeout=30) as client:
        client.wait_for_workers(WIDE)
        names = list(client.scheduler_info()["workers"])
        before, begun = sum(process.cpu_times()[:2]), time.monotonic()
        for _ in range(ROUNDS):
            client.gather(
                [client.submit(bytes, 10_000, workers=[name], pure=False) for name in names]
            )
        spent = sum(process.cpu_times()[:2]) - before
        each = 1e3 * spent / (WIDE * ROUNDS)
        return (
            f"{each:.2f} ms for each of {WIDE * ROUNDS} results, {time.monotonic() - begun:.0f} s"
        )


def compare(backend: str, process: psutil.Process) -> None:
    """Compare two processes with one, in pairs, and print what one run is like."""
    ratios: list[float] = []
    costs: list[float] = []
    for pair in range(PAIRS):
        one, two = (measured(backend, count, pair, process) for count in (1, 2))
        ratios.append(two.rate / one.rate)
        costs += [one.cost, two.cost]
    print(f"{backend}, load {psutil.getloadavg()[0]:.0f} on {psutil.cpu_count()} cores")
    print(f"two processes to one: {statistics.median(ratios):.2f} x, of {shown(ratios)}")
    print(f"without judging: {statistics.median(costs):.1%} of the time, of {shown(costs)}")
    print(f"bytes of a shard: its result {two.result:.0f}, all messages {two.network:.0f}")
    cpu = f"client {1e3 * two.client:.1f} ms, scheduler {1e3 * two.scheduler:.1f} ms"
    print(f"CPU time of a shard: {cpu}", flush=True)


def shown(numbers: list[float]) -> str:
    return " ".join(f"{number:.3f}" for number in sorted(numbers))


def main() -> None:
    cluster.STEP = 0.0
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    with scheduler() as process:
        for backend in PROGRAMS:
            compare(backend, process)
    print(f"CPU time of the scheduler with {WIDE} workers: {many()}")


if __name__ == "__main__":
    main()
