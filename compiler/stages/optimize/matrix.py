"""The optimization TC: maps a sum of products to matrix instructions of a warp (D-098)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from uop.compiler import loops
from uop.compiler.build import add, div, element, mod, mul
from uop.compiler.rewriting.patterns import int_value
from uop.spec.args import AxisType, ReduceArg, WmmaArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.kernel.forms import open_ranges
from uop.spec.kernel.optimization import MatrixUnit
from uop.spec.ops.codegen import WARP, fragment_shapes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, const

WORD = 4
"""Bytes of a register, which holds neighbours along k."""


ALONG_K: Mapping[int, tuple[int, ...]] = {2: (8, 16), 1: (32,)}
"""The sizes along k of the instructions m16n8, by the item size of a factor."""


@dataclass(frozen=True, slots=True)
class Product:
    """A fold over k of the products of A, which depends on i and k, and B, which on j and k."""

    fold: UOp
    a: UOp
    b: UOp
    i: UOp
    j: UOp
    k: UOp


def onto_matrix_unit(body: UOp, k: UOp, opt: MatrixUnit) -> UOp:
    """Tile the fold over an axis and the outputs around it for a warp's matrix instruction."""
    product = _product_over(body, k)
    if product is None:
        raise opt.illegal("c3", "another fold, or none")
    arg = _instruction(opt.shape, product)
    if arg is None:
        sizes = " ".join(str(int_value(r.src[0])) for r in (product.i, product.j, k))
        raise opt.illegal("c4", f"axes of {sizes} in {product.a.dtype.name}")
    return _onto(body, product, arg)


def _product_over(body: UOp, k: UOp) -> Product | None:
    """The sum of products over an axis, if the kernel has one fold and one STORE; else None."""
    order = body.toposort()
    folds = [u for u in order if u.op is Op.REDUCE]
    if len(folds) != 1 or sum(u.op is Op.STORE for u in order) != 1:
        return None
    (fold,) = folds
    is_sum = arg_of(fold, ReduceArg).op is Op.ADD and fold.src[0].op is Op.MUL
    if not is_sum or fold.src[1:] != (k,):
        return None
    a, b = (_factor(s) for s in fold.src[0].src)
    if a is None or b is None or a.dtype is not b.dtype:
        return None
    inside = open_ranges(order)
    rows, columns = inside[a] - inside[b], inside[b] - inside[a]
    if k not in inside[a] & inside[b] or (len(rows), len(columns)) != (1, 1):
        return None
    return Product(fold, a, b, next(iter(rows)), next(iter(columns)), k)


def _instruction(shape: str, product: Product) -> WmmaArg | None:
    """The instruction of a shape such as m16n8k16, if its sizes divide the axes; else None."""
    match = re.fullmatch(r"m16n8k(\d+)", shape)
    if match is None or int(match[1]) not in ALONG_K.get(product.a.dtype.itemsize, ()):
        return None
    arg = WmmaArg(16, 8, int(match[1]), product.a.dtype, product.fold.dtype)
    sizes = ((product.i, arg.m), (product.j, arg.n), (product.k, arg.k))
    whole = all((bound := int_value(r.src[0])) is not None and bound % n == 0 for r, n in sizes)
    return arg if whole and arg.dtype_out is dtypes.float32 else None


def _onto(body: UOp, product: Product, arg: WmmaArg) -> UOp:
    """Tile the body: a warp for each tile of outputs, a loop over the tiles of k."""
    order = loops.axes(body)
    fresh = loops.free_id(order)
    sizes = {product.i: arg.m, product.j: arg.n, product.k: arg.k}
    tiles = {
        r: loops.ranged(loops.bound_of(r) // size, fresh + n, loops.type_of(r))
        for n, (r, size) in enumerate(sizes.items())
    }
    lane = loops.ranged(WARP, fresh + 3, AxisType.WARP)
    firsts = {r: mul(tile, sizes[r]) for r, tile in tiles.items()}
    fold = _folded(product, arg, firsts, tiles[product.k], lane)
    (store,) = (u for u in body.toposort() if u.op is Op.STORE)
    stores = []
    for e in range(arg.m * arg.n // WARP):
        each = store.substitute({product.fold: element(fold, e)})
        stores.append(_placed(each, (product.i, product.j), firsts, place_in_rows(lane, e, 2)))
    outputs = loops.nest_of(body, product.i)
    effect = loops.in_loops(
        loops.grouped(stores), [*(tiles.get(r, r) for r in reversed(outputs)), lane]
    )
    last = max(order.index(r) for r in outputs)
    now = [tiles.get(r, r) for r in order]
    return loops.numbered(UOp(Op.SINK, effect), [*now[: last + 1], lane, *now[last + 1 :]])


def place_in_rows(lane: UOp, e: int, run: int) -> tuple[UOp, UOp]:
    """Row and column of element e of a lane in A, or with a run of 2 in acc."""
    row = add(div(lane, 4), 8 * (e // run % 2))
    return row, _along(lane, e % run + 4 * run * (e // (2 * run)), run)


def place_in_columns(lane: UOp, e: int, run: int) -> tuple[UOp, UOp]:
    """Row and column of element e of a lane in B."""
    return _along(lane, e % run + 4 * run * (e // run), run), div(lane, 4)


def _along(lane: UOp, offset: int, run: int) -> UOp:
    return add(mul(mod(lane, 4), run), offset)


def _placed(
    u: UOp, axes: tuple[UOp, UOp], firsts: Mapping[UOp, UOp], place: tuple[UOp, UOp]
) -> UOp:
    """A node at a place of a tile, which starts at the first index along each axis."""
    return u.substitute({r: add(firsts[r], at) for r, at in zip(axes, place, strict=True)})


def _factor(u: UOp) -> UOp | None:
    """The operand of the CAST of a factor, if products of two are exact in the dtype of the sum."""
    if u.op is not Op.CAST or not u.src[0].dtype.is_float or not u.dtype.is_float:
        return None
    return u.src[0] if u.dtype.format.holds_products_of(u.src[0].dtype.format) else None


def _folded(product: Product, arg: WmmaArg, firsts: Mapping[UOp, UOp], k: UOp, lane: UOp) -> UOp:
    """The tile of outputs as its fragments: WMMA summed over the tiles of k."""
    (rows,), (columns,), (outputs,) = cast("tuple[Shape, ...]", fragment_shapes(arg))
    run = WORD // arg.dtype_in.itemsize
    a = (
        _placed(product.a, (product.i, product.k), firsts, place_in_rows(lane, e, run))
        for e in range(rows)
    )
    b = (
        _placed(product.b, (product.k, product.j), firsts, place_in_columns(lane, e, run))
        for e in range(columns)
    )
    nothing = UOp(Op.STACK, *[const(0, arg.dtype_out)] * outputs)
    part = UOp(Op.WMMA, UOp(Op.STACK, *a), UOp(Op.STACK, *b), nothing, arg=arg)
    return UOp(Op.REDUCE, part, k, arg=ReduceArg(Op.ADD))
