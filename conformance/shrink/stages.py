"""Runs what each compiler stage leaves and names the first that means something else.

A stage may legally change bits, by the order of a sum for one, so what it leaves must lie in the
accepted sets of the source program; where a set is single that means equal bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from uop.compiler.pipeline import compile
from uop.compiler.targets.target import Target
from uop.conformance.judging.compare import compare
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.inputs import Inputs
from uop.interpreter.numeric.storage import Mask
from uop.interpreter.values import Value
from uop.spec.errors import UndefinedError
from uop.spec.graph import slots_of
from uop.spec.latitude import STRICT, Profile
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class StageFault:
    """The first stage that changed the meaning of a program, and what its program gave."""

    stage: str
    message: str


def first_fault(
    root: UOp, inputs: Inputs, target: str | Target = "opencl", profile: Profile = STRICT
) -> StageFault | None:
    """Compile for a target and run each stage's program in the interpreter; None: all agree."""
    accepted = accept(root, inputs, profile)
    compiled = compile(root, target)
    slots = compiled.executable.results
    for stage, program in compiled.stages.items():
        message = _fault(program, inputs, slots, accepted)
        if message is not None:
            return StageFault(stage, message)
    return None


def _fault(
    program: UOp, inputs: Inputs, slots: tuple[int, ...], accepted: tuple[Accepted, ...]
) -> str | None:
    known = slots_of(program)
    try:
        result = evaluate_full(program, {s: v for s, v in inputs.items() if s in known})
    except UndefinedError as error:
        return f"undefined: {error}"
    assert isinstance(result, dict)
    found = [_result(result, slot, a) for slot, a in zip(slots, accepted, strict=True)]
    return _disagreement(accepted, found)


def _result(result: Mapping[int, Value], slot: int, accepted: Accepted) -> Value:
    """What a slot holds; a buffer that nothing wrote is UNSPECIFIED."""
    if slot in result:
        return result[slot]
    like = accepted.value.data
    return Value(np.zeros_like(like), None, np.ones(like.shape, np.bool_))


def _disagreement(accepted: tuple[Accepted, ...], found: list[Value]) -> str | None:
    for output, (a, value) in enumerate(zip(accepted, found, strict=True)):
        lost = _lost(a, value.unspecified)
        if lost is not None:
            return f"output {output}: element {lost} became UNSPECIFIED"
    mismatch = compare(accepted, [value.data for value in found]).mismatch
    return None if mismatch is None else mismatch.message


def _lost(accepted: Accepted, unspecified: Mask | None) -> int | None:
    """The first element that the spec defines and the stage does not."""
    if unspecified is None:
        return None
    lost = np.flatnonzero(unspecified & ~accepted.any)
    return int(lost[0]) if lost.size else None
