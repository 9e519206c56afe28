"""IREE as a backend: results by its compiler and runtime, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from uop.conformance.backends.stablehlo import IREEBackend
from uop.conformance.protocol.types import Outputs, Problem, ProblemKind, Program
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.dtype import dtypes
from uop.spec.frontend.tensor import Tensor
from uop.spec.text.profile_text import parse_profile
from uop.spec.text.program import print_program
from uop.spec.uop import param

pytest.importorskip("iree.compiler", reason="needs the extra iree")

pytestmark = pytest.mark.slow


def test_programs_of_a_call_keep_their_results_and_errors() -> None:
    """Narrow, unsigned, boolean and empty results, and a rounding of fp8 that it does not build."""
    x = Tensor(param(0, (3,), dtypes.uint8))
    narrow = Tensor(param(0, (2,), dtypes.bfloat16))
    roots = [x + x, Tensor(param(0, (2,), dtypes.fp8e4m3)).trunc(), x < 9, x[3:], narrow * 3]
    inputs = [
        np.uint8([1, 100, 200]),
        np.zeros(2, "u1").view(np_dtype(dtypes.fp8e4m3)),
        np.uint8([1, 9, 200]),
        np.uint8([1, 2, 3]),
        np.array([1.5, -2], np_dtype(dtypes.bfloat16)),
    ]
    backend = IREEBackend()
    parse_profile(backend.hello().profile)
    programs = [
        Program(print_program(t.uop), ({0: a},)) for t, a in zip(roots, inputs, strict=True)
    ]
    outcomes = backend.run(programs)
    refused = outcomes.pop(1)
    assert isinstance(refused, Problem)
    assert refused.kind is ProblemKind.COMPILE
    found = [o.batches[0][0] for o in outcomes if isinstance(o, Outputs)]
    assert [a.dtype.name for a in found] == ["uint8", "bool", "uint8", "bfloat16"]
    assert [a.tolist() for a in found] == [[2, 200, 144], [True, False, False], [], [4.5, -6]]
