"""Kernels on a simulator that watches memory: its findings name the node."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from kernels import at, int32, kernel_param, load, program, special

from uop.compiler.runtime.device import require
from uop.conformance.backends import oclgrind
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind, Program
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id
from uop.conformance.suite.levels.kernel.scalar import Listing
from uop.conformance.workers.processes import Workplace
from uop.conformance.workers.transport import Worker
from uop.interpreter.inputs import Inputs
from uop.spec.args import DTypeArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, param

needs_the_simulator = pytest.mark.skipif(
    shutil.which("oclgrind") is None, reason="Oclgrind is not installed (apt install oclgrind)"
)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    require("pyopencl", "opencl")
    worker = Worker("oclgrind", Workplace(tmp_path_factory.mktemp("oclgrind")))
    yield worker
    worker.close()


def outcome_of(worker: Worker, root: UOp, inputs: Inputs | None = None) -> Outcome:
    worker.submit([Program(print_program(root), (dict(inputs or {}),))])
    (outcome,) = worker.collect()
    return outcome


def written(file: str, case: str) -> UOp:
    """A program without meaning, from the cases written by hand."""
    text = files("uop.conformance.suite").joinpath("cases", "kernel", f"{file}.uop").read_text()
    return next(c.root for c in parse_file(text).cases if c.id == case and c.root is not None)


@needs_the_simulator
@pytest.mark.parametrize(
    ("file", "case", "what", "node"),
    [
        ("BUFFER", "without_a_barrier", "data race at local memory", "STORE("),
        ("BUFFER", "local_unwritten", "Uninitialized value", "STORE("),
        ("BARRIER", "divergent", "Work-group divergence detected (barrier)", "BARRIER("),
    ],
)
def test_what_it_finds_is_a_failure_that_names_the_node(
    worker: Worker, file: str, case: str, what: str, node: str
) -> None:
    outcome = outcome_of(worker, written(file, case))
    assert isinstance(outcome, Problem)
    assert outcome.kind is ProblemKind.TRAP
    assert what in outcome.message
    assert f"in kernel_0: {node}" in outcome.message.replace("LOAD(", "STORE(")


@needs_the_simulator
def test_an_access_out_of_bounds(worker: Worker) -> None:
    """The index comes from memory, so no compiler can tell."""
    listing, i = Listing(), special(4)
    found = UOp(Op.CAST, load(kernel_param(1, 4), i), arg=DTypeArg(dtypes.index))
    place = at(kernel_param(0, 4), found)
    listing.do(UOp(Op.STORE, place, int32(7)))
    root = program(listing.body, 4, 4)
    inputs = {1: np.array([0, 1, 2, 9], np.int32)}
    outcome = outcome_of(worker, root, inputs)
    assert isinstance(outcome, Problem)
    assert "Invalid write of size 4 at global memory in kernel_0: STORE(" in outcome.message
    assert isinstance(outcome_of(worker, root, {1: np.arange(4, dtype=np.int32)}), Outputs)


@needs_the_simulator
def test_a_program_without_faults_gives_its_results(worker: Worker) -> None:
    x = param(0, (3,), dtypes.uint8)
    outcome = outcome_of(worker, UOp(Op.ADD, x, x), {0: np.array([1, 200, 3], np.uint8)})
    assert isinstance(outcome, Outputs)
    assert outcome.batches[0][0].tolist() == [2, 144, 6]


@needs_the_simulator
def test_what_it_knew_of_an_earlier_buffer_is_forgotten(worker: Worker) -> None:
    for dtype in ("uint8", "float32"):
        case = case_by_id(f"op/REDUCE/{dtype}/MIN-edges/0")
        assert isinstance(case, Case)
        inputs = tuple(batch.inputs for batch in case.batches)
        worker.submit([Program(print_program(case.root), inputs)])
        (outcome,) = worker.collect()
        assert isinstance(outcome, Outputs), outcome


def test_a_machine_without_it_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match="apt install oclgrind"):
        oclgrind.library()
