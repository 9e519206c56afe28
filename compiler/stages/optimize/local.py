"""Gives kernels LOCAL memory: for tiles that a group shares, and for rows that loops share.

Tiles: the work items of a group copy there what they read more than once. In optimize each
iteration of the fold has a separate tile, so no element is written twice, and the fold may still
run in any order. In select, where the fold becomes a loop, every second iteration uses the same
memory: an item that writes a tile has passed the barrier after the last read of it.

Rows: several loops over a row may need the same costly values. A new loop before them stores these
values of the row, and the others load them. That pays for functions that cost more than memory: the
sum and the results of a softmax both need its exponentials. The row lies in LOCAL memory of a group
of one work item, since iterations of a graph share no registers. Select makes it an array of the
work item.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from uop.compiler import loops
from uop.compiler.build import ZERO, add, buffer, index, mod, mul
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.rewrite import Fired
from uop.compiler.rewriting.simplify import bounds, linear_form
from uop.spec.args import AddrSpace, AxisType, BufferArg, arg_of
from uop.spec.graph import base_of, rebuild
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims

WITHIN = (AxisType.UNROLL, AxisType.LOCAL, AxisType.UPCAST, AxisType.WARP)
"""The axes of a tile, in their order in LOCAL memory: neighbours are read at once, by one work item
as a vector, or by the lanes of a warp as fragments.
"""
SERIAL = (AxisType.LOOP, *loops.FOLDED)
MOST_BYTES = 32 << 10
"""The LOCAL memory that every device has: OpenCL requires it."""
MOST_COPIES = 16
"""The most elements of a tile that a work item copies: it holds them in registers."""
ROW = 4
"""The most neighbours that a work item copies."""
COPY_TILE = "copy_tile_to_local"
ALONG = (AxisType.REDUCE, AxisType.UNROLL)
"""The axes of a row."""
AROUND = (AxisType.GLOBAL, AxisType.THREAD, AxisType.UPCAST)
"""The other axes of a kernel with such rows, which uses no groups."""
MOST_ROW_BYTES = 16 << 10
"""The most bytes of the stored rows: half of the first-level cache, which they are read from."""
KEEP_ROW = "keep_row"


def with_tiles(body: UOp, fired: Fired) -> UOp:
    """Copy the tiles of folds to LOCAL memory; a kernel without groups has none."""
    order = body.toposort()
    items = sorted(
        (r for r in loops.axes(body) if loops.type_of(r) in loops.ITEMS), key=loops.id_of
    )
    is_shared = any(loops.type_of(r) is AxisType.GROUP_REDUCE for r in loops.axes(body))
    if is_shared or loops.count_of(items) < 2 or not loops.count_of(loops.axes(body)):
        return body
    return _Copies(order, items, fired).made()


@dataclass(frozen=True, slots=True)
class _Tile:
    """The elements that LOADs read in an iteration of a fold, over all items of a group."""

    loads: tuple[UOp, ...]
    """One LOAD, or the LOADs of a fragment, which are neighbours in memory."""
    fold: UOp
    """The RANGE of the fold."""
    within: tuple[UOp, ...]
    """Its axes, the innermost last."""

    @property
    def size(self) -> int:
        return loops.count_of(self.within) * len(self.loads)

    @property
    def nbytes(self) -> int:
        """The bytes of both of its places in select."""
        return 2 * self.size * self.loads[0].dtype.itemsize

    def places(self, memory: UOp, digits: Iterable[UOp]) -> list[UOp]:
        """The place from which each of its LOADs reads."""
        first = mul(self.fold, self.size)
        position = mul(loops.row_major(self.within, digits), len(self.loads))
        start = add(first, position)
        return [UOp(Op.INDEX, memory, add(start, k)) for k in range(len(self.loads))]

    def in_memory_order(self) -> list[UOp]:
        """Its axes by the steps that the LOADs make along them, the smallest last. The lanes of a
        warp follow: their reads are near each other, but not in such steps.
        """
        terms, _ = linear_form(self.loads[0].src[0].src[1])
        steps = {
            r: terms.get(r, 1 << 62) for r in self.within if loops.type_of(r) is not AxisType.WARP
        }
        return sorted(self.within, key=lambda r: steps.get(r, 0), reverse=True)


class _Copies:
    """The tiles of a kernel, and its nodes with LOADs from them."""

    def __init__(self, order: Sequence[UOp], items: Sequence[UOp], fired: Fired) -> None:
        self.order, self.items, self.fired = order, items, fired
        self.inside = open_ranges(order)
        self.fresh = loops.free_id(order)

    def made(self) -> UOp:
        tiles: dict[UOp, list[_Tile]] = {}
        used = 0
        for tile in self._found():
            if used + tile.nbytes <= MOST_BYTES:
                tiles.setdefault(tile.fold, []).append(tile)
                used += tile.nbytes
        new: dict[UOp, UOp] = {}
        for tile_of_fold in tiles.values():
            new |= self._copied(tile_of_fold, len(new))
        return self.order[-1].substitute(new)

    def _found(self) -> Iterable[_Tile]:
        """The tiles of LOADs in a fold over one loop, at indices that no memory decides."""
        alone = _only_loops(self.order, self.inside)
        for loads in self._read_together():
            nodes = dict.fromkeys(v for load in loads for v in load.toposort())
            used = [r for r in nodes if r.op is Op.RANGE]
            folds = [r for r in used if loops.type_of(r) is AxisType.REDUCE]
            is_known = sum(v.op is Op.LOAD for v in nodes) == len(loads)
            if not is_known or len(folds) != 1 or folds[0] not in alone:
                continue
            within = [r for r in used if loops.type_of(r) in WITHIN]
            within.sort(key=lambda r: (WITHIN.index(loops.type_of(r)), loops.id_of(r)))
            tile = _Tile(loads, folds[0], tuple(within))
            sharing = loops.count_of(r for r in self.items if r not in used)
            copies, rest = divmod(loops.count_of(within), loops.count_of(self.items))
            if sharing > 1 and copies and not rest and copies * len(loads) <= MOST_COPIES:
                yield tile

    def _read_together(self) -> Iterable[tuple[UOp, ...]]:
        """The LOADs from memory that the kernel does not write, those of a fragment together."""
        written = {base_of(u.src[0]) for u in self.order if u.declaration.is_write}
        loads = {
            u: None
            for u in self.order
            if u.op is Op.LOAD and u.src[0].op is Op.INDEX and base_of(u.src[0]) not in written
        }
        for factor in (s for u in self.order if u.op is Op.WMMA for s in u.src[:2]):
            if set(factor.src) <= loads.keys():
                for load in factor.src:
                    loads.pop(load, None)
                yield factor.src
        yield from ((load,) for load in loads)

    def _copied(self, tiles: Sequence[_Tile], slot: int) -> dict[UOp, UOp]:
        """The LOADs of the tiles of one fold, after one barrier, by the LOADs that they replace."""
        memories = [
            buffer(slot + k, t.loads[0].dtype, loops.bound_of(t.fold) * t.size, AddrSpace.LOCAL)
            for k, t in enumerate(tiles)
        ]
        effects = [self._copy(t, m) for t, m in zip(tiles, memories, strict=True)]
        barrier = UOp(Op.BARRIER, *effects)
        new = {}
        for tile, memory in zip(tiles, memories, strict=True):
            places = tile.places(UOp(Op.AFTER, memory, barrier), tile.within)
            for load, place in zip(tile.loads, places, strict=True):
                new[load] = UOp(Op.LOAD, place)
                self.fired(COPY_TILE, load, new[load])
        return new

    def _copy(self, tile: _Tile, memory: UOp) -> UOp:
        """Each item copies some neighbours, then as many after those of the last item."""
        order = tile.in_memory_order()
        copies = loops.count_of(tile.within) // loops.count_of(self.items)
        is_row = loops.type_of(order[-1]) is not AxisType.WARP
        row = math.gcd(copies, ROW, loops.bound_of(order[-1])) if is_row else 1
        along, turn = (self._upcast(n) for n in (row, copies // row))
        item = loops.row_major(self.items, self.items)
        number = add(mul(turn, loops.count_of(self.items)), item)
        rows = index(loops.bound_of(order[-1]) // row)
        *found, last = loops.digits(number, [*(r.src[0] for r in order[:-1]), rows])
        found.append(add(mul(last, row), along))
        place_of = dict(zip(order, found, strict=True))
        places = tile.places(memory, [place_of[r] for r in tile.within])
        stores = [
            UOp(Op.STORE, place, load.substitute(place_of))
            for place, load in zip(places, tile.loads, strict=True)
        ]
        return loops.in_loops(loops.grouped(stores), (turn, along))

    def _upcast(self, count: int) -> UOp:
        if count == 1:
            return ZERO
        self.fresh += 1
        return loops.ranged(count, self.fresh - 1, AxisType.UPCAST)


def _only_loops(order: Sequence[UOp], inside: Mapping[UOp, frozenset[UOp]]) -> set[UOp]:
    """The RANGEs of some iterations that are the only loop around what a REDUCE folds."""
    found: set[UOp] = set()
    for u in order:
        if u.op is Op.REDUCE and not any(loops.type_of(r) in SERIAL for r in inside[u]):
            serial = [r for r in u.src[1:] if loops.type_of(r) is AxisType.REDUCE]
            found.update(serial if len(serial) == 1 and int_value(serial[0].src[0]) else ())
    return found


def in_two_parts(body: UOp) -> UOp:
    """Let every second iteration of a fold use the same part of its LOCAL memory."""
    order = body.toposort()
    smaller: dict[UOp, UOp] = {}
    turns: dict[UOp, UOp] = {}
    shared = [u for u in order if u.addrspace is AddrSpace.LOCAL]
    for memory in (u for u in shared if u.op is Op.BUFFER):
        places = [u for u in shared if u.op is Op.INDEX and base_of(u) is memory]
        fold = _fold_of(memory, places, order)
        if fold is not None:
            count = 2 * memory.shape[0] // loops.bound_of(fold)
            smaller[memory] = UOp(Op.BUFFER, dims((count,)), arg=memory.arg)
            turn = {fold: mod(fold, 2)}
            turns |= {p: p.src[1].substitute(turn) for p in places}
    if not smaller:
        return body

    def in_turns(u: UOp, src: list[UOp]) -> UOp:
        return smaller.get(u) or u.with_src([src[0], turns[u]] if u in turns else src)

    return rebuild(body, in_turns)


def _fold_of(memory: UOp, places: Sequence[UOp], order: Sequence[UOp]) -> UOp | None:
    """The RANGE of the only loop around all accesses to a memory, if it has three iterations or
    more. Each iteration writes its own part of the memory before a barrier, and reads it after.
    """
    inside = open_ranges(order)
    alone = _only_loops(order, inside)
    reads = [p for p in places if p.src[0].op is Op.AFTER]
    barriers = {p.src[0].src[1:] for p in reads}
    found = set.intersection(alone, *(inside[p] for p in places))
    if len(found) != 1 or len(barriers) != 1:
        return None
    (fold,), ((barrier, *others),) = found, barriers
    if loops.bound_of(fold) < 3:
        return None
    written = barrier.toposort()
    is_ordered = barrier.op is Op.BARRIER and not others and not set(reads) & set(written)
    part, rest = divmod(memory.shape[0], loops.bound_of(fold))
    is_parted = not rest and all(_is_in_part(p.src[1], fold, part) for p in places)
    stores = [p for p in places if p not in reads]
    return fold if is_ordered and is_parted and set(stores) <= set(written) else None


def _is_in_part(index: UOp, fold: UOp, size: int) -> bool:
    """Whether an index is fold * size and 0 to size - 1 more."""
    first = mul(fold, size)
    nodes = index.toposort()
    through = [u for u in nodes if first in u.toposort() and u is not first]
    is_sum = all(u.op in (Op.ADD, Op.RESHAPE, Op.EXPAND) for u in through)
    uses = sum(s is first for u in nodes for s in u.src)
    if not is_sum or uses != 1 or any(fold in u.src and u is not first for u in nodes):
        return False
    low, high = bounds(index.substitute({first: ZERO}))
    return low >= 0 and high < size


def with_rows(body: UOp, fired: Fired) -> UOp:
    """Store the shared values of rows, in a kernel without groups and without memory of its own."""
    order = body.toposort()
    found = loops.axes(body)
    if not _is_alone(order) or any(u.op in (Op.BUFFER, Op.AFTER, Op.WMMA) for u in order):
        return body
    fresh = loops.free_id(order)
    new: dict[UOp, UOp] = {}
    for slot, rows in enumerate(_repeated(order, fresh)):
        new |= _kept(rows, slot, fresh + slot * len(found))
    for before, after in new.items():
        fired(KEEP_ROW, before, after)
    return body.substitute(new)


def _is_alone(order: Sequence[UOp]) -> bool:
    """Whether each group of a kernel has one work item."""
    ranges = (u for u in order if u.op is Op.RANGE)
    has_numbers = any(u.op is Op.SPECIAL for u in order)
    return not has_numbers and all(loops.type_of(r) in (*ALONG, *AROUND) for r in ranges)


@dataclass(frozen=True, slots=True)
class _Row:
    """A value that a loop over a row computes."""

    value: UOp
    outer: tuple[UOp, ...]
    """The UPCAST axes that it depends on: each iteration has a row."""
    along: tuple[UOp, ...]
    """The axes of the row."""

    @property
    def size(self) -> int:
        return loops.count_of((*self.outer, *self.along))

    def over(self, first: int) -> Mapping[UOp, UOp]:
        """New axes for the row, with other ids, by those that they replace."""
        return {
            r: loops.ranged(r.src[0], first + k, loops.type_of(r)) for k, r in enumerate(self.along)
        }


def _repeated(order: Sequence[UOp], fresh: int) -> list[list[_Row]]:
    """The costly values that several loops compute, without those inside of others."""
    inside = open_ranges(order)
    written = {base_of(u.src[0]) for u in order if u.declaration.is_write}
    groups: dict[UOp, list[_Row]] = {}
    for u in reversed(order):
        if not u.declaration.is_transcendental:
            continue
        ranges = sorted(inside[u], key=loops.nesting)
        outer = tuple(r for r in ranges if loops.type_of(r) is AxisType.UPCAST)
        row = _Row(u, outer, tuple(r for r in ranges if loops.type_of(r) in ALONG))
        reads = (v for v in u.toposort() if v.op is Op.LOAD)
        is_kept = row.along and 0 < row.size * u.dtype.itemsize <= MOST_ROW_BYTES
        if is_kept and not any(base_of(v.src[0]) in written for v in reads):
            groups.setdefault(u.substitute(row.over(fresh)), []).append(row)
    found: list[list[_Row]] = []
    below: set[UOp] = set()
    for rows in groups.values():
        if len(rows) > 1 and below.isdisjoint(row.value for row in rows):
            found.append(rows)
            below.update(u for row in rows for u in row.value.toposort())
    return found


def _kept(rows: Sequence[_Row], slot: int, fresh: int) -> dict[UOp, UOp]:
    """The values of equal rows, read from where one more loop stores them."""
    first = rows[0]
    memory = buffer(slot, first.value.dtype, first.size, AddrSpace.LOCAL)
    over = first.over(fresh)
    along = tuple(over.values())
    place = UOp(Op.INDEX, memory, _position(first, along))
    effect = loops.in_loops(UOp(Op.STORE, place, first.value.substitute(over)), along)
    after = UOp(Op.AFTER, memory, effect)
    return {
        row.value: UOp(Op.LOAD, UOp(Op.INDEX, after, _position(row, row.along))) for row in rows
    }


def _position(row: _Row, along: Sequence[UOp]) -> UOp:
    ranges = (*row.outer, *along)
    return loops.row_major(ranges, ranges)


def in_registers(body: UOp) -> UOp:
    """Give the LOCAL memory of a group with one work item to that item, as registers."""
    order = body.toposort()
    if not _is_alone(order):
        return body
    found = {
        u: UOp(Op.BUFFER, *u.src, arg=replace(arg_of(u, BufferArg), addrspace=AddrSpace.REG))
        for u in order
        if u.op is Op.BUFFER and u.addrspace is AddrSpace.LOCAL
    }
    return body.substitute(found)
