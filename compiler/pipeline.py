"""The compile pipeline: eight stages from UOp to UOp, with a verifier after each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from uop.compiler.loaded import Compiled
from uop.compiler.rewriting.rewrite import unobserved
from uop.compiler.runtime.binary import binaries_of
from uop.compiler.stages.callify.stage import STAGE as CALLIFY
from uop.compiler.stages.entry.stage import alone, enter, first_stage, to_core_ops
from uop.compiler.stages.expand import STAGE as EXPAND
from uop.compiler.stages.linearize import STAGE as LINEARIZE
from uop.compiler.stages.optimize.stage import STAGE as OPTIMIZE
from uop.compiler.stages.plan import STAGE as PLAN
from uop.compiler.stages.rangeify.stage import STAGE as RANGEIFY
from uop.compiler.stages.render.stage import STAGE as RENDER
from uop.compiler.stages.select.stage import STAGE as SELECT
from uop.compiler.stages.stage import Sequences, Setting, Stage
from uop.compiler.steps import executable, results_of
from uop.compiler.targets.cuda import CUDA, CUDA_HOST
from uop.compiler.targets.opencl import OPENCL
from uop.compiler.targets.target import Target
from uop.spec.errors import UnsupportedError
from uop.spec.graph import ProgramKind, kernel_calls, kernels, kind_of
from uop.spec.kernel.forms import verify
from uop.spec.nearest import did_you_mean
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

Observe = Callable[[str, str, UOp, UOp], None]
"""Called with (stage, rule, before, after) for each firing of a rule, and with rule "" for each
stage as a whole.
"""

STAGES = [CALLIFY, RANGEIFY, OPTIMIZE, EXPAND, SELECT, LINEARIZE, PLAN, RENDER]
"""The stages in their order."""
ON_GRAPHS = ("rangeify", "optimize", "expand", "select")
"""The stages whose kernels are graphs."""
TARGETS: dict[str, Target] = {target.name: target for target in (OPENCL, CUDA, CUDA_HOST)}


def compile(
    root: UOp,
    target: str | Target = "opencl",
    observe: Observe | None = None,
    optimizations: Sequences | None = None,
    quick: bool = False,
) -> Compiled:
    """Run the stages on a program. A kernel program enters at the stage that takes its form.

    `optimizations` holds a sequence for each of the first kernels, in the order they run; without
    it the compiler chooses those of large kernels, and with () there are none. `quick` is for one
    of many programs that run as one source: the stages end with `plan`, and no form is verified.
    UnsupportedError if the target lacks something, InvalidError for an optimization that is
    illegal on its kernel, UndefinedError for a barrier that is certain to diverge, PassError if a
    stage breaks its contract.
    """
    with _uncollected():
        chosen = find_target(target)
        given = to_core_ops(root)
        binaries = binaries_of(given, chosen.name)
        root = _entered(given, chosen)
        stages = dict(_run_stages(root, Setting(chosen, optimizations, quick), observe))
        results = results_of(root, next(iter(stages.values())))
        return Compiled(stages, executable(root, results, stages["plan"], chosen, binaries))


def lower(
    root: UOp,
    stage: str,
    target: str | Target = "opencl",
    optimizations: Sequences | None = None,
) -> UOp:
    """The output of a stage for a program; UnsupportedError for a stage that does not run."""
    setting = Setting(find_target(target), optimizations)
    for name, program in _run_stages(_entered(to_core_ops(root), setting.target), setting):
        if name == stage:
            return program
    raise UnsupportedError(f"no stage {stage} is left for this program")


def _entered(root: UOp, target: Target) -> UOp:
    """The program that the stages see. If it has ops on whole tensors too, it begins at the first
    stage, and its kernels are instructions already.
    """
    program = enter(root)
    if kind_of(program) is not ProgramKind.MIXED:
        return program
    linears: dict[UOp, UOp] = {}
    for call in kernel_calls(program):
        kernel = alone(call)
        is_list = first_stage(kernel, target) == "plan"
        listed = kernel if is_list else lower(kernel, "linearize", target)
        linears[call.src[0]] = kernels(listed)[0]
    return program.substitute(linears)


def _run_stages(
    program: UOp, setting: Setting, observe: Observe | None = None
) -> Iterator[tuple[str, UOp]]:
    """Run the stages that a program needs; yield the name and the output of each."""
    stages = _stages_for(program, setting)
    # Kernels that are instructions at the first stage are hidden from those that write kernels.
    linears = kernels(program) if stages[0] is STAGES[0] else []
    hidden = {body: UOp(Op.SINK, tag=f"kernel {k}") for k, body in enumerate(linears)}
    shown = {stand_in: body for body, stand_in in hidden.items()}
    for stage in stages:
        fired = unobserved if observe is None else partial(observe, stage.name)
        before = program.substitute(hidden) if stage.name in ON_GRAPHS[1:] else program
        after = stage.run(before, setting, fired)
        if not setting.quick:
            form = stage.form(setting)
            verify(after.substitute(hidden) if stage.name in ON_GRAPHS else after, form)
        after = after.substitute(shown)
        if observe is not None:
            observe(stage.name, "", program, after)
        program = after
        yield stage.name, program


def _stages_for(root: UOp, setting: Setting) -> list[Stage]:
    """The stages that a program needs."""
    stages = STAGES[:-1] if setting.quick else STAGES
    if not kind_of(root).calls_kernels:
        return stages
    names = [stage.name for stage in STAGES]
    first = names.index(first_stage(root, setting.target))
    if setting.optimizations and first > names.index("optimize"):
        what = "optimizations of a program that enters after optimize"
        raise UnsupportedError(f"{what}, at {names[first]}")
    # The caller sees every buffer of a kernel program, so `plan` must not share memory.
    return [
        replace(stage, run=lambda root, *_: root) if stage.name == "plan" else stage
        for stage in stages[first:]
    ]


def rules_of(target: str | Target) -> list[str]:
    """The rules of all stages for a target, as `stage/rule`."""
    found = find_target(target)
    return [f"{stage.name}/{rule}" for stage in STAGES for rule in stage.rules(found)]


def find_target(target: str | Target) -> Target:
    if isinstance(target, Target):
        return target
    if target not in TARGETS:
        expected = f"expected one of {', '.join(TARGETS)}{did_you_mean(target, TARGETS)}"
        raise UnsupportedError(f"no target {target}: {expected}")
    return TARGETS[target]


def add_stage(stage: Stage, before: str) -> None:
    """Add a stage before the one of this name."""
    names = [stage.name for stage in STAGES]
    STAGES.insert(names.index(before), stage)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage inside. A collection looks at every node that is alive, again and again
    while a program grows, and a compile leaves hardly any cycles to find.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
