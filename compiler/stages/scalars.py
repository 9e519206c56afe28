"""Scalarizes a LINEAR: each instruction on vectors becomes one per element (in linearize).

A read of a vector at a dynamic index becomes a choice between its elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from uop.compiler.simplify import int_value
from uop.spec.args import DTypeArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import LEAVES
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.kernel.listing import Listing
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

MEMORY = (Op.PARAM, Op.BUFFER, Op.AFTER)
"""Locations, which keep their shape: accesses go through an INDEX."""


def in_scalars(linear: UOp) -> UOp:
    """Scalarize the instructions; UnsupportedError for values of rank 2 or more."""
    if not any(_is_vector(u) for u in linear.src):
        return linear
    elements = _Elements()
    for u in linear.src:
        elements.take(u)
    return UOp(Op.LINEAR, *elements.listing.instructions)


def _is_vector(u: UOp) -> bool:
    return u.shape != () and u.op not in MEMORY and not _is_constant(u)


def _is_constant(u: UOp) -> bool:
    """Whether it is a STACK of CONSTs, such as a shape, which stays as it is."""
    return u.op is Op.STACK and all(s.op is Op.CONST for s in u.src)


class _Elements:
    """The new instructions so far, and the elements of each old node in them."""

    def __init__(self) -> None:
        self.listing = Listing()
        self._of: dict[UOp, tuple[UOp, ...]] = {}

    def take(self, u: UOp) -> None:
        self._of[u] = self._taken(u)

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
        if u.op is Op.STORE and u.src[0].shape:
            count = u.src[0].shape[0]
            return (self._list(UOp(Op.GROUP, *(self._element(u, k) for k in range(count)))),)
        if _is_vector(u):
            if not (u.op in ELEMENTWISE or u.op in (Op.INDEX, Op.LOAD, Op.BITCAST)):
                raise UnsupportedError(f"a kernel with {u.op.name} of shape {list(u.shape)}")
            return tuple(self._element(u, k) for k in range(u.shape[0]))
        return (self._list(u.with_src([self._one(s) for s in u.src])),)

    def _element(self, u: UOp, k: int) -> UOp:
        """Element k of a vector instruction; scalar operands are shared by all elements."""
        if u.op is Op.BITCAST and u.src[0].shape != u.shape:
            raise UnsupportedError(f"a BITCAST to {arg_of(u, DTypeArg).dtype.name} of a vector")
        parts = [self._of[s] for s in u.src]
        return self._list(u.with_src([p[k] if len(p) > 1 else p[0] for p in parts]))

    def _picked(self, u: UOp) -> tuple[UOp, ...]:
        """The elements of a vector at an index."""
        vector, *indices = u.src
        if len(indices) != 1:
            raise UnsupportedError(f"a kernel with INDEX of {len(indices)} indices into a value")
        return tuple(self._chosen(self._of[vector], i) for i in self._of[indices[0]])

    def _chosen(self, elements: Sequence[UOp], at: UOp) -> UOp:
        if (position := int_value(at)) is not None:
            return elements[position]
        if at.dtype is not dtypes.index:
            at = self._list(UOp(Op.CAST, at, arg=DTypeArg(dtypes.index)))
        result = elements[-1]
        for k in reversed(range(len(elements) - 1)):
            is_other = self._list(UOp(Op.CMPNE, at, self._list(index_const(k))))
            result = self._list(UOp(Op.WHERE, is_other, result, elements[k]))
        return result

    def _one(self, u: UOp) -> UOp:
        found = self._of[u] if u in self._of else (self._list(u),)
        if len(found) != 1:
            raise UnsupportedError(f"a kernel with a vector where one element is meant: {u!r}")
        return found[0]

    def _list(self, u: UOp) -> UOp:
        """List an instruction, unless its value is in scope already."""
        if u not in self.listing:
            self.listing.add(u)
        return u
