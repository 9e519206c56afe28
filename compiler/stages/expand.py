"""The stage expand: loops of axis type UPCAST and UNROLL become axes of shape.

Each of these loops has one axis in its kernel, in the order of their ids. A value has the size of a
loop on that axis if it depends on the loop, else 1; one that depends on none has shape (). A REDUCE
over such a loop becomes one over its axis. An access to memory takes a vector of indices: a RESHAPE
makes it, and another one restores the axes of the elements. A fragment of a matrix keeps its own
axis, before these; each iteration has a separate WMMA.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import cast

from uop.compiler.build import ZERO, counting, element, identity, reshaped
from uop.compiler.build import expand as broadcast
from uop.compiler.loops import axes, type_of
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.rewrite import Fired, unobserved
from uop.compiler.stages.stage import Stage
from uop.spec.args import AxisType, ReduceArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import rebuild, with_kernels
from uop.spec.kernel.forms import EXPANDED as FORM
from uop.spec.kernel.forms import OPAQUE
from uop.spec.ops.names import Op
from uop.spec.properties.shape import broadcast_shapes
from uop.spec.registry import Shape
from uop.spec.uop import UOp

EXPANDED = (AxisType.UPCAST, AxisType.UNROLL)
RULES = (
    RANGE_INTO_AXIS := "range_into_axis",
    FOLD_OVER_AXES := "fold_over_axes",
    ACCESS_BY_VECTOR := "access_by_vector",
    ELEMENT_BY_ELEMENT := "element_by_element",
    PRODUCT_BY_PRODUCT := "product_by_product",
)
"""The names of its rules."""
MOST_ELEMENTS = 4096
"""The most elements of a value. They must fit into registers, and the source must stay small."""


def expand(root: UOp, fired: Fired = unobserved) -> UOp:
    """Make axes of these loops in every kernel; UnsupportedError for too many elements."""

    def expanded(body: UOp) -> UOp:
        wide = [r for r in axes(body) if type_of(r) in EXPANDED]
        return _Expansion(wide, fired).of(body) if wide else body

    return with_kernels(root, expanded)


def flat(u: UOp, shape: Shape) -> UOp:
    """The elements of a value, broadcast to a shape, as a vector."""
    wide = broadcast(u, shape)
    return wide if len(shape) < 2 else reshaped(wide, (math.prod(shape),))


def shaped(vector: UOp, shape: Shape, fragment: Shape = ()) -> UOp:
    """A vector as a shape, or as fragments; a single element has shape ()."""
    to = (*fragment, *shape) if math.prod(shape) != 1 else fragment
    return vector if vector.shape == to else reshaped(vector, to)


class _Expansion:
    """The nodes of one kernel, without its wide loops so far."""

    def __init__(self, wide: Sequence[UOp], fired: Fired) -> None:
        self.wide, self.fired = wide, fired
        self.new: dict[UOp, UOp] = {}
        self.sizes: list[int] = []
        for r in wide:
            if (bound := int_value(r.src[0])) is None:
                kind = type_of(r).name
                raise UnsupportedError(f"expand: a RANGE of type {kind} without CONST bound")
            self.sizes.append(bound)

    def of(self, body: UOp) -> UOp:
        return rebuild(body, self._checked, done=self.new)

    def _checked(self, u: UOp, src: list[UOp]) -> UOp:
        after = self._expanded(u, src)
        if after.addrspace is None and math.prod(after.shape) > MOST_ELEMENTS:
            raise UnsupportedError(f"expand: a value of more than {MOST_ELEMENTS} elements")
        return after

    def _expanded(self, u: UOp, src: list[UOp]) -> UOp:
        if u in self.wide:
            return self._fired(RANGE_INTO_AXIS, u, self._along(self.wide.index(u)))
        if u.op is Op.END and u.src[1] in self.wide:
            # An empty loop has no effect.
            return src[0] if int_value(u.src[1].src[0]) else UOp(Op.GROUP)
        if u.op is Op.INDEX and _is_wide([src[1]]):
            return u  # Each access makes an INDEX of its own.
        if u.op is Op.REDUCE and not set(self.wide).isdisjoint(u.src[1:]):
            return self._fired(FOLD_OVER_AXES, u, self._folded(u))
        if u.op is Op.RANGE and _is_wide(src):
            raise UnsupportedError("expand: a RANGE whose bound depends on an expanded loop")
        if u.declaration.access and _is_wide([*map(self._index, u.src[:1]), *src[1:]]):
            return self._fired(ACCESS_BY_VECTOR, u, self._accessed(u))
        if u.op is Op.WMMA and any(len(s.shape) > 1 for s in src):
            return self._fired(PRODUCT_BY_PRODUCT, u, _multiplied(u, src))
        if u.op is Op.STACK and _is_wide(src):
            shape = _common(*src)
            return UOp(Op.STACK, *(broadcast(s, shape) for s in src))
        if u.op in OPAQUE and _is_wide([*map(self._index, u.src[:1]), *src]):
            return self._fired(ELEMENT_BY_ELEMENT, u, self._each(u))
        return u.with_src(src)

    def _fired(self, rule: str, before: UOp, after: UOp) -> UOp:
        self.fired(rule, before, after)
        return after

    def _along(self, axis: int) -> UOp:
        """The numbers of the iterations on their axis."""
        shape = tuple(n if k == axis else 1 for k, n in enumerate(self.sizes))
        return shaped(counting(shape[axis]), shape) if shape[axis] != 1 else ZERO

    def _index(self, place: UOp) -> UOp:
        """The index of a place that is accessed, or a value itself."""
        return self.new[place.src[1]] if place.op is Op.INDEX else self.new[place]

    def _folded(self, u: UOp) -> UOp:
        axes = [k for k, r in enumerate(self.wide) if r in u.src[1:]]
        op, value = arg_of(u, ReduceArg).op, self.new[u.src[0]]
        if any(self.sizes[k] == 0 for k in axes):
            nothing = identity(op, u.dtype)
            return UOp(Op.STACK, *(nothing,) * u.shape[0]) if u.shape else nothing
        fragment, rank = u.shape, len(u.shape)
        if value.shape == fragment:
            value = reshaped(value, (*fragment, *(1,) * len(self.sizes)))
        shape = tuple(self.sizes[k] if k in axes else n for k, n in enumerate(value.shape[rank:]))
        loops = [self.new[r] for r in u.src[1:] if r not in self.wide]
        arg = ReduceArg(op, tuple(rank + k for k in axes))
        fold = UOp(Op.REDUCE, broadcast(value, (*fragment, *shape)), *loops, arg=arg)
        return shaped(fold, fold.shape[rank:], fragment)

    def _accessed(self, u: UOp) -> UOp:
        """An access to the elements at a vector of indices."""
        place, index = u.src[0], self._index(u.src[0])
        values = [self.new[s] for s in u.src[1:]]
        shape = _common(index, *values)
        at = UOp(Op.INDEX, self.new[place.src[0]], flat(index, shape))
        access = u.with_src([at, *(flat(v, shape) for v in values)])
        return access if access.dtype is dtypes.void else shaped(access, shape)

    def _each(self, u: UOp) -> UOp:
        """An op that has no meaning on vectors, for each element."""
        operands = [self._index(s) for s in u.src]
        shape = _common(*operands)
        vectors = [flat(v, shape) for v in operands]
        copies = []
        for k in range(math.prod(shape)):
            src = [element(v, k) for v in vectors]
            if u.op is Op.GETADDR:
                src = [UOp(Op.INDEX, self.new[u.src[0].src[0]], *src)]
            copies.append(u.with_src(src))
        if u.dtype is dtypes.void:
            return UOp(Op.GROUP, *copies)
        return shaped(UOp(Op.STACK, *copies), shape)


def _multiplied(u: UOp, fragments: Sequence[UOp]) -> UOp:
    """An instruction for each iteration; those that read the same fragment share it."""
    shape = cast(Shape, broadcast_shapes(*(f.shape[1:] for f in fragments)))
    products = [
        u.with_src([_fragment_at(f, p) for f in fragments]) for p in product(*map(range, shape))
    ]
    elements = (UOp(Op.STACK, *(element(each, e) for each in products)) for e in range(u.shape[0]))
    return UOp(Op.STACK, *(shaped(vector, shape) for vector in elements))


def _fragment_at(f: UOp, position: Sequence[int]) -> UOp:
    """The fragment of an iteration, by its numbers on the axes of the loops."""
    own = f.shape[1:]
    if not own:
        return f
    at = [p if n != 1 else 0 for p, n in zip(position, own, strict=True)]
    return UOp(Op.STACK, *(element(f, e, *at) for e in range(f.shape[0])))


def _is_wide(values: Iterable[UOp]) -> bool:
    return any(v.shape and v.addrspace is None for v in values)


def _common(*values: UOp) -> Shape:
    return cast(Shape, broadcast_shapes(*(v.shape for v in values)))


STAGE = Stage("expand", lambda u, _, fired: expand(u, fired), lambda _: FORM, lambda _: RULES)
