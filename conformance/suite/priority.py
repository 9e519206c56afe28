"""Read the priority of groups, by the seeded faults that they kill.

It says which groups come first in a run that may end early, and which a smoke run over the whole
language leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from uop.conformance.suite.case import KEYED, CaseId
from uop.conformance.suite.levels.group import Group
from uop.conformance.suite.levels.invalid import InvalidGroup

FILE = Path(__file__).with_name("priority.txt")
TITLES = ("# first", "# left out")


def text_of(first: Sequence[str], left_out: Sequence[str]) -> str:
    """The text of the file."""
    return "\n".join([TITLES[0], *first, TITLES[1], *left_out]) + "\n"


_FIRST, _, _LEFT_OUT = FILE.read_text("utf-8").partition(TITLES[1])
PLACES = {key: place for place, key in enumerate(_FIRST.removeprefix(TITLES[0]).split())}
"""The places of the groups that come first, by key."""
LEFT_OUT = set(_LEFT_OUT.split())
"""The keys of the groups that a smoke run leaves out. What chooses them anew empties it first."""


def key_of(id: CaseId) -> str:
    """The key of the group of a case, which does not depend on the vocabulary."""
    return f"{id.level}/{id.op}/{id.dtype}/{id.group.partition(KEYED)[0]}"


def in_smoke(group: Group | InvalidGroup) -> Group | InvalidGroup:
    """A group, without cases in a smoke run if it is left out."""
    if isinstance(group, InvalidGroup) or key_of(group.id(0)) not in LEFT_OUT:
        return group
    return replace(group, counts=(0, *group.counts[1:]))
