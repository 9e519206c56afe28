"""Splits the values of a kernel into vectors of the target and scalars (in select).

Each effect names the elements that it needs, in packs. A walk from users to sources collects the
packs that each node needs. A walk from sources to users then builds each pack as one node: a vector
if the target has the op on vectors, else a scalar for each element. The vectors of a kernel lie
along one axis, on which most accesses are to neighbours in memory. A REDUCE over RANGEs becomes a
loop over registers, one for each pack of its elements.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import cast

from uop.compiler.build import ZERO, add, buffer, counting, element, identity
from uop.compiler.loops import grouped, id_of, in_loops
from uop.compiler.rewriting.rewrite import Rewriter
from uop.compiler.rewriting.simplify import linear_form
from uop.compiler.stages.select import packs
from uop.compiler.stages.select.packs import ALONE, Pack, Position
from uop.compiler.targets.target import Target
from uop.spec.args import AddrSpace, ReduceArg, arg_of
from uop.spec.dtype import DType, dtypes
from uop.spec.graph import LEAVES, base_of, rebuild
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp


def in_vectors(body: UOp, target: Target, simplify: Rewriter) -> UOp:
    """Split the values of a kernel, and make its folds loops."""
    order = body.toposort()
    if not any(u.op is Op.REDUCE or packs.has_axes(u) for u in order):
        return body
    parts = _Parts(order, target, simplify)
    for u in reversed(order):
        parts.demand(u)
    for u in order:
        parts.build(u)
    return parts.made[body][ALONE]


def _filled(value: UOp, width: int) -> UOp:
    """A value as a vector, whose elements may be one scalar."""
    return value if value.shape or width == 1 else UOp(Op.STACK, *(value,) * width)


def _elements(value: UOp) -> list[UOp]:
    if not value.shape:
        return [value]
    return [element(value, k) for k in range(value.shape[0])]


def _chain(op: Op, values: Sequence[UOp]) -> UOp:
    return reduce(lambda a, b: UOp(op, a, b), values)


def _tree(op: Op, values: Sequence[UOp]) -> UOp:
    """Combine neighbours, then the results."""
    while len(values) > 1:
        values = [_chain(op, values[k : k + 2]) for k in range(0, len(values), 2)]
    return values[0]


class _Parts:
    """The packs of each node that are needed, and what computes each of them."""

    def __init__(self, order: Sequence[UOp], target: Target, simplify: Rewriter) -> None:
        self.target, self.simplify = target, simplify
        self.indices, self.inside = packs.Indices(order, simplify), open_ranges(order)
        self.needed: dict[UOp, dict[Pack, None]] = {}
        self.registers_of: dict[UOp, dict[Pack, list[list[Pack]]]] = {}
        """The terms of each register of each pack of a fold."""
        self.made: dict[UOp, dict[Pack, UOp]] = {}
        self.sums_of_products: set[UOp] = set()
        self.registers = 0
        data = (u.dtype for u in order if packs.has_axes(u) and u.dtype is not dtypes.index)
        itemsize = max((dtype.itemsize for dtype in data), default=1)
        sizes = packs.axes_of_vectors(order, self.indices)
        widths = {a: target.vector_width(size, itemsize) for a, size in sizes.items()}
        folds = {a for u in order if u.op is Op.REDUCE for a in arg_of(u, ReduceArg).axes}
        # Along an axis that is not folded, a fold needs no sum of the elements of its vectors.
        fit = sorted(widths, key=lambda a: (widths[a] < max(widths.values()), a in folds))
        self.widths = {axis: widths[axis] for axis in fit if widths[axis] > 1}
        """The widths of vectors along each axis with neighbours in memory, the usual axis first."""

    def demand(self, u: UOp) -> None:
        """Collect the elements of its sources that a node needs; its users have done so before."""
        if u in self.indices or u.op in LEAVES or _is_wide_place(u):
            return
        if u.op is Op.REDUCE:
            self._demand_terms(u)
        elif u.declaration.access:
            self._demand_access(u)
        else:
            for pack in self._computed(u):
                for s, needed in self._sources(u, pack):
                    self._need(s, needed)

    def _need(self, u: UOp, pack: Pack) -> None:
        self.needed.setdefault(u, {})[pack] = None

    def _packs(self, u: UOp) -> list[Pack]:
        """The packs that are needed of a node; scalars that are in a vector are taken from it."""
        needed = self.needed.get(u, {})
        covered = {p for pack in needed if len(pack) > 1 for p in pack}
        return [g for g in needed if len(g) > 1 or g[0] not in covered]

    def _computed(self, u: UOp) -> list[Pack]:
        """The packs of a node that are computed at once."""
        if u.op is Op.WMMA:
            return [tuple(packs.positions(u.shape))]
        if not packs.is_move(u) and not packs.has_axes(u):
            return [ALONE]
        needed = self._packs(u)
        return needed if packs.is_move(u) or self.target.has_vector(u) else packs.alone(needed)

    def _sources(self, u: UOp, pack: Pack) -> list[tuple[UOp, Pack]]:
        """The operands from which a pack of a node is computed, each with the pack of it."""
        if u.op is Op.WMMA:
            return [(s, (p,)) for s in u.src for p in packs.positions(s.shape)]
        if u.op is Op.STACK and packs.has_axes(u):
            ((k, *rest),) = pack
            return [(u.src[k], (tuple(rest),))]
        if packs.is_move(u) or packs.has_axes(u):
            return [(s, packs.source(u, s, pack)) for s in packs.operands(u)]
        return [(s, ALONE) for s in u.src]

    def _packed(self, shape: Shape, axis: int) -> list[Pack]:
        """The elements of a shape in vectors along an axis; none where they do not fill it."""
        width = self.widths[axis]
        if axis >= len(shape) or shape[axis] % width:
            return []
        starts = tuple(n // width if k == axis else n for k, n in enumerate(shape))
        return [
            tuple((*p[:axis], p[axis] * width + k, *p[axis + 1 :]) for k in range(width))
            for p in packs.positions(starts)
        ]

    def _demand_access(self, u: UOp) -> None:
        place = u.src[0]
        self.needed[u] = dict.fromkeys(self._accessed(u) if place.shape else [ALONE])
        self._need(place.src[0], ALONE)
        for pack in self.needed[u]:
            for s in u.src[1:2]:
                self._need(s, pack)
            for s, p in product((*place.src[1:], *u.src[2:]), pack):
                self._need(s, (p,))

    def _accessed(self, u: UOp) -> list[Pack]:
        """A STORE writes vectors where it can. A LOAD reads those of which users need every
        element.
        """
        shape, wide = u.src[0].shape, packs.on_axes(u.src[0].src[1]).shape
        used = (p for g in self._packs(u) for p in g)
        needed = dict.fromkeys(used if u.op is Op.LOAD else packs.positions(shape))
        vectors: list[Pack] = []
        for axis in self.widths:
            found = self._packed(wide, axis)
            flat = (tuple(packs.reshaped(p, wide, shape) for p in g) for g in found)
            vectors = [g for g in flat if needed.keys() >= set(g) and self._is_vector(u, g)]
            if vectors:
                break
        covered = {p for g in vectors for p in g}
        return [*vectors, *((p,) for p in needed if p not in covered)]

    def _is_vector(self, u: UOp, pack: Pack) -> bool:
        """Whether an access to these elements is one of neighbours, at an index that fits."""
        index = u.src[0].src[1]
        if not self.target.has_vector(u) or not self.indices.steps_by_one(index, pack):
            return False
        return not self.target.is_aligned or self.indices.is_multiple(index, pack)

    def _demand_terms(self, u: UOp) -> None:
        needed = self._packs(u)
        if not self._has_vector(u) or self._reads_along(u):
            needed = packs.alone(needed)
        if found := packs.fragments(u, needed):
            self.sums_of_products.add(u)
            needed = found
        self.registers_of[u] = {pack: self._terms(u, pack) for pack in needed}
        for terms in (terms for each in self.registers_of[u].values() for terms in each):
            for term in terms:
                self._need(u.src[0], term)
        for r in u.src[1:]:
            self._need(r, ALONE)

    def _reads_along(self, u: UOp) -> bool:
        """Whether all that a fold reads along its axes are neighbours, and vectors fit there."""
        folded = set(arg_of(u, ReduceArg).axes)
        reads = [v for v in u.src[0].toposort() if v.op is Op.LOAD and v.src[0].shape]
        along = [folded & packs.axes_of_vectors([v], self.indices).keys() for v in reads]
        return all([*along, along, self._folded_vectors(u)])

    def _folded_vectors(self, u: UOp) -> list[Pack]:
        """The vectors of the terms of an element of a fold, along an axis that it folds."""
        shape, axes = u.src[0].shape, arg_of(u, ReduceArg).axes
        along = [axis for axis in self.widths if axis in axes]
        folded = tuple(n if k in axes else 1 for k, n in enumerate(shape))
        return self._packed(folded, along[0]) if along else []

    def _has_vector(self, u: UOp) -> bool:
        """Whether the target has the op of a fold on vectors."""
        return self.target.has_vector(UOp(arg_of(u, ReduceArg).op, u.src[0], u.src[0]))

    def _terms(self, u: UOp, pack: Pack) -> list[list[Pack]]:
        """The terms of each register of a pack: one register takes them in order. If a single
        element folds along an axis of vectors, each vector has a register.
        """
        shape, axes = u.src[0].shape, arg_of(u, ReduceArg).axes
        if len(pack) == 1 and self._has_vector(u) and (vectors := self._folded_vectors(u)):
            return [
                [tuple(packs.moved(pack[0], dict(enumerate(p)), axes) for p in vector)]
                for vector in vectors
            ]
        places = product(*(range(shape[a]) for a in axes))
        placed = [dict(zip(axes, at, strict=True)) for at in places]
        return [[tuple(packs.moved(p, at, axes) for p in pack) for at in placed]]

    def build(self, u: UOp) -> None:
        """Build the packs of a node that are needed, after those of its sources."""
        if u in self.indices or _is_wide_place(u):
            return
        own = self.made[u] = {}
        if u.op in LEAVES:
            own[ALONE] = u
        elif u.op is Op.REDUCE:
            self._fold(u)
        elif u.declaration.access:
            own.update({pack: self._access(u, pack) for pack in self.needed.get(u, ())})
            if u.op is not Op.LOAD:
                own[ALONE] = grouped([*own.values()])
        else:
            for pack in self._computed(u):
                self._make(u, pack)

    def _make(self, u: UOp, pack: Pack) -> None:
        """Make a pack of a node at once; or each element, if the target has no such vector."""
        own = self.made[u]
        if u.op is Op.WMMA:
            own[pack] = u.with_src(map(self._whole, u.src))
            return
        src = [self._vector(s, needed) for s, needed in self._sources(u, pack)]
        if packs.is_move(u) or (u.op is Op.STACK and packs.has_axes(u)):
            own[pack] = src[0]
            return
        made = u.with_src([_filled(s, len(pack)) for s in src])
        if len(pack) == 1 or self.target.has_vector(made):
            own[pack] = self.simplify(made)
            return
        for p in pack:
            each = [self._vector(s, needed) for s, needed in self._sources(u, (p,))]
            own[(p,)] = self.simplify(u.with_src(each))

    def _one(self, u: UOp, at: Position) -> UOp:
        """An element of a value, which may be in a vector."""
        if u in self.indices:
            return self.indices.at(u, at)
        own = self.made[u]
        if (at,) not in own:
            pack = next(g for g in own if at in g)
            vector = own[pack]
            own[(at,)] = element(vector, pack.index(at)) if vector.shape else vector
        return own[(at,)]

    def _whole(self, u: UOp) -> UOp:
        """A fragment of a matrix, of its elements."""
        return UOp(Op.STACK, *(self._one(u, p) for p in packs.positions(u.shape)))

    def _vector(self, u: UOp, pack: Pack) -> UOp:
        """The elements of a pack as a vector, or as a scalar where they are the same."""
        own = self.made.get(u, {})
        if pack in own:
            return own[pack]
        elements = [self._one(u, p) for p in pack]
        return elements[0] if len(set(elements)) == 1 else UOp(Op.STACK, *elements)

    def _access(self, u: UOp, pack: Pack) -> UOp:
        place, width = u.src[0], len(pack)
        index = self._one(place.src[1], pack[0])
        at = add(index, counting(width)) if width > 1 else index
        src = [UOp(Op.INDEX, self._one(place.src[0], ()), at)]
        src += [_filled(self._vector(s, pack), width) for s in u.src[1:]]
        return self.simplify(u.with_src(src))

    def _fold(self, u: UOp) -> None:
        op = arg_of(u, ReduceArg).op
        registers = self.registers_of[u]
        totals = iter(self._totals(u, op, [t for terms in registers.values() for t in terms]))
        for pack, terms in registers.items():
            total = _tree(op, [next(totals) for _ in terms])
            if len(pack) == 1:
                total = _tree(op, _elements(total))
            self.made[u][pack] = self.simplify(total)

    def _totals(self, u: UOp, op: Op, registers: Sequence[Sequence[Pack]]) -> list[UOp]:
        """The value of each register after the loops, the first RANGE outermost. The registers
        start inside the loops around them.
        """
        ranges = [self._one(r, ()) for r in u.src[1:]]
        if not ranges:
            return [self._sum(u, None, terms) for terms in registers]
        around = [self._one(r, ()) for r in sorted(self.inside[u], key=id_of)]
        places, starts, elements = [], [], []
        for terms in registers:
            width = len(terms[0])
            places.append(place := self._register(u.dtype, width))
            start = UOp(Op.STORE, _after(place, around), _filled(identity(op, u.dtype), width))
            starts.append(start)
            elements.append(_after(place, [start, *ranges]))
        held = [UOp(Op.LOAD, element) for element in elements]
        sums = [self._sum(u, h, terms) for h, terms in zip(held, registers, strict=True)]
        effects = [UOp(Op.STORE, e, total) for e, total in zip(elements, sums, strict=True)]
        effect = in_loops(grouped(effects), ranges)
        # A loop of no iterations runs nothing in it, not even the start.
        counted = all(r.src[0].op is Op.CONST for r in ranges)
        return [
            UOp(Op.LOAD, _after(place, [effect] if counted else [start, effect]))
            for place, start in zip(places, starts, strict=True)
        ]

    def _sum(self, u: UOp, held: UOp | None, terms: Sequence[Pack]) -> UOp:
        """What a register holds and its terms, combined; a WMMA adds to what there is."""
        op, value = arg_of(u, ReduceArg).op, u.src[0]
        if u in self.sums_of_products:
            for pack in terms:
                factor, _ = packs.product_at(value, pack[0])
                made = self.made[factor][tuple(packs.positions(factor.shape))]
                held = made.with_src([*made.src[:2], held]) if held else made
            return cast(UOp, held)
        width = len(terms[0])
        added = [_filled(self._vector(value, pack), width) for pack in terms]
        return self.simplify(_chain(op, [held, *added] if held else added))

    def _register(self, dtype: DType, width: int) -> UOp:
        """The place of a new register."""
        memory = buffer(self.registers, dtype, width, AddrSpace.REG)
        self.registers += 1
        return UOp(Op.INDEX, memory, counting(width) if width > 1 else ZERO)


def _is_wide_place(u: UOp) -> bool:
    """Whether a node is a location of several elements, which an access splits."""
    return u.op is Op.INDEX and u.addrspace is not None and bool(u.shape)


def _after(place: UOp, effects: Sequence[UOp]) -> UOp:
    """The place in its memory after some effects."""
    memory, index = place.src
    return UOp(Op.INDEX, UOp(Op.AFTER, memory, *effects) if effects else memory, index)


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
            return element(_at_once(accesses, new), k)
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
        inner = (
            effects.pop(s) if s in effects and users[s] == 1 else [s] for s in dict.fromkeys(u.src)
        )
        effects[u] = [s for part in inner for s in part]
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
    place = UOp(Op.INDEX, memory, add(index, counting(len(accesses))))
    columns = zip(*(u.src[1:] for u in accesses), strict=True)
    operands = (_whole(UOp(Op.STACK, *map(new.__getitem__, column))) for column in columns)
    return first.with_src([place, *operands])


def _whole(u: UOp) -> UOp:
    """A node, or the vector whose elements it stacks in their order."""
    if u.op is not Op.STACK or not u.src or u.src[0].op is not Op.INDEX:
        return u
    vector = u.src[0].src[0]
    elements = [element(vector, k) for k in range(len(u.src))]
    is_all = vector.addrspace is None and vector.shape == u.shape and elements == list(u.src)
    return vector if is_all else u
