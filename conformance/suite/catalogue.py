"""List the functions that make the groups of each level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from uop.conformance.suite.levels import devices, invalid, written
from uop.conformance.suite.levels.graph import (
    arithmetic,
    chains,
    ends,
    functions,
    pairs,
    property,
    random_graph,
    structures,
    twins,
)
from uop.conformance.suite.levels.graph.memory import buffers, orders, parts, streams
from uop.conformance.suite.levels.graph.patterns import idioms, models, numbers, rewrites
from uop.conformance.suite.levels.group import Group
from uop.conformance.suite.levels.invalid import InvalidGroup
from uop.conformance.suite.levels.kernel import kernels, rules, schedules
from uop.conformance.suite.levels.op import (
    absent,
    casts,
    elementwise,
    memory,
    movement,
    patterns,
    reduce,
    sequences,
    sizes,
)
from uop.conformance.suite.vocabulary import Vocabulary

AnyGroup = Group | InvalidGroup

FIXED: dict[str, tuple[Callable[[], Iterator[AnyGroup]], ...]] = {
    "op": (
        elementwise.groups,
        patterns.groups,
        casts.groups,
        movement.groups,
        reduce.groups,
        memory.groups,
        absent.groups,
        sizes.groups,
        sequences.groups,
        partial(written.groups, "op"),
    ),
    "invalid": (invalid.groups,),
    "property": (property.groups_of_copies,),
    "function": (partial(written.groups, "function"),),
    "kernel": (partial(written.groups, "kernel"),),
    "device": (devices.groups_of_ops, partial(written.groups, "device")),
}
"""By level the functions that make the groups which are the same for every backend."""
RANDOM: dict[str, tuple[Callable[[Vocabulary], Iterator[Group]], ...]] = {
    "property": (property.groups,),
    "function": (functions.groups,),
    "graph": (
        *(pairs.groups, rewrites.groups, arithmetic.aliased, arithmetic.groups, ends.groups),
        *(structures.groups, chains.groups, orders.groups, buffers.groups, idioms.groups),
        *(numbers.groups, streams.groups, models.groups, parts.groups),
        random_graph.groups,
    ),
    "twin": (twins.groups,),
    "kernel": (kernels.groups, rules.groups),
    "schedule": (schedules.groups,),
    "device": (devices.groups,),
}
"""By level the functions that make the groups of random programs."""
