"""Accesses neighbours in memory as one vector (in select).

The vectors of a kernel lie along its axes. The elements of a fragment have no axis: each has a
separate access, at an index that differs by a constant from those of its neighbours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from uop.compiler.loops import counting, grouped
from uop.compiler.rewriting.simplify import linear_form
from uop.compiler.targets.target import Target
from uop.spec.graph import base_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const
from uop.spec.walk import rebuild


@dataclass(frozen=True, slots=True)
class _Run:
    """What accesses at indices that differ by constants have in common."""

    op: Op
    memory: UOp
    terms: frozenset[tuple[UOp, int]]
    gate: UOp | None


def with_neighbours(body: UOp, target: Target) -> UOp:
    """Make vectors of the accesses to neighbours in a kernel with fragments of matrices."""
    order = body.toposort()
    if not any(u.op is Op.WMMA for u in order):
        return body
    memories = _written_before(order)
    loads = [u for u in order if u.op is Op.LOAD and u.src[0].src[0] in memories]
    first = {u: (v, k) for v in _vectors(loads, target) for k, u in enumerate(v)}
    groups = _groups(order, target)
    new: dict[UOp, UOp] = {}

    def at_once(u: UOp, src: list[UOp]) -> UOp:
        if u in first:
            accesses, k = first[u]
            return UOp(Op.INDEX, _at_once(accesses, new), index_const(k))
        if u in groups:
            return grouped([_at_once(e, new) if len(e) > 1 else new[e[0]] for e in groups[u]])
        return _whole(u.with_src(src))

    return rebuild(body, at_once, done=new)


def _written_before(order: Sequence[UOp]) -> set[UOp]:
    """The memories that do not change after their LOADs may run: all writes are sources of them."""
    writes: dict[UOp, list[UOp]] = {}
    for u in order:
        if u.declaration.is_write:
            writes.setdefault(base_of(u.src[0]), []).append(u)
    read = dict.fromkeys(u.src[0].src[0] for u in order if u.op is Op.LOAD)
    return {m for m in read if set(writes.get(base_of(m), ())) <= set(m.toposort())}


def _vectors(accesses: Iterable[UOp], target: Target) -> Iterator[tuple[UOp, ...]]:
    """The accesses that one vector replaces, in the order of its elements."""
    runs: dict[_Run, dict[int, list[UOp]]] = {}
    for u in (u for u in accesses if not u.src[0].shape):
        terms, offset = linear_form(u.src[0].src[1])
        gate = u.src[2] if len(u.src) > 2 else None
        run = _Run(u.op, u.src[0].src[0], frozenset(terms.items()), gate)
        runs.setdefault(run, {}).setdefault(offset, []).append(u)
    for run, at in runs.items():
        if all(len(same) == 1 for same in at.values()):
            yield from _parts(run, {k: u for k, (u,) in sorted(at.items())}, target)


def _parts(run: _Run, at: dict[int, UOp], target: Target) -> Iterator[tuple[UOp, ...]]:
    """Vectors as wide as the target has them, at multiples of their size where it asks for it."""
    itemsize = run.memory.dtype.itemsize
    while at and target.has_vector(next(iter(at.values()))):
        start = next(iter(at))
        length = next(n for n in range(1, len(at) + 1) if start + n not in at)
        multiple = math.gcd(start, *(n for _, n in run.terms)) if target.is_aligned else 0
        width = next(
            n
            for n in range(length, 0, -1)
            if not multiple % n and target.vector_width(n, itemsize) == n
        )
        found = tuple(at.pop(start + k) for k in range(width))
        if width > 1:
            yield found


def _groups(order: Sequence[UOp], target: Target) -> dict[UOp, list[tuple[UOp, ...]]]:
    """The effects of each GROUP, with STOREs to neighbours together. A GROUP that only another one
    uses belongs to that one.
    """
    users = Counter(s for u in order for s in dict.fromkeys(u.src))
    effects: dict[UOp, list[UOp]] = {}
    for u in (u for u in order if u.op is Op.GROUP):
        inner = [s for s in dict.fromkeys(u.src) if s in effects and users[s] == 1]
        nested = [effects.pop(s) if s in inner else [s] for s in dict.fromkeys(u.src)]
        effects[u] = [s for part in nested for s in part]
    found: dict[UOp, list[tuple[UOp, ...]]] = {}
    for group, parts in effects.items():
        stores = [u for u in parts if u.op is Op.STORE and users[u] == 1]
        vectors = {v[0]: v for v in _vectors(stores, target)}
        taken = {u for v in vectors.values() for u in v[1:]}
        found[group] = [vectors.get(u, (u,)) for u in parts if u not in taken]
    return found


def _at_once(accesses: Sequence[UOp], new: Mapping[UOp, UOp]) -> UOp:
    """One access at the places of several, with a vector of each of their operands."""
    first, *_ = accesses
    memory, index = (new[s] for s in first.src[0].src)
    place = UOp(Op.INDEX, memory, UOp(Op.ADD, index, counting(len(accesses))))
    columns = zip(*(u.src[1:] for u in accesses), strict=True)
    operands = (_whole(UOp(Op.STACK, *map(new.__getitem__, column))) for column in columns)
    return first.with_src([place, *operands])


def _whole(u: UOp) -> UOp:
    """A node, or the vector whose elements it stacks in their order."""
    if u.op is not Op.STACK or not u.src or u.src[0].op is not Op.INDEX:
        return u
    vector = u.src[0].src[0]
    elements = [UOp(Op.INDEX, vector, index_const(k)) for k in range(len(u.src))]
    is_all = vector.addrspace is None and vector.shape == u.shape and elements == list(u.src)
    return vector if is_all else u
