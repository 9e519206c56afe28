"""Rewrites kernels over shaped memory to row-major addresses (in front of the stages).

`INDEX(PARAM[2,3], i, j)` becomes `INDEX(PARAM[6], i * 3 + j)`: the stages see flat memory alone. An
axis without an index is a vector of places, as is all of a memory that an access names whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from uop.compiler.stages.indices import counting
from uop.spec.args import DTypeArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import LEAVES, WRITES, kernels, without_order
from uop.spec.kernel.listing import Listing
from uop.spec.ops.names import Op
from uop.spec.registry import Sizes
from uop.spec.uop import UOp, dims, index_const

ACCESSES = frozenset({Op.LOAD, *WRITES})


def over_flat_memory(root: UOp) -> UOp:
    """Rewrite the kernels of a program; UnsupportedError for a place of two axes or more."""
    return root.substitute({body: _flat(body) for body in kernels(root) if _has_shapes(body)})


def _has_shapes(body: UOp) -> bool:
    return any(_is_shaped(u) or _is_whole(u) for u in body.toposort())


def _is_shaped(u: UOp) -> bool:
    """Whether it is memory that is not flat."""
    return u.op in LEAVES and u.addrspace is not None and len(u.shape) != 1


def _is_whole(u: UOp) -> bool:
    """Whether it accesses all of a memory."""
    return u.op in ACCESSES and without_order(u.src[0]).op in LEAVES


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
        """The new node; that of a constant need not be an instruction."""
        if u not in self._of:
            self._of[u] = self._rewritten(u)
        return self._of[u]

    def _rewritten(self, u: UOp) -> UOp:
        if _is_shaped(u):
            return self._list(UOp(u.op, dims((self._count(u.shape),)), arg=u.arg, tag=u.tag))
        src = [self.new(s) for s in u.src]
        if u.op is Op.INDEX and u.addrspace is not None:
            return self._place(u, u.src[0].shape, src)
        if _is_whole(u):
            src[0] = self._place(u.src[0], u.src[0].shape, src[:1])
        return self._list(u.with_src(src))

    def _place(self, u: UOp, shape: Sizes, src: Sequence[UOp]) -> UOp:
        """The places of a location in memory of this shape: INDEX of flat memory."""
        memory, *indices = src
        if len(u.shape) > 1:
            raise UnsupportedError(f"a kernel with {u.op.name} of shape {list(u.shape)}")
        if len(shape) == len(indices) == 1:
            return self._list(UOp(Op.INDEX, memory, *indices, tag=u.tag))
        position = index_const(0)
        for axis, size in enumerate(shape):
            i = self._index(indices[axis]) if axis < len(indices) else _counting(size)
            if axis:
                step = size if isinstance(size, UOp) else index_const(size)
                before = self._list(UOp(Op.MUL, position, self.new(step)))
                i = self._list(UOp(Op.ADD, before, i))
            position = i
        return self._list(UOp(Op.INDEX, memory, position, tag=u.tag))

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


def _counting(size: int | UOp) -> UOp:
    """Every index of an axis; UnsupportedError for a symbolic size."""
    if isinstance(size, UOp):
        raise UnsupportedError("a kernel with a vector of a symbolic size")
    return counting(size)
