"""The stage optimize: every RANGE gets its final axis type, by a sequence of optimizations.

Outputs are parallel and folds serial, unless the sequence of a kernel changes that. Without a
sequence, `chosen` chooses one for a large kernel.
"""

from __future__ import annotations

from uop.compiler.rewriting.rewrite import Fired, Rewriter, RuleSet, rewrites, unobserved
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.choose import chosen
from uop.compiler.stages.optimize.local import COPY_TILE, KEEP_ROW
from uop.compiler.stages.stage import Sequences, Stage
from uop.compiler.targets.target import Target
from uop.spec.args import AxisType, RangeArg, arg_of
from uop.spec.graph import kernel_calls, outside_bodies, rebuild
from uop.spec.kernel.forms import OPTIMIZED
from uop.spec.kernel.optimization import illegal
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


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


STAGE = Stage(
    "optimize",
    lambda u, s, fired: optimize(
        u, fired, s.target if s.optimizations is None else s.optimizations
    ),
    lambda _: OPTIMIZED,
    lambda _: (*OPTIMIZE.names, COPY_TILE, KEEP_ROW),
)
