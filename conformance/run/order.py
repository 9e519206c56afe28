"""Orders the cases of a run that may end early: those that tell most come first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from uop.conformance.coverage.strength import COSTLY
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.levels.op.sizes import LAUNCHES
from uop.conformance.suite.priority import PLACES, key_of

TELLING = ("hand", "edges", "specials")
"""The beginnings of the names of groups that are written by hand or have special values."""
AGAIN = {"smoke": 24, "default": 150, "full": None}
"""By effort the most cases that are judged again; None is one of each level, op and dtype."""
Cell = tuple[str, str, str]


def to_send_again(ids: Iterable[CaseId], effort: str, seed: int) -> list[CaseId]:
    """The cases to judge again: launches first, then cells in turns, as many as the effort says."""
    turns = in_turns((id for id in ids if id.level != "invalid"), seed)
    launches = [id for id in turns if id.group == LAUNCHES]
    cells = {(id.level, id.op, id.dtype): id for id in reversed(turns) if id.group != LAUNCHES}
    return [*launches, *reversed(cells.values())][: AGAIN[effort]]


def by_priority(ids: Iterable[CaseId], seed: int) -> list[CaseId]:
    """Order cases so that those of the groups that kill most faults come first, the others in
    turns.
    """
    rest: list[CaseId] = []
    first: dict[int, CaseId] = {}
    for id in ids:
        place = None if id.index else PLACES.get(key_of(id))
        if place is None:
            rest.append(id)
        else:
            first[place] = id
    return [*(first[place] for place in sorted(first)), *in_turns(rest, seed)]


def in_turns(ids: Iterable[CaseId], seed: int) -> list[CaseId]:
    """Order cases so that levels, ops and dtypes take turns.

    The first case of each level, op and dtype precedes the second of any. In a turn the ops and
    dtypes of a level are in an order that the seed chooses, and the levels are spread evenly.
    """
    cells: dict[Cell, list[CaseId]] = {}
    for id in ids:
        cells.setdefault((id.level, id.op, id.dtype), []).append(id)
    spread = _spread(cells, seed)
    turns = (
        (turn, spread[cell], id)
        for cell, own in cells.items()
        for turn, id in enumerate(sorted(own, key=_rank))
    )
    return [id for _, _, id in sorted(turns, key=lambda entry: entry[:2])]


def _spread(cells: Iterable[Cell], seed: int) -> dict[Cell, float]:
    """The place of each cell in a turn, from 0 to 1."""
    by_level: dict[str, list[Cell]] = {}
    for cell in cells:
        by_level.setdefault(cell[0], []).append(cell)
    return {
        cell: k / len(own)
        for own in by_level.values()
        for k, cell in enumerate(sorted(own, key=lambda cell: _shuffled(cell, seed)))
    }


def _shuffled(cell: Cell, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed} {'/'.join(cell)}".encode()).digest()


def _rank(id: CaseId) -> tuple[int, int]:
    """The place of a case in its cell; on a tie the order of the suite stays."""
    return id.index, (id.group in COSTLY) - id.group.startswith(TELLING)
