"""Spreads a fuzz run over a Dask cluster: each of its processes judges one shard after another.

A shard has a number, and is with one process, counted, or waits in `returned`: it counts once.
Processes may come, go and start again; a shard that is lost with one is judged by another.
"""

from __future__ import annotations

import asyncio
import heapq
import pickle
import secrets
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from distributed import Client, wait
from distributed.comm import resolve_address

from uop.conformance.checks import OptionError
from uop.conformance.coverage.ledger import Ledger
from uop.conformance.fuzz.corpus import Corpus
from uop.conformance.fuzz.folders import Store
from uop.conformance.fuzz.fuzz import REPLAYING
from uop.conformance.fuzz.shard import Met, News, Part, Work, judge, leave, meet, own_code
from uop.conformance.report.files import write_repros, written
from uop.conformance.report.merge import joined, unlike
from uop.conformance.report.model import Conclusion, Evidence, Failure, Report
from uop.conformance.report.options import Origin
from uop.conformance.report.tally import Tally, shown_by
from uop.conformance.report.terminal import Display
from uop.conformance.run.known import KnownFile, read_known
from uop.conformance.run.options import Options
from uop.conformance.run.run import Clock
from uop.conformance.run.selection import in_turns
from uop.conformance.suite.case import FUZZ
from uop.spec.errors import BackendError

CONNECTING = 5.0
"""The seconds in which a scheduler must answer."""
GRACE = 5.0
"""The seconds after the end of the run in which results may still come."""
AHEAD = 1
"""The shards that wait at each process, so that it never waits for the network."""
TRIES = 4
"""How often a shard may end with an error, or be lost with its process."""
HANDED = 64
"""The programs of the corpus that a shard judges first, at most."""
STEP = 1.0
"""The seconds for which results are collected before they are joined and shown."""


def fuzz_on(
    scheduler: str,
    options: Options,
    display: Display,
    say: Callable[[str], None],
    store: Store | None = None,
    corpus: Corpus | None = None,
) -> Report:
    """Fuzz a backend for `options.seconds` on the cluster of a scheduler (`tcp://host:8786`).

    `say` gets a line for each process that is refused. What is found goes to a store, else the
    repros to `options.output`. The programs of a corpus are judged first, and those that reach
    something new are added. BackendError where no scheduler answers or no process can judge;
    OptionError where a file could not be written.
    """
    options = replace(options, effort=FUZZ)
    known = KnownFile() if options.known is None else read_known(options.known)
    work = Work(secrets.token_hex(8), options, known, explores=corpus is not None)
    report = Campaign(work, display, say, store=store, corpus=corpus).result(scheduler)
    problems = write_repros(report.failures) if store is None else store.problems()
    problems += [] if corpus is None else corpus.problems()
    return written(report, problems, options, display)


@dataclass(slots=True, eq=False)
class Process:
    """A process of the cluster that judges shards, and how much news it has been sent."""

    address: str
    causes: int = 0
    points: int = 0


@dataclass(slots=True, eq=False)
class Campaign:
    """The state of a fuzz run over a cluster."""

    work: Work
    display: Display
    say: Callable[[str], None]
    shards: int | None = None
    """The number of shards; None where the time alone ends the run."""
    store: Store | None = None
    corpus: Corpus | None = None
    reached: list[str] = field(default_factory=list)
    """What the corpus reaches, in the order in which it came."""
    old: list[str] = field(default_factory=list)
    """The names of the programs that the corpus had at the start, in the order of judging."""
    clock: Clock = field(init=False)
    origin: Origin = field(init=False)
    client: Any = None
    serving: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """By address what a process of the cluster does for the run."""
    refused: dict[str, str] = field(default_factory=dict)
    """By address why a process takes no part."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    fresh: Iterator[int] = field(init=False)
    returned: list[int] = field(default_factory=list)
    """The numbers of shards that were lost, as a heap."""
    done: int = 0
    """The number of shards that were counted or given up."""
    tries: Counter[int] = field(default_factory=Counter)
    total: Report | None = None
    """The results so far; of the first process that was met where there are none."""
    parts: list[Report] = field(default_factory=list)
    """The results that are not in `total` yet."""
    collected: float = 0.0
    points: Counter[str] = field(default_factory=Counter)
    causes: dict[str, Failure] = field(default_factory=dict)
    fails: bool = False
    lost: str = ""
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.clock = Clock(self.work.options.seconds)
        self.origin = Origin.now(self.work.options.command)
        self.fresh = count() if self.shards is None else iter(range(self.shards))
        if self.corpus is not None:
            self.reached += sorted(self.corpus.points)
            self.old = [id.op for id in in_turns(self.corpus.ids, self.work.options.seed)]

    def result(self, scheduler: str) -> Report:
        """Run until the time is over; Ctrl-C ends the run early, with the results so far."""
        try:
            asyncio.run(self._run(scheduler))
        except KeyboardInterrupt:
            self.interrupted = True
        except OSError as error:
            self.lost = f"the scheduler {scheduler} was lost: {error}"
        if self.total is None:
            reasons = [f"{address}: {why}" for address, why in self.refused.items()]
            found = "\n".join(reasons) or self.lost or "none has joined"
            raise BackendError(f"no process of {scheduler} can judge: {found}")
        return self._report(self.total)

    async def _run(self, scheduler: str) -> None:
        self.client = await _connected(scheduler)
        try:
            self.client.subscribe_topic("all", self._notice)
            for address in await self.client.nthreads():
                self._join(address)
            if not self.serving:
                self.say(f"waiting: {scheduler} has no process yet")
            while not self._is_over():
                await self._wait()
            if not self._is_connected:
                self.lost = f"the scheduler {scheduler} was lost"
        finally:
            for task in self.serving.values():
                task.cancel()
            await asyncio.gather(*self.serving.values(), return_exceptions=True)
            with suppress(OSError):
                if self._is_connected:
                    self.client.unsubscribe_topic("all")
                    await self.client.run(leave, self.work.name, wait=False, on_error="ignore")
                await self.client.close()

    async def _wait(self) -> None:
        """Wait for a change, or for the end."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.changed.wait(), max(0.0, self._left + GRACE))
        self.changed.clear()
        for task in self.serving.values():
            if task.done() and not task.cancelled():
                task.result()

    def _is_over(self) -> bool:
        is_done = self._is_stopped or self.done == self.shards or not self._is_connected
        if is_done or self._left + GRACE <= 0:
            return True
        idle = all(task.done() for task in self.serving.values())
        none_can = bool(self.serving) and self.total is None
        return idle and (none_can or self._left <= 0)

    @property
    def _left(self) -> float:
        assert self.clock.deadline is not None
        return self.clock.deadline - time.monotonic()

    @property
    def _is_connected(self) -> bool:
        return bool(self.client.status == "running")

    @property
    def _is_stopped(self) -> bool:
        return self.work.options.fail_fast and self.fails

    def _notice(self, event: tuple[float, Any]) -> None:
        match event[1]:
            case {"action": "add-worker", "worker": str(address)}:
                self._join(address)
            case {"action": "remove-worker", "worker": str(address)}:
                self.refused.pop(address, None)
                if task := self.serving.pop(address, None):
                    task.cancel()

    def _join(self, address: str) -> None:
        if address not in self.serving:
            self.serving[address] = asyncio.create_task(self._serve(address))
            self.serving[address].add_done_callback(lambda _: self.changed.set())

    async def _serve(self, address: str) -> None:
        """Have a process judge one shard after another until the time is over."""
        work = pickle.dumps(self.work)
        met = await self._ask(address, meet, own_code(), work, self._left)
        if isinstance(met, str):
            self._refuse(address, f"expected uop {own_code()}; found {met}")
        elif isinstance(met, BaseException):
            self._refuse(address, str(met) or type(met).__name__)
        elif difference := "" if self.total is None else unlike(self.total, met.report):
            self._refuse(address, f"expected what the others have, found another {difference}")
        else:
            self._begin(met)
            process = Process(address)
            lanes = (self._judge_on(process) for _ in range(met.threads + AHEAD))
            await asyncio.gather(*lanes)

    def _begin(self, met: Met) -> None:
        if self.total is None:
            self.total = met.report
            options = replace(self.work.options, profile=met.report.profile)
            self.display.started(met.hello, options, None)

    def _refuse(self, address: str, why: str) -> None:
        self.refused[address] = why
        self.say(f"refused: {address}: {why}")

    async def _ask(self, address: str, function: Callable[..., Any], *arguments: object) -> Any:
        """What a function gives in a process, or the exception that it raises there."""
        future = self.client.submit(
            function, *arguments, workers=[address], allow_other_workers=False, pure=False
        )
        try:
            await wait(future)
            return await future.exception() or await future
        except CancelledError as lost:
            return lost

    async def _judge_on(self, process: Process) -> None:
        while self._is_connected and self._left > 0 and process.address not in self.refused:
            number = heapq.heappop(self.returned) if self.returned else next(self.fresh, None)
            if number is None:
                return
            why = "its process was lost"
            try:
                news = self._news(process, number)
                data = await self._ask(
                    process.address, judge, self.work.name, number, news, self._left
                )
                why = self._take(process, data)
            finally:
                if why:
                    self._return(number, why)

    def _news(self, process: Process, number: int) -> News:
        """What a process has not been sent yet, and the programs of the corpus for a shard.

        A shard has the same ones each time, but none once their part of the time is over.
        """
        causes = list(self.causes.values())[process.causes :]
        points = self.reached[process.points :]
        process.causes += len(causes)
        process.points += len(points)
        over = self.clock.at(REPLAYING)
        assert over is not None
        own = self.old[number * HANDED :][:HANDED] if time.monotonic() < over else []
        corpus = self.corpus.programs if self.corpus is not None else {}
        return News(causes, frozenset(points), {name: corpus[name].text for name in own})

    def _return(self, number: int, why: str) -> None:
        """Have a shard judged again, unless it is lost each time."""
        self.tries[number] += 1
        if self.tries[number] < TRIES:
            heapq.heappush(self.returned, number)
        else:
            self.done += 1
            self.lost = self.lost or f"shard {number} was lost {TRIES} times, last as {why}"

    def _take(self, process: Process, data: bytes | BaseException | None) -> str:
        """Count the result of a shard; returns why it is lost, else an empty string."""
        if data is None:
            return ""
        if isinstance(data, BaseException):
            return f"{type(data).__name__}: {data}"
        part: Part = pickle.loads(zlib.decompress(data))
        assert self.total is not None
        if difference := unlike(self.total, part.report):
            self._refuse(process.address, f"it has changed: another {difference}")
            return difference
        report = part.report if self.store is None else self.store.keep(part.report)
        for failure in report.failures:
            if failure.signature not in self.causes and failure.id not in report.unexplained:
                self.causes[failure.signature] = failure
                if self.store is None:
                    write_repros([failure])
        self.parts.append(report)
        self.points.update(part.points)
        for program in part.reaching:
            assert self.corpus is not None
            self.reached += self.corpus.add(program)
        self.done += 1
        self.fails |= report.conclusion is Conclusion.DOES_NOT
        if self._is_stopped:
            self.changed.set()
        if time.monotonic() >= self.collected + STEP:
            self._collect()
        return ""

    def _collect(self) -> None:
        assert self.total is not None
        self.total = joined([self.total, *self.parts])
        self.parts.clear()
        self.collected = time.monotonic()
        self.display.progress(shown_by(self.total), self.clock.seconds)
        self.display.explored(list(self.causes.values()), len(self.points))

    def _report(self, first: Report) -> Report:
        ended = replace(first.summary, lost=self.lost, interrupted=self.interrupted)
        total = joined([replace(first, summary=ended), *self.parts])
        shown = {point: Evidence(n, ()) for point, n in sorted(self.points.items())}
        return replace(
            total,
            options=self.work.options,
            ledger=replace(Ledger((), narrowed=True).sums(Tally()), evidence=shown),
            summary=replace(total.summary, seconds=round(self.clock.seconds, 3)),
            origin=self.origin,
        )


async def _connected(scheduler: str) -> Any:
    """A client of a scheduler. BackendError where none answers, OptionError for no address."""
    try:
        resolve_address(scheduler)
        return await Client(scheduler, asynchronous=True, timeout=CONNECTING)
    except OSError as error:
        no = f"no Dask scheduler answers at {scheduler}: {error}"
        raise BackendError(f"--scheduler: {no}") from None
    except ValueError as error:
        found = f"{scheduler!r}: {error}"
        raise OptionError(f"--scheduler: expected tcp://HOST:PORT, found {found}") from None
