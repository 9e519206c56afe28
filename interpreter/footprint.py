"""Bound the memory of an evaluation, before any value is computed, and its work.

The bound on memory counts values. Masks, positions in memory and temporaries of numpy take several
times as much, accepted sets more; so values may use only a part of the free memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from uop.interpreter.numeric.storage import holds
from uop.spec.args import AddrSpace
from uop.spec.conditions.clauses import lacking
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.forms import closed_by
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.interpreter.kernel.lanes import Axis
    from uop.spec.uop import UOp

SMALL = 64 << 20
"""The bytes that values may always need. All judged programs have this limit, so that no verdict
depends on the memory of a machine; the largest program of the suite needs half of it.
"""
PART = 8
"""Values may use the free bytes divided by this."""
MOST_OF_ONE = 24
"""The most bytes of one element: its value, and in a location also its position."""
POSITION = 8
"""The bytes of a position in memory."""
_CONTAINER = Path("/sys/fs/cgroup")

_limit: ContextVar[int | None] = ContextVar("limit", default=None)

Sources = Callable[["UOp"], "tuple[UOp, ...]"]


@contextmanager
def at_most(count: int) -> Iterator[None]:
    """Set the limit of the bytes that values may need at once, in place of the free memory."""
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)


def limit() -> int:
    """Return the bytes that values may need at once: a part of those that are free now."""
    chosen = _limit.get()
    return max(SMALL, free() // PART) if chosen is None else chosen


def is_small(count: int) -> bool:
    """Whether so many bytes always fit; `limit` takes longer."""
    chosen = _limit.get()
    return count <= (SMALL if chosen is None else chosen)


class Meter:
    """Counts the elements that an evaluation computes: the lanes of every instruction."""

    __slots__ = ("most", "spent")

    def __init__(self, most: int | None) -> None:
        self.most, self.spent = most, 0

    def spend(self, count: int) -> None:
        """Count elements. WorkError if the limit is exceeded."""
        self.spent += count
        if self.most is not None and self.spent > self.most:
            raise WorkError(f"more than {self.most} elements are computed")


class WorkError(UnsupportedError):
    """An evaluation computes more elements than its limit."""


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered(most: int | None = None) -> Iterator[Meter]:
    """Count the elements that evaluations in this block compute, up to a limit if there is one."""
    meter = Meter(most)
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def current_meter() -> Meter | None:
    """The current meter; None if nothing is counted."""
    return _meter.get()


def bound(order: Sequence[UOp]) -> int:
    """Return an upper bound of the bytes that nodes need, as if all values were the largest.

    It is fast to compute. It exceeds every limit for a shape that numpy cannot have.
    """
    shapes = {u.shape for u in order}
    most = max((prod(s) if holds(s, MOST_OF_ONE) else sys.maxsize for s in shapes), default=0)
    return most * MOST_OF_ONE * len(order)


def unused_after(order: Sequence[UOp], sources: Sources) -> tuple[tuple[UOp, ...], ...]:
    """Return for each node the values that no later node uses; a graph with memory holds all."""
    keeps = any(u.addrspace is not None for u in order)
    last = {} if keeps else {s: u for u in order for s in sources(u)}
    return tuple(tuple(s for s in dict.fromkeys(sources(u)) if last.get(s) is u) for u in order)


def check_values(order: Sequence[UOp], sources: Sources) -> None:
    """Raise VALUE.n1 if the values of a graph, each held until its last use, do not fit.

    A view of another value counts in full.
    """
    if is_small(bound(order)):
        return
    live, most = 0, limit()
    for u, unused in zip(order, unused_after(order, sources), strict=True):
        live += _bytes(u)
        _refuse_above(most, live, u)
        live -= sum(map(_bytes, unused))


def check_kernel(order: Sequence[UOp], axes: Sequence[Axis]) -> None:
    """Raise VALUE.n1 if the values of a kernel body, all held until it ends, do not fit.

    A value has a copy for each position on the axes that it depends on. An access has a position in
    memory for each copy, an ATOMICADD one for every work item.
    """
    if is_small(bound(order) * prod(a.size for a in axes)):
        return
    sizes = {a.node: a.size for a in axes}
    groups = frozenset(a.node for a in axes if a.node.op is Op.SPECIAL)
    depends: dict[UOp, frozenset[UOp]] = {}
    live, most = 0, limit()
    for u in order:
        own = frozenset({u}) if u in sizes else frozenset()
        closed = frozenset(closed_by(u))
        around = frozenset().union(*(depends.get(s, frozenset()) for s in u.src)) | own
        # Memory of a group or of a work item: one each at most.
        private = u.op is Op.BUFFER and u.addrspace is not AddrSpace.GLOBAL
        depends[u] = groups if private else around - closed
        if private or u.addrspace is None:
            live += _bytes(u) * prod(sizes[a] for a in depends[u])
        if u.declaration.access:
            lanes = depends[u] | (groups if u.op is Op.ATOMICADD else frozenset())
            live += POSITION * prod(u.src[0].shape) * prod(sizes[a] for a in lanes)
        _refuse_above(most, live, u)


def _bytes(u: UOp) -> int:
    if u.dtype is dtypes.void:
        return 0
    return prod(u.shape) * (u.dtype.itemsize + (0 if u.addrspace is None else POSITION))


def _refuse_above(most: int, live: int, u: UOp) -> None:
    if not holds(u.shape, MOST_OF_ONE):
        raise lacking("VALUE.n1", "a shape of more axes, or larger, than arrays have", u)
    if live > most:
        found = f"{_bytes(u)} bytes for one value, {live} at once, of {most} at most"
        raise lacking("VALUE.n1", found, u)


def free() -> int:
    """Return the free bytes of memory, in a container those of the container."""
    import psutil  # only where nothing sets a limit

    here = psutil.virtual_memory().available
    try:
        most, used = (
            int((_CONTAINER / name).read_text("ascii")) for name in ("memory.max", "memory.current")
        )
    except (OSError, ValueError):
        return here
    return max(0, min(here, most - used))
