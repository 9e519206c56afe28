"""CUSTOMFUNCTION in compiled programs: the host runs it at its place among the launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from kernels import argument, kernel_param, load, loop, program, special, store

from uop.compiler.bundle import Job, run_many
from uop.compiler.pipeline import compile
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.interpreter.evaluate import evaluate
from uop.spec.args import BinaryArg, CustomFunctionArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.functions import CUSTOM_FUNCTIONS, custom_function
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const

I32 = dtypes.int32


@pytest.fixture
def scale() -> Iterator[None]:
    """A function that exists during one test."""

    @custom_function("scale", reads=(1, 2), writes=(0, 2))
    def scale(buffers: Sequence[Any], factor: Any) -> Sequence[Any]:
        return buffers[1] * factor, buffers[2] + buffers[1].sum(dtype=np.int32)

    yield
    del CUSTOM_FUNCTIONS["scale"]


def by_name(name: str, *meta: UOp) -> UOp:
    return UOp(Op.CUSTOMFUNCTION, *meta, arg=CustomFunctionArg(name))


def doubled(kind: UOp) -> UOp:
    """A kernel that doubles slot 1 into slot 0."""
    value = load(kernel_param(1, 3), kind)
    effect = store(kernel_param(0, 3), kind, UOp(Op.ADD, value, value))
    return UOp(Op.SINK, UOp(Op.END, effect, kind) if kind.op is Op.RANGE else effect)


def between_kernels(kernel: UOp) -> UOp:
    """b = 2 a; (c, d) = scale(b, d, 5); e = 2 c, in buffers 0 to 4."""
    a, b, c, d, e = (argument(k, 3) for k in range(5))
    first = UOp(Op.CALL, kernel, b, a)
    second = UOp(Op.CALL, by_name("scale", const(5, I32)), c, UOp(Op.AFTER, b, first), d)
    return UOp(Op.SINK, UOp(Op.CALL, kernel, e, UOp(Op.AFTER, c, second)))


GIVEN = {0: np.array([1, 2, 3], np.int32), 3: np.array([10, 20, 30], np.int32)}
RIGHT = {1: [2, 4, 6], 2: [10, 20, 30], 3: [22, 32, 42], 4: [20, 40, 60]}


@pytest.mark.usefixtures("opencl", "scale")
@pytest.mark.parametrize("target", ["opencl", "cuda-host"])
@pytest.mark.parametrize("kind", [special(3), loop(0, 3)], ids=["items", "loop"])
def test_a_function_runs_between_the_kernels_it_depends_on(kind: UOp, target: str) -> None:
    root = between_kernels(doubled(kind))
    for found in (evaluate(root, GIVEN), compile(root, target).run(GIVEN)):
        assert isinstance(found, dict)
        assert {slot: a.tolist() for slot, a in found.items()} == RIGHT


@pytest.mark.usefixtures("scale")
def test_programs_with_functions_run_beside_others(run_on_opencl: OpenCLDevice) -> None:
    whole = compile(between_kernels(doubled(special(3))))
    plain = compile(program(doubled(special(3)), 3, 3))
    jobs = [Job(plain, ({1: GIVEN[0]},)), Job(whole, (GIVEN,)), Job(plain, ({1: GIVEN[3]},))]
    found = run_many(jobs, device=run_on_opencl)
    results = [f[0] for f in found if isinstance(f, list)]
    assert [r[0].tolist() for r in (results[0], results[2])] == [[2, 4, 6], [20, 40, 60]]  # type: ignore[index]
    assert {slot: a.tolist() for slot, a in results[1].items()} == RIGHT  # type: ignore[union-attr]


def copied(dtype: DType, source: UOp) -> UOp:
    return UOp(Op.SINK, UOp(Op.CALL, by_name("copy"), argument(0, 4, dtype), source))


@pytest.mark.parametrize("target", ["opencl", "cuda", "cuda-host"])
def test_a_program_of_functions_alone_needs_no_device(target: str) -> None:
    data = np.array([1, 0, 255, 7], np.uint8)
    binary = UOp(Op.BINARY, arg=BinaryArg(data.tobytes()))
    found = compile(copied(dtypes.uint8, binary), target).run()
    assert isinstance(found, dict)
    assert found[0].tolist() == data.tolist()
    halves = np.array([1.5, -0.0, np.inf, np.nan], np.float16)
    found = compile(copied(dtypes.float16, argument(1, 4, dtypes.float16)), target).run({1: halves})
    assert isinstance(found, dict)
    assert found[0].tobytes() == halves.tobytes()


def test_what_is_not_registered_is_refused_by_both() -> None:
    root = UOp(Op.SINK, UOp(Op.CALL, by_name("decode"), argument(0, 3)))
    few = UOp(Op.SINK, UOp(Op.CALL, by_name("copy"), argument(0, 3)))
    more = copied_with(const(1, I32))
    among_values = UOp(Op.NEG, UOp(Op.AFTER, argument(0, 3), root.src[0]))
    for program_, said in (
        (among_values, "'decode' has no registered meaning"),
        (root, "'decode' has no registered meaning"),
        (few, "'copy' has no registered meaning for 1 buffers and 0 numbers"),
        (more, "'copy' has no registered meaning for 2 buffers and 1 numbers"),
    ):
        for run in (evaluate, compile):
            with pytest.raises(UnsupportedError, match=said):
                run(program_)


@pytest.mark.usefixtures("opencl")
def test_a_function_may_be_registered_later_and_write_into_what_it_is_given() -> None:
    place = argument(0, 3)
    root = UOp(Op.NEG, UOp(Op.AFTER, place, UOp(Op.CALL, by_name("later"), place, argument(1, 3))))
    with pytest.raises(UnsupportedError, match="'later' has no registered meaning"):
        compile(root)

    @custom_function("later", reads=(0, 1), writes=(0,))
    def later(buffers: Sequence[Any]) -> Sequence[Any]:
        buffers[1][...] = 0
        buffers[0][0] += 1
        return (buffers[0],)

    given = {0: GIVEN[0].copy(), 1: GIVEN[3].copy()}
    for run in (evaluate, lambda root, given: compile(root).run(given)):
        found = run(root, given)
        assert isinstance(found, np.ndarray)
        assert found.tolist() == [-2, -2, -3]
    assert [a.tolist() for a in given.values()] == [[1, 2, 3], [10, 20, 30]]
    del CUSTOM_FUNCTIONS["later"]


def copied_with(*meta: UOp) -> UOp:
    return UOp(Op.SINK, UOp(Op.CALL, by_name("copy", *meta), argument(0, 3), argument(1, 3)))


@pytest.mark.usefixtures("scale")
def test_the_numbers_of_a_function_are_constants() -> None:
    meta = UOp(Op.NEG, const(1, I32))
    body = by_name("scale", meta)
    root = UOp(Op.SINK, UOp(Op.CALL, body, *(argument(k, 3) for k in range(3))))
    for run in (evaluate, compile):
        with pytest.raises(UnsupportedError, match=r"CUSTOMFUNCTION\.n2"):
            run(root)
