"""Every stage of the compiler leaves a program that means what the source program means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from uop.compiler.pipeline import compile
from uop.compiler.stages.lower import Lowering
from uop.conformance.backends.interpreter import is_sharded
from uop.conformance.judging.compare import compare
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id, cases
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.values import Value
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError
from uop.spec.graph import slots_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const, param


@dataclass(frozen=True, slots=True)
class StageFault:
    """The first stage that changed the meaning of a program, and how."""

    stage: str
    message: str


def first_fault(root: UOp, inputs: Mapping[int, np.ndarray]) -> StageFault | None:
    """Compile for OpenCL and interpret what each stage leaves; None where all stages agree.

    A stage may change bits, such as by the order of a sum, so results must lie in the accepted sets
    of the source program; where a set is single that means equal bits.
    """
    accepted = accept(root, inputs, STRICT)
    compiled = compile(root, "opencl")
    for stage, program in compiled.stages.items():
        message = disagreement(program, inputs, compiled.executable.results, accepted)
        if message is not None:
            return StageFault(stage, message)
    return None


def disagreement(
    program: UOp,
    inputs: Mapping[int, np.ndarray],
    slots: tuple[int, ...],
    accepted: tuple[Accepted, ...],
) -> str | None:
    known = slots_of(program)
    try:
        result = evaluate_full(program, {s: v for s, v in inputs.items() if s in known})
    except UndefinedError as error:
        return f"undefined: {error}"
    assert isinstance(result, dict)
    values = [result.get(slot) or unwritten(a) for slot, a in zip(slots, accepted, strict=True)]
    for output, (a, value) in enumerate(zip(accepted, values, strict=True)):
        if value.unspecified is not None and (value.unspecified & ~a.any).any():
            return f"output {output}: an element became UNSPECIFIED"
    mismatch = compare(accepted, [value.data for value in values]).mismatch
    return None if mismatch is None else mismatch.message


def unwritten(accepted: Accepted) -> Value:
    """A buffer that nothing wrote: every element is UNSPECIFIED."""
    like = accepted.value.data
    return Value(np.zeros_like(like), None, np.ones(like.shape, np.bool_))


def sampled(level: str, step: int) -> list[str]:
    """The ids of every `step`-th program of a level for one device, not of the exhaustive ones."""
    programs = [c for c in cases((level,), effort="smoke") if isinstance(c, Case)]
    some = [c for c in programs if not c.is_exhaustive and not is_sharded(c.root)]
    return [str(c.id) for c in some][::step]


@pytest.mark.parametrize("id", [*sampled("op", 9), *sampled("graph", 3)])
def test_no_stage_changes_what_a_program_means(id: str) -> None:
    case = case_by_id(id)
    assert isinstance(case, Case)
    for batch in case.batches[:1]:
        assert first_fault(case.root, batch.inputs) is None


def padded() -> UOp:
    return UOp(Op.NEG, UOp(Op.PAD, param(0, (3,), dtypes.int32), dims((2,)), dims((6,))))


def test_a_fault_is_charged_to_the_stage_that_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {0: np.array([1, 2, 4], np.int32)}
    assert first_fault(padded(), inputs) is None
    offsets = Lowering.offsets
    monkeypatch.setattr(
        Lowering,
        "offsets",
        lambda self, dims: [self.alu(Op.ADD, o, index_const(1)) for o in offsets(self, dims)],
    )
    fault = first_fault(padded(), inputs)
    assert fault is not None
    assert fault.stage == "rangeify"
