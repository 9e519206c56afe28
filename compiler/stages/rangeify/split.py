"""Splits a function into kernels, and decides which values are stored (in rangeify).

A walk from the results to the inputs gives each value the sites at which kernels read it. A value
with one site, whose elements are each computed once, stays in the kernel that reads it: so do the
ops before and after a fold, through any movement ops. A value that is cheaper to compute again than
to store stays too.

A kernel computes its elements in parallel, and parallel iterations share nothing. If the elements
of a row need the same costly values, such as their maximum or a sum, the kernel is one of rows: its
parallel loops are the rows. Each computes the shared values once, then the elements one by one in a
loop inside. That takes little longer than the shared values alone, which are computed row by row in
any case. So rows are used if the elements of a row cost no more than the shared values, and if the
rows are many, or short. Otherwise the shared values are stored.

If a kernel computes each element of a stored value anyway, and need not wait for another reader of
it, that kernel stores it; else a separate kernel does. Results of one shape that need no folds
share a kernel. So the number of kernels is linear in the size of the graph, however often it uses
its nodes.

A site is where a kernel reads a value, as the loops that its index depends on.

Costs count ops on one element. A stored value is computed and written once, and loaded by each
reader; any other is computed at each index that it is read at. So a value is stored if repeated
work costs more than one store of each element and all its loads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from uop.compiler.stages.rangeify.lower import broadcast_index, without_ones
from uop.spec.args import FlipArg, PermuteArg, ReduceArg, arg_of
from uop.spec.graph import toposort, views_of
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.ops.names import Op
from uop.spec.registry import Sizes
from uop.spec.uop import UOp

SYMBOLIC = 64
"""The number that a size which depends on variables counts as."""


Axes = frozenset[int]


NONE: Axes = frozenset()


def length(dim: int | UOp) -> float:
    """The number of iterations of a loop, for costs."""
    return float(dim) if isinstance(dim, int) else SYMBOLIC


@lru_cache(1 << 10)
def count(shape: Sizes) -> float:
    """The number of elements of a shape, for costs."""
    return math.prod(map(length, shape))


def operands(u: UOp) -> Sequence[UOp]:
    """The operands that are data, without shapes, offsets and memory."""
    if u.op is Op.GETADDR:
        return [i for view in views_of(u.src[0]) if view.op is Op.INDEX for i in view.src[1:]]
    return u.src[:1] if u.declaration.is_view else u.src


@dataclass(slots=True, eq=False)
class Kernel:
    """A kernel: a loop for each axis of a shape that has more than one element, and the values it
    stores.
    """

    shape: Sizes
    loops: tuple[int | None, ...]
    """The loop over each axis; None for an axis of one element."""
    outer: Axes
    """The loops that run in parallel; the others run inside them, one iteration at a time."""
    values: dict[UOp, tuple[int | None, ...]] = field(default_factory=dict)
    """The values it stores: for each axis of a value the loop that counts its elements."""
    depth: int = 0
    """Greater than the depth of each kernel that reads a value from it."""
    is_fed: bool = False
    """Whether it reads a value that another kernel stores."""
    folds: int = 0

    @property
    def all_loops(self) -> Axes:
        return frozenset(loop for loop in self.loops if loop is not None)


class Site(NamedTuple):
    """An index at which a kernel reads a value. Equal sites are the same index."""

    kernel: Kernel
    axes: tuple[Axes, ...]
    """The loops on which the index depends, by axis."""
    key: int | None = None
    """None if each index is one loop or 0, else a number for how it is computed."""


class Loops:
    """The loops of all kernels, and the site of each operand, by that of the op."""

    def __init__(self) -> None:
        self._dims: list[int | UOp] = []
        self._around: list[Axes] = []
        """The loops around each."""
        self._keys: dict[object, int] = {}

    def kernel(self, shape: Sizes) -> Kernel:
        """A new kernel over a shape; all its loops are parallel."""
        loops = tuple(None if dim == 1 else self._loop(dim, NONE) for dim in shape)
        return Kernel(shape, loops, frozenset(x for x in loops if x is not None))

    def own(self, kernel: Kernel) -> Site:
        """The site of a kernel's loops."""
        return Site(kernel, tuple(NONE if x is None else frozenset({x}) for x in kernel.loops))

    def around(self, site: Site) -> Axes:
        """The loops that a value at a site is computed in, besides the parallel ones."""
        found = NONE.union(*site.axes)
        return found.union(*(self._around[loop] for loop in found))

    def iterations(self, loops: Iterable[int]) -> float:
        return math.prod(length(self._dims[loop]) for loop in loops)

    def evaluations(self, site: Site) -> float:
        """How often a value is computed at a site. A loop computes a value that does not depend on
        it once, before it starts; parallel iterations share no value.
        """
        return self.iterations(site.kernel.outer | self.around(site))

    def places(self, site: Site, shape: Sizes) -> tuple[int | None, ...] | None:
        """The loop that counts each axis of a value at a site; None unless every iteration of the
        parallel loops, or of all, has an element of its own.
        """
        if site.key is not None:
            return None
        found: list[int | None] = []
        for axis, dim in zip(site.axes, shape, strict=True):
            if dim != 1 and [self._dims[loop] for loop in axis] != [dim]:
                return None
            found.append(next(iter(axis), None) if dim != 1 else None)
        counted = [loop for loop in found if loop is not None]
        is_whole = frozenset(counted) in (site.kernel.outer, site.kernel.all_loops)
        return tuple(found) if is_whole and len(set(counted)) == len(counted) else None

    def reads(self, u: UOp, site: Site) -> Iterator[tuple[UOp, Site]]:
        """The operands of a node that is computed at a site, each with a site of its own."""
        if u.op is Op.INDEX:
            yield from self._indexed(u, site)
            return
        if u.op is Op.BITCAST and u.shape != u.src[0].shape:
            yield from self._bits(u, site)
            return
        for s in operands(u):
            yield s, self._read(u, s, site)

    def _read(self, u: UOp, s: UOp, site: Site) -> Site:
        axes = site.axes
        match u.op:
            case Op.PERMUTE:
                moved = dict(zip(arg_of(u, PermuteArg).order, axes, strict=True))
                return self._part(site, tuple(moved[k] for k in range(len(axes))), u)
            case Op.FLIP if any(arg_of(u, FlipArg).flags):
                return self._computed(site, axes, u)
            case Op.SHRINK | Op.PAD if s.shape != u.shape:
                return self._computed(site, axes, u)
            case Op.RESHAPE:
                return self._reshaped(u, s, site)
            case Op.REDUCE:
                folded, around = arg_of(u, ReduceArg).axes, self.around(site)
                fresh = [
                    frozenset({self._loop(s.shape[k], around)})
                    if k in folded and s.shape[k] != 1
                    else axis
                    for k, axis in enumerate(axes)
                ]
                return site._replace(axes=tuple(fresh))
            case Op.STACK:
                return site._replace(axes=axes[1:])
            case Op.GETADDR:
                return self._computed(site, (NONE.union(*axes),) * len(s.shape), (u, s))
        if s.shape == u.shape and 1 not in s.shape:
            return site
        return site._replace(axes=broadcast_index(axes, s.shape, NONE))

    def _reshaped(self, u: UOp, s: UOp, site: Site) -> Site:
        """Groups of axes of as many elements keep to themselves."""
        same = without_ones(site.axes, u.shape, s.shape, NONE)
        if same is not None:
            return site._replace(axes=same)
        found = [NONE] * len(s.shape)
        for inner, outer in _groups(s.shape, u.shape):
            here = NONE.union(*(site.axes[k] for k in outer))
            for k in inner:
                found[k] = here if s.shape[k] != 1 else NONE
        return self._computed(site, found, u)

    def _indexed(self, u: UOp, site: Site) -> Iterator[tuple[UOp, Site]]:
        """Each operand that is an index is read along its own axes, the others by what it holds."""
        source, *indices = u.src
        axes: list[Axes] = []
        used = 0
        for i in indices:
            own = site.axes[used : used + len(i.shape)]
            used += len(i.shape)
            axes.append(NONE.union(*own))
            yield i, self._part(site, own, (u, used))
        yield source, self._computed(site, (*axes, *site.axes[used:]), u)

    def _bits(self, u: UOp, site: Site) -> Iterator[tuple[UOp, Site]]:
        """BITCAST to another size reads a part of an element, or several elements."""
        (s,) = u.src
        for k in range(max(u.dtype.itemsize // s.dtype.itemsize, 1)):
            yield s, self._computed(site, site.axes, (u, k))

    def _part(self, site: Site, axes: tuple[Axes, ...], by: object) -> Site:
        """A site with axes of another one: also computed, if these are."""
        return Site(site.kernel, axes) if site.key is None else self._computed(site, axes, by)

    def _computed(self, site: Site, axes: Sequence[Axes], by: object) -> Site:
        key = self._keys.setdefault((by, site), len(self._keys))
        return Site(site.kernel, tuple(axes), key)

    def _loop(self, dim: int | UOp, around: Axes) -> int:
        self._dims.append(dim)
        self._around.append(around)
        return len(self._dims) - 1


def _groups(a: Sizes, b: Sizes) -> Iterator[tuple[range, range]]:
    """The smallest groups of axes that have as many elements in both shapes."""
    i = j = 0
    while i < len(a) and j < len(b):
        start = i, j
        left, right, i, j = a[i], b[j], i + 1, j + 1
        while left != right:
            if isinstance(left, UOp) or isinstance(right, UOp):
                left, right, i, j = 1, 1, len(a), len(b)
            elif left < right:
                left, i = left * length(a[i]), i + 1
            else:
                right, j = right * length(b[j]), j + 1
        yield range(start[0], i), range(start[1], j)


SEVERAL = 16
MEMORY = 8
"""The cost of a store or a load of one element. A value that costs no more is never stored."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of the values of a function."""

    views: Collection[UOp]
    """The views of inputs: they are read from the memory of the inputs."""
    weights: Mapping[UOp, float]
    """The cost of an element, computed from inputs and from values that are always stored."""
    folding: Collection[UOp]
    """The values that need a fold that is not always stored."""

    def is_light(self, u: UOp) -> bool:
        return self.weights[u] <= MEMORY

    def is_recomputed(self, u: UOp, evaluations: float) -> bool:
        """Whether so many evaluations cost less than a store of the elements and the loads."""
        elements = count(u.shape)
        if evaluations <= elements or self.is_light(u):
            return True
        return self.weights[u] * (evaluations - elements) <= MEMORY * (elements + evaluations)


def costs_of(order: Sequence[UOp]) -> Costs:
    """The costs of values, sources first."""
    views: set[UOp] = set()
    for u in order:
        if u.declaration.is_source or (u.declaration.is_view and u.src[0] in views):
            views.add(u)
    copies = _copies(order)
    weights: dict[UOp, float] = {}
    folding: set[UOp] = set()
    costs = Costs(views, weights, folding)
    stored: set[UOp] = set()
    for u in order:
        if u in views:
            weights[u] = 0
            continue
        computed = [s for s in operands(u) if s not in stored]
        below = sum(weights[s] for s in computed)
        is_costly = u.declaration.is_transcendental or u.op is Op.THREEFRY
        weights[u] = (SEVERAL if is_costly else 1) + below
        if u.op is Op.REDUCE:
            (source,) = u.src[:1]
            folded = (source.shape[axis] for axis in arg_of(u, ReduceArg).axes)
            weights[u] *= count(tuple(folded))
        heavy = not costs.is_light(u)
        if heavy and (u.op is Op.REDUCE or not folding.isdisjoint(computed)):
            folding.add(u)
        # Read at so many indices, it is stored wherever its readers are computed.
        if u.op is Op.CONTIGUOUS or not costs.is_recomputed(u, copies[u] * count(u.shape)):
            stored.add(u)
    return costs


def _copies(order: Sequence[UOp]) -> Mapping[UOp, float]:
    """How often each element is read by its readers, through views, if each reader is computed
    once.
    """
    copies: dict[UOp, float] = dict.fromkeys(order, 0)
    in_place: set[UOp] = set()
    for u in reversed(order):
        copies[u] += u in in_place
        is_same = u.op is Op.LOAD or u.declaration.section == "marker"
        reads_in_place = is_same or u.op in ELEMENTWISE
        for s in operands(u):
            if reads_in_place and s.shape == u.shape:
                in_place.add(s)
            else:
                repeats = count(u.shape) / max(count(s.shape), 1) if u.op is not Op.REDUCE else 1
                through = copies[u] if u.declaration.is_view else 1
                copies[s] += through * max(repeats, 1)
    return copies


OUTPUTS = 16
"""The most values of a kernel: a device may limit its arguments and its code."""
MOST_FOLDS = 16
"""The most costly folds of a kernel, for the same reason."""
INDICES = 8
"""A view of a computed value is computed again at up to so many indices, and not stored."""
SLACK = 4
"""The elements of a row may cost so many times as much as the values that the row shares."""
SHORT_ROW = 1 << 14
"""A row of up to so many elements may be computed one by one, however few rows there are."""
MANY_ROWS = 128
"""So many rows keep a device busy, however long they are."""
BUSY = 1 << 14
"""With so many parallel iterations a kernel gains nothing from more."""
COSTLY_FOLD = 64
"""A fold of this cost is not computed inside another one if the kernel of that one has fewer than
`BUSY` parallel iterations: it is stored, so that its elements are computed in parallel.
"""


@dataclass(frozen=True, slots=True)
class Partition:
    """The kernels of a function."""

    kernels: Sequence[Kernel]
    """The kernels, in an order in which they may run."""
    stored: Collection[UOp]
    """The values that kernels read from memory."""


def split(roots: Sequence[UOp]) -> Partition:
    """Split a function with these results."""
    order = toposort(roots, operands)
    walk = _Walk(costs_of(order), _places(order), set(roots))
    for u in reversed(order):
        walk.visit(u)
    kernels = [kernel for kernel in reversed(walk.kernels) if kernel.values]
    return Partition(sorted(kernels, key=lambda kernel: -kernel.depth), walk.stored)


def _places(order: Sequence[UOp]) -> set[UOp]:
    """The INDEXes and views that gated LOADs read through, which may be out of bounds elsewhere."""
    places: set[UOp] = set()
    for u in order:
        if u.op is Op.LOAD and len(u.src) == 3:
            place = u.src[0]
            while place.op is Op.INDEX or place.declaration.is_view:
                places.add(place)
                place = place.src[0]
    return places


class _Walk:
    """Visits the values, readers first, and decides where each is computed."""

    def __init__(self, costs: Costs, places: Collection[UOp], roots: Collection[UOp]) -> None:
        self._costs, self._places, self._roots = costs, places, roots
        self._loops = Loops()
        self._sites: dict[UOp, dict[Site, None]] = {}
        self._of_shape: dict[Sizes, Kernel] = {}
        """The last kernel of results without folds."""
        self.kernels: list[Kernel] = []
        self.stored: set[UOp] = set()

    def visit(self, u: UOp) -> None:
        sites = [] if u in self._costs.views else list(self._sites.pop(u, ()))
        if self._stays(u, sites):
            if u in self._roots:
                sites = [*dict.fromkeys([*sites, self._hosted(u, sites, ())])]
        elif sites or u in self._roots:
            self.stored.add(u)
            sites = [self._hosted(u, sites, sites)]
        if u in self._costs.views or 0 in u.shape:
            return
        for site in sites:
            site.kernel.folds += self._is_costly_fold(u)
            for s, there in self._loops.reads(u, site):
                self._sites.setdefault(s, {})[there] = None

    def _stays(self, u: UOp, sites: Sequence[Site]) -> bool:
        """Whether a value is computed wherever it is read."""
        if u in self._places or 0 in u.shape:
            return True
        if u.op is Op.CONTIGUOUS:
            return False
        if u.declaration.is_view:
            return len(sites) <= INDICES or self._costs.is_light(u)
        if any(self._is_misplaced(u, site) for site in sites):
            return False
        return self._is_recomputed(u, sites) or self._shares_rows(u, sites)

    def _is_recomputed(self, u: UOp, sites: Sequence[Site]) -> bool:
        if self._costs.is_light(u):
            return True
        evaluations = sum(map(self._loops.evaluations, sites))
        if u in self._roots and all(self._loops.places(s, u.shape) is None for s in sites):
            evaluations += count(u.shape)
        return self._costs.is_recomputed(u, evaluations)

    def _shares_rows(self, u: UOp, sites: Sequence[Site]) -> bool:
        """Whether kernels of rows make it cheap to compute; such kernels become some of rows."""
        before = {site.kernel: site.kernel.outer for site in sites}
        for kernel in before:
            kernel.outer = self._rows(u, [site for site in sites if site.kernel is kernel])
        if self._is_recomputed(u, sites):
            return True
        for kernel, outer in before.items():
            kernel.outer = outer
        return False

    def _rows(self, u: UOp, sites: Sequence[Site]) -> Axes:
        """The parallel loops of a kernel of rows, in each of which a value is computed once; its
        present loops if rows do not pay.
        """
        kernel = sites[0].kernel
        shared = kernel.outer & NONE.union(*map(self._loops.around, sites))
        rows, elements = map(self._loops.iterations, (shared, kernel.outer - shared))
        work = elements * sum(self._costs.weights[value] for value in kernel.values)
        is_long = work > SLACK * self._costs.weights[u] * max(count(u.shape) / rows, 1)
        is_idle = elements > SHORT_ROW and rows < MANY_ROWS
        return kernel.outer if is_long or is_idle else shared

    def _is_costly_fold(self, u: UOp) -> bool:
        return u.op is Op.REDUCE and not self._costs.is_light(u)

    def _is_misplaced(self, u: UOp, site: Site) -> bool:
        """Whether another kernel had better compute a costly fold that a kernel reads."""
        if not self._is_costly_fold(u):
            return False
        kernel = site.kernel
        is_inside = not self._loops.around(site) <= kernel.all_loops
        is_idle = self._loops.iterations(kernel.outer) < BUSY
        is_slow = is_inside and is_idle and self._costs.weights[u] >= COSTLY_FOLD
        return is_slow or kernel.folds >= MOST_FOLDS

    def _hosted(self, u: UOp, sites: Sequence[Site], loading: Sequence[Site]) -> Site:
        """Let a kernel store a value, and return the site there; the other readers load it from
        memory.
        """
        for site in sorted(sites, key=lambda s: -s.kernel.depth):
            readers = {s.kernel for s in loading if s != site}
            if self._computes_all(u, site) and _may_feed(site.kernel, readers):
                own = site
                break
        else:
            readers = {s.kernel for s in loading}
            own = self._loops.own(self._kernel(u, readers))
        own.kernel.values[u] = self._loops.places(own, u.shape) or ()
        for reader in readers:
            reader.is_fed = True
            own.kernel.depth = max(own.kernel.depth, reader.depth + 1)
        return own

    def _computes_all(self, u: UOp, site: Site) -> bool:
        """Whether the kernel of a site computes each element once there, and may store it."""
        if u.op is Op.CONTIGUOUS or self._is_misplaced(u, site):
            return False
        if len(site.kernel.values) >= OUTPUTS:
            return False
        return self._loops.places(site, u.shape) is not None

    def _kernel(self, u: UOp, readers: Collection[Kernel]) -> Kernel:
        """A kernel with a loop for each axis of a value."""
        is_shared = u in self._roots and u not in self._costs.folding
        if is_shared and (found := self._of_shape.get(u.shape)) is not None:
            is_free = len(found.values) < OUTPUTS and found.outer == found.all_loops
            if is_free and _may_feed(found, readers):
                return found
        kernel = self._loops.kernel(u.shape)
        self.kernels.append(kernel)
        if is_shared:
            self._of_shape[u.shape] = kernel
        return kernel


def _may_feed(kernel: Kernel, readers: Collection[Kernel]) -> bool:
    """Whether what a kernel stores may be read by others: none of them may feed it."""
    if kernel in readers:
        return False
    return not kernel.is_fed or all(reader.depth < kernel.depth for reader in readers)
