"""Hold the accepted sets of kernel memory, beside the reference contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy

import numpy as np

from uop.interpreter.accepted.sets import Sets, points, somewhere, together
from uop.interpreter.kernel.buffers import Cells, Place
from uop.interpreter.numeric.storage import Array
from uop.interpreter.values import Value, full

PARTS = ("lo", "hi", "nan", "only", "exact", "any")
Fold = Callable[[Sets], Sets]


class SetCells:
    """The accepted sets of one memory, initially those of its contents.

    Terms that work items add to an element in no order are collected until the element is read.
    """

    def __init__(self, memory: Cells, *, is_float: bool) -> None:
        unspecified, free_nan = memory.masks["unspecified"], memory.masks["free_nan"]
        held = with_all_masks(points(Value(memory.data, None, unspecified, free_nan), is_float))
        parts = zip(PARTS, parts_of(held), strict=True)
        self._parts = {name: memory.beside(np.array(part)) for name, part in parts}
        self._start: dict[str, Array] = {}
        self._terms: list[tuple[Array, Sets]] = []
        self._fold: Fold | None = None

    def copied(self) -> SetCells:
        """Copy the sets."""
        self._add_up()
        other = copy(self)
        other._parts = {name: c.beside(c.data.copy()) for name, c in self._parts.items()}
        other._start, other._terms = {}, []
        return other

    def read(self, place: Place) -> Sets:
        self._add_up()
        return _compact(Sets(*(cells.read(place).data for cells in self._parts.values())))

    def write(self, place: Place, sets: Sets) -> None:
        self._add_up()
        self._put(place, sets)
        if self._start:
            self._begin_again(place)

    def add(self, place: Place, sets: Sets, fold: Fold) -> None:
        """Add terms to elements of a Buffer; `fold` computes the accepted sums along an axis."""
        place = place.over(sets.lo.shape)
        if not self._start:
            self._start = {name: cells.data.copy() for name, cells in self._parts.items()}
        terms = with_all_masks(sets).map(lambda a: place.selected(a).reshape(-1))
        self._terms.append((place.selected(place.positions).reshape(-1), terms))
        self._fold = fold

    def held(self) -> Sets:
        """Return all sets of a Buffer, flat."""
        self._add_up()
        return _compact(Sets(*(cells.data for cells in self._parts.values())))

    def _put(self, place: Place, sets: Sets) -> None:
        for cells, part in zip(self._parts.values(), parts_of(with_all_masks(sets)), strict=True):
            cells.write(place, Value(part))

    def _begin_again(self, place: Place) -> None:
        """Replace sums by what is stored, and drop the terms before it."""
        stored = place.over()
        where = np.unique(stored.selected(stored.positions))
        for name, cells in self._parts.items():
            self._start[name][where] = cells.data[where]
        rest = [(at, s, ~np.isin(at, where)) for at, s in self._terms]
        self._terms = [(at[k], s.map(lambda a, k=k: a[k])) for at, s, k in rest]  # type: ignore[misc]

    def _add_up(self) -> None:
        """Add all pending terms to the contents before the first of them."""
        if self._fold is None:
            return
        at = np.concatenate([where for where, _ in self._terms])
        terms = together([s for _, s in self._terms], lambda parts: np.concatenate(parts))
        start = _compact(Sets(*self._start.values()))
        for positions, rows in by_count(at):
            before = start.map(lambda a, at=positions: a[at][None])  # type: ignore[misc]
            added = terms.map(lambda a, rows=rows: a[rows])  # type: ignore[misc]
            sums = self._fold(together([before, added], lambda parts: np.concatenate(parts)))
            self._put(Place(positions, None, 1), sums)
        self._fold = None


def by_count(at: Array) -> Iterator[tuple[Array, Array]]:
    """Yield groups of elements with equally many terms, each with the numbers of its terms."""
    order = np.argsort(at, kind="stable")
    where, first, counts = np.unique(at[order], return_index=True, return_counts=True)
    for count in np.unique(counts):
        chosen = counts == count
        yield where[chosen], order[first[chosen] + np.arange(count)[:, None]]


def with_all_masks(s: Sets) -> Sets:
    """Fill in every mask, in the shape of the sets."""
    return Sets(s.lo, s.hi, *(full(m, s.lo) for m in (s.nan, s.only, s.exact, s.any)))


def _compact(s: Sets) -> Sets:
    """Drop the masks that are set nowhere."""
    return Sets(s.lo, s.hi, *(somewhere(m) for m in (s.nan, s.only, s.exact, s.any)))


def parts_of(s: Sets) -> tuple[Array, ...]:
    return tuple(getattr(s, name) for name in PARTS)
