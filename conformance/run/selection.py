"""Selects the cases of a run by its options and the hello; those that tell most come first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from uop.conformance.judging.lowering import not_listed
from uop.conformance.protocol.types import Hello
from uop.conformance.run.options import Options, shard_of
from uop.conformance.suite.case import LEVELS, OWN, CaseId, InvalidCase
from uop.conformance.suite.generate import AnyGroup, group_of, groups
from uop.conformance.suite.levels.op.sizes import LAUNCHES
from uop.conformance.suite.priority import PLACES, key_of
from uop.conformance.suite.vocabulary import Vocabulary, folded_by

COSTLY = frozenset({"large", "exhaustive"})
"""Groups whose first program takes long to generate; it contains no other op."""
TELLING = ("hand", "edges", "specials")
"""The beginnings of the names of groups that are written by hand or have special values."""
AGAIN = {"smoke": 24, "default": 150, "full": None}
"""By effort the most cases that are judged again; None is one of each level, op and dtype."""
Cell = tuple[str, str, str]


def selected(
    options: Options,
    vocabulary: Vocabulary | None = None,
    hello: Hello | None = None,
    own: Sequence[CaseId] = (),
) -> list[CaseId]:
    """The ids of the cases of a run, own cases first: only ops and dtypes that `hello` lists."""
    if options.cases:
        ids = [CaseId.parse(id) for id in options.cases]
        return [id if id.level == OWN else group_of(id, vocabulary).id(id.index) for id in ids]
    of_the_suite = (
        group.id(index)
        for group in groups_of(options, vocabulary)
        if not (hello and not_listed(group.id(0), hello))
        for index in range(min(group.count(options.effort), options.examples or 1 << 60))
        if options.with_ops is None or _holds(group, index, options)
    )
    return [*(own if options.takes_own else ()), *of_the_suite]


def _holds(group: AnyGroup, index: int, options: Options) -> bool:
    """Whether a case has one of the ops that are asked for; what must be rejected ends in it."""
    wanted = set(options.with_ops or ())
    case = group.case(index, options.seed)
    if isinstance(case, InvalidCase):
        return group.op in wanted
    nodes = (u for program in case.programs for u in program.root.toposort())
    return any(u.op.name in wanted or folded_by(u) in wanted for u in nodes)


def make_groups(options: Options) -> None:
    """Make and cache all groups of the levels of a run."""
    of_cases = {CaseId.parse(id).level for id in options.cases}
    for level in of_cases or LEVELS:
        groups(level)


def groups_of(options: Options, vocabulary: Vocabulary | None = None) -> list[AnyGroup]:
    """The groups that the options select, in order."""
    return [
        group
        for level in LEVELS
        if level in options.levels
        for group in groups(level, vocabulary)
        if (options.ops is None or group.op in options.ops)
        and (options.dtypes is None or group.dtype in options.dtypes)
        and group.op not in options.skip_ops
        and group.dtype not in options.skip_dtypes
    ]


def in_shard(ids: Sequence[CaseId], shard: str) -> list[CaseId]:
    """The cases of a shard: by a hash of the id, so that each level, op and dtype is spread."""
    number, count = shard_of(shard)
    return [id for id in ids if id.part(count) == number - 1]


def is_narrowed(options: Options) -> bool:
    """Whether the options select some ops, dtypes or cases."""
    return bool(options.ops or options.with_ops or options.dtypes or options.cases or options.skips)


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

    def shuffled(cell: Cell) -> bytes:
        return hashlib.blake2b(f"{seed} {'/'.join(cell)}".encode()).digest()

    by_level: dict[str, list[Cell]] = {}
    for cell in cells:
        by_level.setdefault(cell[0], []).append(cell)
    return {
        cell: k / len(own)
        for own in by_level.values()
        for k, cell in enumerate(sorted(own, key=shuffled))
    }


def _rank(id: CaseId) -> tuple[int, int]:
    """The place of a case in its cell; on a tie the order of the suite stays."""
    return id.index, (id.group in COSTLY) - id.group.startswith(TELLING)
