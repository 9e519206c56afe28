"""Sums of products of matrices (in select): fragments in registers, to which WMMAs add."""

from __future__ import annotations

from collections.abc import Iterable

from uop.compiler.stages.packs import Pack, Position, is_move, positions, source
from uop.compiler.validity import identity
from uop.spec.args import ReduceArg, WmmaArg, arg_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


def product_at(value: UOp, at: Position) -> tuple[UOp, Position]:
    """The node that computes an element of a value, behind all moves, and the element's place."""
    while True:
        if is_move(value):
            ((at,), value) = source(value, value.src[0], (at,)), value.src[0]
        elif value.op is Op.STACK and value.shape:
            value, at = value.src[at[0]], at[1:]
        else:
            return value, at


def fragments(fold: UOp, needed: Iterable[Pack]) -> list[Pack]:
    """The elements of a sum of products that one WMMA computes, for all of them; none for any other
    fold, or one whose products may not be added to another one.
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
