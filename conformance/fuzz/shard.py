"""Judges shards of a fuzz run that is spread over a cluster: what each of its processes does.

A shard is a stream of programs of its own, by its number: a function of the seed and the number.
"""

from __future__ import annotations

import hashlib
import pickle
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from uop.conformance.fuzz.corpus import Corpus
from uop.conformance.fuzz.fuzz import Fuzz
from uop.conformance.protocol.types import Hello
from uop.conformance.report.model import Failure, Report
from uop.conformance.report.terminal import Display
from uop.conformance.run.causes import Causes
from uop.conformance.run.known import KnownFailures, KnownFile
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool, Task
from uop.conformance.run.tasks import Judged, Reaching
from uop.spec.distribution import own_version
from uop.spec.dtype import DTYPES
from uop.spec.errors import BackendError
from uop.spec.ops.names import Op

SOURCES = ("uop.spec", "uop.interpreter", "uop.compiler", "uop.conformance")
SUFFIXES = {".py", ".toml", ".uop", ".json", ".h"}
DIGITS = 12
SHORTEST = 1.0
"""The seconds that must be left for a shard to begin."""


@dataclass(frozen=True, slots=True)
class Work:
    """What all shards of a run share.

    A shard ends with its programs or after its seconds, whichever comes first.
    """

    name: str
    """The name of the run, no other's."""
    options: Options
    known: KnownFile = field(default_factory=KnownFile)
    programs: int = 256
    seconds: float = 20.0
    explores: bool = False
    """Whether the run has a corpus."""


@dataclass(frozen=True, slots=True)
class News:
    """What a process is sent with a shard: what has been found since the last one."""

    causes: Sequence[Failure] = ()
    points: frozenset[str] = frozenset()
    """What the corpus has come to reach."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Programs of the corpus that the shard judges first: texts by the names of their files."""


@dataclass(frozen=True, slots=True)
class Met:
    """What a process says of itself: its backend, and the report of a run that judges nothing."""

    hello: Hello
    report: Report
    threads: int


@dataclass(frozen=True, slots=True)
class Part:
    """The result of a shard: its report without the ledger, and how many cases show each point."""

    report: Report
    points: Mapping[str, int]
    reaching: tuple[Reaching, ...] = ()
    """The programs that reach something which the corpus did not."""


class Kept(Pool):
    """A pool that stays when a run ends, for the next shard; `Pool.end` ends it."""

    __slots__ = ()

    def end(self) -> None:
        """Stay."""

    def ask_all(self, task: Task[Any]) -> None:
        """Send a task to every process that has not had it; it replaces the last of its kind."""
        if task not in self.settings:
            self.settings[:] = [one for one in self.settings if type(one) is not type(task)]
            super().ask_all(task)


@dataclass(slots=True, eq=False)
class Shard(Fuzz):
    """A run over the programs of a shard. The failures in `sent` are explained, not found again."""

    work: Work = field(kw_only=True)
    sent: Sequence[Failure] = ()
    reaching: list[Reaching] = field(default_factory=list)

    def __post_init__(self) -> None:
        super(Shard, self).__post_init__()
        self.most = self.work.programs
        self.known_failures = KnownFailures(self.work.known)
        self.causes = Causes(list(self.sent))

    def note(self, judged: Judged) -> None:
        """Collect the programs that reach something new."""
        if self.corpus is not None:
            self.reaching += [one for one in judged.reaching if self.corpus.add(one)]

    def write_causes(self) -> None:
        """Write nothing here: the result has the repros."""

    def covered(self) -> None:
        """Leave out the ledger: a part has its points."""

    def part(self, pool: Kept) -> Part:
        """Judge; BackendError where the backend is lost."""
        report = self.result(pool)
        if report.summary.lost:
            raise BackendError(report.summary.lost)
        return Part(
            replace(
                report,
                options=replace(self.work.options, shard=self.options.shard),
                failures=tuple(self._new(report.failures)),
                origin=None,
                case_failures={},
                graphs=None,
            ),
            {str(point): shown.checks for point, shown in self.ledger.points().items()},
            tuple(self.reaching),
        )

    def failures(self, hello: Hello, *, tries: bool) -> tuple[Failure, ...]:
        """The causes; no shard starts a process for their repros, of which most are in `sent`."""
        return super(Shard, self).failures(hello, tries=False)

    def _new(self, failures: Sequence[Failure]) -> Iterator[Failure]:
        """The failures of this shard; of those that were sent the cases alone."""
        sent = {failure.signature for failure in self.sent}
        for failure in failures:
            if failure.signature not in sent:
                yield failure
            elif cases := failure.cases[1:]:
                yield replace(failure, cases=cases, text="", message="", values=())


@dataclass(slots=True, eq=False)
class Here:
    """The part of a run that this process has."""

    work: Work
    end: float
    """When the run is over at the latest, by time.monotonic, which differs between machines."""
    options: Options
    """Those of the run; once the backend has been met, with its profile and vocabulary."""
    idle: list[Kept] = field(default_factory=list)
    causes: list[Failure] = field(default_factory=list)
    points: set[str] = field(default_factory=set)
    """What the corpus and the programs of this process reach."""

    def run(self, shard: str, seconds: float, programs: Mapping[str, str] | None = None) -> Part:
        """Judge a shard, some programs of the corpus first, with a pool that no thread uses."""
        try:
            pool = self.idle.pop()
        except IndexError:
            pool = Kept.start(self.work.options)
        with ExitStack() as unless_kept:
            unless_kept.callback(Pool.end, pool)
            options = replace(self.options, shard=shard, seconds=seconds, workers=1)
            corpus = Corpus.sent(programs or {}, self.points) if self.work.explores else None
            sent = tuple(self.causes)
            part = Shard(options, Display(), corpus=corpus, work=self.work, sent=sent).part(pool)
            unless_kept.pop_all()
        self.points.update(*(program.points for program in part.reaching))
        self.idle.append(pool)
        if RUNS.get(self.work.name) is not self:
            self.close()
        return part

    def close(self) -> None:
        """End the idle backends."""
        while self.idle:
            Pool.end(self.idle.pop())


RUNS: dict[str, Here] = {}
"""The runs of this process by name."""


def meet(code: str, work: bytes, left: float) -> Met | str:
    """Begin a run that has `left` seconds; returns the digest of the code where it is another.

    BackendError where the backend does not start, OptionError where it takes no program.
    """
    from distributed import get_worker

    if code != own_code():
        return own_code()
    for over in [run for run in RUNS.values() if run.end < time.monotonic()]:
        drop(over.work.name)
    loaded: Work = pickle.loads(work)
    here = Here(loaded, time.monotonic() + left, loaded.options)
    RUNS[loaded.name] = here
    report = here.run("", 0.0).report
    hello = here.idle[0].backend_hello
    assert hello is not None
    vocabulary = report.generator.vocabulary
    here.options = replace(loaded.options, profile=report.profile, vocabulary=vocabulary)
    return Met(hello, report, get_worker().state.nthreads)


def judge(name: str, number: int, news: News, left: float) -> bytes | None:
    """Judge a shard of a run that has begun here; None where its time is over.

    `left` are the seconds that the run had when it asked. BackendError where the backend is lost.
    """
    here = RUNS[name]
    here.end = min(here.end, time.monotonic() + left)
    left = here.end - time.monotonic()
    if left < SHORTEST:
        return None
    known = {cause.signature for cause in here.causes}
    here.causes.extend(cause for cause in news.causes if cause.signature not in known)
    here.points |= news.points
    part = here.run(str(number), min(here.work.seconds, left), news.programs)
    return zlib.compress(pickle.dumps(part))


async def leave(name: str) -> None:
    """The same as `drop`: nobody waits for a coroutine."""
    drop(name)


def drop(name: str) -> None:
    """End what a run has in this process; a shard that runs ends its backend itself."""
    here = RUNS.pop(name, None)
    if here is not None:
        here.close()


@cache
def own_code() -> str:
    """The version of this project, and a digest of its code, ops and dtypes."""
    digest = hashlib.sha256(" ".join((*sorted(Op.__members__), *sorted(DTYPES))).encode())
    for package in SOURCES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent
        for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES):
            digest.update(f"\0{package}/{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return f"{own_version()}, code {digest.hexdigest()[:DIGITS]}"
