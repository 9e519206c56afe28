"""GETADDR in compiled programs: pointers that keep the promises of D-068, or a refusal by name."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from kernels import argument, at, kernel_param, load, loop, program, special, store, vector

from uop.compiler.bundle import Job, run_many
from uop.compiler.pipeline import compile
from uop.compiler.runtime.cuda import nvrtc_compile
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    AxisType,
    BufferArg,
    CustomFunctionArg,
    DTypeArg,
    FlipArg,
    GetAddrArg,
    GetTupleArg,
    ParamArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

U64 = dtypes.uint64
TARGETS = ["opencl", "cuda-host"]
SIZES = ((3, dtypes.int8), (1, dtypes.float64), (300, dtypes.uint16), (0, dtypes.int32))


def buffer(slot: int, shape: tuple[int, ...], dtype: DType) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtype))


def address(location: UOp, device: str = "GPU") -> UOp:
    return UOp(Op.GETADDR, location, arg=GetAddrArg(device))


def numbers(target: str, *values: UOp, **inputs: Any) -> list[int]:
    given = {int(slot[1:]): array for slot, array in inputs.items()}
    found = compile(UOp(Op.TUPLE, *values), target).run(given)
    assert isinstance(found, tuple)
    return [int(x) for x in found]


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("target", TARGETS)
def test_addresses_keep_the_promises_of_the_interpreter(target: str) -> None:
    buffers = [buffer(k, (n,), d) for k, (n, d) in enumerate(SIZES)]
    starts = numbers(target, *map(address, buffers))
    for b, start in zip(buffers, starts, strict=True):
        assert start > 0
        assert start % b.dtype.itemsize == 0
    sizes = (b.shape[0] * b.dtype.itemsize for b in buffers)
    spans = sorted(zip(starts, sizes, strict=True))
    assert all(a + n <= b and a < b for (a, n), (b, _) in pairwise(spans))


B = buffer(0, (3, 4), dtypes.float64)
SHRUNK = UOp(Op.SHRINK, B, dims((1, 2)), dims((2, 2)))
HALVES = UOp(Op.BITCAST, B, arg=DTypeArg(dtypes.uint16))
PICKED = param(5, (2,), dtypes.int32)
VIEWS = {
    "INDEX": (UOp(Op.INDEX, B, index_const(2), index_const(1)), 8 * 9),
    "SHRINK": (SHRUNK, 8 * 6),
    "RESHAPE": (UOp(Op.RESHAPE, SHRUNK, dims((4,))), 8 * 6),
    "FLIP": (UOp(Op.FLIP, B, arg=FlipArg((True, False))), 8 * 8),
    "BITCAST": (UOp(Op.SHRINK, HALVES, dims((1, 5)), dims((2, 2))), 8 * 5 + 2),
    "BITCAST wide": (
        UOp(
            Op.SHRINK,
            UOp(Op.BITCAST, HALVES, arg=DTypeArg(dtypes.uint32)),
            dims((2, 3)),
            dims((1, 1)),
        ),
        4 * (2 * 8 + 3),
    ),
    "INDEX by data": (UOp(Op.INDEX, B, UOp(Op.INDEX, PICKED, index_const(1))), 8 * 4 * 2),
    "AFTER": (UOp(Op.AFTER, B, UOp(Op.STORE, B, param(6, (3, 4), dtypes.float64))), 0),
    "empty": (UOp(Op.SHRINK, B, dims((3, 0)), dims((0, 4))), 0),
}


@pytest.mark.sampled(8)
@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", VIEWS)
def test_an_element_of_a_view_is_counted_in_bytes(name: str, target: str) -> None:
    view, distance = VIEWS[name]
    root = UOp(Op.SUB, address(view), address(B))
    given: dict[int, Any] = {}
    if name == "INDEX by data":
        given = {5: np.array([0, 2], np.int32)}
    if name == "AFTER":
        given = {6: np.ones((3, 4))}
    assert int(np.asarray(evaluate(root, given))) == distance
    assert int(np.asarray(compile(root, target).run(given))) == distance


def test_an_element_that_pad_has_added_has_no_address() -> None:
    padded = UOp(Op.PAD, B, dims((1, 0)), dims((4, 4)))
    for run in (evaluate, lambda root: compile(root).run()):
        with pytest.raises(UnsupportedError, match=r"GETADDR\.n1"):
            run(address(padded))


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("target", TARGETS)
def test_a_store_of_an_address_into_the_buffer_itself(target: str) -> None:
    b = buffer(0, (3,), U64)
    first = UOp(Op.SHRINK, b, dims((0,)), dims((2,)))
    value = UOp(Op.STACK, address(b), const(7, U64))
    found = compile(UOp(Op.SINK, UOp(Op.STORE, first, value)), target).run(
        {0: np.arange(3, dtype=np.uint64)}
    )
    assert isinstance(found, dict)
    assert found[0][0] > 0
    assert found[0][1:].tolist() == [7, 2]


@pytest.mark.usefixtures("opencl")
def test_a_function_sees_the_buffers_of_its_caller() -> None:
    b, other = (buffer(k, (2,), U64) for k in (0, 1))
    p = UOp(Op.PARAM, dims((2,)), arg=ParamArg(0, U64, None, kernel_param(0, 2).addrspace))
    body = UOp(Op.TUPLE, address(p))
    inside = [UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, a), arg=GetTupleArg(0)) for a in (b, other)]
    one, two, three, four = numbers("opencl", address(b), address(other), *inside)
    assert one == three != two == four


def of_places(*kinds: AxisType) -> UOp:
    """Each item stores how far its element, and a vector of elements, is from the first one."""
    i = loop(0, 5, kinds[0]) if kinds else special(5)
    source, out = kernel_param(1, 8, dtypes.int32), kernel_param(0, 5, U64)
    some = vector([i, index_const(0)])
    total = UOp(Op.ADD, address(at(source, i)), address(UOp(Op.INDEX, source, some)))
    twice = UOp(Op.ADD, address(source), address(at(source, 0)))
    effect = store(out, i, UOp(Op.SUB, total, twice))
    body = UOp(Op.SINK, UOp(Op.END, effect, i) if kinds else effect)
    return program(body, argument(0, 5, U64), argument(1, 8, dtypes.int32))


KERNELS = [
    of_places(),
    of_places(AxisType.LOOP),
    of_places(AxisType.GLOBAL),
    of_places(AxisType.UPCAST),
]


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("root", KERNELS, ids=["items", "loop", "work items", "copies"])
def test_kernels_count_in_bytes(root: UOp, target: str) -> None:
    for result in (evaluate(root), compile(root, target).run()):
        assert isinstance(result, dict)
        assert result[0].tolist() == [8 * i for i in range(5)]


@pytest.mark.cuda
def test_nvrtc_takes_addresses() -> None:
    for root in (*KERNELS, address(B)):
        nvrtc_compile(compile(root, "cuda").source)


def test_one_buffer_behind_two_arguments_has_one_address(run_on_opencl: OpenCLDevice) -> None:
    shared = argument(1, 4)
    places = [address(kernel_param(slot, 4)) for slot in (1, 2)]
    out = kernel_param(0, 2, U64)
    body = UOp(Op.SINK, *(store(out, k, p) for k, p in enumerate(places)))
    compiled = compile(program(body, argument(0, 2, U64), shared, shared))
    one, two = (compiled.run(), run_many([Job(compiled, ({},))], device=run_on_opencl)[0])
    assert isinstance(two, list)
    for found in (one, two[0]):
        assert isinstance(found, dict)
        assert found[0][0] == found[0][1] > 0


def two_launches(between: UOp | None = None, device: str = "GPU") -> UOp:
    """Two kernels that store the address of one buffer, in an order."""
    out = kernel_param(0, 1, U64)
    bodies = [
        UOp(Op.SINK, store(out, 0, address(kernel_param(1, 4), name))) for name in ("GPU", device)
    ]
    results, source = [argument(k, 1, U64) for k in (0, 1)], argument(2, 4)
    calls = [UOp(Op.CALL, bodies[0], results[0], source)]
    if between is not None:
        calls.append(UOp(Op.CALL, between, UOp(Op.AFTER, source, *calls), argument(3, 4)))
    later = UOp(Op.AFTER, source, calls[-1])
    return UOp(Op.SINK, UOp(Op.CALL, bodies[1], results[1], later))


def test_addresses_of_two_launches_are_refused_where_memory_may_move() -> None:
    with pytest.raises(UnsupportedError, match="GETADDR in 2 launches: on opencl memory may move"):
        compile(two_launches())
    found = compile(two_launches(), "cuda-host").run()
    assert isinstance(found, dict)
    assert found[0] == found[1] > 0


def test_addresses_around_a_function_of_the_host_and_on_two_devices_are_refused() -> None:
    copy = UOp(Op.CUSTOMFUNCTION, arg=CustomFunctionArg("copy"))
    with pytest.raises(UnsupportedError, match="before and after a function of the host"):
        compile(two_launches(copy), "cuda-host")
    with pytest.raises(UnsupportedError, match="GETADDR on CPU, GPU"):
        compile(two_launches(device="CPU"), "cuda-host")


def test_a_list_has_addresses_too() -> None:
    body = KERNELS[0].src[0].src[0]
    listed = program(
        UOp(Op.LINEAR, *body.toposort()[:-1]), argument(0, 5, U64), argument(1, 8, dtypes.int32)
    )
    result = evaluate(listed)
    assert isinstance(result, dict)
    assert result[0].tolist() == [8 * i for i in range(5)]
    assert "(u64)(&b1[" in compile(listed).source
    assert load(kernel_param(1, 8), 0) not in body.toposort()
