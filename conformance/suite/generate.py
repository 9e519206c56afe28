"""Generate all cases lazily: the same seed gives the same cases under the same ids.

Cases of one op are the same for every backend. Random programs depend on a vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import zip_longest

from uop.conformance.suite.case import (
    GENERATOR,
    KEYED,
    LEVELS,
    Case,
    CaseId,
    InvalidCase,
    NoSuchCaseError,
)
from uop.conformance.suite.catalogue import FIXED, RANDOM, AnyGroup
from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.levels.group import Build, Counts, Generated, Group, varied
from uop.conformance.suite.levels.invalid import InvalidGroup
from uop.conformance.suite.priority import in_smoke
from uop.conformance.suite.vocabulary import Vocabulary, cells_of, computed, whole

FURTHEST = 10**6
"""A random group has so many programs: an effort judges the first ones, a fuzz run draws from all.
Index k * FURTHEST + n is the nth program of a group varied: in its sizes, bounds and constants.
"""
DRAWN_ANEW = 16
"""The most programs that are drawn to find one of listed cells only."""

__all__ = ["LEVELS", "AnyGroup", "case_by_id", "cases", "left_out_cases"]


def cases(
    levels: Collection[str] = LEVELS,
    seed: int = 0,
    effort: str = "default",
    ops: Collection[str] | None = None,
    dtypes: Collection[str] | None = None,
    vocabulary: Vocabulary | None = None,
) -> Iterator[Case | InvalidCase]:
    """Yield the cases of these levels; `ops` and `dtypes` select by name, None selects all."""
    for level in LEVELS:
        if level not in levels:
            continue
        for group in groups(level, vocabulary):
            if (ops is None or group.op in ops) and (dtypes is None or group.dtype in dtypes):
                for index in range(group.count(effort)):
                    yield group.case(index, seed)


def case_by_id(
    text: str, seed: int = 0, vocabulary: Vocabulary | None = None
) -> Case | InvalidCase:
    """Return the case of an id without the others; raise NoSuchCaseError if there is none."""
    id = CaseId.parse(text)
    group = group_of(id, vocabulary)
    if id.index < FURTHEST or isinstance(group, InvalidGroup):
        return group.case(id.index, seed)
    first = group.id(id.index % FURTHEST)
    made = group.build(CountedChoices(seed, str(first)), first.index)
    made = varied(made, CountedChoices(seed, str(id)))
    return Case(id, made.root, made.batches, made.source, made.twins)


def left_out_cases(
    cells: Collection[tuple[str, str]], effort: str, vocabulary: Vocabulary | None = None
) -> Iterator[CaseId]:
    """Yield ids of cases that an effort leaves out, for the ops and dtypes with gaps in a ledger.

    Levels take turns: those about an op come before the random graphs that hold it.
    """
    for level in LEVELS:
        about = [g for g in groups(level, vocabulary) if (g.op, g.dtype) in cells]
        left = [[g.id(k) for k in range(g.count(effort), max(g.counts))] for g in about]
        # Each group yields one id before any yields a second.
        yield from (id for row in zip_longest(*left) for id in row if id is not None)


def group_of(id: CaseId, vocabulary: Vocabulary | None = None) -> AnyGroup:
    """Return the group that makes the case of an id; raise NoSuchCaseError if there is none."""
    if id.version != GENERATOR:
        raise NoSuchCaseError(
            f"no case {str(id)!r}: it is of version {id.version} of the generator, and this is "
            f"version {GENERATOR}; a file that it was written to can still be judged: "
            "uop replay FILE"
        )
    vocabulary = vocabulary or whole()
    if id.key and id.key != vocabulary.key:
        raise NoSuchCaseError(
            f"no case {str(id)!r}: it was made for a backend that lists other ops, dtypes or "
            f"limits (key {id.key}) than this one (key {vocabulary.key or 'none'}); the report "
            "that names it holds that list: uop conform BACKEND --list REPORT.json --case ID"
        )
    group = _by_name(id.level, vocabulary).get((id.op, id.dtype, id.group))
    # No invalid program is varied.
    index = id.index if isinstance(group, InvalidGroup) else id.index % FURTHEST
    if group is None or index >= group.most:
        raise NoSuchCaseError(f"no case {str(id)!r}")
    return group


def groups(level: str, vocabulary: Vocabulary | None = None) -> tuple[AnyGroup, ...]:
    """Return the groups of a level in their order; `vocabulary` None is the whole language."""
    return _groups(level, vocabulary or whole())


@cache
def _groups(level: str, vocabulary: Vocabulary) -> tuple[AnyGroup, ...]:
    fixed = [group for module in FIXED.get(level, ()) for group in module()]
    random = random_groups(level, vocabulary)
    if vocabulary.is_whole:
        return tuple(map(in_smoke, (*fixed, *random)))
    return *_more(fixed, vocabulary), *random


@cache
def random_groups(level: str, vocabulary: Vocabulary) -> tuple[Group, ...]:
    """Return the groups of a level whose programs are drawn from a vocabulary."""
    made = (group for module in RANDOM.get(level, ()) for group in module(vocabulary))
    random = [replace(group, furthest=FURTHEST) for group in made]
    if vocabulary.is_whole:
        return tuple(random)
    every = [group for module in RANDOM.get(level, ()) for group in module(whole())]
    shared = _shared_out(random, every, vocabulary)
    return tuple(replace(g, name=f"{g.name}{KEYED}{vocabulary.key}") for g in shared)


def _shared_out(
    random: list[Group], every: Iterable[Group], vocabulary: Vocabulary
) -> Iterator[Group]:
    """Give the listed dtypes as many programs of each kind as the whole language gets."""
    listed = [
        g
        for g in random
        if g.dtype in vocabulary.dtypes
        and vocabulary.has(*g.needs)
        and vocabulary.has_cell(g.op, g.dtype)
    ]
    share = Counter(_kind(group) for group in listed)
    totals: dict[tuple[str, str], Counts] = {}
    for group in every:
        sums = zip(totals.get(_kind(group), (0, 0, 0)), group.counts, strict=True)
        smoke, default, full = (a + b for a, b in sums)
        totals[_kind(group)] = smoke, default, full
    for group in listed:
        smoke, default, full = (-(-n // share[_kind(group)]) for n in totals[_kind(group)])
        if vocabulary.is_small:
            smoke = max(smoke, default // 2)
        build = _within(vocabulary, group.build) if vocabulary.supports else group.build
        yield replace(group, counts=(smoke, default, full), build=build)


def _within(vocabulary: Vocabulary, build: Build) -> Build:
    """Draw a program anew, a few times, while it needs a cell that the vocabulary lacks."""

    def built(choices: Choices, index: int) -> Generated:
        for _ in range(DRAWN_ANEW):
            made = build(choices, index)
            cells = (cell for u in computed(made.root) for cell in cells_of(u))
            if all(vocabulary.has_cell(*cell) for cell in cells):
                break
        return made

    return built


def _more(fixed: list[AnyGroup], vocabulary: Vocabulary) -> Iterator[AnyGroup]:
    """Raise the counts of a small vocabulary to those of more effort: a run has time for them."""
    for group in fixed:
        if not vocabulary.is_small or isinstance(group, InvalidGroup):
            yield group
        elif group.shared:
            yield replace(group, counts=(group.counts[0], 1, group.counts[2]))
        else:
            _, default, full = group.counts
            yield replace(group, counts=(default, full, full))


def _kind(group: Group) -> tuple[str, str]:
    return group.op, group.name


@cache
def _by_name(level: str, vocabulary: Vocabulary) -> dict[tuple[str, str, str], AnyGroup]:
    return {(group.op, group.dtype, group.name): group for group in _groups(level, vocabulary)}
