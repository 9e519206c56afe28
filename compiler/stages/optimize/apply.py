"""Applies a sequence of optimizations to a kernel, each as a rewrite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.rewrite import Fired, Rewriter, unobserved
from uop.compiler.rewriting.simplify import SIMPLIFY, fits
from uop.compiler.stages.optimize.axes import (
    FOLDED,
    ITEMS,
    Parts,
    axes,
    id_of,
    nest_of,
    numbered,
    ranged,
    rebuilt,
    type_of,
)
from uop.compiler.stages.optimize.matrix import instruction, onto, product_over
from uop.compiler.stages.optimize.rows import with_rows
from uop.compiler.stages.optimize.tiles import with_tiles
from uop.compiler.validity import neutral, only_where
from uop.spec.args import AxisType, ReduceArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.forms import open_ranges
from uop.spec.kernel.optimization import (
    SPLIT_FROM,
    MatrixUnit,
    NoLocals,
    Optimization,
    PadTo,
    Side,
    Split,
    Swap,
    illegal,
)
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import variables_of
from uop.spec.uop import UOp, const, index_const
from uop.spec.walk import rebuild

OF_WORKGROUPS = (*ITEMS, AxisType.GROUP_REDUCE)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A partly optimized kernel: its body, and whether it may use workgroups."""

    body: UOp
    has_locals: bool = True


def apply(body: UOp, sequence: Sequence[Optimization], fired: Fired = unobserved) -> UOp:
    """Apply a sequence to the body of a kernel.

    InvalidError with the label of a broken condition; UnsupportedError for a kernel in which the
    bound of a loop depends on another loop.
    """
    if not sequence:
        return body
    if any(v.op is Op.RANGE for r in axes(body) for v in r.src[0].toposort()):
        raise UnsupportedError("optimizations of a loop that runs as often as another one says")
    if variables_of(body):
        raise UnsupportedError("optimizations of a kernel with symbolic sizes")
    state = Scheduled(numbered(body, axes(body)))
    for number, optimization in enumerate(sequence):
        before = state.body
        if isinstance(optimization, MatrixUnit) and number:
            raise illegal("TC.c1", str(optimization), f"number {number + 1}")
        state = APPLY[type(optimization)](state, optimization)
        fired(str(optimization), before, state.body)
    simplify = Rewriter(SIMPLIFY, fired)
    return simplify(with_rows(with_tiles(simplify(state.body), fired), fired))


def split(state: Scheduled, opt: Split) -> Scheduled:
    """A RANGE becomes o * factor + i with the new axis i inside, i * (n / factor) + o outside."""
    order = axes(state.body)
    r = _axis(order, opt.axis, "SPLIT.c1", opt)
    bound = int_value(r.src[0])
    if bound is None or not 1 <= opt.factor <= max(bound, 1) or bound % opt.factor:
        raise illegal("SPLIT.c2", str(opt), f"a bound of {'no CONST' if bound is None else bound}")
    _check_split(state, opt, r)
    rest, fresh = bound // opt.factor, 1 + max(map(id_of, order))
    outer, inner = (rest, type_of(r)), (opt.factor, opt.target)
    if opt.side is Side.OUTER:
        outer, inner = inner, outer
    o = ranged(index_const(outer[0]), fresh, outer[1])
    i = ranged(index_const(inner[0]), fresh + 1, inner[1])
    index = UOp(Op.ADD, UOp(Op.MUL, o, index_const(inner[0])), i)
    body = rebuilt(state.body, {r: Parts(index, (o, i))})
    order[opt.axis : opt.axis + 1] = [o, i]
    return replace(state, body=numbered(body, order))


def pad(state: Scheduled, opt: PadTo) -> Scheduled:
    """Lengthen a loop; iterations beyond the old bound read and write nothing.

    Folds get a neutral value there; all other values of these iterations are unused.
    """
    r = _axis(axes(state.body), opt.axis, "PADTO.c1", opt)
    bound = int_value(r.src[0])
    longer = 0 if bound is None else -(-bound // max(opt.multiple, 1)) * opt.multiple
    if bound is None or opt.multiple < 1 or not fits(longer):
        raise illegal("PADTO.c2", str(opt), f"a bound of {'no CONST' if bound is None else bound}")
    if longer == bound:
        return state
    wide = ranged(index_const(longer), id_of(r), type_of(r))
    inside = UOp(Op.CMPLT, r, index_const(bound))
    gated = _gated(state.body, r, inside)
    return replace(state, body=rebuilt(gated, {r: Parts(wide, (wide,))}))


def swap(state: Scheduled, opt: Swap) -> Scheduled:
    """Two axes exchange their numbers, and so their places in the nest."""
    order = axes(state.body)
    a, b = (_axis(order, axis, "SWAP.c1", opt) for axis in (opt.axis, opt.other))
    if b not in nest_of(state.body, a):
        raise illegal("SWAP.c2", str(opt), "axes of two nests")
    order[opt.axis], order[opt.other] = b, a
    return replace(state, body=numbered(state.body, order))


def without_locals(state: Scheduled, opt: NoLocals) -> Scheduled:
    """Forbid axes of workgroups."""
    for number, r in enumerate(axes(state.body)):
        if type_of(r) in OF_WORKGROUPS:
            raise illegal("NOLOCALS.c1", str(opt), f"axis {number} of type {type_of(r).name}")
    return replace(state, has_locals=False)


def onto_matrix_unit(state: Scheduled, opt: MatrixUnit) -> Scheduled:
    """Tile the fold over an axis and the outputs around it for a warp's matrix instruction."""
    k = _axis(axes(state.body), opt.axis, "TC.c2", opt)
    product = product_over(state.body, k)
    if product is None:
        raise illegal("TC.c3", str(opt), "another fold, or none")
    arg = instruction(opt.shape, product)
    if arg is None:
        sizes = " ".join(str(int_value(r.src[0])) for r in (product.i, product.j, k))
        raise illegal("TC.c4", str(opt), f"axes of {sizes} in {product.a.dtype.name}")
    return replace(state, body=onto(state.body, product, arg))


def _check_split(state: Scheduled, opt: Split, r: UOp) -> None:
    origin = SPLIT_FROM.get(opt.target)
    if origin is None or type_of(r) not in origin.types or opt.side not in origin.sides:
        raise illegal("SPLIT.c3", str(opt), f"an axis of type {type_of(r).name}")
    if opt.target in OF_WORKGROUPS and not state.has_locals:
        raise illegal("SPLIT.c4", str(opt), "NOLOCALS before")
    if opt.target is AxisType.GROUP_REDUCE and _is_in_fold(state.body, r):
        raise illegal("SPLIT.c5", str(opt), "a fold around it")


def _is_in_fold(body: UOp, r: UOp) -> bool:
    """Whether the fold over a range runs inside another fold."""
    order = body.toposort()
    inside = open_ranges(order)
    folds = (u for u in order if u.op is Op.REDUCE and r in u.src[1:])
    return any(type_of(outer) in FOLDED for u in folds for outer in inside[u])


def _gated(body: UOp, r: UOp, valid: UOp) -> UOp:
    """Gate the accesses inside the loop of r and the values that are folded over r."""
    order = body.toposort()
    inside = open_ranges(order)
    ended = {v for u in order if u.op is Op.END and u.src[1] is r for v in u.src[0].toposort()}

    def gated(u: UOp, src: list[UOp]) -> UOp:
        if u.op is Op.LOAD and r in inside[u]:
            alt = src[1] if len(src) > 1 else const(0, u.dtype)
            src = [src[0], alt, _both(valid, src[2:])]
        elif u.op is Op.STORE and u in ended:
            src = [*src[:2], _both(valid, src[2:])]
        elif u.op is Op.REDUCE and r in u.src[1:] and u.src[0].op is not Op.WMMA:
            # Beyond the bound the operands of a WMMA are the zeros of gated LOADs.
            nothing = neutral(arg_of(u, ReduceArg).op, u.dtype)
            src[0] = UOp(Op.WHERE, valid, src[0], nothing)
        return u.with_src(src)

    return rebuild(body, gated)


def _both(valid: UOp, gate: Sequence[UOp]) -> UOp:
    """A gate for what is inside of a bound; beyond it the old gate may be UNSPECIFIED."""
    return only_where(valid, gate[0]) if gate else valid


def _axis(order: Sequence[UOp], axis: int, label: str, opt: Optimization) -> UOp:
    if not 0 <= axis < len(order):
        raise illegal(label, str(opt), f"{len(order)} axes")
    return order[axis]


APPLY: Mapping[type, Callable[[Scheduled, Any], Scheduled]] = {
    Split: split,
    PadTo: pad,
    Swap: swap,
    NoLocals: without_locals,
    MatrixUnit: onto_matrix_unit,
}
