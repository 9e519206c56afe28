"""Every stage of the compiler leaves a program that means what the source program means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from uop.compiler.pipeline import OPENCL
from uop.compiler.stages.rangeify.lower import Lowering
from uop.compiler.stages.stage import Setting
from uop.conformance.locate.stages import Blame, check_stages
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id, cases
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, index_const, param

pytestmark = pytest.mark.slow


def first_fault(root: UOp, inputs: Mapping[int, np.ndarray]) -> Blame | None:
    """Compile for OpenCL and interpret what each stage leaves; None where all stages agree."""
    return check_stages(root, [inputs], Setting(OPENCL)).blame


def sampled(level: str, step: int) -> list[str]:
    """The ids of every `step`-th program of a level, not of the exhaustive ones."""
    programs = [c for c in cases((level,), effort="smoke") if isinstance(c, Case)]
    return [str(c.id) for c in programs if not c.is_exhaustive][::step]


@pytest.mark.parametrize("id", [*sampled("op", 9), *sampled("graph", 3), *sampled("device", 4)])
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
