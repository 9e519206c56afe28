"""Packs: the elements that a kernel needs of an expanded value (in select).

A pack is a number of positions in the shape of a value: one for a scalar, several for a vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from uop.compiler.build import ZERO, add, identity, index
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.rewrite import Rewriter
from uop.compiler.rewriting.simplify import fits, linear_form
from uop.spec.args import ReduceArg, WmmaArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.forms import ELEMENTWISE
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable
from uop.spec.registry import Shape
from uop.spec.uop import UOp


def product_at(value: UOp, at: Position) -> tuple[UOp, Position]:
    """The node below all moves that computes an element of a value, and the element's place."""
    while True:
        if is_move(value):
            ((at,), value) = source(value, value.src[0], (at,)), value.src[0]
        elif value.op is Op.STACK and value.shape:
            value, at = value.src[at[0]], at[1:]
        else:
            return value, at


def fragments(fold: UOp, needed: Iterable[Pack]) -> list[Pack]:
    """The elements of a sum of products that one WMMA computes, for all elements. None for any
    other fold, and for one whose products must not be added to another one.
    """
    if not fold.shape or arg_of(fold, ReduceArg).op is not Op.ADD:
        return []
    value, size = fold.src[0], fold.shape[0]
    for p in positions(value.shape[1:]):
        found = [product_at(value, (e, *p)) for e in range(size)]
        product = found[0][0]
        if found != [(product, (e,)) for e in range(size)] or not _adds(product):
            return []
    points = dict.fromkeys(at[1:] for pack in needed for at in pack)
    return [tuple((e, *p) for e in range(size)) for p in points]


def _adds(product: UOp) -> bool:
    """Whether it is a product alone, which may be added to a sum."""
    if product.op is not Op.WMMA:
        return False
    # A sum that has overflowed is infinite, whatever an exact product adds to it.
    arg = arg_of(product, WmmaArg)
    nothing = UOp(Op.STACK, *(identity(Op.ADD, product.dtype),) * product.shape[0])
    is_exact = arg.dtype_out.format.holds_products_of(arg.dtype_in.format)
    return is_exact and product.src[2] is nothing


Position = tuple[int, ...]
Pack = tuple[Position, ...]
ALONE: Pack = ((),)
"""The only element of a scalar."""
KEPT = 1 << 14
"""The most packs whose source is cached."""


def has_axes(u: UOp) -> bool:
    """Whether a node is a value of several elements, no location and no shape."""
    return bool(u.shape) and u.addrspace is None and not _is_list(u)


def is_move(u: UOp) -> bool:
    """Whether a value has the elements of its first operand, unchanged."""
    return u.op in (Op.RESHAPE, Op.EXPAND) or (u.op is Op.INDEX and u.addrspace is None)


def operands(u: UOp) -> tuple[UOp, ...]:
    """The operands that are values, without the shape or the numbers that a move takes."""
    return u.src[:1] if is_move(u) else u.src


def positions(shape: Shape) -> Iterator[Position]:
    """The positions of a shape in row-major order."""
    return product(*map(range, shape))


def moved(p: Position, at: dict[int, int], axes: Sequence[int]) -> Position:
    """A position with other numbers on some axes."""
    return tuple(at[k] if k in axes else i for k, i in enumerate(p))


def alone(packs: Iterable[Pack]) -> list[Pack]:
    """The packs of single elements of these packs."""
    return [(p,) for p in dict.fromkeys(p for g in packs for p in g)]


def source(u: UOp, s: UOp, pack: Pack) -> Pack:
    """The elements of an operand from which a pack of a node is computed."""
    if u.shape == s.shape:
        return pack
    if u.op is Op.INDEX:
        return _merged(tuple((*_picked(u), *p) for p in pack))
    if u.op is Op.RESHAPE:
        return _before_reshape(pack, u.shape, s.shape)
    if u.op is Op.EXPAND or u.op is Op.BITCAST or u.op in ELEMENTWISE:
        return _before_broadcast(pack, len(u.shape), s.shape)
    return _merged(pack)


def _picked(u: UOp) -> Position:
    numbers = [int_value(i) for i in u.src[1:]]
    found = tuple(n for n in numbers if n is not None)
    if len(found) < len(numbers):
        raise UnsupportedError("select: an element of a fragment whose number is computed")
    return found


@lru_cache(KEPT)
def _before_reshape(pack: Pack, shape: Shape, of: Shape) -> Pack:
    return _merged(tuple(reshaped(p, shape, of) for p in pack))


@lru_cache(KEPT)
def _before_broadcast(pack: Pack, rank: int, shape: Shape) -> Pack:
    kept = [(rank - len(shape) + axis, n != 1) for axis, n in enumerate(shape)]
    return _merged(tuple(tuple(p[axis] if own else 0 for axis, own in kept) for p in pack))


def _merged(pack: Pack) -> Pack:
    """One element, where all are the same."""
    return pack[:1] if len(set(pack)) == 1 else pack


def reshaped(at: Position, shape: Shape, to: Shape) -> Position:
    """A position in another shape of as many elements."""
    number = 0
    for i, n in zip(at, shape, strict=True):
        number = number * n + i
    found = []
    for n in reversed(to):
        found.append(number % n)
        number //= n
    return tuple(reversed(found))


def _is_list(u: UOp) -> bool:
    return u.op is Op.STACK and all(s.op is Op.CONST for s in u.src)


@dataclass(frozen=True, slots=True)
class _Sum:
    """An index as a base that its neighbours share, plus a constant. A gate has the constant 0."""

    base: UOp
    offset: int = 0


class Indices:
    """The elements of the arithmetic on indices and gates that depends on no memory.

    Neighbours differ by a constant, so the rest is simplified once for all of them.
    """

    def __init__(self, order: Sequence[UOp], simplify: Rewriter) -> None:
        self._simplify = simplify
        self._of: dict[UOp, dict[Position, _Sum]] = {}
        self._bases: dict[tuple[Op, object, tuple[UOp, ...]], _Sum] = {}
        """What ops make of bases."""
        for u in order:
            if u.op in (Op.CONST, Op.SPECIAL) or is_variable(u):
                self._of[u] = {(): _sum(u)}
            elif _is_list(u):
                self._of[u] = {(k,): _sum(s) for k, s in enumerate(u.src)}
            elif self._is_computed(u):
                self._of[u] = {p: self._element(u, p) for p in positions(u.shape)}

    def __contains__(self, u: UOp) -> bool:
        return u in self._of

    def at(self, u: UOp, position: Position) -> UOp:
        """One element."""
        return _whole(self._of[u][position])

    def steps_by_one(self, u: UOp, pack: Pack) -> bool:
        """Whether the elements of a pack count up by 1."""
        if u not in self._of:
            return False
        first, *rest = (self._of[u][p] for p in pack)
        return all(
            x.base is first.base and x.offset == first.offset + k for k, x in enumerate(rest, 1)
        )

    def is_multiple(self, u: UOp, pack: Pack) -> bool:
        """Whether the first element of a pack is a multiple of its length."""
        first = self._of[u][pack[0]]
        terms, offset = linear_form(first.base)
        return all(n % len(pack) == 0 for n in (*terms.values(), offset + first.offset))

    def _is_computed(self, u: UOp) -> bool:
        is_typed = u.dtype in (dtypes.index, dtypes.bool)
        is_known = u.op in (Op.RANGE, Op.RESHAPE, Op.EXPAND) or u.op in ELEMENTWISE
        return is_typed and is_known and all(s in self._of for s in operands(u))

    def _element(self, u: UOp, at: Position) -> _Sum:
        src = [self._of[s][source(u, s, (at,))[0]] for s in operands(u)]
        if u.op in (Op.RESHAPE, Op.EXPAND):
            return src[0]
        offset = _offset(u, src)
        if offset is not None:
            found = self._made(u, [x.base for x in src])
            if fits(offset + found.offset):
                return _Sum(found.base, offset + found.offset)
        return self._made(u, [*map(_whole, src)])

    def _made(self, u: UOp, src: Sequence[UOp]) -> _Sum:
        key = u.op, u.arg, tuple(src)
        if key not in self._bases:
            self._bases[key] = _sum(self._simplify(u.with_src(src)))
        return self._bases[key]


def _sum(u: UOp) -> _Sum:
    """An index without its constant, which stands last, and the constant."""
    if u.dtype is dtypes.index and (offset := int_value(u)) is not None:
        return _Sum(ZERO, offset)
    if u.dtype is dtypes.index and u.op is Op.ADD:
        offset = int_value(u.src[1])
        return _Sum(u) if offset is None else _Sum(u.src[0], offset)
    return _Sum(u)


def _whole(x: _Sum) -> UOp:
    if not x.offset:
        return x.base
    return index(x.offset) if x.base is ZERO else add(x.base, x.offset)


def _offset(u: UOp, src: Sequence[_Sum]) -> int | None:
    """What the constants of sums add to the result of an op; None where it is not linear."""
    if u.dtype is not dtypes.index:
        return None
    match u.op, src:
        case Op.ADD, (a, b):
            return a.offset + b.offset
        case Op.SUB, (a, b):
            return a.offset - b.offset
    return None


def axes_of_vectors(order: Sequence[UOp], indices: Indices) -> dict[int, int]:
    """The axes of the kernel along which accesses are to neighbours in memory, with their sizes;
    first the one with the most such elements.
    """
    votes: Counter[int] = Counter()
    sizes: dict[int, int] = {}
    for u in order:
        if u.declaration.access and u.src[0].shape:
            wide = on_axes(u.src[0].src[1])
            first = (0,) * len(wide.shape)
            for axis, size in enumerate(wide.shape):
                second = (*first[:axis], 1, *first[axis + 1 :])
                if size > 1 and indices.steps_by_one(wide, (first, second)):
                    votes[axis] += prod(wide.shape)
                    sizes[axis] = size
    return {axis: sizes[axis] for axis, _ in votes.most_common()}


def on_axes(index: UOp) -> UOp:
    """A vector of indices on the axes of its kernel."""
    return index.src[0] if index.op is Op.RESHAPE else index
