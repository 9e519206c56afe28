"""Finds the causes of the failures of a run, and which failing cases each of them explains.

Rounds of two steps: explain what the known causes explain, then shrink a few of the other cases,
of the kinds that most of them are of, to repros of new causes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

from uop.conformance.checks import OBSERVED
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.verdict import Verdict
from uop.conformance.profile.card import Observation
from uop.conformance.protocol.types import Hello
from uop.conformance.report.files import failure_at, written_to
from uop.conformance.report.model import CALLED, Failure
from uop.conformance.run.pool import Pool
from uop.conformance.run.replay import passing
from uop.conformance.run.tasks import Explain, Shrink, Unexplained
from uop.conformance.shrink.signature import constant_part, numbered
from uop.conformance.suite.case import LEVELS, CaseId
from uop.spec.errors import BackendError
from uop.spec.latitude import LIBERTIES
from uop.spec.registry import labels, ops_of
from uop.spec.text.profile_text import parse_profile

if TYPE_CHECKING:
    from uop.conformance.run.run import Run
    from uop.conformance.workers.in_process import InProcess

AnyPool: TypeAlias = "Pool | InProcess"

SHRUNK_TOGETHER = 4
"""The most cases that one round shrinks. Each may show a cause that explains the others."""
CHECKING = 1.0
"""The seconds in which a shrunk program may still be compared with the causes: it is small."""
SEQUENCING = 60.0
"""The seconds in which a run without a time looks for what must run before its failures."""
UNSHRUNK = 24
"""The most failures that a run reports unshrunk where it ends before a cause is found."""
REFUSED, NOT_REJECTED = Symptom.REFUSED.kind, Symptom.NOT_REJECTED.kind
ORDERING = {op.name for op in ops_of("ordering")}
"""Ops by which a kernel says when what it computes happens."""
NAME = re.compile(r"\b[^\W\d]\w+")
WORD = re.compile(r"(?<!\S)[a-z]+(?=[:,;]?(?!\S))")
TELLING = 16
"""The least characters of a message, without what varies, that tell a fault from another."""
CHUNK = 8
"""The most cases of one task to explain."""
SIZES = (256, 2048)
"""So many failing cases are compared with each new cause at first, and then."""


@dataclass(slots=True, eq=False)
class Causes:
    """The causes found so far; `explains` has the cause of each failing case, by their ids."""

    found: list[Failure] = field(default_factory=list)
    known: tuple[Failure, ...] = ()
    """The causes that were known before, and explain failures of any dtypes."""
    explains: dict[str, str] = field(default_factory=dict)
    of_other_dtypes: set[str] = field(default_factory=set)
    """The cases that fail with other dtypes than the repros of their causes."""
    left: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """By id of a case the wrong outputs that no cause explains, where others are explained."""
    given_up: set[str] = field(default_factory=set)
    """The cases on whose search every judging process has ended."""
    compared: set[str] = field(default_factory=set)
    """The cases that were compared with the known causes."""

    @property
    def every(self) -> list[Failure]:
        return [*self.known, *self.found]

    def cases_of(self, cause: Failure) -> list[str]:
        return [id for id, one in self.explains.items() if one == cause.id]

    def results(self) -> list[Failure]:
        """The causes that were found, each with the cases that it explains."""
        cases: dict[str, list[str]] = {cause.id: [cause.id] for cause in self.found}
        for id, cause in self.explains.items():
            if id != cause and cause in cases:
                cases[cause].append(id)
        return [replace(cause, cases=tuple(cases[cause.id])) for cause in self.found]

    def remove(self, cause: Failure) -> None:
        """Forget a cause and what it explains."""
        self.found = [one for one in self.found if one.id != cause.id]
        self.explains = {id: one for id, one in self.explains.items() if one != cause.id}
        self.of_other_dtypes &= self.explains.keys()

    def add(self, id: str, shrunk: Failure, known: Failure | None) -> None:
        """Record what the failure of a case was shrunk to, and the known cause that explains it."""
        if known is None:
            taken = {cause.signature for cause in self.found}
            self.found.append(replace(shrunk, signature=numbered(shrunk.signature, taken)))
        self.explains[id] = (known or shrunk).id


@dataclass(frozen=True, slots=True, eq=False)
class CauseSearch:
    """Looks for causes in a pool until a deadline, by time.monotonic."""

    causes: Causes
    pool: AnyPool
    deadline: float

    def compare(self, failed: Iterable[Verdict]) -> None:
        """Find the failures that known causes explain."""
        new = (v for v in failed if v.failure is not None and v.id not in self.causes.compared)
        failing, known = list(map(self._unexplained, new)), self.causes.known
        self.causes.explains |= self._explained(failing, known)

    def run(self, failed: Iterable[Verdict]) -> None:
        """Find the causes of failures while there is time, of a part of each kind first."""
        every = _in_turns(sorted((v for v in failed if v.failure is not None), key=_priority))
        for size in (*SIZES, len(every)):
            self._find(every[:size])

    def _left(self, failed: Iterable[Verdict]) -> list[Verdict]:
        done = self.causes.explains.keys() | self.causes.given_up
        return [verdict for verdict in failed if verdict.id not in done]

    def _find(self, failed: Sequence[Verdict]) -> None:
        new = self.causes.found
        while (left := self._left(failed)) and time.monotonic() < self.deadline:
            self.causes.explains |= self._explained([self._unexplained(v) for v in left], new)
            new = self._shrunk(_most_frequent(self._left(left)))

    def _explained(
        self, failing: Sequence[Unexplained], causes: Sequence[Failure]
    ) -> dict[str, str]:
        """The ids of the failing cases that some of these causes explain, with those of causes."""
        chunks = [tuple(failing[k : k + CHUNK]) for k in range(0, len(failing), CHUNK)]
        tasks = [Explain(chunk, tuple(causes)) for chunk in chunks if causes]
        explains: dict[str, str] = {}
        for answer in self.pool.answers(iter(tasks), self.deadline):
            explains |= {id: causes[number].id for id, number in answer.causes.items()}
            self.causes.of_other_dtypes.update(answer.of_other_dtypes)
            self.causes.left |= answer.left
            self.causes.compared.update(answer.compared)
        return explains

    def _shrunk(self, chosen: Sequence[Verdict]) -> list[Failure]:
        """Shrink failures and record their causes; returns those that are new."""
        before, count = tuple(self.causes.every), len(self.causes.found)
        tasks = [Shrink(self._unexplained(verdict), before) for verdict in chosen]
        shrunk = {one.id: one for one in self.pool.answers(iter(tasks), self.deadline)}
        for verdict in chosen:
            if verdict.id in shrunk:
                one = shrunk[verdict.id]
                self.causes.add(verdict.id, one, self._known(verdict, one))
            else:
                self.causes.given_up.add(verdict.id)
        return self.causes.found[count:]

    def _known(self, verdict: Verdict, shrunk: Failure) -> Failure | None:
        """The known cause that explains what a failure was shrunk to.

        Where the time to find out is over, it is one of the same signature.
        """
        found = self.causes.every
        one = replace(self._unexplained(verdict), text=shrunk.text)
        until = max(self.deadline, time.monotonic() + CHECKING)
        cause = replace(self, deadline=until)._explained([one], found).get(verdict.id)
        if cause is None and time.monotonic() >= until:
            return next((known for known in found if known.signature == shrunk.signature), None)
        return next((known for known in found if known.id == cause), None)

    def _unexplained(self, verdict: Verdict) -> Unexplained:
        """A failing case, with the outputs of it that are not explained."""
        assert verdict.failure is not None
        left = self.causes.left.get(verdict.id, verdict.failure.wrong)
        return Unexplained(verdict.id, replace(verdict.failure, wrong=left))


def failures_of(run: Run, hello: Hello, *, tries: bool) -> tuple[Failure, ...]:
    """The causes of a run, the worst first, and choices that are not allowed.

    Where no cause was found, there is one unshrunk failure for each op and symptom. If `tries`, the
    repros are run in a new process, and some of those that pass there with what must run before.
    """
    causes, folder = in_faults(run.causes.results()), run.options.output
    if not causes:
        causes = [run.unshrunk(v) for v in one_of_each_op(run.unexplained())[:UNSHRUNK]]
    by_signature = {failure.signature: failure for failure in reversed(causes)}
    failures = [written_to(f, folder) for f in reversed(by_signature.values())]
    anew = _passing(run, failures) if tries else {}
    failures = [_blamed(failure, hello).tried(anew) for failure in failures]
    if anew and not run.interrupted:
        failures = _in_sequence(run, failures)
    choices = [failure_at(entry, folder) for entry in _wrong_choices(run)]
    choices = [f for f in choices if not run.known_failures.covers(f.signature, ())]
    # Those of one knob are one fault.
    first = {f.label: f.signature for f in reversed(choices)}
    same = [first[f.label] if first[f.label] != f.signature else "" for f in choices]
    return (*failures, *(replace(f, same_as=s) for f, s in zip(choices, same, strict=True)))


def _passing(run: Run, failures: Sequence[Failure]) -> Mapping[str, str]:
    """By signatures of failures whose repros pass in a new process, what came there."""
    found: dict[str, str] = {}
    if run.lost or run.interrupted or not failures:
        return found
    try:
        found.update(passing(failures, run.options.backend, run.options.log, run.clock.deadline))
    except KeyboardInterrupt:
        run.interrupted = True
    except BackendError as error:
        run.lost = f"the repros cannot be run in a new process: {error}"
    return found


def _blamed(failure: Failure, hello: Hello) -> Failure:
    """A failure whose repro has one op, with the ops of which the adapter composes that."""
    sole = failure.ops[0] if len(failure.ops) == 1 else ""
    return replace(failure, composed=hello.composition(sole))


def _in_sequence(run: Run, failures: Sequence[Failure]) -> list[Failure]:
    from uop.conformance.shrink.sequence import Sequences

    options, deadline = run.options, run.clock.deadline or time.monotonic() + SEQUENCING
    profile = parse_profile(options.profile)
    found = Sequences(options.backend, options.log, profile, run.case, deadline)
    failures = list(found.of_all(failures, run.before))
    run.interrupted |= found.interrupted
    return failures


def _wrong_choices(run: Run) -> tuple[Observation, ...]:
    """The choices that fail the run: those made in two ways, and liberties under strict.

    Under a demanded profile with liberties of its own another of these may be what was seen.
    """
    if run.card is None:
        return ()
    if run.profile_from == OBSERVED:
        return run.card.twofold
    allows = LIBERTIES & parse_profile(run.options.profile).declared().keys()
    return () if allows else run.card.liberties


def in_faults(causes: Iterable[Failure]) -> list[Failure]:
    """The causes, the worst first, each followed by those that look like the same fault."""
    groups: list[list[Failure]] = []
    for cause in sorted(causes, key=lambda cause: cause.rank):
        alike = [g for g in groups if any(_are_one_fault(one, cause) for one in g)]
        groups = [g for g in groups if g not in alike[1:]]
        if alike:
            alike[0] += [*(one for g in alike[1:] for one in g), cause]
        else:
            groups.append([cause])
    return [
        replace(one, same_as=group[0].signature if one is not group[0] else "")
        for group in groups
        for one in group
    ]


def _are_one_fault(a: Failure, b: Failure) -> bool:
    """Whether two causes fail under one condition, whichever the op or the dtype.

    A neighbour shows it: with the op or the dtype of the other it fails too. Of what is refused or
    not rejected the words show it.
    """
    within = {*a.ops} <= {*b.ops} or {*b.ops} <= {*a.ops}
    if a.kind != b.kind:
        return a.ops == b.ops and (_fails_otherwise(a, b) or _fails_otherwise(b, a))
    if a.kind == NOT_REJECTED:
        return stated(a) == stated(b)
    if a.kind == REFUSED and (said(a) or said(b)):
        return said(a) == said(b)
    if a.kind == REFUSED and within and words(a) == words(b) != "":
        return True
    if not (a.repeats and b.repeats):
        # The neighbours of one depend on what ran before them, as it does.
        one, other = (b, a) if a.repeats else (a, b)
        return {*one.ops} <= {*other.ops}
    if not (a.when.neighbours or b.when.neighbours):
        return {*a.ops} - ORDERING == {*b.ops} - ORDERING
    return _under_one_condition(a, b)


def _fails_otherwise(a: Failure, b: Failure) -> bool:
    return not {*b.dtypes[:1]}.isdisjoint(a.when.otherwise_on)


def _under_one_condition(a: Failure, b: Failure) -> bool:
    if CALLED in a.when.needs and CALLED in b.when.needs:
        # Whatever the body computes.
        return True
    if a.when.as_if or b.when.as_if:
        return a.when.as_if == b.when.as_if
    if not a.when.is_like(b.when):
        return False
    if a.ops != b.ops:
        # One way is not enough: the op of the other may have a fault of its own.
        return bool(a.when.needs and {*a.ops} & {*b.when.also} and {*b.ops} & {*a.when.also})
    first, second = a.dtypes[:1], b.dtypes[:1]
    elsewhere = {*first} & {*b.when.fails_on} or {*second} & {*a.when.fails_on}
    return bool(a.when.needs or first == second or elsewhere)


def said(cause: Failure) -> str:
    """What the backend says of a program that it refuses; empty for too little to tell by."""
    part = constant_part(cause.message).rpartition(": ")[2]
    return part if len(part) >= TELLING else ""


def words(cause: Failure) -> str:
    """The plain words of the message: no name, number or sign; empty for too few to tell by."""
    found = " ".join(WORD.findall(cause.message.partition("\n")[0]))
    return found if len(found) >= TELLING else ""


def stated(cause: Failure) -> list[str]:
    """The words of the constraint that was not checked, in any order.

    PAD.c3 demands of T in s' what SHRINK.c3 demands of s' in T.
    """
    return sorted(NAME.findall(labels()[cause.label].title))


def one_of_each_op(failed: Iterable[Verdict]) -> list[Verdict]:
    """The most telling failure of each op and kind of symptom."""
    first: dict[tuple[str, ...], Verdict] = {}
    for verdict in sorted(failed, key=_priority):
        id = CaseId.parse(verdict.id)
        symptom = verdict.failure.kind if verdict.failure else ""
        first.setdefault((id.level, id.op, symptom), verdict)
    return list(first.values())


def _in_turns(failed: Iterable[Verdict]) -> list[Verdict]:
    """The first failure of each kind, then the second of each, and so on."""
    kinds: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in failed:
        kinds.setdefault(_kind(verdict), []).append(verdict)
    return [v for turn in zip_longest(*kinds.values()) for v in turn if v is not None]


def _most_frequent(left: Sequence[Verdict]) -> list[Verdict]:
    """A failure of each of the kinds that have most, of the first level that has any."""
    level = min((_priority(v)[0] for v in left), default=0)
    kinds: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in left:
        if _priority(verdict)[0] == level:
            kinds.setdefault(_kind(verdict), []).append(verdict)
    return [one[0] for one in sorted(kinds.values(), key=len, reverse=True)[:SHRUNK_TOGETHER]]


def _kind(verdict: Verdict) -> tuple[str, ...]:
    """The level of a failure, its op, or the group of a random program, and its symptom."""
    assert verdict.failure is not None
    id = CaseId.parse(verdict.id)
    group = id.group if id.op == "MIXED" else ""
    return id.level, id.op, group, verdict.failure.symptom


def _priority(verdict: Verdict) -> tuple[int, int]:
    """Small programs first; of these wrong values before what fails on special ones alone.

    Programs that must be rejected precede all, as they need no shrinking.
    """
    assert verdict.failure is not None
    level = CaseId.parse(verdict.id).level
    place = LEVELS.index(level) if level in LEVELS else len(LEVELS)
    return 0 if level == "invalid" else 1 + place, _SEVERITY[verdict.failure.symptom]


_SEVERITY = {symptom: place for place, symptom in enumerate(Symptom)}
