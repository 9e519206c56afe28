"""Rows that are kept: what is computed once, in which kernels, and that no stage changes it."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uop.compiler.loops import axes, ranged, type_of
from uop.compiler.pipeline import compile, lower
from uop.compiler.rewriting.rewrite import unobserved
from uop.compiler.stages.optimize.local import in_registers, with_rows
from uop.conformance.judging.compare import compare
from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.args import AddrSpace, AxisType, BufferArg, ReduceArg, SpecialArg
from uop.spec.dtype import dtypes
from uop.spec.graph import calls, slot_of
from uop.spec.kernel.optimization import Optimization, Split, parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

STAGES = ("optimize", "expand", "select", "linearize", "plan")
ALL_UNROLLED = "SPLIT(1, 4, UNROLL); SPLIT(3, 4, UNROLL)"
TILED = "SPLIT(0, 2, UPCAST); SPLIT(2, 4, UNROLL); SPLIT(4, 4, UNROLL)"
X = param(0, (6, 16), dtypes.float32)


def normalised(x: UOp = X, op: Op = Op.EXP2) -> UOp:
    """A function of each element by its sum along the row."""
    value = UOp(op, x)
    return UOp(Op.DIV, value, UOp(Op.REDUCE, value, arg=ReduceArg(Op.ADD, (1,))))


def numbers(shape: tuple[int, ...] = (6, 16)) -> Array:
    return np.random.default_rng(5).uniform(-4, 4, shape).astype(np.float32)


def kept(root: UOp, text: str, stage: str = "optimize") -> list[tuple[AddrSpace | None, int]]:
    """Where the rows of a program are, and their sizes."""
    program = lower(root, stage, optimizations=[parse_optimizations(text)])
    found = (u for u in program.toposort() if u.op is Op.BUFFER)
    rows = (u for u in found if u.addrspace is not AddrSpace.GLOBAL and u.shape[0] > 8)
    return [(u.addrspace, u.shape[0]) for u in rows]


def test_a_row_lies_in_local_memory_of_its_group_then_in_an_array_of_the_work_item() -> None:
    assert kept(normalised(), ALL_UNROLLED) == [(AddrSpace.LOCAL, 16)]
    assert kept(normalised(), ALL_UNROLLED, "select") == [(AddrSpace.REG, 16)]
    # Each row of a tile has its own.
    assert kept(normalised(), TILED) == [(AddrSpace.LOCAL, 32)]


def test_the_function_is_computed_once() -> None:
    def count(sequences: tuple[str, ...]) -> int:
        chosen = [parse_optimizations(text) for text in sequences]
        program = lower(normalised(), "optimize", optimizations=chosen)
        return sum(u.op is Op.EXP2 for u in program.toposort())

    assert (count(()), count((ALL_UNROLLED,))) == (2, 1)


@pytest.mark.parametrize(
    ("root", "text"),
    [
        (normalised(), "SPLIT(0, 2, LOCAL)"),  # A group shares LOCAL memory.
        (normalised(), "SPLIT(1, 4, GROUP_REDUCE)"),
        (normalised(op=Op.SQRT), ALL_UNROLLED),  # Cheaper than memory.
        (normalised(param(0, (2, 1 << 13), dtypes.float32)), ALL_UNROLLED),  # Too long.
        (UOp(Op.EXP2, X), "SPLIT(0, 2, UPCAST)"),  # Used once.
    ],
)
def test_other_kernels_keep_none(root: UOp, text: str) -> None:
    assert kept(root, text) == []


def test_what_the_kernel_writes_over_is_not_kept() -> None:
    (call,) = calls(lower(normalised(), "optimize", optimizations=()))
    body = call.src[0]
    written, read = sorted((u for u in body.toposort() if u.op is Op.PARAM), key=slot_of)
    assert with_rows(body, unobserved) is not body
    in_place = body.substitute({read: written})
    assert with_rows(in_place, unobserved) is in_place


def test_what_a_group_shares_stays_local() -> None:
    """Its work items may be numbers and no loops."""
    memory = UOp(Op.BUFFER, dims((4,)), arg=BufferArg(0, dtypes.int32, None, AddrSpace.LOCAL))
    for r in (
        UOp(Op.SPECIAL, index_const(4), arg=SpecialArg("lidx0")),
        ranged(index_const(4), 0, AxisType.LOCAL),
    ):
        body = UOp(Op.SINK, UOp(Op.STORE, UOp(Op.INDEX, memory, r), const(1, dtypes.int32)))
        assert in_registers(body) is body


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("text", [ALL_UNROLLED, TILED, "PADTO(1, 5); PADTO(2, 5)"])
def test_no_stage_leaves_the_accepted_sets(stage: str, text: str) -> None:
    inputs = {0: numbers()}
    program = lower(normalised(), stage, optimizations=[parse_optimizations(text)])
    (found,) = evaluate(program, inputs).values()
    accepted = accept(normalised(), inputs)
    assert compare(accepted, (np.asarray(found).reshape(6, 16),)).mismatch is None


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_rows_of_any_shape(data: st.DataObject) -> None:
    """Functions of the row's own maximum, or inside of others, in tiles of any size."""
    one_of = lambda *choices: data.draw(st.sampled_from(choices))  # noqa: E731
    value = UOp(one_of(Op.EXP2, Op.SIN), X)
    if one_of(True, False):
        value = UOp(Op.EXP2, UOp(Op.ADD, X, UOp(Op.REDUCE, X, arg=ReduceArg(Op.MAX, (1,)))))
    root = UOp(Op.ADD, value, UOp(Op.REDUCE, value, arg=ReduceArg(Op.MAX, (1,))))
    (call,) = calls(lower(root, "optimize", optimizations=()))
    sequence: list[Optimization] = [Split(0, one_of(1, 2, 3), AxisType.UPCAST)]
    for number, axis in enumerate(axes(call.src[0])):
        if type_of(axis) is AxisType.REDUCE:
            sequence.append(Split(number + len(sequence), one_of(1, 2, 8), AxisType.UNROLL))
    inputs = {0: numbers()}
    accepted = accept(root, inputs)
    for stage in ("optimize", "select"):
        program = lower(root, stage, optimizations=[sequence])
        (found,) = evaluate(program, inputs).values()
        assert compare(accepted, (np.asarray(found).reshape(6, 16),)).mismatch is None


@pytest.mark.parametrize("target", ["opencl", "cuda-host"])
@pytest.mark.parametrize("text", [ALL_UNROLLED, TILED])
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler g++ on this machine")
def test_on_devices(target: str, text: str) -> None:
    inputs = {0: numbers()}
    program = compile(normalised(), target, optimizations=[parse_optimizations(text)])
    accepted = accept(normalised(), inputs)
    assert compare(accepted, (np.asarray(program.run(inputs)),)).mismatch is None
