"""Rewrites kernels over shaped memory to addresses, and vectors to scalars (before the stages).

`INDEX(PARAM[2,3], i, j)` becomes `INDEX(PARAM[6], i * 3 + j)`: the stages see flat memory alone. A
place with fewer indices than axes becomes a vector of places, and so does memory that is accessed
whole. A value computed from it is a vector too, of the elements in row-major order.

Then each node on vectors becomes one per element. A read of a vector at a dynamic index becomes a
choice between its elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from uop.compiler.build import as_dtype, counting, element, identity, index
from uop.compiler.loops import free_id
from uop.compiler.rewriting.patterns import int_value
from uop.spec.args import DTypeArg, InsArg, RangeArg, ReduceArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import LEAVES, base_of, without_order
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.kernel.listing import Listing
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_size
from uop.spec.registry import Sizes
from uop.spec.uop import UOp, dims, index_const


def flatten_memory(body: UOp) -> UOp:
    """A kernel over flat memory.

    UnsupportedError for an op that is not elementwise on values of two axes or more.
    """
    order = body.toposort()
    if not any(_is_shaped(u) or _is_whole(u) for u in order):
        return body
    flat = _Flat()
    for u in body.src if body.op is Op.LINEAR else order:
        flat.new(u)
    return UOp(Op.LINEAR, *flat.instructions) if body.op is Op.LINEAR else flat.new(body)


def _is_shaped(u: UOp) -> bool:
    """Whether it is memory that is not flat."""
    return u.op in LEAVES and u.addrspace is not None and len(u.shape) != 1


def _is_whole(u: UOp) -> bool:
    """Whether it accesses all of a memory."""
    return u.declaration.access is not None and without_order(u.src[0]).op in LEAVES


class _Listing(Listing):
    """The new nodes so far, as a list, each in the place of an old one."""

    def _list(self, u: UOp) -> UOp:
        """List a node, unless its value is in scope already."""
        if u not in self:
            self.add(u)
        return u


class _Flat(_Listing):
    """The nodes over flat memory."""

    def __init__(self) -> None:
        super().__init__()
        self._of: dict[UOp, UOp] = {}

    def new(self, u: UOp) -> UOp:
        """The rewritten node. Constants need not be instructions."""
        if u not in self._of:
            self._of[u] = self._rewritten(u)
        return self._of[u]

    def _rewritten(self, u: UOp) -> UOp:
        if _is_shaped(u):
            return self._list(UOp(u.op, dims((self._count(u.shape),)), arg=u.arg, tag=u.tag))
        src = [self.new(s) for s in u.src]
        if u.op is Op.INDEX and (u.addrspace is not None or len(u.src[0].shape) > 1):
            return self._place(u, u.src[0].shape, src)
        if _is_whole(u):
            src[0] = self._place(u.src[0], u.src[0].shape, src[:1])
        if u.op is Op.RESHAPE and u.shape and src[0].shape and u.addrspace is None:
            return src[0]
        if u.op in (Op.RESHAPE, Op.EXPAND) and src[0].shape in ((), (1,)) and u.addrspace is None:
            return self._copies(src[0], u.shape)
        is_like_all = u.op in ELEMENTWISE and all(s.shape in ((), u.shape) for s in u.src)
        if len(u.shape) > 1 and u.op not in (Op.LOAD, Op.AFTER) and not is_like_all:
            raise UnsupportedError(f"a kernel with {u.op.name} of shape {list(u.shape)}")
        return self._list(u.with_src(src))

    def _copies(self, u: UOp, shape: Sizes) -> UOp:
        """A vector of copies of an element, for each of a shape; of the shape () the element."""
        only = self._list(element(u, 0)) if u.shape else u
        return self._list(UOp(Op.STACK, *[only] * _number(shape))) if shape else only

    def _place(self, u: UOp, shape: Sizes, src: Sequence[UOp]) -> UOp:
        """INDEX of flat memory, or of a vector, at the row-major places of an INDEX of a shape."""
        memory, *indices = src
        if len(shape) == len(indices) == 1:
            return self._list(UOp(Op.INDEX, memory, *indices, tag=u.tag))
        if len(u.shape) > 1 and any(i.shape for i in indices):
            raise UnsupportedError(f"a kernel with {u.op.name} of shape {list(u.shape)}")
        position = index_const(0)
        for axis, i in enumerate(indices):
            position = self._step(position, shape[axis], self._index(i)) if axis else self._index(i)
        if len(indices) < len(shape):
            every = counting(_number(shape[len(indices) :]))
            position = self._step(position, every.shape[0], every) if indices else every
        return self._list(UOp(Op.INDEX, memory, position, tag=u.tag))

    def _step(self, position: UOp, size: int | UOp, i: UOp) -> UOp:
        """A position on one axis more."""
        factor = size if isinstance(size, UOp) else index_const(size)
        before = self._list(UOp(Op.MUL, position, self.new(factor)))
        return self._list(UOp(Op.ADD, before, i))

    def _index(self, i: UOp) -> UOp:
        """An index of any integer dtype as one of dtype index."""
        if i.dtype is dtypes.index:
            return i
        return self._list(as_dtype(i, dtypes.index))

    def _count(self, shape: Sizes) -> int | UOp:
        """The number of elements of a shape."""
        count: int = math.prod(size for size in shape if not isinstance(size, UOp))
        symbolic = [self.new(size) for size in shape if isinstance(size, UOp)]
        if not symbolic:
            return count
        product = index_const(count)
        for size in symbolic:
            product = self._list(UOp(Op.MUL, product, size))
        return product


def _number(shape: Sizes) -> int:
    """The number of elements of a shape; UnsupportedError for a symbolic one."""
    if any(isinstance(size, UOp) for size in shape):
        raise UnsupportedError("a kernel with a vector of a symbolic size")
    return math.prod(shape)


def scalarize_graph(body: UOp) -> UOp:
    """Scalarize the body of a kernel that is a graph; `linearize` does the lists.

    One with WMMA stays as it is: select makes one loop of the fold of its elements.
    """
    stays = body.op is not Op.SINK or any(u.op is Op.WMMA for u in body.toposort())
    return body if stays else scalarize(body)


def scalarize(body: UOp) -> UOp:
    """Scalarize a SINK or a LINEAR; UnsupportedError for values of rank 2 or more."""
    order = body.src if body.op is Op.LINEAR else body.toposort()
    if not any(_is_vector(u) for u in order):
        return body
    is_list = body.op is Op.LINEAR
    reads = () if is_list else (u.src[0] for u in order if u.op is Op.LOAD)
    elements = _Elements(set(map(base_of, reads)), free_id(order))
    for u in order:
        elements.take(u)
    if is_list:
        return UOp(Op.LINEAR, *elements.instructions)
    (root,) = elements.of[body]
    return root


def _is_vector(u: UOp) -> bool:
    return u.shape != () and u.op not in (Op.PARAM, Op.BUFFER, Op.AFTER) and not _is_constant(u)


def _is_constant(u: UOp) -> bool:
    """Whether it is a STACK of CONSTs or sizes, such as a shape, which stays as it is."""
    return u.op is Op.STACK and all(s.op is Op.CONST or is_size(s) for s in u.src)


class _Elements(_Listing):
    """The elements of each old node."""

    def __init__(self, read: set[UOp], next_id: int) -> None:
        """`read` is the memory whose reads only data orders; RANGEs have ids below `next_id`."""
        super().__init__()
        self._read, self._next_id = read, next_id
        self.of: dict[UOp, tuple[UOp, ...]] = {}

    def take(self, u: UOp) -> None:
        self.of[u] = self._taken(u)

    def _taken(self, u: UOp) -> tuple[UOp, ...]:
        if len(u.shape) > 1:
            raise UnsupportedError(f"a kernel with {u.op.name} of shape {list(u.shape)}")
        if u.op is Op.STACK:
            if _is_constant(u):
                self._list(u)
            return tuple(self._one(s) for s in u.src)
        if u.op in LEAVES:
            return (self._list(u),)
        if u.op is Op.INDEX and u.addrspace is None:
            return self._picked(u)
        if u.declaration.is_write and u.src[0].shape:
            return self._written(u)
        if u.op is Op.REDUCE:
            return self._folded(u)
        if u.op is Op.WMMA:
            whole = self._list(u.with_src([self._list(UOp(Op.STACK, *self.of[s])) for s in u.src]))
            places = map(index, range(u.shape[0]))
            return tuple(self._list(UOp(Op.INDEX, whole, self._list(k))) for k in places)
        if u.op is Op.GETADDR:
            # The address of several elements is that of the first one.
            return (self._list(u.with_src([self.of[u.src[0]][0]])),)
        if _is_vector(u):
            if not (u.op in ELEMENTWISE or u.op in (Op.INDEX, Op.LOAD, Op.BITCAST, Op.INS)):
                raise UnsupportedError(f"a kernel with {u.op.name} of shape {list(u.shape)}")
            return tuple(self._element(u, k) for k in range(u.shape[0]))
        return (self._list(u.with_src([self._one(s) for s in u.src])),)

    def _element(self, u: UOp, k: int) -> UOp:
        """Element k of a node on vectors; scalar operands are shared by all elements."""
        if u.op is Op.BITCAST and u.src[0].shape != u.shape:
            raise UnsupportedError(f"a BITCAST to {arg_of(u, DTypeArg).dtype.name} of a vector")
        parts = [self.of[s] for s in u.src]
        chosen = [p[k] if len(p) > 1 else p[0] for p in parts]
        if u.op is not Op.INS:
            return self._list(u.with_src(chosen))
        arg = arg_of(u, InsArg)
        if any(s.shape != u.shape for s in u.src):
            raise UnsupportedError(f"INS {arg.name} of shape {list(u.shape)} on other shapes")
        return self._list(UOp(Op.INS, *chosen, arg=InsArg(arg.name, arg.dtype)))

    def _written(self, u: UOp) -> tuple[UOp, ...]:
        """A STORE or ATOMICADD for each element, after all of them are computed."""
        parts = [self.of[s] for s in u.src]
        effects = []
        for k in range(u.src[0].shape[0]):
            place, *values = (p[k] if len(p) > 1 else p[0] for p in parts)
            if len(parts[0]) > 1 and base_of(place) in self._read:
                computed = dict.fromkeys(v for p in parts[1:] for v in p)
                memory = self._list(UOp(Op.AFTER, place.src[0], *computed))
                place = self._list(place.with_src([memory, *place.src[1:]]))
            effects.append(self._list(u.with_src([place, *values])))
        return (self._list(UOp(Op.GROUP, *effects)),)

    def _folded(self, u: UOp) -> tuple[UOp, ...]:
        """A REDUCE of a vector folds its elements in each iteration."""
        value, *ranges = u.src
        arg = arg_of(u, ReduceArg)
        parts = self.of[value]
        if arg.axes:
            joined = lambda a, b: self._list(UOp(arg.op, a, b))  # noqa: E731
            parts = (reduce(joined, parts) if parts else self._list(identity(arg.op, u.dtype)),)
        if not ranges:
            return parts
        closed = [self._one(r) for r in ranges]
        folds = [UOp(Op.REDUCE, p, *closed, arg=ReduceArg(arg.op)) for p in parts]
        return tuple(
            self._list(f if k == 0 else self._in_own_loops(f)) for k, f in enumerate(folds)
        )

    def _in_own_loops(self, fold: UOp) -> UOp:
        """A fold over RANGEs of its own, since a RANGE is closed once; effects are not repeated."""
        order = fold.toposort()
        if any(u.dtype is dtypes.void for u in order):
            return fold
        own: dict[UOp, UOp] = {}
        for r in dict.fromkeys(r for u in order if u.op is Op.REDUCE for r in u.src[1:]):
            arg = replace(arg_of(r, RangeArg), id=self._next_id)
            own[r] = UOp(Op.RANGE, *r.src, arg=arg, tag=r.tag)
            self._next_id += 1
        return fold.substitute(own)

    def _picked(self, u: UOp) -> tuple[UOp, ...]:
        """The elements of a vector at an index."""
        vector, *indices = u.src
        if len(indices) != 1:
            raise UnsupportedError(f"a kernel with INDEX of {len(indices)} indices into a value")
        return tuple(self._chosen(self.of[vector], i) for i in self.of[indices[0]])

    def _chosen(self, elements: Sequence[UOp], at: UOp) -> UOp:
        if (position := int_value(at)) is not None:
            return elements[position]
        if at.dtype is not dtypes.index:
            at = self._list(as_dtype(at, dtypes.index))
        result = elements[-1]
        for k in reversed(range(len(elements) - 1)):
            is_other = self._list(UOp(Op.CMPNE, at, self._list(index_const(k))))
            result = self._list(UOp(Op.WHERE, is_other, result, elements[k]))
        return result

    def _one(self, u: UOp) -> UOp:
        found = self.of[u] if u in self.of else (self._list(u),)
        if len(found) != 1:
            raise UnsupportedError(f"a kernel with a vector where one element is meant: {u!r}")
        return found[0]
