"""The compile pipeline: eight stages from UOp to UOp, with a verifier after each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import dropwhile

from uop.compiler.loaded import Compiled
from uop.compiler.rewriting.rewrite import unobserved
from uop.compiler.runtime.binary import binaries_of
from uop.compiler.stages.callify.stage import STAGE as CALLIFY
from uop.compiler.stages.entry.first import first_stage
from uop.compiler.stages.entry.stage import Entry, alone, enter, to_core_ops
from uop.compiler.stages.expand import STAGE as EXPAND
from uop.compiler.stages.linearize import STAGE as LINEARIZE
from uop.compiler.stages.optimize.stage import STAGE as OPTIMIZE
from uop.compiler.stages.plan import STAGE as PLAN
from uop.compiler.stages.rangeify.stage import STAGE as RANGEIFY
from uop.compiler.stages.render.stage import STAGE as RENDER
from uop.compiler.stages.select.stage import STAGE as SELECT
from uop.compiler.stages.stage import Sequences, Setting, Stage
from uop.compiler.steps import executable
from uop.compiler.targets.cuda import CUDA, CUDA_HOST
from uop.compiler.targets.opencl import OPENCL
from uop.compiler.targets.target import Target
from uop.spec.errors import UnsupportedError
from uop.spec.graph import kernels, substituted, with_kernels
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
        setting = Setting(find_target(target), optimizations, quick)
        given = to_core_ops(root)
        bodies = kernels(given)
        binaries = binaries_of(bodies, setting.target.name)
        entry = enter(given)
        stages = dict(_run_stages(entry, setting, observe))
        first, planned = next(iter(stages.values())), stages["plan"]
        return Compiled(stages, executable(entry, first, planned, setting.target, binaries))


def lower(
    root: UOp,
    stage: str,
    target: str | Target = "opencl",
    optimizations: Sequences | None = None,
) -> UOp:
    """The output of a stage for a program; UnsupportedError for a stage that does not run."""
    setting = Setting(find_target(target), optimizations)
    for name, program in _run_stages(enter(to_core_ops(root)), setting):
        if name == stage:
            return program
    raise UnsupportedError(f"no stage {stage} is left for this program")


def _run_stages(
    entry: Entry, setting: Setting, observe: Observe | None = None
) -> Iterator[tuple[str, UOp]]:
    """Run the stages that a program needs; yield the name and the output of each."""
    program = entry.program
    stages, first = STAGES[:-1] if setting.quick else STAGES, STAGES[0].name
    hidden: dict[UOp, UOp] = {}
    if entry.calls_kernels:
        first = first_stage(program, setting)
    else:
        # Among ops on whole tensors kernels are instructions, hidden from the stages on graphs.
        program = with_kernels(program, partial(_listed, setting.target))
        hidden = {u: UOp(Op.SINK, tag=f"kernel {k}") for k, u in enumerate(kernels(program))}
    shown = {stand_in: body for body, stand_in in hidden.items()}
    for stage in dropwhile(lambda stage: stage.name != first, stages):
        fired = unobserved if observe is None else partial(observe, stage.name)
        before = substituted(program, hidden) if stage.name in ON_GRAPHS[1:] else program
        # The caller has planned the memory of a kernel program, and sees every buffer of it.
        is_planned = stage.name == "plan" and entry.calls_kernels
        after = before if is_planned else stage.run(before, setting, fired)
        if not setting.quick:
            form = stage.form(setting)
            verify(substituted(after, hidden) if stage.name in ON_GRAPHS else after, form)
        after = substituted(after, shown)
        if observe is not None:
            observe(stage.name, "", program, after)
        program = after
        yield stage.name, program


def _listed(target: Target, body: UOp) -> UOp:
    """A kernel as a list of instructions."""
    ran = _run_stages(Entry(alone(body), calls_kernels=True), Setting(target))
    return kernels(next(after for stage, after in ran if stage in ("linearize", "plan")))[0]


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
