"""The node tests of ONNX: those with an image in uop pass, the others are refused for a reason.

On the interpreter all run. On OpenCL every `SAMPLED`th; `UOP_ONNX_ALL=1` runs all.
"""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from uop import UOp, compile, evaluate_full
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.interpreter.evaluate import check_of

pytest.importorskip("onnx", reason="pip install 'uop[onnx]'")

from onnx_nodes import Ending, Outcome, cases, exclusions, models, outcome

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"
PARTS = 8
SAMPLED = 1 if os.environ.get("UOP_ONNX_ALL") else 40


@pytest.mark.parametrize("part", range(PARTS))
def test_nodes_on_the_interpreter(part: int) -> None:
    found = [outcome(case, defined) for case in cases()[part::PARTS]]
    assert not faults(found)


def defined(root: UOp, inputs: Any) -> Any:
    """The value of a program, all of whose elements the spec defines."""
    values = evaluate_full(root, inputs, check_of(root))
    several = values if isinstance(values, tuple) else (values,)
    assert not any(mask is not None and mask.any() for v in several for mask in v.masks[:2])
    return tuple(v.data for v in several)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_nodes_on_opencl(part: int, opencl: OpenCLDevice) -> None:
    def run(root: UOp, inputs: Any) -> Any:
        return compile(root, "opencl").run(inputs, opencl)

    found = [outcome(case, run) for case in cases()[::SAMPLED][part::PARTS]]
    assert not faults(found)


@pytest.mark.slow
def test_whole_models() -> None:
    assert not faults([outcome(case, defined) for case in models()])


def faults(found: list[Outcome]) -> str:
    return "\n".join(fault for each in found if (fault := each.fault()))


def test_every_exclusion_excludes_something() -> None:
    names = [case.name for case in (*cases(), *models())]
    unused = [
        pattern
        for exclusion in exclusions()
        for pattern in exclusion.cases
        if not any(re.fullmatch(pattern, name) for name in names)
    ]
    assert not unused


def test_the_page_has_the_figures() -> None:
    page = PAGE.read_text("utf-8")
    passing = [case for case in cases() if not any(e.matches(case.name) for e in exclusions())]
    assert f"of the {len(cases()):,} of onnx {version('onnx')[:4]}, {len(passing):,} pass" in page


def test_a_stale_exclusion_is_a_fault() -> None:
    name = "test_nonzero_example"
    assert "found passed" in Outcome(name, Ending.PASSED).fault()
    assert "expected 'this op" in Outcome(name, Ending.UNSUPPORTED, "another reason").fault()
    assert not Outcome(name, Ending.UNSUPPORTED, "NonZero: this op has no rule").fault()
    assert "expected passed" in Outcome("test_abs", Ending.UNSUPPORTED, "no rule").fault()
