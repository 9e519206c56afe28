"""Optimizations as rewrites of one kernel, applied from left to right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uop.compiler.rewrite import Fired, Rewriter, quietly
from uop.compiler.simplify import SIMPLIFY, fits, int_value
from uop.compiler.stages.optimize.axes import (
    FOLDED,
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
from uop.compiler.validity import FALSE, neutral
from uop.spec.args import AxisType, ReduceArg, arg_of
from uop.spec.conditions.labels import Condition
from uop.spec.errors import InvalidError, UnsupportedError, users_line
from uop.spec.kernel.forms import open_ranges
from uop.spec.kernel.optimization import (
    NOLOCALS_C1,
    PADTO_C1,
    PADTO_C2,
    SPLIT_C1,
    SPLIT_C2,
    SPLIT_C3,
    SPLIT_C4,
    SPLIT_C5,
    SPLIT_FROM,
    SWAP_C1,
    SWAP_C2,
    TC_C1,
    TC_C2,
    TC_C3,
    TC_C4,
    MatrixUnit,
    NoLocals,
    Optimization,
    PadTo,
    Side,
    Split,
    Swap,
)
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

OF_WORKGROUPS = (AxisType.LOCAL, AxisType.GROUP_REDUCE, AxisType.WARP)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A kernel on the way: its body, and whether it may have workgroups."""

    body: UOp
    has_locals: bool = True


def apply(body: UOp, sequence: Sequence[Optimization], fired: Fired = quietly) -> UOp:
    """The body of a kernel after each optimization of a sequence.

    InvalidError with the label of the condition that one does not meet; UnsupportedError for a
    kernel in which the bound of a loop depends on another loop.
    """
    if not sequence:
        return body
    if any(v.op is Op.RANGE for r in axes(body) for v in r.src[0].toposort()):
        raise UnsupportedError("optimizations of a loop that runs as often as another one says")
    state = Scheduled(numbered(body, axes(body)))
    for number, optimization in enumerate(sequence):
        before = state.body
        if isinstance(optimization, MatrixUnit) and number:
            raise _refused(TC_C1, optimization, f"number {number + 1}")
        state = APPLY[type(optimization)](state, optimization)
        fired(str(optimization), before, state.body)
    return Rewriter(SIMPLIFY, fired)(state.body)


def split(state: Scheduled, opt: Split) -> Scheduled:
    """Range r of n is o * factor + i with the new axis inside, i * (n / factor) + o outside."""
    order = axes(state.body)
    r = _axis(order, opt.axis, SPLIT_C1, opt)
    bound = int_value(r.src[0])
    if bound is None or not 1 <= opt.factor <= max(bound, 1) or bound % opt.factor:
        raise _refused(SPLIT_C2, opt, f"a bound of {'no CONST' if bound is None else bound}")
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
    """A longer loop: what is beyond the old bound is not read, not written, and folds to nothing.

    A fold gets there the value that changes none; every other value of there is lost anyway.
    """
    r = _axis(axes(state.body), opt.axis, PADTO_C1, opt)
    bound = int_value(r.src[0])
    longer = 0 if bound is None else -(-bound // max(opt.multiple, 1)) * opt.multiple
    if bound is None or opt.multiple < 1 or not fits(longer):
        raise _refused(PADTO_C2, opt, f"a bound of {'no CONST' if bound is None else bound}")
    if longer == bound:
        return state
    wide = ranged(index_const(longer), id_of(r), type_of(r))
    inside = UOp(Op.CMPLT, r, index_const(bound))
    gated = _gated(state.body, r, inside)
    return replace(state, body=rebuilt(gated, {r: Parts(wide, (wide,))}))


def swap(state: Scheduled, opt: Swap) -> Scheduled:
    """Both axes exchange their numbers, and so their places in the nest."""
    order = axes(state.body)
    a, b = (_axis(order, axis, SWAP_C1, opt) for axis in (opt.axis, opt.other))
    if b not in nest_of(state.body, a):
        raise _refused(SWAP_C2, opt, "axes of two nests")
    order[opt.axis], order[opt.other] = b, a
    return replace(state, body=numbered(state.body, order))


def without_locals(state: Scheduled, opt: NoLocals) -> Scheduled:
    """From here on no axis of a workgroup is made."""
    for number, r in enumerate(axes(state.body)):
        if type_of(r) in OF_WORKGROUPS:
            raise _refused(NOLOCALS_C1, opt, f"axis {number} of type {type_of(r).name}")
    return replace(state, has_locals=False)


def onto_matrix_unit(state: Scheduled, opt: MatrixUnit) -> Scheduled:
    """The fold over an axis, and the outputs around it, in tiles that a warp multiplies."""
    k = _axis(axes(state.body), opt.axis, TC_C2, opt)
    product = product_over(state.body, k)
    if product is None:
        raise _refused(TC_C3, opt, "another fold, or none")
    arg = instruction(opt.shape, product)
    if arg is None:
        sizes = " ".join(str(int_value(r.src[0])) for r in (product.i, product.j, k))
        raise _refused(TC_C4, opt, f"axes of {sizes} in {product.a.dtype.name}")
    return replace(state, body=onto(state.body, product, arg))


def _check_split(state: Scheduled, opt: Split, r: UOp) -> None:
    origin = SPLIT_FROM.get(opt.target)
    if origin is None or type_of(r) not in origin.types or opt.side not in origin.sides:
        raise _refused(SPLIT_C3, opt, f"an axis of type {type_of(r).name}")
    if opt.target in OF_WORKGROUPS and not state.has_locals:
        raise _refused(SPLIT_C4, opt, "NOLOCALS before")
    if opt.target is AxisType.GROUP_REDUCE and _around_fold(state.body, r):
        raise _refused(SPLIT_C5, opt, "a fold around it")


def _around_fold(body: UOp, r: UOp) -> bool:
    """Whether the fold over a range runs inside another fold."""
    order = body.toposort()
    inside = open_ranges(order)
    folds = (u for u in order if u.op is Op.REDUCE and r in u.src[1:])
    return any(type_of(outer) in FOLDED for u in folds for outer in inside[u])


def _gated(body: UOp, r: UOp, valid: UOp) -> UOp:
    """The body whose accesses inside the loop of r, and what it folds over r, ask whether an
    iteration is valid.
    """
    order = body.toposort()
    inside = open_ranges(order)
    ended = {v for u in order if u.op is Op.END and u.src[1] is r for v in u.src[0].toposort()}
    new: dict[UOp, UOp] = {}
    for u in order:
        src = [new[s] for s in u.src]
        if u.op is Op.LOAD and r in inside[u]:
            alt = src[1] if len(src) > 1 else const(0, u.dtype)
            src = [src[0], alt, _both(valid, src[2:])]
        elif u.op is Op.STORE and u in ended:
            src = [*src[:2], _both(valid, src[2:])]
        elif u.op is Op.REDUCE and r in u.src[1:] and u.src[0].op is not Op.WMMA:
            # Beyond the bound a WMMA multiplies what no LOAD has read: zeros.
            nothing = neutral(arg_of(u, ReduceArg).op, u.dtype)
            src[0] = UOp(Op.WHERE, valid, src[0], nothing)
        new[u] = u.with_src(src)
    return new[body]


def _both(valid: UOp, gate: Sequence[UOp]) -> UOp:
    """The old gate may have no value beyond the bound: there it is not asked."""
    return UOp(Op.WHERE, valid, gate[0], FALSE) if gate else valid


def _axis(order: Sequence[UOp], axis: int, condition: Condition, opt: Optimization) -> UOp:
    if not 0 <= axis < len(order):
        raise _refused(condition, opt, f"{len(order)} axes")
    return order[axis]


def _refused(condition: Condition, opt: Optimization, found: str) -> InvalidError:
    return condition.error(str(opt), found, users_line())


APPLY: Mapping[type, Callable[[Scheduled, Any], Scheduled]] = {
    Split: split,
    PadTo: pad,
    Swap: swap,
    NoLocals: without_locals,
    MatrixUnit: onto_matrix_unit,
}
