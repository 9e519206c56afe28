"""The compile pipeline: eight stages from UOp to UOp, with a verifier after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import getdoc, getmodule

from uop.compiler.barriers import refuse_divergent
from uop.compiler.execute import Executable, Inputs, Output
from uop.compiler.kernels import (
    alone,
    binaries_of,
    first_stage,
    fits_one_launch,
    with_constants,
    without_binaries,
)
from uop.compiler.loaded import Loaded
from uop.compiler.rewrite import Fired, RuleSet, quietly, rewrite, rewrites
from uop.compiler.runtime.binary import Binary, digest
from uop.compiler.runtime.device import Compiler, Device
from uop.compiler.simplify import SIMPLIFY
from uop.compiler.stages.callify.stage import RULES as OF_CALLIFY
from uop.compiler.stages.callify.stage import callify
from uop.compiler.stages.entry.flat import over_flat_memory
from uop.compiler.stages.entry.nests import in_nests
from uop.compiler.stages.entry.scalars import graphs_in_scalars
from uop.compiler.stages.expand import RULES as EXPANSIONS
from uop.compiler.stages.expand import expand
from uop.compiler.stages.linearize import linearize
from uop.compiler.stages.optimize.groups import chosen
from uop.compiler.stages.optimize.rows import KEEP_ROW
from uop.compiler.stages.optimize.stage import OPTIMIZE, Choose, Sequences, optimize
from uop.compiler.stages.optimize.tiles import COPY_TILE
from uop.compiler.stages.plan import plan
from uop.compiler.stages.rangeify.blocks import BLOCKS
from uop.compiler.stages.rangeify.lower import LOWER
from uop.compiler.stages.rangeify.stage import rangeify
from uop.compiler.stages.render.stage import kernel_names, render
from uop.compiler.stages.select.launch import IN_WARP
from uop.compiler.stages.select.stage import OF_BODIES, rules_for, select, selected_for
from uop.compiler.steps import executable
from uop.compiler.targets.cuda import CUDA, CUDA_HOST
from uop.compiler.targets.opencl import OPENCL
from uop.compiler.targets.target import Target
from uop.spec.args import BinaryArg, SourceArg, arg_of
from uop.spec.errors import UnsupportedError
from uop.spec.extension import in_core_ops
from uop.spec.graph import (
    ProgramKind,
    base_of,
    calls,
    kernel_calls,
    kernels,
    kind_of,
    returns_memory,
    slot_of,
    written,
)
from uop.spec.kernel.forms import (
    CALLIFIED,
    EXPANDED,
    LINEARIZED,
    OPTIMIZED,
    PLANNED,
    RANGED,
    RENDERED,
    Form,
    verify,
)
from uop.spec.nearest import did_you_mean
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable, with_bound_variables
from uop.spec.uop import UOp, checked_root

Observe = Callable[[str, str, UOp, UOp], None]
"""Called with (stage, rule, before, after) for each firing of a rule, and with rule "" for each
stage as a whole.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a program is compiled for."""

    target: Target
    optimizations: Sequences | None = None
    quick: bool = False
    """Whether its forms are not verified, and no stage renders it: the source of its bundle does.
    """

    @property
    def chosen(self) -> Sequences | Choose:
        """The optimizations, or what chooses them."""
        if self.optimizations is None:
            return partial(chosen, target=self.target)
        return self.optimizations


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the compiler: a rewrite of programs, and the form of its output."""

    name: str
    run: Callable[[UOp, Setting, Fired], UOp]
    form: Callable[[Setting], Form]
    rules: Callable[[Target], Sequence[str]] = lambda _: ()
    """The names of its rules."""
    about: str = ""
    """What it does, in one sentence."""


ON_GRAPHS = ("rangeify", "optimize", "expand", "select")
"""The stages whose kernels are graphs."""
WITH_MIN = frozenset({Op.MIN, Op.REDUCE})
"""The extension ops that stages take; select decomposes MIN for a target without it."""

TARGETS: dict[str, Target] = {target.name: target for target in (OPENCL, CUDA, CUDA_HOST)}


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
        names = self.executable.names
        return target.source([target.kernel(linear, name) for linear, name in names.items()])

    def with_binaries(self, compiler: Compiler | None = None) -> UOp:
        """The program that `render` leaves, with the machine code of each kernel in its PROGRAM.

        `compiler` is a device, by default that of the target. `compile` takes the result, whose
        kernels then run as they are.
        """
        rendered = self.stages["render"]
        target = self.executable.target
        compiler = compiler or target.compiler()
        new: dict[UOp, UOp] = {}
        names = kernel_names(rendered)
        for body in kernels(rendered):
            linear, source, _ = body.src
            text = arg_of(source, SourceArg).text
            code = compiler.compile(text)
            about = target.name, compiler.machine, names[linear], digest(text.encode())
            data = BinaryArg(Binary(*about, code).pack())
            new[body] = UOp(Op.PROGRAM, linear, source, UOp(Op.BINARY, arg=data))
        return rendered.substitute(new)

    def run(self, inputs: Inputs | None = None, device: Device | None = None) -> Output:
        """Run the program on inputs by slot, by default on the device of the target.

        Returns an array, a tuple for a TUPLE, or for a SINK a dict of the contents by slot.
        """
        with self.load(device) as loaded:
            return loaded.run(inputs)

    def load(self, device: Device | None = None) -> Loaded:
        """Load the program on a device, by default that of the target, to run it again and again
        there: on arrays, or on what earlier runs left on the device.
        """
        return Loaded(self.executable, self.source, device)


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
    chosen = find_target(target)
    given = _in_core_ops(root)
    binaries = binaries_of(given, chosen)
    root = _entered(given, chosen)
    stages = dict(_left(root, Setting(chosen, optimizations, quick), observe))
    results = results_of(root, next(iter(stages.values())))
    if calls(root):
        linears = kernels(stages["plan"])
        if not binaries.keys() <= set(linears):
            raise UnsupportedError("a PROGRAM with a BINARY whose LINEAR is not one of `render`")
        for linear in linears:
            refuse_divergent(linear)
    return Compiled(stages, executable(root, results, stages["plan"], chosen, binaries))


def results_of(root: UOp, first: UOp) -> list[UOp]:
    """The memory that holds the results of a program; `first` is what its first stage leaves."""
    if returns_memory(root):
        return sorted(written(root), key=slot_of)
    # The STOREs of callify are in the order of the outputs.
    return [base_of(store.src[0]) for store in first.src]


def lower(
    root: UOp,
    stage: str,
    target: str | Target = "opencl",
    optimizations: Sequences | None = None,
) -> UOp:
    """The output of a stage for a program; UnsupportedError for a stage that does not run."""
    setting = Setting(find_target(target), optimizations)
    for name, program in _left(_entered(_in_core_ops(root), setting.target), setting, None):
        if name == stage:
            return program
    raise UnsupportedError(f"no stage {stage} is left for this program")


def _in_core_ops(root: UOp) -> UOp:
    """A program in core ops and MIN, with the numbers of its BINDs and variables without names."""
    named = [u for u in checked_root(root).toposort() if is_variable(u) and u.tag is not None]
    unnamed = root.substitute({v: UOp(Op.PARAM, *v.src, arg=v.arg) for v in named})
    return in_core_ops(with_bound_variables(unnamed), WITH_MIN)


def _entered(root: UOp, target: Target) -> UOp:
    """The program that the stages see: a LINEAR for each PROGRAM, flat memory in kernels, a kernel
    for STOREs in work items of their own, and no vectors in graphs.

    Beside ops on whole tensors a LINEAR for each kernel: such a program begins at the first stage.
    """
    root = rewrite(root, ENTERED) if any(u.tag == IN_WARP for u in root.toposort()) else root
    root = in_nests(over_flat_memory(without_binaries(root)), fits_one_launch)
    root = graphs_in_scalars(with_constants(root))
    if kind_of(root) is not ProgramKind.MIXED:
        return root
    bodies = {call.src[0]: call for call in kernel_calls(root)}
    return root.substitute({body: _linear(call, target) for body, call in bodies.items()})


@rewrites(Op.BARRIER)
def wait_for_the_group(u: UOp) -> UOp | None:
    """Of a program that comes from outside no tag says which items of a group wait."""
    return UOp(Op.BARRIER, *u.src) if u.tag == IN_WARP else None


ENTERED = RuleSet(wait_for_the_group)


def _linear(call: UOp, target: Target) -> UOp:
    """The instructions of the kernel of a CALL."""
    program = alone(call)
    if first_stage(program, target) != "plan":
        program = lower(program, "linearize", target)
    return kernels(program)[0]


def _left(program: UOp, setting: Setting, observe: Observe | None) -> Iterator[tuple[str, UOp]]:
    """Run the stages that a program needs; yield the name and the output of each."""
    stages = _stages_for(program, setting)
    if setting.quick:
        stages = [stage for stage in stages if stage.name != "render"]
    # Kernels that are instructions at the first stage are hidden from those that write kernels.
    is_mixed = stages[0] is STAGES[0]
    linears = kernels(program) if is_mixed else []
    hidden = {body: UOp(Op.SINK, tag=f"kernel {k}") for k, body in enumerate(linears)}
    shown = {stand_in: body for body, stand_in in hidden.items()}
    for stage in stages:
        fired = quietly if observe is None else partial(observe, stage.name)
        hides = stage.name in ON_GRAPHS
        before = program.substitute(hidden) if stage.name in ON_GRAPHS[1:] else program
        after = stage.run(before, setting, fired)
        if not setting.quick:
            verify(after.substitute(hidden) if hides else after, stage.form(setting))
        after = after.substitute(shown)
        if observe is not None:
            observe(stage.name, "", program, after)
        program = after
        yield stage.name, program


def _stages_for(root: UOp, setting: Setting) -> list[Stage]:
    """The stages that a program needs."""
    if not kind_of(root).calls_kernels:
        return STAGES
    names = [stage.name for stage in STAGES]
    first = first_stage(root, setting.target)
    if setting.optimizations and names.index(first) > names.index("optimize"):
        raise UnsupportedError(f"optimizations of a program that enters behind them, at {first}")
    # The caller sees every buffer of a kernel program, so `plan` must not share memory.
    return [
        replace(stage, run=_keep) if stage.name == "plan" else stage
        for stage in STAGES[names.index(first) :]
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


def _keep(root: UOp, setting: Setting, fired: Fired) -> UOp:
    """The stage that changes nothing."""
    return root


def add_stage(stage: Stage, before: str) -> None:
    """Add a stage before the one of this name."""
    names = [stage.name for stage in STAGES]
    STAGES.insert(names.index(before), stage)


def _rewriting(run: Callable[[UOp, Fired], UOp], form: Form, rules: Sequence[str] = ()) -> Stage:
    """A stage that does not depend on the setting."""
    return Stage(
        form.stage,
        lambda u, _, fired: run(u, fired),
        lambda _: form,
        lambda _: rules,
        _about(run),
    )


def _about(run: Callable[..., UOp]) -> str:
    """The first paragraph about the stage of a function, as its module has it."""
    paragraph = (getdoc(getmodule(run)) or "").partition("\n\n")[0]
    return " ".join(paragraph.partition(": ")[2].split())


STAGES = [
    _rewriting(callify, CALLIFIED, OF_CALLIFY),
    _rewriting(rangeify, RANGED, (*BLOCKS.names, *LOWER, *SIMPLIFY.names)),
    Stage(
        "optimize",
        lambda u, s, fired: optimize(u, fired, s.chosen),
        lambda _: OPTIMIZED,
        lambda _: (*OPTIMIZE.names, COPY_TILE, KEEP_ROW),
        _about(optimize),
    ),
    _rewriting(expand, EXPANDED, EXPANSIONS),
    Stage(
        "select",
        lambda u, s, fired: select(u, s.target, fired),
        lambda s: selected_for(s.target),
        lambda target: (*OF_BODIES, *rules_for(target).names),
        _about(select),
    ),
    _rewriting(linearize, LINEARIZED),
    _rewriting(plan, PLANNED),
    Stage(
        "render",
        lambda u, s, fired: render(u, s.target),
        lambda _: RENDERED,
        about=_about(render),
    ),
]
"""The stages in their order."""
