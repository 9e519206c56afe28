"""Backends of the compiler: the optimizations that it chooses, and none with `off`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from uop.compiler.runtime.opencl import NOT_OPTIMIZED, OpenCLDevice
from uop.conformance.backends import load
from uop.conformance.backends.compiled import CompiledBackend
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.checks import OptionError
from uop.conformance.judging.lowering import OPTIMIZED, submission_of
from uop.conformance.protocol.types import Outputs, Program
from uop.conformance.suite.case import Case, CaseId
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp, param

DRAWN = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
X = param(0, (256, 256), dtypes.float32)
LARGE = Program(print_program(UOp(Op.MUL, X, X)), ({0: DRAWN},))
"""Large enough that the compiler chooses vectors for it."""
QUICK = replace(LARGE, quick=True)


def named(name: str) -> CompiledBackend:
    backend = load(name)
    assert isinstance(backend, CompiledBackend)
    return backend


def left(backend: CompiledBackend) -> str:
    """What the stage optimize leaves."""
    return next(stage.text for stage in backend.stages(LARGE) if stage.name == "optimize")


@pytest.mark.parametrize("target", ["opencl", "cuda-host"])
@pytest.mark.parametrize("programs", [[LARGE], [LARGE, LARGE]], ids=["alone", "as one source"])
def test_off_chooses_no_optimizations(
    target: str, programs: list[Program], request: pytest.FixtureRequest
) -> None:
    if target == "opencl":
        request.getfixturevalue("opencl")
    chooses, off = named(target), named(f"{target}:off")
    for backend in (chooses, off):
        hello = backend.hello()
        assert hello.name == target
        assert hello.variant.endswith("off") == (backend is off)
        for outcome in backend.run(programs):
            assert isinstance(outcome, Outputs)
            np.testing.assert_array_equal(outcome.batches[0][0], DRAWN * DRAWN)
    assert "UPCAST" in left(chooses)
    assert "UPCAST" not in left(off)


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(
    ("name", "programs", "are_quick"),
    [
        ("opencl", [QUICK, LARGE], [True, False]),
        ("opencl", [LARGE, QUICK, LARGE], [False, True]),
        ("opencl", [QUICK, QUICK], [True]),
        ("opencl", [QUICK], [False]),
        ("opencl:optimized", [QUICK, LARGE], [False]),
    ],
)
def test_the_driver_does_not_optimize_quick_programs_that_come_together(
    name: str, programs: list[Program], are_quick: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[tuple[str, ...]] = []
    build = OpenCLDevice.build

    def noted(device: OpenCLDevice, source: str) -> object:
        built.append(device.options)
        return build(device, source)

    monkeypatch.setattr(OpenCLDevice, "build", noted)
    backend = named(name)
    assert backend.hello().quick == ("" if name.endswith("optimized") else NOT_OPTIMIZED)
    for outcome in backend.run(programs):
        assert isinstance(outcome, Outputs)
        np.testing.assert_array_equal(outcome.batches[0][0], DRAWN * DRAWN)
    assert [NOT_OPTIMIZED in options for options in built] == are_quick


def test_seven_of_eight_cases_are_quick_and_no_candidate_of_a_search() -> None:
    hello = InterpreterBackend().hello()
    ids = [CaseId("op", "ADD", "float32", "edges", k) for k in range(4000)]
    quick = [submission_of(Case(id, X, ()), hello).program.quick for id in ids]
    assert quick == [submission_of(Case(id, X, ()), hello).program.quick for id in ids]
    assert abs(sum(quick) / len(quick) - (OPTIMIZED - 1) / OPTIMIZED) < 0.02
    candidates = [replace(id, level="reduce") for id in ids]
    assert not any(submission_of(Case(id, X, ()), hello).program.quick for id in candidates)


@pytest.mark.usefixtures("opencl")
def test_off_stands_behind_the_place() -> None:
    first, same = named("opencl:0:0:off"), named("opencl:0:0")
    assert first.hello().variant == f"{same.hello().variant}-off"
    assert first.hello().device == same.hello().device


@pytest.mark.parametrize("name", ["cuda-host:on", "cuda-host:0:off", "cuda:0"])
def test_a_target_without_places_says_what_it_expects(name: str) -> None:
    with pytest.raises(OptionError, match="expected off or nothing; found"):
        load(name)
