"""Applies a sequence of optimizations to the loops of a kernel (in optimize)."""

from __future__ import annotations

from collections.abc import Sequence

from uop.compiler import loops
from uop.compiler.build import add, mul, neutral, only_where
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.rewrite import Fired, Rewriter, unobserved
from uop.compiler.rewriting.simplify import SIMPLIFY, fits
from uop.compiler.stages.optimize.local import with_rows, with_tiles
from uop.compiler.stages.optimize.matrix import onto_matrix_unit
from uop.spec.args import AxisType, ReduceArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.graph import rebuild
from uop.spec.kernel import optimization as opts
from uop.spec.kernel.forms import open_ranges
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import variables_of
from uop.spec.uop import UOp, const, index_const

OF_WORKGROUPS = (*loops.ITEMS, AxisType.GROUP_REDUCE)


def apply(body: UOp, sequence: Sequence[opts.Optimization], fired: Fired = unobserved) -> UOp:
    """Apply a sequence to the body of a kernel.

    InvalidError with the label of a broken condition; UnsupportedError for a kernel in which the
    bound of a loop depends on another loop.
    """
    if not sequence:
        return body
    if any(v.op is Op.RANGE for r in loops.axes(body) for v in r.src[0].toposort()):
        raise UnsupportedError("optimizations of a loop that runs as often as another one says")
    if variables_of(body):
        raise UnsupportedError("optimizations of a kernel with symbolic sizes")
    body = loops.numbered(body, loops.axes(body))
    for number, opt in enumerate(sequence):
        before = body
        match opt:
            case opts.Split():
                body = _split(body, opt, has_locals=opts.NoLocals() not in sequence[:number])
            case opts.PadTo():
                body = _padded(body, opt)
            case opts.Swap():
                body = _swapped(body, opt)
            case opts.NoLocals():
                _check_no_locals(body, opt)
            case opts.MatrixUnit():
                if number:
                    raise opt.illegal("c1", f"number {number + 1}")
                body = onto_matrix_unit(body, _axis(loops.axes(body), opt, opt.axis), opt)
        fired(str(opt), before, body)
    simplify = Rewriter(SIMPLIFY, fired)
    return simplify(with_rows(with_tiles(simplify(body), fired), fired))


def _split(body: UOp, opt: opts.Split, has_locals: bool) -> UOp:
    """A RANGE becomes o * factor + i with the new axis i inside, i * (n / factor) + o outside."""
    order = loops.axes(body)
    r = _axis(order, opt, opt.axis)
    bound = int_value(r.src[0])
    if bound is None or not 1 <= opt.factor <= max(bound, 1) or bound % opt.factor:
        raise opt.illegal("c2", _said(bound))
    origin = opts.SPLIT_FROM.get(opt.target)
    if origin is None or loops.type_of(r) not in origin.types or opt.side not in origin.sides:
        raise opt.illegal("c3", f"an axis of type {loops.type_of(r).name}")
    if opt.target in OF_WORKGROUPS and not has_locals:
        raise opt.illegal("c4", "NOLOCALS before")
    is_shared = opt.target is AxisType.GROUP_REDUCE
    if is_shared and any(r in u.src[1:] for u in loops.folds_in_folds(body)):
        raise opt.illegal("c5", "a fold around it")
    rest, fresh = bound // opt.factor, loops.free_id(order)
    outer, inner = (rest, loops.type_of(r)), (opt.factor, opt.target)
    if opt.side is opts.Side.OUTER:
        outer, inner = inner, outer
    o = loops.ranged(outer[0], fresh, outer[1])
    i = loops.ranged(inner[0], fresh + 1, inner[1])
    index = add(mul(o, inner[0]), i)
    order[opt.axis : opt.axis + 1] = [o, i]
    return loops.numbered(loops.rebuilt(body, {r: index}), order)


def _padded(body: UOp, opt: opts.PadTo) -> UOp:
    """Lengthen a loop; iterations beyond the old bound read and write nothing.

    Folds get a neutral value there; all other values of these iterations are unused.
    """
    r = _axis(loops.axes(body), opt, opt.axis)
    bound = int_value(r.src[0])
    longer = 0 if bound is None else -(-bound // max(opt.multiple, 1)) * opt.multiple
    if bound is None or opt.multiple < 1 or not fits(longer):
        raise opt.illegal("c2", _said(bound))
    if longer == bound:
        return body
    gated = _gated(body, r, UOp(Op.CMPLT, r, index_const(bound)))
    return loops.rebuilt(gated, {r: loops.ranged(longer, loops.id_of(r), loops.type_of(r))})


def _swapped(body: UOp, opt: opts.Swap) -> UOp:
    """Two axes exchange their numbers, and so their places in the nest."""
    order = loops.axes(body)
    a, b = (_axis(order, opt, axis) for axis in (opt.axis, opt.other))
    if b not in loops.nest_of(body, a):
        raise opt.illegal("c2", "axes of two nests")
    order[opt.axis], order[opt.other] = b, a
    return loops.numbered(body, order)


def _check_no_locals(body: UOp, opt: opts.NoLocals) -> None:
    for number, r in enumerate(loops.axes(body)):
        if loops.type_of(r) in OF_WORKGROUPS:
            raise opt.illegal("c1", f"axis {number} of type {loops.type_of(r).name}")


def _gated(body: UOp, r: UOp, valid: UOp) -> UOp:
    """Gate the accesses inside the loop of r and the values that are folded over r."""
    order = body.toposort()
    inside = open_ranges(order)
    ended = {v for u in order if u.op is Op.END and u.src[1] is r for v in u.src[0].toposort()}

    def gated(u: UOp, src: list[UOp]) -> UOp:
        if (u.op is Op.LOAD and r in inside[u]) or (u.op is Op.STORE and u in ended):
            value = src[1] if len(src) > 1 else const(0, u.dtype)
            # Beyond the bound the old gate may be UNSPECIFIED.
            gate = only_where(valid, src[2]) if len(src) > 2 else valid
            src = [src[0], value, gate]
        elif u.op is Op.REDUCE and r in u.src[1:] and u.src[0].op is not Op.WMMA:
            # Beyond the bound the operands of a WMMA are the zeros of gated LOADs.
            nothing = neutral(arg_of(u, ReduceArg).op, u.dtype)
            src[0] = UOp(Op.WHERE, valid, src[0], nothing)
        return u.with_src(src)

    return rebuild(body, gated)


def _axis(order: Sequence[UOp], opt: opts.Optimization, axis: int) -> UOp:
    if not 0 <= axis < len(order):
        raise opt.illegal("c2" if isinstance(opt, opts.MatrixUnit) else "c1", f"{len(order)} axes")
    return order[axis]


def _said(bound: int | None) -> str:
    return f"a bound of {'no CONST' if bound is None else bound}"
