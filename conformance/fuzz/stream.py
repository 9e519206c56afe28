"""Draws the cases of a fuzz run: any of any group of random programs, without an end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from uop.conformance.suite.case import CaseId
from uop.conformance.suite.choices import CountedChoices, weighted
from uop.conformance.suite.generate import FURTHEST
from uop.conformance.suite.levels.group import Group

SHARES: Mapping[str, int] = {
    "graph": 12,
    "property": 1,
    "function": 2,
    "twin": 2,
    "kernel": 3,
    "schedule": 3,
    "device": 1,
}
"""How many of 24 programs are of each level, where a backend takes all."""
DEFAULT = 1
"""The place of the effort by whose counts the groups of a level share its programs."""


@dataclass(frozen=True, slots=True)
class Urn:
    """The groups of a level, and the sums of their weights."""

    groups: Sequence[Group]
    sums: Sequence[int]

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Urn:
        return cls(groups, list(accumulate(max(g.counts[DEFAULT], 1) for g in groups)))

    def at(self, place: int) -> Group:
        return self.groups[bisect_right(self.sums, place)]


def drawn(groups: Mapping[str, Sequence[Group]], seed: int, shard: str = "") -> Iterator[CaseId]:
    """Yield ids of cases of these groups by level: a function of the arguments alone.

    Each shard of a run has a stream of its own.
    """
    urns = [(Urn.of(own), SHARES[level]) for level, own in groups.items() if own]
    choices = CountedChoices(seed, f"fuzz {shard}" if shard else "fuzz")
    while urns:
        urn = weighted(choices, urns)
        yield urn.at(choices.below(urn.sums[-1])).id(choices.below(FURTHEST))
