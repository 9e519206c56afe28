"""Races: which work items accessed which elements of shared memory since something ordered them.

For each element and each axis of the launch it is remembered at which position it was accessed, as
a number that also counts what has ordered the axis so far: barriers for the work items of a group,
the end of the loop for iterations, nothing for workgroups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from uop.interpreter.lanes import Axis, Kind
from uop.interpreter.values import Array
from uop.spec.errors import UndefinedError

NEVER = -1


class Use(Enum):
    """What an access does to an element."""

    READ = "reads"
    WRITE = "writes"
    ADD = "adds to"


CONFLICTS = {
    Use.READ: (Use.WRITE, Use.ADD),
    Use.WRITE: (Use.READ, Use.WRITE, Use.ADD),
    Use.ADD: (Use.READ, Use.WRITE),
}
"""Two atomic additions do not conflict (D-074)."""


class CarriedError(Exception):
    """Iterations that run as an axis depend on each other: they have to run in turn."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How an access lies along one axis: the position of each element, counted in this interval.

    `position` is `interval + size` where every position of the axis makes the access.
    """

    axis: Axis
    interval: Array
    position: Array

    @property
    def everywhere(self) -> Array:
        return np.asarray(self.interval + self.axis.size)


class Shadow:
    """What is remembered about one buffer during one launch."""

    def __init__(self, size: int, name: str) -> None:
        self._size, self._name = size, name
        self._seen: dict[tuple[Use, Axis], Array] = {}

    def access(self, use: Use, where: Array, reaches: Sequence[Reach]) -> None:
        """Enter an access to the elements `where`; UndefinedError where it races."""
        if not where.size:
            return
        for reach in reaches:
            for earlier in CONFLICTS[use]:
                seen = self._seen.get((earlier, reach.axis))
                if seen is not None:
                    before = seen[where]
                    bad = (before >= reach.interval) & (before != reach.position)
                    self._refuse(bad, where, use, earlier, reach)
            self._enter(use, where, reach)

    def _enter(self, use: Use, where: Array, reach: Reach) -> None:
        key = use, reach.axis
        if key not in self._seen:
            self._seen[key] = np.full(self._size, NEVER, np.int64)
        seen = self._seen[key]
        position = reach.position
        if use is Use.WRITE:
            self._refuse(position == reach.everywhere, where, use, use, reach)
        else:
            before = seen[where]
            other = (before >= reach.interval) & (before != position)
            position = np.where(other, reach.everywhere, position)
        seen[where] = position
        twice = seen[where] != position
        if use is Use.WRITE:
            self._refuse(twice, where, use, use, reach)
        elif twice.any():
            seen[where[twice]] = np.broadcast_to(reach.everywhere, where.shape)[twice]

    def _refuse(self, bad: Array, where: Array, use: Use, earlier: Use, reach: Reach) -> None:
        if not bad.any():
            return
        if reach.axis.kind is Kind.ITERATION:
            raise CarriedError
        element = int(where[np.broadcast_to(bad, where.shape)][0])
        between = "two workgroups" if reach.axis.kind is Kind.GROUP else "two work items"
        unordered = "" if reach.axis.kind is Kind.GROUP else " and no barrier orders them"
        raise UndefinedError(
            f"race: of {between} one {earlier.value} element {element} of {self._name}, "
            f"another {use.value} it{unordered}"
        )
