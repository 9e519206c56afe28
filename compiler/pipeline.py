"""The compile pipeline: eight stages from UOp to UOp, with a verifier after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from uop.compiler.execute import Executable, Inputs, Output, executable
from uop.compiler.kernels import first_stage, without_binaries
from uop.compiler.rewrite import Fired, quietly
from uop.compiler.stages.callify import callify
from uop.compiler.stages.expand import expand
from uop.compiler.stages.linearize import linearize
from uop.compiler.stages.optimize import Sequences, optimize
from uop.compiler.stages.plan import plan
from uop.compiler.stages.rangeify import rangeify
from uop.compiler.stages.render import render, render_kernel, render_source
from uop.compiler.stages.select import select, selected_for
from uop.compiler.targets.cuda import CUDA, CUDA_HOST
from uop.compiler.targets.opencl import OPENCL
from uop.compiler.targets.target import Target
from uop.spec.errors import UnsupportedError
from uop.spec.extension import in_core_ops
from uop.spec.graph import ProgramKind, beside_calls, kind_of, written
from uop.spec.kernel.forms import FORMS, Form, verify
from uop.spec.nearest import did_you_mean
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, checked_root

Observe = Callable[[str, str, UOp, UOp], None]
"""Called with (stage, rule, before, after) for each firing of a rule, and with rule "" for each
stage as a whole.
"""

Stage = Callable[[UOp, Fired], UOp]

WITH_MIN = frozenset({Op.MIN, Op.REDUCE})
"""The extension ops that stages take; select decomposes MIN for a target without it."""

TARGETS: Mapping[str, Target] = {target.name: target for target in (OPENCL, CUDA, CUDA_HOST)}


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A program compiled for a target."""

    stages: Mapping[str, UOp]
    """The output of each stage by name, in their order."""
    executable: Executable

    @property
    def source(self) -> str:
        """The source of all kernels in the language of the target."""
        target = self.executable.target
        kernels = [
            render_kernel(linear, name, target) for linear, name in self.executable.names().items()
        ]
        return render_source(kernels, target)

    def run(self, inputs: Inputs | None = None) -> Output:
        """Run the program on inputs by slot. Returns an array, a tuple for a TUPLE, or for a SINK a
        dict of the contents by slot.
        """
        return self.executable.run(inputs or {}, self.source)


def compile(
    root: UOp,
    target: str | Target = "opencl",
    observe: Observe | None = None,
    optimizations: Sequences = (),
) -> Compiled:
    """Run the stages on a program. A kernel program enters at the stage that takes its form.

    `optimizations` holds a sequence for each of the first kernels, in the order they run.
    UnsupportedError if the target lacks something, InvalidError for an optimization that is
    illegal on its kernel, PassError if a stage breaks its contract.
    """
    chosen = find_target(target)
    root = _entered(root)
    stages = dict(_left(root, chosen, optimizations, observe))
    if "callify" in stages:
        results = [store.src[0] for store in stages["callify"].src]
    else:
        results = written(root)
    return Compiled(stages, executable(root, results, stages["plan"], chosen))


def lower(
    root: UOp, stage: str, target: str | Target = "opencl", optimizations: Sequences = ()
) -> UOp:
    """The output of a stage for a program; UnsupportedError for a stage that does not run."""
    for name, program in _left(_entered(root), find_target(target), optimizations, None):
        if name == stage:
            return program
    raise UnsupportedError(f"no stage {stage} is left for this program")


def _entered(root: UOp) -> UOp:
    """The program that the stages see: core ops and MIN, and a LINEAR for each PROGRAM."""
    return without_binaries(in_core_ops(checked_root(root), WITH_MIN))


def _left(
    program: UOp, target: Target, optimizations: Sequences, observe: Observe | None
) -> Iterator[tuple[str, UOp]]:
    """Run the stages that a program needs; yield the name and the output of each."""
    for name, stage, form in _stages_for(program, target, optimizations):
        after = stage(program, quietly if observe is None else partial(observe, name))
        verify(after, form)
        if observe is not None:
            observe(name, "", program, after)
        program = after
        yield name, program


def _stages_for(
    root: UOp, target: Target, optimizations: Sequences
) -> list[tuple[str, Stage, Form]]:
    """The stages that a program needs."""
    stages = _stages(target, optimizations)
    kind = kind_of(root)
    if kind is ProgramKind.MIXED:
        raise UnsupportedError(f"{beside_calls(root)[0].op.name} beside CALLs of kernels")
    if not kind.calls_kernels:
        return stages
    names = [name for name, _, _ in stages]
    first = first_stage(root, target)
    if optimizations and names.index(first) > names.index("optimize"):
        raise UnsupportedError(f"optimizations of a program that enters behind them, at {first}")
    left = stages[names.index(first) :]
    # The caller sees every buffer of a kernel program, so `plan` must not share memory.
    return [(name, keep if name == "plan" else stage, form) for name, stage, form in left]


def find_target(target: str | Target) -> Target:
    if isinstance(target, Target):
        return target
    if target not in TARGETS:
        expected = f"expected one of {', '.join(TARGETS)}{did_you_mean(target, TARGETS)}"
        raise UnsupportedError(f"no target {target}: {expected}")
    return TARGETS[target]


def _stages(target: Target, optimizations: Sequences) -> list[tuple[str, Stage, Form]]:
    """All stages with their names and output forms."""
    forms = {**FORMS, "select": selected_for(target)}
    stages: Mapping[str, Stage] = {
        "callify": callify,
        "rangeify": rangeify,
        "optimize": lambda u, fired: optimize(u, fired, optimizations),
        "expand": expand,
        "select": lambda u, fired: select(u, target, fired),
        "linearize": linearize,
        "plan": plan,
        "render": lambda u, fired: render(u, target),
    }
    return [(name, stage, forms[name]) for name, stage in stages.items()]


def keep(root: UOp, fired: Fired) -> UOp:
    """The stage that changes nothing."""
    return root
