"""The stage optimize: every RANGE gets its final axis type, by a sequence of optimizations.

Outputs are parallel and folds serial, unless the sequence of a kernel changes that. Without a
sequence, `chosen` chooses one for a large kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from uop.compiler.rewriting.rewrite import Fired, Rewriter, RuleSet, rewrites, unobserved
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.groups import chosen
from uop.compiler.stages.optimize.rows import KEEP_ROW
from uop.compiler.stages.optimize.tiles import COPY_TILE
from uop.compiler.stages.stage import Sequences, Setting, Stage, about
from uop.spec.args import AxisType, RangeArg, arg_of
from uop.spec.graph import kernel_calls
from uop.spec.kernel.forms import OPTIMIZED
from uop.spec.kernel.optimization import Optimization, illegal
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import outside_bodies, rebuild

Choose = Callable[[UOp], Sequence[Optimization]]
"""Chooses the sequence of a kernel."""


def optimize(root: UOp, fired: Fired = unobserved, sequences: Sequences | Choose = ()) -> UOp:
    """Make every RANGE over outputs GLOBAL, then apply the optimizations.

    Kernels are numbered as `kernel_calls` lists them. InvalidError for an optimization that its
    kernel does not allow, and for a sequence without a kernel.
    """
    parallel = Rewriter(OPTIMIZE, fired)(root)
    if callable(sequences):
        sequences = [sequences(call.src[0]) for call in kernel_calls(parallel)]
    if len(sequences) > len(kernel_calls(parallel)):
        found = f"{len(sequences)} sequences for {len(kernel_calls(parallel))} kernels"
        raise illegal("OPTIMIZE.c1", "optimize", found)
    new: dict[UOp, UOp] = {}
    for call, sequence in zip(kernel_calls(parallel), sequences, strict=False):
        new[call] = apply(call.src[0], sequence, fired)
    return _with_bodies(parallel, new) if new else parallel


def _with_bodies(root: UOp, bodies: dict[UOp, UOp]) -> UOp:
    """Give each CALL its new body. Kernels may share a body but not their optimizations."""

    def with_body(u: UOp, operands: list[UOp]) -> UOp:
        body = [bodies.get(u, u.src[0])] if u.op is Op.CALL else []
        return u.with_src([*body, *operands])

    return rebuild(root, with_body, outside_bodies)


@rewrites(Op.RANGE)
def run_outputs_in_parallel(u: UOp) -> UOp | None:
    """A LOOP over outputs becomes GLOBAL: its iterations are independent."""
    arg = arg_of(u, RangeArg)
    if arg.axis_type is not AxisType.LOOP:
        return None
    return UOp(Op.RANGE, *u.src, arg=RangeArg(arg.id, AxisType.GLOBAL))


OPTIMIZE = RuleSet(run_outputs_in_parallel)


def _set(root: UOp, setting: Setting, fired: Fired) -> UOp:
    """The stage with the optimizations of a setting, or those that the compiler chooses."""
    sequences = setting.optimizations
    choose = partial(chosen, target=setting.target)
    return optimize(root, fired, choose if sequences is None else sequences)


STAGE = Stage(
    "optimize",
    _set,
    lambda _: OPTIMIZED,
    lambda _: (*OPTIMIZE.names, COPY_TILE, KEEP_ROW),
    about(optimize),
)
