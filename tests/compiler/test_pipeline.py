"""The pipeline on the device: every dtype, every kind of root, batches, and what goes wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graphs import contents
from numpy.typing import NDArray

from uop.cli.names import stages
from uop.compiler import pipeline
from uop.compiler.bundle import Job, run_many
from uop.compiler.pipeline import add_stage, compile
from uop.compiler.rewriting.rewrite import Fired
from uop.compiler.stages.stage import Setting, Stage
from uop.interpreter.evaluate import evaluate
from uop.spec.args import BufferArg, FlipArg, ReduceArg
from uop.spec.dtype import DTYPES, DType, Kind, dtypes
from uop.spec.errors import InvalidError, PassError, UnsupportedError
from uop.spec.kernel.forms import EXPANDED, FORMS
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param

Array = NDArray[Any]
STORED = [d for d in DTYPES.values() if d.kind is not Kind.VOID]


pytestmark = pytest.mark.usefixtures("run_on_opencl")


def bits(dtype: DType, count: int) -> Array:
    return contents(dtype, (count,), 7)


def chosen(dtype: DType) -> UOp:
    """Bit copies only, so exact for every dtype: the reverse where the first is not zero."""
    x = param(0, (70,), dtype)
    flipped = UOp(Op.FLIP, x, arg=FlipArg((True,)))
    return UOp(Op.WHERE, UOp(Op.CMPNE, x, const(0, dtype)), flipped, x)


def outputs(result: Any) -> list[Array]:
    if isinstance(result, dict):
        return [result[slot] for slot in sorted(result)]
    return list(result) if isinstance(result, tuple) else [result]


def test_one_program_alone() -> None:
    x, y = param(0, (3, 4), dtypes.float32), param(1, (4,), dtypes.float32)
    a, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(4, dtype=np.float32)
    total = UOp(Op.REDUCE, UOp(Op.ADD, x, y), arg=ReduceArg(Op.ADD, (1,)))
    np.testing.assert_array_equal(compile(total).run({0: a, 1: b}), (a + b).sum(1, keepdims=True))


def test_an_input_that_simplification_drops_is_no_argument() -> None:
    x, y = param(0, (3,), dtypes.float32), param(1, (3,), dtypes.float32)
    root = UOp(Op.WHERE, UOp(Op.CMPLT, x, y), y, y)
    a, b = np.array([1, 2, 3], np.float32), np.array([3, 2, 1], np.float32)
    np.testing.assert_array_equal(compile(root).run({0: a, 1: b}), b)


@pytest.mark.parametrize("gated", [False, True], ids=["where", "gate"])
@pytest.mark.parametrize("op", [Op.ADD, Op.SUB, Op.MUL, Op.DIV], ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
def test_a_copy_beside_arithmetic_keeps_its_bits(dtype: DType, op: Op, gated: bool) -> None:
    """What is chosen is copied, also where it is a signalling NaN."""
    x, y, p = (param(n, (), of) for n, of in enumerate([dtype, dtype, dtypes.bool]))
    other = UOp(op, x, y)
    root = UOp(Op.LOAD, x, other, p) if gated else UOp(Op.WHERE, p, x, other)
    signalling = np.full((), int(dtype.format.inf_bits or 0) + 1, f"u{dtype.bits // 8}")
    inputs = {0: signalling.view(dtype.name), 1: np.ones((), dtype.name), 2: np.ones((), bool)}
    result = compile(root).run(inputs)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result.view(signalling.dtype), signalling)


def test_every_dtype_is_copied_bit_by_bit() -> None:
    programs = [compile(chosen(dtype)) for dtype in STORED]
    inputs = [bits(dtype, 70) for dtype in STORED]
    results = run_many([Job(p, [{0: a}]) for p, a in zip(programs, inputs, strict=True)])
    for dtype, a, result in zip(STORED, inputs, results, strict=True):
        assert isinstance(result, list)
        (got,) = result
        assert isinstance(got, np.ndarray)
        expected = evaluate(chosen(dtype), {0: a})
        assert isinstance(expected, np.ndarray)
        assert got.dtype == a.dtype
        assert got.tobytes() == expected.tobytes(), dtype.name


def test_each_kind_of_root_gives_what_evaluate_gives() -> None:
    b = UOp(Op.BUFFER, dims((3,)), arg=BufferArg(4, dtypes.int32))
    one = const(1, dtypes.int32)
    stored = UOp(Op.SINK, UOp(Op.STORE, b, UOp(Op.ADD, b, one)))
    x = np.array([5, 6, 7], np.int32)
    for root in (stored, UOp(Op.TUPLE, b, UOp(Op.NEG, b)), b, UOp(Op.TUPLE), UOp(Op.SINK)):
        inputs = {4: x} if b in root.toposort() else {}
        got, expected = compile(root).run(inputs), evaluate(root, inputs)
        assert type(got) is type(expected)
        for g, e in zip(outputs(got), outputs(expected), strict=True):
            np.testing.assert_array_equal(g, e)


def test_inputs_that_do_not_fit_are_named() -> None:
    program = compile(param(0, (2,), dtypes.int32))
    for inputs, label in (
        ({}, "INPUT.c3"),
        ({0: np.zeros(3, np.int32)}, "INPUT.c4"),
        ({0: np.zeros(2, np.int64)}, "INPUT.c4"),
        ({0: np.zeros(2, np.int32), 1: np.zeros(2, np.int32)}, "INPUT.c2"),
    ):
        with pytest.raises(InvalidError, match=label):
            program.run(inputs)


def test_everything_is_observed_and_every_stage_kept() -> None:
    seen: list[tuple[str, str]] = []
    x = param(0, (3, 4), dtypes.float16)
    program = compile(UOp(Op.ADD, x, x), observe=lambda stage, rule, *_: seen.append((stage, rule)))
    assert [stage for stage, rule in seen if rule == ""] == list(FORMS) == list(program.stages)
    assert ("optimize", "run_outputs_in_parallel") in seen
    assert ("select", "emulate") in seen
    assert "kernel void" in program.source


def test_a_stage_that_breaks_its_form_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [
        replace(stage, run=lambda u, _, fired: u) if stage.name == "linearize" else stage
        for stage in pipeline.STAGES
    ]
    monkeypatch.setattr(pipeline, "STAGES", broken)
    with pytest.raises(PassError, match=r"linearize: a body is a LINEAR .*SINK"):
        compile(param(0, (2,), dtypes.int32))


def test_a_stage_is_added_by_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that puts the factor 2 in the place of an addition, between two of the box."""

    def doubled(root: UOp, setting: Setting, fired: Fired) -> UOp:
        sums = [u for u in root.toposort() if u.op is Op.ADD and u.src[0] is u.src[1]]
        new = {u: UOp(Op.MUL, u.src[0], const(2, u.dtype)) for u in sums}
        for before, after in new.items():
            fired("double", before, after)
        return root.substitute(new)

    monkeypatch.setattr(pipeline, "STAGES", [*pipeline.STAGES])
    form = replace(EXPANDED, stage="double")
    add_stage(Stage("double", doubled, lambda setting: form), before="select")
    seen: list[tuple[str, str]] = []
    a = param(0, (3,), dtypes.float32)
    program = compile(UOp(Op.ADD, a, a), observe=lambda stage, rule, *_: seen.append((stage, rule)))
    assert list(program.stages)[3:5] == ["expand", "double"]
    assert ("double", "double") in seen
    assert "* 2.0f" in program.source
    assert "double" in stages()
    add_stage(Stage("bad", lambda u, s, f: u.src[0], lambda setting: form), before="select")
    with pytest.raises(PassError, match="double"):
        compile(UOp(Op.ADD, a, a))


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(UnsupportedError, match="no target tpu"):
        compile(param(0, (2,), dtypes.int32), "tpu")
