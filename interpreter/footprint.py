"""Bound the memory that the values of a program need, before any of them is computed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from uop.interpreter.numeric.storage import holds
from uop.spec.args import AddrSpace
from uop.spec.conditions.clauses import lacking
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op

if TYPE_CHECKING:
    from uop.interpreter.kernel.lanes import Axis
    from uop.spec.uop import UOp

USUAL_BYTES = 8 << 30
"""The limit where the system does not say how much memory there is."""
MOST_OF_ONE = 24
"""The most bytes of one element: the value, and in a location its position too."""
_CONTAINER = Path("/sys/fs/cgroup/memory.max")

_limit: ContextVar[int | None] = ContextVar("limit", default=None)

Sources = Callable[["UOp"], "tuple[UOp, ...]"]


@contextmanager
def at_most(count: int) -> Iterator[None]:
    """Limit the bytes that programs may need at once, instead of by the machine's memory."""
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)


def limit() -> int:
    """Return the bytes that values may need at once: those of the machine or of its container."""
    chosen = _limit.get()
    return _memory() if chosen is None else chosen


def bound(order: Sequence[UOp]) -> int:
    """Return an upper bound of the bytes that nodes need, as if all values were the largest.

    It is fast to compute. No limit suffices for a shape that numpy cannot have.
    """
    shapes = {u.shape for u in order}
    most = max((prod(s) if holds(s, MOST_OF_ONE) else sys.maxsize for s in shapes), default=0)
    return most * MOST_OF_ONE * len(order)


def check_values(order: Sequence[UOp], sources: Sources) -> None:
    """Raise VALUE.n1 where the values of a graph, each held until its last use, do not fit.

    A graph that stores holds all values. A view of another value counts in full.
    """
    if bound(order) <= limit():
        return
    keeps = any(u.addrspace is not None for u in order)
    last = {} if keeps else {s: u for u in order for s in sources(u)}
    live, most = 0, limit()
    for u in order:
        live += _bytes(u)
        _refuse_above(most, live, u)
        live -= sum(_bytes(s) for s in dict.fromkeys(sources(u)) if last.get(s) is u)


def check_kernel(order: Sequence[UOp], axes: Sequence[Axis]) -> None:
    """Raise VALUE.n1 where the values of a kernel body, all held until it ends, do not fit.

    A value has a copy for each position on the axes that it depends on.
    """
    if bound(order) * prod(a.size for a in axes) <= limit():
        return
    sizes = {a.node: a.size for a in axes}
    groups = frozenset(a.node for a in axes if a.node.op is Op.SPECIAL)
    depends: dict[UOp, frozenset[UOp]] = {}
    live, most = 0, limit()
    for u in order:
        own = frozenset({u}) if u in sizes else frozenset()
        closed = frozenset(u.src[1:]) if u.op in (Op.REDUCE, Op.END) else frozenset()
        around = frozenset().union(*(depends.get(s, frozenset()) for s in u.src)) | own
        # Memory of a group or of a work item: one each at most.
        private = u.op is Op.BUFFER and u.addrspace is not AddrSpace.GLOBAL
        depends[u] = groups if private else around - closed
        if private or u.addrspace is None:
            live += _bytes(u) * prod(sizes[a] for a in depends[u])
            _refuse_above(most, live, u)


def _bytes(u: UOp) -> int:
    if u.dtype is dtypes.void:
        return 0
    return prod(u.shape) * (u.dtype.itemsize + (0 if u.addrspace is None else 8))


def _refuse_above(most: int, live: int, u: UOp) -> None:
    if not holds(u.shape, MOST_OF_ONE):
        raise lacking("VALUE.n1", "a shape of more axes, or larger, than arrays have", u)
    if live > most:
        found = f"{_bytes(u)} bytes for one value, {live} at once, of {most} at most"
        raise lacking("VALUE.n1", found, u)


@cache
def _memory() -> int:
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return USUAL_BYTES
    try:
        contained = _CONTAINER.read_text("ascii").strip()
    except OSError:
        return installed
    return min(installed, int(contained)) if contained.isdecimal() else installed
