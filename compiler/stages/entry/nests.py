"""Which loops of a kernel are work items of one launch; splits kernels (before the stages).

A launch has one grid. So STOREs under GLOBAL RANGEs of their own become kernels that run one after
the other, in an order that AFTERs and reads allow. Loops of one work item stay in one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, count, permutations, product
from math import prod
from operator import mul

from uop.compiler.loops import FOLDED, ITEMS, free_id, type_of
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.simplify import linear_form
from uop.compiler.stages.expand import MOST_ELEMENTS
from uop.compiler.stages.select.launch import is_work_item, shared_folds
from uop.spec.args import AddrSpace, AxisType, RangeArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import accessed, base_of, rebuild, slot_of, toposort
from uop.spec.kernel.forms import closed_by, open_ranges
from uop.spec.kernel.loops import with_joined_loops
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_size
from uop.spec.uop import UOp


def split_nests(call: UOp) -> UOp:
    """Split the kernel of a CALL that does not fit one launch, where that is possible.

    UnsupportedError for a STORE in two loops over one RANGE.
    """
    if call.src[0].op is not Op.SINK:
        return call
    call = call.with_src([_closed_once(call.src[0]), *call.src[1:]])
    return call if _fits_one_launch(call) else _in_sequence(call, _split(call))


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
    fresh = count(free_id(order))
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


def _fits_one_launch(call: UOp) -> bool:
    """Whether the work items of a kernel run all of it, or need no order among its loops."""
    has_items = any(u.op is Op.END and is_work_item(u.src[1]) for u in call.src[0].toposort())
    return not has_items or is_in_every_item(call) or is_parallel(call)


def is_parallel(call: UOp) -> bool:
    """Whether no iteration of the outer loops depends on another one, so that they may become work
    items.

    There is one nest. It reads from no buffer that it stores to. It stores to each buffer once;
    more often only where all its iterations are work items already, or where the elements differ.
    All items of a group write to its LOCAL memory.
    """
    order = call.src[0].toposort()
    effect = call.src[0].src[0] if len(call.src[0].src) == 1 else call.src[0]
    while effect.op is Op.END:
        effect = effect.src[0]
    innermost = effect.src if effect.op is Op.GROUP else (effect,)
    inside = open_ranges(order)
    items = (r for r in inside if r.op is Op.RANGE and type_of(r) in ITEMS)
    several = {r for r in items if int_value(r.src[0]) != 1}
    ended = [u.src[1] for u in order if u.op is Op.END and not is_work_item(u.src[1])]
    written = [u for u in order if u.op is Op.STORE]
    stores = [u for u in written if u.src[0].addrspace is not AddrSpace.LOCAL]
    stored = {accessed(u, call) for u in stores}
    return (
        set(innermost) == set(stores)
        and all(is_size(u.src[0]) for u in order if u.op is Op.RANGE)
        and (not ended or len(stored) == len(stores) or _are_apart(stores, ended))
        and not any(u.op is Op.LOAD and accessed(u, call) in stored for u in order)
        and all(several <= inside[u] for u in written if u not in stores)
    )


def _are_apart(stores: Sequence[UOp], loops: Sequence[UOp]) -> bool:
    """Whether no two STOREs of a work item write the same element, in any iterations of its loops.

    Their indices decide: each must be a sum of multiples of these loops and of a part that all
    share.
    """
    counts = [int_value(r.src[0]) for r in loops]
    written: set[int] = set()
    in_common: set[tuple[UOp, frozenset[tuple[UOp, int]]]] = set()
    sizes = [n or 0 for n in counts]
    if None in counts or prod(sizes) * len(stores) > MOST_ELEMENTS:
        return False
    for u in stores:
        terms, offset = linear_form(u.src[0].src[1])
        rest = {t: n for t, n in terms.items() if t not in loops}
        if not set(loops).isdisjoint(v for t in rest for v in t.toposort()):
            return False
        in_common.add((base_of(u.src[0]), frozenset(rest.items())))
        steps = [terms.get(r, 0) for r in loops]
        for at in product(*map(range, sizes)):
            written.add(offset + sum(map(mul, steps, at)))
    return len(in_common) == 1 and len(written) == prod(sizes) * len(stores)


def is_in_every_item(call: UOp) -> bool:
    """Whether the loops over work items are one nest around every effect. An effect outside one of
    them must not run in each of its items.
    """
    order = call.src[0].toposort()
    inside = open_ranges(order)
    counted = {u.src[1] for u in order if u.op is Op.END and is_work_item(u.src[1])}
    effects = [u for u in order if u.declaration.is_write]
    opaque = (u for u in order if u.op in (Op.BARRIER, Op.INS, Op.CUSTOM))
    effects += [u for u in opaque if u.dtype is dtypes.void]
    if shared_folds(order) and any(u.op is not Op.STORE for u in effects):
        return False
    return all(counted <= inside[u] for u in effects)
