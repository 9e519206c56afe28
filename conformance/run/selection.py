"""Selects the cases of a run, by its options and by what the backend lists."""

from __future__ import annotations

from collections.abc import Sequence

from uop.conformance.judging.lowering import not_listed
from uop.conformance.protocol.types import Hello
from uop.conformance.run.options import Options, shard_of
from uop.conformance.suite.case import LEVELS, OWN, CaseId, InvalidCase
from uop.conformance.suite.generate import AnyGroup, group_of, groups
from uop.conformance.suite.vocabulary import Vocabulary, folded_by


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
    return [*(own if options.takes_own else ()), *_of_the_suite(options, vocabulary, hello)]


def _of_the_suite(
    options: Options, vocabulary: Vocabulary | None, hello: Hello | None
) -> list[CaseId]:
    return [
        group.id(index)
        for group in groups_of(options, vocabulary)
        if not (hello and not_listed(group.id(0), hello))
        for index in range(min(group.count(options.effort), options.examples or 1 << 60))
        if options.with_ops is None or _holds(group, index, options)
    ]


def _holds(group: AnyGroup, index: int, options: Options) -> bool:
    """Whether a case has one of the ops that are asked for; what must be rejected ends in it."""
    wanted = set(options.with_ops or ())
    case = group.case(index, options.seed)
    if isinstance(case, InvalidCase):
        return group.op in wanted
    nodes = (u for program in case.programs for u in program.root.toposort())
    return any(u.op.name in wanted or folded_by(u) in wanted for u in nodes)


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
