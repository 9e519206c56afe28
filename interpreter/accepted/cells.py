"""Hold the accepted sets of kernel memory, apart from its reference contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy

import numpy as np

from uop.interpreter.accepted.sets import Gap, Sets, points, somewhere, together
from uop.interpreter.kernel.buffers import Buffer, Cells, Place
from uop.interpreter.numeric.storage import Array
from uop.interpreter.values import Value, full

MASKS = ("nan", "only", "exact", "any")
Parts = dict[str, Array]
"""The ends, masks and gaps of sets, each by a name."""
Fold = Callable[[Sets], Sets]


class SetCells:
    """The accepted sets of one memory, initially those of its contents.

    Terms that work items add to an element without an order are collected until the element is
    read.
    """

    def __init__(self, memory: Cells, *, is_float: bool) -> None:
        unspecified, free_nan = memory.masks["unspecified"], memory.masks["free_nan"]
        held = with_all_masks(points(Value(memory.data, None, unspecified, free_nan), is_float))
        parts = _parts_of(held, 0)
        self._parts = {name: memory.with_contents(np.array(part)) for name, part in parts.items()}
        self._gaps = 0
        self._start: Parts = {}
        self._terms: list[tuple[Array, Sets]] = []
        self._fold: Fold | None = None

    @classmethod
    def holding(cls, buffer: Buffer, sets: Sets) -> SetCells:
        """Make the cells of a buffer with these sets, of its shape or flat."""
        cells = cls(buffer, is_float=sets.lo.dtype.kind not in "iub")
        cells.write(Place(np.arange(buffer.size), None, 1), sets.map(lambda a: a.reshape(-1)))
        return cells

    def copied(self) -> SetCells:
        """Copy the sets."""
        self._add_up()
        other = copy(self)
        other._parts = {name: c.with_contents(c.data.copy()) for name, c in self._parts.items()}
        other._start, other._terms = {}, []
        return other

    def read(self, place: Place) -> Sets:
        self._add_up()
        return self._sets({name: cells.read(place).data for name, cells in self._parts.items()})

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
        return self._sets({name: cells.data for name, cells in self._parts.items()})

    def _put(self, place: Place, sets: Sets) -> None:
        while self._gaps < len(sets.gaps):
            self._add_gap()
        for name, part in _parts_of(with_all_masks(sets), self._gaps).items():
            self._parts[name].write(place, Value(part))

    def _add_gap(self) -> None:
        """Make room for one more gap, which is empty in all sets."""
        for name in _names_of_gap(self._gaps):
            self._parts[name] = self._parts["hi"].with_contents(self._parts["hi"].data.copy())
            if self._start:
                self._start[name] = self._start["hi"].copy()
        self._gaps += 1

    def _sets(self, parts: Parts) -> Sets:
        """Make sets of their parts, without masks that are set nowhere."""
        names = map(_names_of_gap, range(self._gaps))
        return Sets(
            parts["lo"],
            parts["hi"],
            *(somewhere(parts[name]) for name in MASKS),
            gaps=tuple(Gap(parts[below], parts[above]) for below, above in names),
        )

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
        terms = together([s for _, s in self._terms], np.concatenate)
        start = self._sets(self._start)
        for positions, rows in by_count(at):
            before = start.map(lambda a, at=positions: a[at][None])  # type: ignore[misc]
            added = terms.map(lambda a, rows=rows: a[rows])  # type: ignore[misc]
            sums = self._fold(together([before, added], np.concatenate))
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
    masks = (full(m, s.lo) for m in (s.nan, s.only, s.exact, s.any))
    return Sets(s.lo, s.hi, *masks, gaps=s.gaps)


def _parts_of(s: Sets, gaps: int) -> Parts:
    """Return the parts of sets with all masks, and with room for so many gaps."""
    parts = {name: getattr(s, name) for name in ("lo", "hi", *MASKS)}
    empty = (Gap(s.hi, s.hi),) * (gaps - len(s.gaps))
    for k, gap in enumerate((*s.gaps, *empty)):
        parts |= zip(_names_of_gap(k), (gap.below, gap.above), strict=True)
    return parts


def _names_of_gap(number: int) -> tuple[str, str]:
    return f"below {number}", f"above {number}"
