"""optimize: every range gets the axis type it runs as, by a sequence of optimizations per kernel.

Nothing is searched: without a sequence outputs are parallel and folds serial.
"""

from __future__ import annotations

from collections.abc import Sequence

from uop.compiler.rewrite import Fired, Rewriter, RuleSet, quietly, rewrites
from uop.compiler.stages.optimize.apply import apply
from uop.spec.args import AxisType, RangeArg, arg_of
from uop.spec.errors import users_line
from uop.spec.graph import calls, outside
from uop.spec.kernel.optimization import OPTIMIZE_C1, Optimization
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

Sequences = Sequence[Sequence[Optimization]]
"""What is done to each kernel, by its number; kernels behind the last one stay as they are."""


def optimize(root: UOp, fired: Fired = quietly, sequences: Sequences = ()) -> UOp:
    """The same kernels with every RANGE over outputs GLOBAL, and then optimized.

    Kernels are numbered as `calls` lists them. InvalidError for an optimization that its kernel
    does not allow, and for a sequence without a kernel.
    """
    parallel = Rewriter(OPTIMIZE, fired)(root)
    if len(sequences) > len(calls(parallel)):
        found = f"{len(sequences)} sequences for {len(calls(parallel))} kernels"
        raise OPTIMIZE_C1.error("optimize", found, users_line())
    new: dict[UOp, UOp] = {}
    for call, sequence in zip(calls(parallel), sequences, strict=False):
        new[call] = apply(call.src[0], sequence, fired)
    return _with_bodies(parallel, new) if new else parallel


def _with_bodies(root: UOp, bodies: dict[UOp, UOp]) -> UOp:
    """A body may be that of several kernels, each of which is optimized in its own way."""
    new: dict[UOp, UOp] = {}
    for u in outside(root):
        if u.op is Op.CALL:
            arguments = [new[s] for s in u.src[1:]]
            new[u] = u.with_src([bodies.get(u, u.src[0]), *arguments])
        else:
            new[u] = u.with_src([new[s] for s in u.src])
    return new[root]


@rewrites(Op.RANGE)
def run_outputs_in_parallel(u: UOp) -> UOp | None:
    """A LOOP over outputs carries nothing from one element to the next."""
    arg = arg_of(u, RangeArg)
    if arg.axis_type is not AxisType.LOOP:
        return None
    return UOp(Op.RANGE, *u.src, arg=RangeArg(arg.id, AxisType.GLOBAL))


OPTIMIZE = RuleSet(run_outputs_in_parallel)
