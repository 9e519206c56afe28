"""Sites: where a kernel reads a value, as the loops that its index depends on (in rangeify)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from uop.spec.args import FlipArg, PermuteArg, ReduceArg, arg_of
from uop.spec.graph import views_of
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
                return Site(site.kernel, tuple(fresh), site.key)
            case Op.STACK:
                return Site(site.kernel, axes[1:], site.key)
            case Op.GETADDR:
                return self._computed(site, (NONE.union(*axes),) * len(s.shape), (u, s))
        if s.shape == u.shape and 1 not in s.shape:
            return site
        aligned = axes[len(axes) - len(s.shape) :]
        here = (NONE if dim == 1 else axis for axis, dim in zip(aligned, s.shape, strict=True))
        return Site(site.kernel, tuple(here), site.key)

    def _reshaped(self, u: UOp, s: UOp, site: Site) -> Site:
        """Groups of axes of as many elements keep to themselves."""
        wide = [axis for axis, dim in zip(site.axes, u.shape, strict=True) if dim != 1]
        old, new = ([dim for dim in shape if dim != 1] for shape in (s.shape, u.shape))
        if old == new:
            rest = iter(wide)
            return Site(
                site.kernel, tuple(NONE if d == 1 else next(rest) for d in s.shape), site.key
            )
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
