"""Draws the cases of a fuzz run: random programs without an end, those of one op among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest

from uop.conformance.suite.case import CaseId
from uop.conformance.suite.choices import Choices, CountedChoices, shuffled, weighted
from uop.conformance.suite.generate import groups, random_groups
from uop.conformance.suite.levels.group import Group
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
    """The groups of random programs of a level; of level op those that a default run has."""
    if level != "op":
        return list(random_groups(level, vocabulary))
    of_op = (group for group in groups(level, vocabulary) if isinstance(group, Group))
    return [group for group in of_op if group.counts[DEFAULT]]


def drawn(groups: Mapping[str, Sequence[Group]], seed: int, shard: str = "") -> Iterator[CaseId]:
    """Yield ids of cases of these groups by level: a function of the arguments alone.

    Each shard of a run has a stream of its own. The kinds of programs of a level take turns: each
    comes once before any comes often. Level op ends, as its programs are those of a default run.
    """
    choices = CountedChoices(seed, f"fuzz {shard}" if shard else "fuzz")
    levels = {
        level: (_once if level == "op" else _in_turns)(choices, own)
        for level, own in groups.items()
        if own
    }
    while levels:
        level = weighted(choices, [(level, SHARES[level]) for level in levels])
        id = next(levels[level], None)
        if id is None:
            del levels[level]
        else:
            yield id


def _once(choices: Choices, groups: Sequence[Group]) -> Iterator[CaseId]:
    """Each program of a default run once; the ops take turns, and so do the kinds of each op."""
    by_op: dict[str, dict[str, list[CaseId]]] = {}
    for group in groups:
        ids = by_op.setdefault(group.op, {}).setdefault(group.name, [])
        ids += map(group.id, range(group.counts[DEFAULT]))
    streams = [
        chain.from_iterable(zip_longest(*(shuffled(choices, ids) for ids in by_name.values())))
        for by_name in by_op.values()
    ]
    # A kind that has ended leaves gaps.
    ops = [filter(None, stream) for stream in streams]
    for turn in zip_longest(*ops):
        yield from filter(None, shuffled(choices, turn))


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
        for own in shuffled(choices, turn):
            group = weighted(choices, [(one, _weight(one)) for one in own])
            yield group.id(choices.below(group.most))


def _weight(group: Group) -> int:
    return max(group.counts[DEFAULT], 1)
