"""Batches: many programs in one source, each as if alone; failures are charged to their program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uop.compiler import bundle
from uop.compiler.bundle import Bundle, Job, run_many
from uop.compiler.loaded import Compiled
from uop.compiler.pipeline import compile
from uop.compiler.runtime.device import Around
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.conformance.backends.attempt import problem_of
from uop.conformance.judging.compare import compare
from uop.conformance.protocol.types import ProblemKind
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import cases
from uop.interpreter.accept import accept
from uop.spec.dtype import dtypes
from uop.spec.errors import BackendError, InvalidError, LaunchError, UopError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

Array = NDArray[Any]

pytestmark = pytest.mark.usefixtures("run_on_opencl")


def outputs(result: Any) -> list[Array]:
    if isinstance(result, dict):
        return [result[slot] for slot in sorted(result)]
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["op", "graph", "device"])
def test_a_sample_of_the_suite_runs_in_batches(level: str) -> None:
    """Everything the generator makes, on the device, inside the accepted sets."""
    found = [c for c in cases((level,), effort="smoke") if isinstance(c, Case)]
    sample = [c for c in found if not c.is_exhaustive][:: 21 if level == "op" else 8]
    programs = [compile(c.root) for c in sample]
    jobs = [Job(p, [b.inputs for b in c.batches]) for p, c in zip(programs, sample, strict=True)]
    for case, result in zip(sample, run_many(jobs), strict=True):
        assert not isinstance(result, UopError), (str(case.id), result)
        for row, got in zip(case.batches, result, strict=True):
            mismatch = compare(accept(case.root, row.inputs), outputs(got)).mismatch
            assert mismatch is None, f"{case.id}: {mismatch.message}"


def doubled(slot: int) -> Compiled:
    x = param(slot, (5,), dtypes.int32)
    return compile(UOp(Op.ADD, x, x))


def test_a_batch_runs_rows_of_different_number() -> None:
    rows = [np.arange(5, dtype=np.int32) + k for k in range(3)]
    jobs = [
        Job(doubled(0), [{0: a} for a in rows]),
        Job(doubled(1), [{1: rows[2]}]),
        Job(doubled(2), []),
    ]
    jobs.append(Job(doubled(0), [{0: np.zeros(4, np.int32)}]))
    first, second, third, fourth = run_many(jobs)
    assert isinstance(first, list)
    assert isinstance(second, list)
    np.testing.assert_array_equal(np.array(first), 2 * np.array(rows))
    np.testing.assert_array_equal(second[0], 2 * rows[2])
    assert third == []
    assert isinstance(fourth, InvalidError)


def test_a_kernel_that_writes_outside_its_output_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it wrote over belongs to nobody, and its neighbours get their results."""
    source = Bundle.source.fget  # type: ignore[attr-defined]

    def one_further(batch: Bundle) -> str:
        first, case, rest = str(source(batch)).partition("case 1:")
        assert case
        return first + case + rest.replace("b0[gidx0] =", "b0[gidx0 + 1] =", 1)

    monkeypatch.setattr(Bundle, "source", property(one_further))
    x = np.arange(5, dtype=np.int32)
    before, faulty, after = run_many([Job(doubled(k), [{k: x}]) for k in range(3)])
    assert isinstance(faulty, LaunchError)
    assert problem_of(faulty).kind is ProblemKind.INTERNAL
    for found in (before, after):
        assert isinstance(found, list)
        np.testing.assert_array_equal(found[0], 2 * x)


def test_a_failing_source_is_bisected(monkeypatch: pytest.MonkeyPatch) -> None:
    """One program of eight spoils every source it is in; the others still get their results."""
    jobs = [Job(doubled(0), [{0: np.full(5, k, np.int32)}]) for k in range(8)]
    built: list[int] = []
    original = Bundle.source.fget  # type: ignore[attr-defined]

    def source(self: Bundle) -> str:
        built.append(len(self.jobs))
        text: str = original(self)
        return text + ("no C" if jobs[5] in self.jobs else "")

    monkeypatch.setattr(Bundle, "source", property(source))
    results = run_many(jobs)
    assert built == [8, 4, 4, 2, 1, 1, 2]
    assert isinstance(results[5], BackendError)
    for k in (0, 1, 2, 3, 4, 6, 7):
        result = results[k]
        assert isinstance(result, list)
        np.testing.assert_array_equal(result[0], np.full(5, 2 * k))


def test_a_write_outside_an_output_is_charged_to_its_program(
    opencl: OpenCLDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job(doubled(0), [{0: np.full(5, k, np.int32)}]) for k in range(3)]
    together = Bundle(jobs)
    end = together._places[1].stops[0] - 1
    monkeypatch.setattr(bundle, "open_device", lambda target: Trespassing(opencl, end))
    first, second, third = together.run()
    assert isinstance(second, BackendError)
    assert isinstance(first, list)
    assert isinstance(third, list)


@dataclass(frozen=True, slots=True, eq=False)
class Trespassing(Around):
    """A device whose kernels change one byte too many."""

    at: int

    def read(self, memory: Any, size: int) -> Array:
        contents = self.device.read(memory, size)
        contents[self.at] ^= 1
        return contents
