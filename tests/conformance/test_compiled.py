"""Backends of the compiler: the optimizations that it chooses, and none with `off`."""

from __future__ import annotations

import numpy as np
import pytest

from uop.conformance.backends import load
from uop.conformance.backends.compiled import CompiledBackend
from uop.conformance.checks import OptionError
from uop.conformance.protocol.types import Outputs, Program
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp, param

DRAWN = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
X = param(0, (256, 256), dtypes.float32)
LARGE = Program(print_program(UOp(Op.MUL, X, X)), ({0: DRAWN},))
"""Large enough that the compiler chooses vectors for it."""


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
def test_off_stands_behind_the_place() -> None:
    first, same = named("opencl:0:0:off"), named("opencl:0:0")
    assert first.hello().variant == f"{same.hello().variant}-off"
    assert first.hello().device == same.hello().device


@pytest.mark.parametrize("name", ["cuda-host:on", "cuda-host:0:off", "cuda:0"])
def test_a_target_without_places_says_what_it_expects(name: str) -> None:
    with pytest.raises(OptionError, match="expected off or nothing; found"):
        load(name)
