"""Computes once the costly values that several loops over a row share (in optimize).

A new loop before them stores these values of the row, and the others load them. That pays for
functions that cost more than memory: the sum and the results of a softmax both need its
exponentials. The row lies in LOCAL memory of a group of one work item, since iterations of a graph
share no registers. Select makes it an array of the work item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from uop.compiler.rewriting.rewrite import Fired
from uop.compiler.stages.optimize.axes import (
    DEPTH,
    axes,
    count_of,
    id_of,
    ranged,
    row_major,
    type_of,
)
from uop.spec.args import AddrSpace, AxisType, BufferArg, arg_of
from uop.spec.graph import base_of
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims

ALONG = (AxisType.REDUCE, AxisType.UNROLL)
"""The axes of a row."""
AROUND = (AxisType.GLOBAL, AxisType.THREAD, AxisType.UPCAST)
"""The other axes of a kernel with such rows, which uses no groups."""
MOST_BYTES = 16 << 10
"""The most bytes of the stored rows: half of the first-level cache, which they are read from."""
KEEP_ROW = "keep_row"


def with_rows(body: UOp, fired: Fired) -> UOp:
    """Store the shared values of rows, in a kernel without groups and without memory of its own."""
    order = body.toposort()
    found = axes(body)
    if not _is_alone(order) or any(u.op in (Op.BUFFER, Op.AFTER, Op.WMMA) for u in order):
        return body
    fresh = 1 + max(map(id_of, found), default=0)
    new: dict[UOp, UOp] = {}
    for slot, rows in enumerate(_repeated(order, fresh)):
        new |= _kept(rows, slot, fresh + slot * len(found))
    for before, after in new.items():
        fired(KEEP_ROW, before, after)
    return body.substitute(new) if new else body


def _is_alone(order: Sequence[UOp]) -> bool:
    """Whether each group of a kernel has one work item."""
    ranges = (u for u in order if u.op is Op.RANGE)
    has_numbers = any(u.op is Op.SPECIAL for u in order)
    return not has_numbers and all(type_of(r) in (*ALONG, *AROUND) for r in ranges)


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
        return count_of((*self.outer, *self.along))

    def over(self, first: int) -> Mapping[UOp, UOp]:
        """New axes for the row, with other ids, by those that they replace."""
        return {r: ranged(r.src[0], first + k, type_of(r)) for k, r in enumerate(self.along)}


def _repeated(order: Sequence[UOp], fresh: int) -> list[list[_Row]]:
    """The costly values that several loops compute, without those inside of others."""
    inside = open_ranges(order)
    written = {base_of(u.src[0]) for u in order if u.declaration.is_write}
    groups: dict[UOp, list[_Row]] = {}
    for u in reversed(order):
        if not u.declaration.is_transcendental:
            continue
        ranges = sorted(inside[u], key=lambda r: (DEPTH[type_of(r)], id_of(r)))
        outer = tuple(r for r in ranges if type_of(r) is AxisType.UPCAST)
        row = _Row(u, outer, tuple(r for r in ranges if type_of(r) in ALONG))
        reads = (v for v in u.toposort() if v.op is Op.LOAD)
        is_kept = row.along and 0 < row.size * u.dtype.itemsize <= MOST_BYTES
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
    arg = BufferArg(slot, first.value.dtype, None, AddrSpace.LOCAL)
    memory = UOp(Op.BUFFER, dims((first.size,)), arg=arg)
    over = first.over(fresh)
    loops = tuple(over.values())
    place = UOp(Op.INDEX, memory, _position(first, loops))
    effect = UOp(Op.STORE, place, first.value.substitute(over))
    for r in reversed(loops):
        effect = UOp(Op.END, effect, r)
    after = UOp(Op.AFTER, memory, effect)
    return {
        row.value: UOp(Op.LOAD, UOp(Op.INDEX, after, _position(row, row.along))) for row in rows
    }


def _position(row: _Row, along: Sequence[UOp]) -> UOp:
    ranges = (*row.outer, *along)
    return row_major(ranges, ranges)


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
    return body.substitute(found) if found else body
