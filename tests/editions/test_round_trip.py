"""The law of editions: what is written and read back is the same node, or one of the same value.

`UOP_ROUND_TRIPS=10000 pytest tests/editions/test_round_trip.py -k properties` draws that many
programs for each edition.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from graphs import Inputs, graphs, stores
from hypothesis import HealthCheck, given, settings
from strategies import programs
from symbolic_programs import PROGRAMS, M, N

from uop.compiler.pipeline import lower
from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.interpreter.tensor.evaluation import FullOutput
from uop.interpreter.values import Value
from uop.spec.args import BufferArg
from uop.spec.dtype import dtypes
from uop.spec.editions import EDITIONS, parse, print_program, print_tree
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp, param

EVERY_OP = Path(__file__).parents[1] / "spec" / "every_op.uop"
FEW = settings(
    max_examples=int(os.environ.get("UOP_ROUND_TRIPS", "60")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def again(u: UOp, edition: str) -> UOp | None:
    """What is read from what is written; None where the edition cannot say it."""
    try:
        text = print_program(u, edition)
    except UnsupportedError:
        return None
    assert text.startswith(f"edition {edition}\n")
    read = parse(text)
    if edition == "bestiary":
        assert parse(print_tree(u)) is read
    return read


def flattened(inputs: Inputs, root: UOp) -> Inputs:
    """The inputs of a program whose BUFFERs may have become flat."""
    slots = {u.arg.slot: u for u in root.toposort() if isinstance(u.arg, BufferArg)}
    shapes = {slot: slots[slot].shape if slot in slots else a.shape for slot, a in inputs.items()}
    return {slot: array.reshape(shapes[slot]) for slot, array in inputs.items()}


def outcome(u: UOp, inputs: Inputs) -> FullOutput | None:
    """The result, or None of a program without meaning on its inputs."""
    try:
        return evaluate_full(u, inputs)
    except UndefinedError:
        return None


def assert_equal(before: object, after: object) -> None:
    """Masks and bits equal; memory is compared flat."""
    if before is None:
        assert after is None
    elif isinstance(before, dict):
        assert isinstance(after, dict)
        assert before.keys() == after.keys()
        for slot in before:
            assert_equal(before[slot], after[slot])
    elif isinstance(before, tuple):
        assert isinstance(after, tuple)
        for one, other in zip(before, after, strict=True):
            assert_equal(one, other)
    else:
        assert isinstance(before, Value)
        assert isinstance(after, Value)
        open_ = np.zeros(before.data.shape, bool)
        for name in ("invalid", "unspecified", "free_nan"):
            masks = [getattr(v, name) for v in (before, after)]
            one, other = (open_ if m is None else m for m in masks)
            np.testing.assert_array_equal(one.reshape(-1), other.reshape(-1))
            open_ = open_ | one
        kept = ~open_.reshape(-1)
        bits = [np.ascontiguousarray(v.data).reshape(-1)[kept].tobytes() for v in (before, after)]
        assert bits[0] == bits[1]


@pytest.mark.parametrize("edition", EDITIONS)
def test_any_program_reads_back_with_the_same_properties(edition: str) -> None:
    @FEW
    @given(programs())
    def check(u: UOp) -> None:
        v = again(u, edition)
        if v is not None and v is not u:
            assert (v.dtype, v.shape, v.device, v.axis) == (u.dtype, u.shape, u.device, u.axis)
            # What an edition cannot say in one node is stable from then on.
            assert print_program(v, edition) == print_program(
                parse(print_program(v, edition)), edition
            )

    check()


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_graph_that_reads_back_has_the_same_value(edition: str) -> None:
    @FEW
    @given(graphs())
    def check(case: tuple[UOp, Inputs]) -> None:
        u, inputs = case
        v = again(u, edition)
        if v is not None:
            assert_equal(outcome(u, inputs), outcome(v, flattened(inputs, v)))

    check()


@pytest.mark.parametrize("edition", EDITIONS)
def test_effects_that_read_back_write_the_same_memory(edition: str) -> None:
    @FEW
    @given(stores())
    def check(case: tuple[UOp, Inputs]) -> None:
        u, inputs = case
        v = again(u, edition)
        if v is not None:
            assert_equal(outcome(u, inputs), outcome(v, flattened(inputs, v)))

    check()


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_kernels_of_a_graph_run_when_they_are_read_back(edition: str) -> None:
    x, y = (param(slot, (2, 3), dtypes.int32) for slot in (0, 1))
    first = UOp(Op.CONTIGUOUS, UOp(Op.MUL, x, y))
    kernels = lower(UOp(Op.SUB, first, y), "select")
    read = again(kernels, edition)
    assert read is not None
    inputs = {0: np.arange(6, dtype=np.int32), 1: np.full(6, 7, np.int32)}
    slots = {u.arg.slot: u for u in read.toposort() if isinstance(u.arg, BufferArg)}
    given = {slot: a.reshape(slots[slot].shape) for slot, a in inputs.items()}
    written = evaluate(read, given)
    assert isinstance(written, dict)
    assert [7 * (k - 1) for k in range(6)] in [a.reshape(-1).tolist() for a in written.values()]


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_core_op_has_a_form_or_an_error_that_names_it(edition: str) -> None:
    for case in read_file(EVERY_OP).cases:
        u = case.root
        assert u is not None
        v = again(u, edition)
        if v is None:
            with pytest.raises(UnsupportedError, match="|".join(v.op.name for v in u.toposort())):
                print_program(u, edition)
        else:
            assert v.op is u.op or u.op in EDITIONS[edition].writes


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_symbolic_sizes_reads_back_or_is_refused(name: str, edition: str) -> None:
    root = PROGRAMS[name](N, M)
    read = again(root, edition)
    assert read is None or again(read, edition) is read
    assert read is not None or name not in ("gemm", "flip", "permute")
