"""Fuzzes a backend: judges random programs and finds causes of failures until the time is over."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, zip_longest

from uop.conformance.checks import OptionError
from uop.conformance.coverage.ledger import Ledger
from uop.conformance.fuzz.against import Baseline
from uop.conformance.fuzz.corpus import Corpus
from uop.conformance.judging.lowering import not_listed
from uop.conformance.protocol.types import Hello
from uop.conformance.report.files import write_repros, written, written_to
from uop.conformance.report.model import Failure, LedgerSums, Report
from uop.conformance.report.terminal import Display
from uop.conformance.run.causes import AnyPool
from uop.conformance.run.options import Options
from uop.conformance.run.run import Run
from uop.conformance.run.selection import in_turns
from uop.conformance.run.tasks import Explore, Judged, tasks_of
from uop.conformance.suite.case import FUZZ, LEVELS, CaseId
from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.generate import FURTHEST, groups
from uop.conformance.suite.levels.group import Group
from uop.conformance.suite.own_cases import OwnCases
from uop.conformance.suite.vocabulary import Vocabulary

SHARES: Mapping[str, int] = {
    "op": 8,
    "graph": 12,
    "property": 1,
    "function": 2,
    "twin": 2,
    "kernel": 3,
    "schedule": 3,
    "device": 1,
}
"""How many of 32 programs are of each level, where a backend takes all."""
DEFAULT = 1
"""The place of the effort by whose counts the groups of a level share its programs."""
TURN = 24
"""The programs of a turn of a level, where it has few kinds of programs."""


def groups_to_draw(level: str, vocabulary: Vocabulary) -> list[Group]:
    """The groups of a level that a default run has, and all of random programs."""
    every = (group for group in groups(level, vocabulary) if isinstance(group, Group))
    return [group for group in every if group.furthest or group.counts[DEFAULT]]


def drawn(groups: Mapping[str, Sequence[Group]], seed: int, shard: str = "") -> Iterator[CaseId]:
    """Yield ids of cases of these groups by level: a function of the arguments alone.

    Each shard of a run has a stream of its own. The kinds of programs of a level take turns: each
    comes once before any comes often. Half of the programs are varied. The others are random; of
    level op they are those of a default run, each once, and no part of shards.
    """
    choices = CountedChoices(seed, f"fuzz {shard}" if shard else "fuzz")
    levels = {level: _of_level(choices, own, shard) for level, own in groups.items() if own}
    shares = [(level, SHARES[level]) for level in levels]
    while True:
        yield next(levels[choices.weighted(shares)])


def _of_level(choices: Choices, groups: Sequence[Group], shard: str) -> Iterator[CaseId]:
    """Programs as they are and varied ones in turns."""
    random = [group for group in groups if group.furthest]
    if random:
        as_they_are = _in_turns(choices, random)
    else:
        as_they_are = iter(()) if shard else _once(choices, groups)
    # Those of the smallest indices too, with other sizes and constants.
    varied = (
        replace(id, index=id.index + FURTHEST * choices.between(1, FURTHEST))
        for id in _in_turns(choices, groups)
    )
    return filter(None, chain.from_iterable(zip_longest(as_they_are, varied)))


def _once(choices: Choices, groups: Sequence[Group]) -> Iterator[CaseId]:
    """Each program of a default run once; the ops take turns, and so do the kinds of each op."""
    by_op: dict[str, dict[str, list[CaseId]]] = {}
    for group in groups:
        ids = by_op.setdefault(group.op, {}).setdefault(group.name, [])
        ids += map(group.id, range(group.counts[DEFAULT]))
    streams = [
        chain.from_iterable(zip_longest(*(choices.shuffled(ids) for ids in by_name.values())))
        for by_name in by_op.values()
    ]
    # A kind that has ended leaves gaps.
    ops = [filter(None, stream) for stream in streams]
    for turn in zip_longest(*ops):
        yield from filter(None, choices.shuffled(turn))


def _in_turns(choices: Choices, groups: Sequence[Group]) -> Iterator[CaseId]:
    """Random programs: of each kind at least one in a turn, and more where a default run has."""
    by_name: dict[str, list[Group]] = {}
    for group in groups:
        by_name.setdefault(group.name, []).append(group)
    whole = sum(map(_weight, groups))
    turn = [
        own
        for own in by_name.values()
        for _ in range(max(1, round(TURN * sum(map(_weight, own)) / whole)))
    ]
    while True:
        for own in choices.shuffled(turn):
            group = choices.weighted([(one, _weight(one)) for one in own])
            yield group.id(choices.below(group.most))


def _weight(group: Group) -> int:
    return max(group.counts[DEFAULT], 1)


REPLAYING = 0.25
"""The part of the time in which the programs of the corpus are chosen."""
JUDGING, SEARCHING = 0.85, 0.97
"""The parts of the time after which judging ends, and the search for causes."""
WITH_BASELINE = (0.65, 0.8)
"""The same where causes are tried on another backend, and in new processes, after that."""
FEWEST = 64
"""The programs of the first round. Each later round has as many as all before it together, and
no more than are judged in LONGEST seconds."""
LONGEST = 30.0


def fuzz(
    options: Options,
    display: Display | None = None,
    pool: AnyPool | None = None,
    baseline: Baseline | None = None,
    corpus: Corpus | None = None,
) -> Report:
    """Fuzz a backend for `options.seconds`, with `pool` where one has been started.

    With a baseline only failures count that it does not share. The programs of a corpus are judged
    first, and those that reach something new are added. Ctrl-C ends the run early, with the results
    so far. OptionError where a file could not be written; the results are shown before.
    """
    shown = display or Display()
    run = Fuzz(replace(options, effort=FUZZ), shown, baseline=baseline, corpus=corpus)
    report = run.result(pool)
    problems = write_repros(report.failures)
    problems += [] if corpus is None else corpus.problems()
    return written(report, problems, options, shown)


@dataclass(slots=True, eq=False)
class Fuzz(Run):
    """A run over random programs. Rounds of judging and of the search for causes take turns."""

    stream: Iterator[CaseId] = field(default_factory=lambda: iter(()))
    baseline: Baseline | None = None
    corpus: Corpus | None = None
    most: int | None = None
    """The most programs of the run; None where the time alone ends it."""

    def prepare(self) -> None:
        super(Fuzz, self).prepare()
        if self.corpus is not None:
            cases = self.corpus.cases.items()
            self.own = OwnCases.of((name, [case]) for name, case in cases)

    def select(self, hello: Hello) -> None:
        """Take the groups that the options ask for and the backend lists.

        OptionError where there is no group.
        """
        if self.baseline is not None:
            self.options = self.baseline.meet(hello, self.options)
            self.vocabulary = self.options.vocabulary or self.vocabulary
        groups = {
            level: [
                group
                for group in groups_to_draw(level, self.vocabulary)
                if not not_listed(group.id(0), hello)
            ]
            for level in LEVELS
            if level in self.options.levels
        }
        if not any(groups.values()):
            raise OptionError(
                f"no random program of level {', '.join(self.options.levels)} from the ops and "
                f"dtypes that {hello.name} lists"
            )
        self.ledger = Ledger((), narrowed=True)
        self.tally.keeps_cases = False
        shard = drawn(groups, self.options.seed, self.options.shard)
        self.stream = chain(self._of_corpus(), islice(shard, self.most))

    @property
    def expected(self) -> int | None:
        return None

    def examine(self, pool: AnyPool, size: int) -> None:
        parts = (JUDGING, SEARCHING) if self.baseline is None else WITH_BASELINE
        end, rest = map(self.clock.at, parts)
        assert end is not None
        assert rest is not None
        self._explore(pool)
        while time.monotonic() < end and not (self.options.fail_fast and self.failed):
            begun = time.monotonic()
            ids = list(islice(self.stream, self._next_round()))
            if not ids:
                break
            self.ledger.expect(ids)
            in_time = partial(self.clock.cases_in_time, self.tally, self.options.workers)
            self.judge_cases(pool, tasks_of(ids, size, in_time), end)
            self.ledger.forget()
            self._compare(rest)
            self.find_causes(pool, min(rest, 2 * time.monotonic() - begun))
            self.display.explored(self.causes.results(), len(self.ledger.points()))
            self.write_causes()
        self.find_causes(pool, rest)

    def _explore(self, pool: AnyPool) -> None:
        """Let the judging processes know the corpus, and say from now on what is new."""
        if self.corpus is not None:
            texts = {name: program.text for name, program in self.corpus.programs.items()}
            for each in (pool, *([self.baseline.pool] if self.baseline else [])):
                each.ask_all(Explore(texts, frozenset(self.corpus.points)))

    def _of_corpus(self) -> Iterator[CaseId]:
        """The programs of the corpus, in an order that the seed chooses, for a part of the time."""
        begun, deadline = time.monotonic(), self.clock.deadline
        assert deadline is not None
        end = begun + REPLAYING * (deadline - begun)
        for id in in_turns(self.own.ids, self.options.seed):
            if time.monotonic() >= end:
                return
            yield id

    def note(self, judged: Judged) -> None:
        """Add the programs to the corpus that reach something new."""
        if self.corpus is not None:
            for one in judged.reaching:
                self.corpus.add(one)

    def write_causes(self) -> None:
        """Write the repros found so far: a process that is killed loses none of them.

        Errors of writing are reported at the end, when all are written again.
        """
        if self.baseline is None:
            write_repros(written_to(one, self.options.output) for one in self.causes.results())

    def _compare(self, deadline: float) -> None:
        """Count the failing cases as known that the baseline does not pass either."""
        if self.baseline is not None:
            self.excuse(self.baseline.not_only_of_other(list(self.failed), deadline))

    def failures(self, hello: Hello, *, tries: bool) -> tuple[Failure, ...]:
        """The causes; with a baseline those that repeat, with repros that it passes."""
        found = super(Fuzz, self).failures(hello, tries=tries)
        if self.baseline is None or not self.failed:
            return found
        passing = self.baseline.passing(found)
        whole = [f if f.signature in passing or not f.repeats else self._whole(f) for f in found]
        kept = self.baseline.steady(whole, self.options)
        self.excuse(self.failed.keys() - {id for f in kept for id in (f.id, *f.cases)})
        return kept

    def _whole(self, failure: Failure) -> Failure:
        """A failure with its program as it was drawn: shrunk, it fails on the baseline too."""
        drawn = self.unshrunk(self.failed[failure.id])
        return replace(failure, text=drawn.text, values=drawn.values, message=drawn.message)

    def _next_round(self) -> int:
        """The number of programs of the next round, by the rate so far."""
        seconds = time.monotonic() - self.clock.judging_since - self.searching
        judged = sum(self.tally.counts.values())
        return max(FEWEST, int(judged * min(1.0, LONGEST / max(seconds, 1e-3))))

    def report(self, hello: Hello, options: Options, *, tries: bool) -> Report:
        report = self.tallied(hello, options, tries=tries)
        against = None if self.baseline is None else self.baseline.summary
        return replace(report, ledger=self.covered(), against=against)

    def covered(self) -> LedgerSums | None:
        """The ledger as part of the report."""
        return self.ledger.sums(self.tally)
