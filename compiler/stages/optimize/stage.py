"""The stage optimize: every RANGE gets its final axis type, by a sequence of optimizations.

Outputs are parallel and folds serial, unless the sequence of a kernel changes that. Without a
sequence, `chosen` chooses one for a large kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from uop.compiler.build import add, mul, neutral, only_where
from uop.compiler.loops import (
    FOLDED,
    ITEMS,
    axes,
    free_id,
    id_of,
    nest_of,
    numbered,
    ranged,
    rebuilt,
    type_of,
)
from uop.compiler.rewriting.patterns import int_value
from uop.compiler.rewriting.rewrite import Fired, Rewriter, RuleSet, rewrites, unobserved
from uop.compiler.rewriting.simplify import SIMPLIFY, fits
from uop.compiler.stages.optimize.choose import chosen
from uop.compiler.stages.optimize.local import COPY_TILE, KEEP_ROW, with_rows, with_tiles
from uop.compiler.stages.optimize.matrix import onto_matrix_unit
from uop.compiler.stages.stage import Sequences, Stage
from uop.compiler.targets.target import Target
from uop.spec.args import AxisType, RangeArg, ReduceArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.graph import kernel_calls, outside_bodies, rebuild
from uop.spec.kernel.forms import OPTIMIZED, open_ranges
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


def optimize(root: UOp, fired: Fired = unobserved, sequences: Sequences | Target = ()) -> UOp:
    """Make every RANGE over outputs GLOBAL, then apply the optimizations: a sequence for each
    kernel, or those that are chosen for a target.

    Kernels are numbered as `kernel_calls` lists them. InvalidError for an optimization that its
    kernel does not allow, and for a sequence without a kernel.
    """
    parallel = Rewriter(OPTIMIZE, fired)(root)
    calls = kernel_calls(parallel)
    if isinstance(sequences, Target):
        sequences = [chosen(call.src[0], sequences) for call in calls]
    if len(sequences) > len(calls):
        found = f"{len(sequences)} sequences for {len(calls)} kernels"
        raise illegal("OPTIMIZE.c1", "optimize", found)
    given = zip(calls, sequences, strict=False)
    optimized = {call: apply(call.src[0], s, fired) for call, s in given}

    def with_body(u: UOp, operands: list[UOp]) -> UOp:
        # Kernels may share a body but not their optimizations.
        body = [optimized.get(u, u.src[0])] if u.op is Op.CALL else []
        return u.with_src([*body, *operands])

    return rebuild(parallel, with_body, outside_bodies) if optimized else parallel


@rewrites(Op.RANGE)
def run_outputs_in_parallel(u: UOp) -> UOp | None:
    """A LOOP over outputs becomes GLOBAL: its iterations are independent."""
    arg = arg_of(u, RangeArg)
    if arg.axis_type is not AxisType.LOOP:
        return None
    return UOp(Op.RANGE, *u.src, arg=RangeArg(arg.id, AxisType.GLOBAL))


OPTIMIZE = RuleSet(run_outputs_in_parallel)


OF_WORKGROUPS = (*ITEMS, AxisType.GROUP_REDUCE)


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
    body = numbered(body, axes(body))
    for number, opt in enumerate(sequence):
        before = body
        match opt:
            case Split():
                body = split(body, opt, has_locals=NoLocals() not in sequence[:number])
            case PadTo():
                body = pad(body, opt)
            case Swap():
                body = swap(body, opt)
            case NoLocals():
                _check_no_locals(body, opt)
            case MatrixUnit():
                if number:
                    raise illegal("TC.c1", str(opt), f"number {number + 1}")
                k = _axis(axes(body), opt.axis, "TC.c2", opt)
                body = onto_matrix_unit(body, k, opt)
        fired(str(opt), before, body)
    simplify = Rewriter(SIMPLIFY, fired)
    return simplify(with_rows(with_tiles(simplify(body), fired), fired))


def split(body: UOp, opt: Split, has_locals: bool) -> UOp:
    """A RANGE becomes o * factor + i with the new axis i inside, i * (n / factor) + o outside."""
    order = axes(body)
    r = _axis(order, opt.axis, "SPLIT.c1", opt)
    bound = int_value(r.src[0])
    if bound is None or not 1 <= opt.factor <= max(bound, 1) or bound % opt.factor:
        raise illegal("SPLIT.c2", str(opt), f"a bound of {'no CONST' if bound is None else bound}")
    origin = SPLIT_FROM.get(opt.target)
    if origin is None or type_of(r) not in origin.types or opt.side not in origin.sides:
        raise illegal("SPLIT.c3", str(opt), f"an axis of type {type_of(r).name}")
    if opt.target in OF_WORKGROUPS and not has_locals:
        raise illegal("SPLIT.c4", str(opt), "NOLOCALS before")
    if opt.target is AxisType.GROUP_REDUCE and _is_in_fold(body, r):
        raise illegal("SPLIT.c5", str(opt), "a fold around it")
    rest, fresh = bound // opt.factor, free_id(order)
    outer, inner = (rest, type_of(r)), (opt.factor, opt.target)
    if opt.side is Side.OUTER:
        outer, inner = inner, outer
    o = ranged(outer[0], fresh, outer[1])
    i = ranged(inner[0], fresh + 1, inner[1])
    index = add(mul(o, inner[0]), i)
    order[opt.axis : opt.axis + 1] = [o, i]
    return numbered(rebuilt(body, {r: index}), order)


def pad(body: UOp, opt: PadTo) -> UOp:
    """Lengthen a loop; iterations beyond the old bound read and write nothing.

    Folds get a neutral value there; all other values of these iterations are unused.
    """
    r = _axis(axes(body), opt.axis, "PADTO.c1", opt)
    bound = int_value(r.src[0])
    longer = 0 if bound is None else -(-bound // max(opt.multiple, 1)) * opt.multiple
    if bound is None or opt.multiple < 1 or not fits(longer):
        raise illegal("PADTO.c2", str(opt), f"a bound of {'no CONST' if bound is None else bound}")
    if longer == bound:
        return body
    gated = _gated(body, r, UOp(Op.CMPLT, r, index_const(bound)))
    return rebuilt(gated, {r: ranged(longer, id_of(r), type_of(r))})


def swap(body: UOp, opt: Swap) -> UOp:
    """Two axes exchange their numbers, and so their places in the nest."""
    order = axes(body)
    a, b = (_axis(order, axis, "SWAP.c1", opt) for axis in (opt.axis, opt.other))
    if b not in nest_of(body, a):
        raise illegal("SWAP.c2", str(opt), "axes of two nests")
    order[opt.axis], order[opt.other] = b, a
    return numbered(body, order)


def _check_no_locals(body: UOp, opt: NoLocals) -> None:
    for number, r in enumerate(axes(body)):
        if type_of(r) in OF_WORKGROUPS:
            raise illegal("NOLOCALS.c1", str(opt), f"axis {number} of type {type_of(r).name}")


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


def _axis(order: Sequence[UOp], axis: int, label: str, opt: Optimization) -> UOp:
    if not 0 <= axis < len(order):
        raise illegal(label, str(opt), f"{len(order)} axes")
    return order[axis]


STAGE = Stage(
    "optimize",
    lambda u, s, fired: optimize(
        u, fired, s.target if s.optimizations is None else s.optimizations
    ),
    lambda _: OPTIMIZED,
    lambda _: (*OPTIMIZE.names, COPY_TILE, KEEP_ROW),
)
