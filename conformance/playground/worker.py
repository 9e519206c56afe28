"""Answers one question about a program, in a process of its own with little time and memory.

A program of a stranger is data: nothing of it runs as Python, and native code is refused.
"""

from __future__ import annotations

import json
import resource
import signal
import time
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import psutil

from uop.compiler.pipeline import compile, find_target
from uop.compiler.stages.stage import Setting
from uop.compiler.targets.target import Target
from uop.conformance.locate.stages import Log, check_stages
from uop.conformance.playground.shown import (
    MOST_ELEMENTS,
    MOST_OUTPUTS,
    Output,
    Shown,
    Verdict,
    firings_of,
    outputs_of,
    read,
    results,
    shown,
    verdict_on_firing,
    verdict_on_stages,
    wrong_of,
)
from uop.conformance.protocol import wire
from uop.conformance.protocol.codec import to_json
from uop.conformance.protocol.untrusted import in_one_line
from uop.conformance.workers.forked import PLAYGROUND
from uop.conformance.workers.processes import Module, begin, how_it_ended
from uop.conformance.workers.single import run_on
from uop.interpreter.footprint import SMALL, at_most
from uop.interpreter.numeric.storage import Array
from uop.interpreter.show import word
from uop.spec.case import FileCase
from uop.spec.distribution import load_additions
from uop.spec.errors import BackendError, UopError
from uop.spec.uop import UOp

SECONDS = 5
"""The processor time of an answer."""
PATIENCE = 20.0
"""The seconds until an answer, on a clock."""
PATIENCE_WITH_BACKEND = 60.0
"""The same with a backend, which has to start."""
MEMORY = 1 << 30
"""The bytes that a process may take beside what it starts with."""


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Show a program: its value, what each stage leaves, and the source for a target."""

    text: str
    target: str
    seed: int


@dataclass(frozen=True, slots=True)
class Check:
    """Say whether each stage keeps the meaning of a program."""

    text: str
    target: str
    seed: int


@dataclass(frozen=True, slots=True)
class Judge:
    """Say whether the firing of this number, from 0, keeps its value."""

    text: str
    target: str
    seed: int
    step: int


@dataclass(frozen=True, slots=True)
class Compare:
    """Run a program on a backend."""

    text: str
    seed: int
    backend: str


@dataclass(frozen=True, slots=True)
class Given:
    """An element that a backend gives."""

    value: str
    is_accepted: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """What a backend gives, as far as the outputs are shown, or why it gives nothing."""

    said: str
    outputs: tuple[tuple[Given, ...], ...] = ()
    wrong: int = 0
    """How many elements of all are not accepted."""


Question = Evaluate | Check | Judge | Compare


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer as JSON: that of a `Shown`, `Verdict` or `Compared`."""

    json: str


def ask(question: Question) -> str:
    """The answer of a new process. BackendError where it takes too much."""
    seconds = PATIENCE_WITH_BACKEND if isinstance(question, Compare) else PATIENCE
    process = Module(PLAYGROUND)
    try:
        process.write(question)
        return process.read(Answered, left=wire.until(time.monotonic() + seconds)).json
    except wire.LateError:
        raise BackendError(f"it takes longer than {seconds:g} s") from None
    except wire.RefusedError as refused:
        raise BackendError(str(refused)) from None
    except wire.ClosedError:
        code = process.popen.wait(seconds)
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            raise BackendError(f"it takes more than {SECONDS} s of processor time") from None
        raise BackendError(f"the process {how_it_ended(code)}") from None
    finally:
        process.end()


def main() -> None:
    """Answer the question on stdin."""
    out = begin()
    load_additions()
    question: Question = wire.read(0, *get_args(Question))
    _limit()
    try:
        with at_most(SMALL):
            answer = answered(question)
        wire.write(out, Answered(json.dumps(to_json(answer))))
    except MemoryError:
        wire.write(out, wire.Refused(f"it takes more than {MEMORY >> 20} MiB of memory"))


def answered(question: Question) -> Shown | Verdict | Compared:
    """The answer to a question."""
    try:
        case, root, inputs = read(question.text, question.seed)
    except UopError as error:
        wrong = wrong_of(error)
        return Shown(wrong) if isinstance(question, Evaluate) else Verdict(wrong.message, False)
    match question:
        case Evaluate(target=target):
            return _evaluated(case, root, inputs, find_target(target))
        case Compare(backend=backend):
            return _compared(root, inputs, backend)
    try:
        checked = check_stages(root, [inputs], Setting(find_target(question.target)))
    except UopError as error:
        return Verdict(str(error), False)
    if isinstance(question, Check):
        return verdict_on_stages(checked)
    firings = firings_of(checked.log)[question.step :]
    return verdict_on_firing(firings[0], inputs) if firings else Verdict("No rule fires.", False)


def _evaluated(case: FileCase, root: UOp, inputs: dict[int, Array], target: Target) -> Shown:
    """As much as there is where something fails."""
    log, outputs, compiled, wrong = Log(), list[Output](), None, None
    try:
        outputs = outputs_of(root, inputs)
        compiled = compile(root, target, log.observe)
    except UopError as error:
        wrong = wrong_of(error, case)
    return replace(shown(root, inputs, outputs, log, compiled), wrong=wrong)


def _compared(root: UOp, inputs: dict[int, Array], backend: str) -> Compared:
    try:
        found = run_on(backend, root, inputs, PATIENCE_WITH_BACKEND / 2)
    except UopError as error:
        return Compared(in_one_line(str(error)))
    outputs, wrong, total = [], 0, 0
    for key, (_, accepted) in results(root, inputs).items():
        flat = found[key].map(lambda a: a.reshape(-1))
        inside = accepted.contains(found[key].data).reshape(-1)
        wrong, total = wrong + int(np.count_nonzero(~inside)), total + inside.size
        words = (Given(word(flat, i), bool(inside[i])) for i in range(inside.size)[:MOST_ELEMENTS])
        outputs.append(tuple(words))
    said = f"{wrong} of {total} elements are not accepted" if wrong else "every element is accepted"
    return Compared(said, tuple(outputs[:MOST_OUTPUTS]), wrong)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    most = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
