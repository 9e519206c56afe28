"""Compiles a program and judges what each stage leaves, to name the first that is wrong.

A stage may change bits where the language leaves a choice: what it leaves must lie in the accepted
set of the program before it, and in that of the whole program. The first stage that does not is
blamed, and in it the first firing of a rule whose two sides differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from uop.compiler.loaded import Compiled
from uop.compiler.pipeline import STAGES, compile
from uop.compiler.stages.rangeify.lower import LOWER
from uop.compiler.stages.stage import Setting
from uop.compiler.steps import result_slots
from uop.conformance.locate.firing import (
    Change,
    Firing,
    Inputs,
    accepted_of,
    change_of,
    first_outside,
    values_of,
)
from uop.interpreter.accepted.result import Accepted
from uop.spec.errors import InvalidError, PassError, UndefinedError, UnsupportedError, UopError
from uop.spec.graph import returns_memory, slot_of, written
from uop.spec.uop import UOp

ENTRY = "entry"
"""The name of what the compiler does with a program before its first stage."""


@dataclass(frozen=True, slots=True)
class Blame:
    """A stage that changes the meaning of a program, and what shows it.

    `firing` is the rule's, with the change in value that it made; without one the fault is in
    what the stage does beside its rules.
    """

    stage: str
    message: str
    batch: int = 0
    firing: Firing | None = None
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class StageCheck:
    """A stage that was judged: the firings of rules in it, and the elements that it left."""

    name: str
    firings: int
    elements: int


@dataclass(slots=True)
class Log:
    """What the compiler does: the firings of each stage, and the programs around the stages."""

    firings: list[Firing] = field(default_factory=list)
    stages: list[tuple[str, UOp, UOp]] = field(default_factory=list)

    def observe(self, stage: str, rule: str, before: UOp, after: UOp) -> None:
        if rule:
            self.firings.append(Firing(stage, rule, before, after))
        else:
            self.stages.append((stage, before, after))

    def of(self, stage: str) -> list[Firing]:
        """The distinct firings of a stage, in order."""
        return list(dict.fromkeys(f for f in self.firings if f.stage == stage))

    @property
    def under_way(self) -> str:
        """The stage in which the compiler ended."""
        names = [stage.name for stage in STAGES]
        done = [name for name, *_ in self.stages]
        begun = [f.stage for f in self.firings if f.stage not in done]
        following = names[names.index(done[-1]) + 1 :] if done else names
        return next(iter([*begun, *following]), names[-1])


@dataclass(frozen=True, slots=True)
class Checked:
    """The stages of a program that were judged, and the one that is to blame."""

    stages: tuple[StageCheck, ...]
    blame: Blame | None = None
    compiled: Compiled | None = None
    """None where the compiler did not come to an end."""
    log: Log = field(default_factory=Log)


def check_stages(root: UOp, batches: Sequence[Inputs], setting: Setting) -> Checked:
    """Compile a program and judge each stage on these inputs.

    UndefinedError for a program without meaning on them, UnsupportedError for one that the target
    lacks something for, or whose accepted sets are not known.
    """
    own = sorted(map(slot_of, written(root))) if returns_memory(root) else ()
    demanded = [accepted_of(root, inputs, own) for inputs in batches]
    log = Log()
    try:
        compiled = compile(root, setting.target, log.observe, setting.optimizations)
    except (PassError, InvalidError) as error:
        if isinstance(error, InvalidError) and setting.optimizations:
            # An optimization that a kernel does not allow.
            raise
        checked = _judged(root, batches, demanded, log)
        if checked.blame is not None:
            return checked
        stage = log.under_way
        return replace(checked, blame=_with_firing(Blame(stage, str(error)), log, batches[0]))
    return replace(_judged(root, batches, demanded, log), compiled=compiled)


def _judged(
    root: UOp, batches: Sequence[Inputs], demanded: Sequence[Sequence[Accepted]], log: Log
) -> Checked:
    if not log.stages:
        return Checked((), log=log)
    slots = result_slots(root, log.stages[0][2])
    entered = log.stages[0][1]
    done: list[StageCheck] = []
    previous = root
    for name, left in [(ENTRY, entered), *((name, after) for name, _, after in log.stages)]:
        if name != ENTRY or left is not root:
            for number, inputs in enumerate(batches):
                found = _outside(previous, left, inputs, slots, demanded[number])
                if found:
                    blame = Blame(name, found, number)
                    return Checked(tuple(done), _with_firing(blame, log, inputs), log=log)
        if name != ENTRY:
            elements = sum(a.value.data.size for sets in demanded for a in sets)
            done.append(StageCheck(name, len(log.of(name)), elements))
        previous = left
    return Checked(tuple(done), log=log)


def _outside(
    before: UOp, after: UOp, inputs: Inputs, slots: Sequence[int], demanded: Sequence[Accepted]
) -> str:
    """What a stage left that is accepted neither by the program before it nor by the whole one."""
    if after is before:
        return ""
    try:
        values = values_of(after, inputs, slots)
    except UnsupportedError:
        raise
    except UopError as error:
        return f"it leaves what does not run: {error}"
    wrong = first_outside(demanded, values)
    if not wrong:
        # What an earlier stage chose binds the later ones.
        with suppress(UnsupportedError, UndefinedError):
            wrong = first_outside(accepted_of(before, inputs, slots), values)
    return wrong


def _with_firing(blame: Blame, log: Log, inputs: Inputs) -> Blame:
    """Name the first firing of the blamed stage that changes a value. Those that are judged by a
    whole tensor come last: the fault of any other rule shows there too.
    """
    for firing in sorted(log.of(blame.stage), key=lambda firing: firing.rule in LOWER):
        with suppress(UopError):
            change = change_of(firing, inputs)
            if change is not None:
                return replace(blame, firing=firing, change=change)
    return blame
