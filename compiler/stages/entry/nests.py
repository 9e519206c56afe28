"""Splits a kernel whose STOREs run in different work items (before the stages).

A launch has one grid. STOREs under GLOBAL RANGEs of their own become kernels that run one after the
other, in an order that AFTERs and reads allow. Loops of one work item stay in one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, count, permutations

from uop.compiler.loops import FOLDED, id_of, type_of
from uop.compiler.stages.select.launch import is_work_item
from uop.spec.args import AddrSpace, AxisType, RangeArg
from uop.spec.errors import UnsupportedError
from uop.spec.graph import accessed, base_of, kernels, over, slot_of
from uop.spec.kernel.forms import closed_by, open_ranges
from uop.spec.kernel.loops import with_joined_loops
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import outside_bodies, rebuild, toposort

Fits = Callable[[UOp], bool]
"""Returns whether the kernel of a CALL runs in one launch without a split."""


def split_nests(root: UOp, fits: Fits) -> UOp:
    """Split the kernels of a program that do not fit one launch, where that is possible.

    UnsupportedError for a STORE in two loops over one RANGE.
    """

    def fitting(u: UOp, operands: list[UOp]) -> UOp:
        if u.op is not Op.CALL or u.src[0].op is not Op.SINK:
            return over(u, operands)
        call = u.with_src([_closed_once(u.src[0]), *operands])
        return call if fits(call) else _in_sequence(call, _split(call))

    return rebuild(root, fitting, outside_bodies) if kernels(root) else root


def _closed_once(body: UOp) -> UOp:
    """Join the loops of a RANGE, and give those that are apart a RANGE each."""
    order = body.toposort()
    closed = [r for u in order for r in closed_by(u)]
    if len(set(closed)) == len(closed) and not any(map(_loops_to_fold, order)):
        return body
    return _apart(with_joined_loops(body))


def _loops_to_fold(u: UOp) -> list[UOp]:
    """The RANGEs of a REDUCE whose type is that of a loop around effects."""
    return [r for r in u.src[1:] if type_of(r) not in FOLDED] if u.op is Op.REDUCE else []


def _apart(body: UOp) -> UOp:
    """Give each loop over a RANGE, except the first, a RANGE of its own, and each fold one of a
    type that folds.
    """
    order = body.toposort()
    fresh = count(1 + max(id_of(r) for r in order if r.op is Op.RANGE))
    closed: set[UOp] = set()

    def apart(u: UOp, src: list[UOp]) -> UOp:
        v = u.with_src(src)
        again = closed.intersection(closed_by(v)).union(_loops_to_fold(v))
        v = _over_copies(v, again, fresh) if again else v
        closed.update(closed_by(v))
        return v

    after = rebuild(body, apart)
    if _count_writes(after.toposort()) != _count_writes(order):
        raise UnsupportedError("a kernel with a STORE in two loops over one RANGE")
    return after


def _over_copies(closer: UOp, ranges: set[UOp], fresh: Iterator[int]) -> UOp:
    """An END or REDUCE over copies of RANGEs, and of those that these bound."""
    inside = open_ranges(closer.toposort())

    def over_copies(u: UOp, src: list[UOp]) -> UOp:
        if u is not closer and inside[u].isdisjoint(ranges):
            return u
        if u.op is not Op.RANGE:
            return u.with_src(src)
        is_fold = closer.op is Op.REDUCE and u in ranges
        arg = RangeArg(next(fresh), AxisType.REDUCE if is_fold else type_of(u))
        return UOp(Op.RANGE, *src, arg=arg, tag=u.tag)

    return rebuild(closer, over_copies)


def _count_writes(order: Iterable[UOp]) -> int:
    return sum(u.declaration.is_write for u in order)


@dataclass(frozen=True, slots=True, eq=False)
class _Nest:
    """The STOREs of a kernel that run in the same work items."""

    writes: tuple[UOp, ...]
    accesses: tuple[UOp, ...]
    """Its STOREs, and the LOADs that they need."""
    loops: frozenset[UOp]
    """The RANGEs around them that are no work items."""

    def touches(self, call: UOp) -> set[UOp]:
        return {accessed(u, call) for u in self.accesses}

    def stores_to(self, call: UOp) -> set[UOp]:
        return {accessed(u, call) for u in self.writes}


def _split(call: UOp) -> list[UOp]:
    """The kernels of a CALL in an order in which they may run: one, where it cannot be split."""
    body = call.src[0]
    order = body.toposort()
    nests = _nests(order)
    of_launch = (Op.SPECIAL, Op.BARRIER, Op.GETADDR, Op.INS, Op.CUSTOM)
    if any(u.op in of_launch for u in order) or not _are_separable(nests, call):
        return [body]
    try:
        ordered = [*TopologicalSorter(_predecessors(nests, call)).static_order()]
    except CycleError:
        return [body]
    bodies = [_only(order, nest.writes) for nest in ordered]
    counts = [_count_writes(b.toposort()) for b in bodies]
    return bodies if counts == [len(nest.writes) for nest in ordered] else [body]


def _nests(order: Sequence[UOp]) -> list[_Nest]:
    """The STOREs by the RANGEs over work items around them."""
    inside, around = open_ranges(order), _around(order)
    loops = {u: inside[u] | around.get(u, frozenset()) for u in order if u.declaration.is_write}
    by_items: dict[frozenset[UOp], list[UOp]] = {}
    for u, ranges in loops.items():
        by_items.setdefault(frozenset(filter(is_work_item, ranges)), []).append(u)
    found = []
    for items, writes in by_items.items():
        others = loops.keys() - set(writes)
        run = toposort(writes, lambda u, others=others: () if u in others else u.src)  # type: ignore[misc]
        accesses = tuple(u for u in run if u.declaration.access and u not in others)
        serial = frozenset[UOp]().union(*(loops[u] for u in writes)) - items
        found.append(_Nest(tuple(writes), accesses, serial))
    return found


def _around(order: Sequence[UOp]) -> dict[UOp, frozenset[UOp]]:
    """The RANGEs of the ENDs that enclose each effect."""
    around: dict[UOp, frozenset[UOp]] = {}
    for u in reversed(order):
        if u.op in (Op.END, Op.GROUP):
            ranges = around.get(u, frozenset()).union(u.src[1:] if u.op is Op.END else ())
            for s in u.src[:1] if u.op is Op.END else u.src:
                around[s] = around.get(s, frozenset()) | ranges
    return around


def _are_separable(nests: Sequence[_Nest], call: UOp) -> bool:
    """Whether no two nests share memory of a work item or group, or, in a loop around both, memory
    that one of them writes.
    """
    for one, other in combinations(nests, 2):
        shared = one.touches(call) & other.touches(call)
        if any(memory.addrspace is not AddrSpace.GLOBAL for memory in shared):
            return False
        stored = shared & (one.stores_to(call) | other.stores_to(call))
        if stored and one.loops & other.loops:
            return False
    return len(nests) > 1


def _predecessors(nests: Sequence[_Nest], call: UOp) -> dict[_Nest, set[_Nest]]:
    """The nests that must run before each: those that it waits for, and those that read its target
    before it stores there. Nests without an order access different memory (D-053).
    """
    before: dict[_Nest, set[_Nest]] = {nest: set() for nest in nests}
    known = {w: frozenset(w.toposort()) for nest in nests for w in nest.writes}
    for one, other in permutations(nests, 2):
        for w in other.writes:
            if any(w in known[own] for own in one.writes):
                before[one].add(other)
            read = (u for u in one.accesses if u.op is Op.LOAD and u in known[w])
            if any(accessed(u, call) is accessed(w, call) for u in read):
                before[other].add(one)
    return before


def _only(order: Sequence[UOp], writes: Sequence[UOp]) -> UOp:
    """A kernel with these STOREs alone: what waits for others need not wait any more."""
    new: dict[UOp, UOp | None] = {}
    for u in order[:-1]:
        kept = [s for s in map(new.__getitem__, u.src) if s is not None]
        if u.declaration.is_write:
            new[u] = u.with_src(kept) if u in writes else None
        elif u.op is Op.AFTER and len(kept) == 1:
            new[u] = kept[0]
        elif u.op is Op.END and len(kept) == 1:
            new[u] = None
        elif u.op is Op.GROUP and len(kept) < 2:
            new[u] = kept[0] if kept else None
        else:
            new[u] = u.with_src(kept)
    return UOp(Op.SINK, *dict.fromkeys(e for u in _outermost(order) if (e := new[u]) is not None))


def _outermost(order: Sequence[UOp]) -> list[UOp]:
    """The effects that no END or GROUP contains, without those in open loops."""
    inside = open_ranges(order)
    within = {s for u in order if u.op in (Op.END, Op.GROUP) for s in u.src}
    effects = [u for u in order if u.declaration.is_write or u.op in (Op.END, Op.GROUP)]
    return [u for u in effects if u not in within and not inside[u]]


def _in_sequence(call: UOp, bodies: Sequence[UOp]) -> UOp:
    """CALLs of kernels on the arguments of one, each after the one before."""
    done = call.with_src([bodies[0], *call.src[1:]])
    for body in bodies[1:]:
        arguments = [*call.src[1:]]
        stored = slot_of(next(base_of(u.src[0]) for u in body.toposort() if u.declaration.is_write))
        arguments[stored] = UOp(Op.AFTER, arguments[stored], done)
        done = call.with_src([body, *arguments])
    return done
