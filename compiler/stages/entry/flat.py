"""Rewrites kernels over shaped memory to row-major addresses (before the stages).

`INDEX(PARAM[2,3], i, j)` becomes `INDEX(PARAM[6], i * 3 + j)`: the stages see flat memory alone. A
place with fewer indices than axes becomes a vector of places, and so does memory that is accessed
whole. A value computed from it is a vector too, of the elements in row-major order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from uop.compiler.loops import counting
from uop.spec.args import DTypeArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import LEAVES, kernels, without_order
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.kernel.listing import Listing
from uop.spec.ops.names import Op
from uop.spec.registry import Sizes
from uop.spec.uop import UOp, dims, index_const


def flatten_memory(root: UOp) -> UOp:
    """Rewrite the kernels of a program.

    UnsupportedError for an op that is not elementwise on values of two axes or more.
    """
    return root.substitute(
        {
            body: _flat(body)
            for body in kernels(root)
            if any(_is_shaped(u) or _is_whole(u) for u in body.toposort())
        }
    )


def _is_shaped(u: UOp) -> bool:
    """Whether it is memory that is not flat."""
    return u.op in LEAVES and u.addrspace is not None and len(u.shape) != 1


def _is_whole(u: UOp) -> bool:
    """Whether it accesses all of a memory."""
    return u.declaration.access is not None and without_order(u.src[0]).op in LEAVES


def _flat(body: UOp) -> UOp:
    """A kernel over flat memory."""
    flat = _Flat()
    for u in body.src if body.op is Op.LINEAR else body.toposort():
        flat.new(u)
    return UOp(Op.LINEAR, *flat.listing.instructions) if body.op is Op.LINEAR else flat.new(body)


class _Flat:
    """The new nodes so far, as a list, each in the place of an old one."""

    def __init__(self) -> None:
        self.listing = Listing()
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
        only = self._list(UOp(Op.INDEX, u, index_const(0))) if u.shape else u
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
        return self._list(UOp(Op.CAST, i, arg=DTypeArg(dtypes.index)))

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

    def _list(self, u: UOp) -> UOp:
        """List a node, unless its value is in scope already."""
        if u not in self.listing:
            self.listing.add(u)
        return u


def _number(shape: Sizes) -> int:
    """The number of elements of a shape; UnsupportedError for a symbolic one."""
    if any(isinstance(size, UOp) for size in shape):
        raise UnsupportedError("a kernel with a vector of a symbolic size")
    return math.prod(shape)
