"""Programs with variables: one source for all their numbers, and each stage agrees."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from symbolic_programs import PROGRAMS, M, N, called, plus, shape, values

from uop.compiler.bundle import Job, run_many
from uop.compiler.execute import open_device
from uop.compiler.loaded import Compiled
from uop.compiler.pipeline import compile, find_target
from uop.compiler.runtime.device import Around, Built, Device
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import (
    AddrSpace,
    AxisType,
    BufferArg,
    FlipArg,
    GetAddrArg,
    ParamArg,
    RangeArg,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.kernel.optimization import Split
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import bind, is_variable
from uop.spec.uop import UOp, dims, index_const, variable

Inputs = dict[int, Any]
BINDINGS = [{0: n, 1: m} for n, m in product((1, 3, 5), (0, 1, 3))]
"""The ends of the ranges and the middle: N is 1 to 5, M is 0 to 3."""
ALIKE = ("index", "replicated")
"""The programs whose data are zeros: indices in bounds, and copies that are the same."""


class Counting(Around):
    """A device that counts its builds."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        object.__setattr__(self, "built", [])

    def build(self, source: str) -> Built:
        self.built.append(source)
        return self.device.build(source)


def inputs_of(root: UOp, binding: dict[int, int], modulus: int = 97) -> Inputs:
    """The numbers of the variables, and distinct data of their sizes."""
    slots = slots_of(root)
    numbers = {u: binding[slot] for slot, u in slots.items() if is_variable(u)}
    inputs: Inputs = {slot: np.array(numbers[u]) for slot, u in slots.items() if u in numbers}
    for slot, u in slots.items():
        if u not in numbers:
            sizes = bind(u, numbers).shape
            data = np.arange(slot, slot + prod(sizes)) % modulus
            inputs[slot] = data.reshape(sizes).astype(np_dtype(u.dtype))
    return inputs


def listed(output: Any) -> list[Any]:
    """The results of a program in their order."""
    if isinstance(output, dict):
        return [output[slot] for slot in sorted(output)]
    return list(output) if isinstance(output, tuple) else [output]


def assert_equal(found: list[Any], wanted: list[Any]) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)


def assert_runs(root: UOp, compiled: Compiled, device: Device, modulus: int = 97) -> None:
    """With each binding the device, and the output of each stage, agrees with the interpreter."""
    counting = Counting(device)
    bindings = [b for b in BINDINGS if modulus > 1 or b[1]]
    for binding in bindings:
        inputs = inputs_of(root, binding, modulus)
        wanted = listed(evaluate(root, inputs))
        assert_equal(listed(compiled.run(inputs, counting)), wanted)
        for left in compiled.stages.values():
            known = slots_of(left)
            contents = evaluate(left, {slot: a for slot, a in inputs.items() if slot in known})
            assert isinstance(contents, dict)
            assert_equal([contents[slot] for slot in compiled.executable.results], wanted)
    assert len(counting.built) == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_source_serves_all_sizes(opencl: Device, name: str) -> None:
    root = PROGRAMS[name](N, M)
    assert_runs(root, compile(root), opencl, 1 if name in ALIKE else 97)


@pytest.mark.parametrize("name", ["gemm", "centred", "joined", "pad"])
def test_one_source_in_cuda(name: str) -> None:
    root = PROGRAMS[name](N, M)
    device = open_device(find_target("cuda-host"))
    assert_runs(root, compile(root, "cuda-host"), device)


def test_a_body_is_called_with_two_sizes(opencl: Device) -> None:
    root = called(N, M)
    assert_runs(root, compile(root), opencl)


def test_a_size_is_an_argument_of_the_kernel() -> None:
    """One loop for the work items, and the guard of those that a launch has too many of."""
    source = compile(UOp(Op.NEG, values(2, N, M))).source
    assert "kernel void kernel_0_nxn(global i32* b0, global i32* b1, i64 v2, i64 v3) {" in source
    assert "if (gidx0 < (i64)((u64)(v2) * (u64)(v3))) {" in source
    assert "i32 t0 = b1[gidx0];" in source


def negated(n: UOp, size: int | UOp) -> UOp:
    """A kernel: a[i] = -b[n - 1 - i] for i below the variable."""
    a, b = (
        UOp(Op.PARAM, dims((size,)), arg=ParamArg(k, dtypes.int32, None, AddrSpace.GLOBAL))
        for k in (0, 2)
    )
    i = UOp(Op.RANGE, n, arg=RangeArg(0, AxisType.LOOP))
    back = UOp(Op.SUB, UOp(Op.SUB, n, i), index_const(1))
    read = UOp(Op.NEG, UOp(Op.LOAD, UOp(Op.INDEX, b, back)))
    return UOp(Op.SINK, UOp(Op.END, UOp(Op.STORE, UOp(Op.INDEX, a, i), read), i))


def memory(slot: int, size: int | UOp) -> UOp:
    return UOp(Op.BUFFER, dims((size,)), arg=BufferArg(slot, dtypes.int32))


@pytest.mark.parametrize("is_sized", [False, True])
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_kernel_takes_a_size_of_the_program(
    opencl: Device, is_sized: bool, is_listed: bool
) -> None:
    """Between its memory, as a sum of variables; it enters with loops or as a list."""
    own = variable(1, 0, 9)
    total = UOp(Op.ADD, N, M)
    body = negated(own, own if is_sized else 9)
    size = total if is_sized else 9
    root = UOp(Op.SINK, UOp(Op.CALL, body, memory(4, size), total, memory(5, size)))
    if is_listed:
        root = compile(root).stages["linearize"]
    compiled = compile(root)
    assert ("optimize" in compiled.stages) is not is_listed
    assert_runs(root, compiled, opencl)


@pytest.mark.parametrize("is_sized", [False, True])
def test_a_kernel_among_values_takes_a_size(opencl: Device, is_sized: bool) -> None:
    size = N if is_sized else 9
    own = variable(1, 0, 9)
    call = UOp(Op.CALL, negated(own, own if is_sized else 9), memory(4, size), N, memory(5, size))
    root = UOp(Op.NEG, UOp(Op.AFTER, memory(4, size), call))
    assert_runs(root, compile(root), opencl)


@pytest.mark.parametrize("total", [UOp(Op.ADD, N, M), index_const(5)], ids=["sum", "number"])
def test_copies_of_values_share_memory_and_kernels_keep_their_sizes(
    opencl: Device, total: UOp
) -> None:
    """Each kernel takes a copy of a value, which the next one no longer needs."""
    body, x = negated(variable(1, 0, 9), 9), values(2, 9)
    result, stages = x, []
    for slot in (4, 5, 6):
        call = UOp(Op.CALL, body, memory(slot, 9), total, UOp(Op.MUL, x, result))
        result = UOp(Op.AFTER, memory(slot, 9), call)
        stages.append(call)
    root = UOp(Op.TUPLE, N, M, UOp(Op.SHRINK, result, shape(0), dims((1,))))
    compiled = compile(root)
    assert compiled.stages["plan"] is not compiled.stages["linearize"]
    assert_runs(root, compiled, opencl)


def test_contents_of_a_symbolic_size_are_saved_before_a_kernel_changes_them(opencl: Device) -> None:
    """The values before are read after the CALL, which depends on them."""
    old, own = memory(4, N), variable(1, 0, 9)
    square = UOp(Op.MUL, old, old)
    first = UOp(Op.AFTER, old, UOp(Op.STORE, memory(5, N), square))
    call = UOp(Op.CALL, negated(own, own), first, N, values(6, N))
    root = UOp(Op.ADD, square, UOp(Op.AFTER, old, call))
    assert_runs(root, compile(root), opencl)


def test_a_kernel_takes_a_number(opencl: Device) -> None:
    body = negated(variable(1, 0, 9), 9)
    root = UOp(Op.SINK, UOp(Op.CALL, body, memory(4, 9), index_const(3), memory(5, 9)))
    inputs = {4: np.zeros(9, np.int32), 5: np.arange(9, dtype=np.int32)}
    (found,) = compile(root).run(inputs, opencl).values()  # type: ignore[union-attr]
    assert found.tolist() == [-2, -1, 0, 0, 0, 0, 0, 0, 0]


def test_a_bound_program_has_its_numbers(opencl: Device) -> None:
    three = UOp(Op.BIND, N, index_const(3))
    compiled = compile(UOp(Op.NEG, values(2, three)))
    assert "v" not in compiled.source.partition("kernel_0_3(")[2].partition(")")[0]
    found = compiled.run({2: np.arange(3, dtype=np.int32)}, opencl)
    assert found.tolist() == [0, -1, -2]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("inputs", "label"),
    [
        ({2: np.zeros(3, np.int32)}, "INPUT.c3"),
        ({0: np.array(6), 2: np.zeros(6, np.int32)}, "INPUT.c5"),
        ({0: np.array([3]), 2: np.zeros(3, np.int32)}, "INPUT.c4"),
        ({0: np.array(3, np.int32), 2: np.zeros(3, np.int32)}, "INPUT.c4"),
        ({0: np.array(3), 2: np.zeros(4, np.int32)}, "INPUT.c4"),
        ({0: np.array(3), 2: np.zeros(3, np.int32), 7: np.array(1)}, "INPUT.c2"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_as_by_the_interpreter(
    opencl: Device, inputs: Inputs, label: str
) -> None:
    root = UOp(Op.NEG, values(2, N))
    compiled = compile(root)
    for run in (lambda: compiled.run(inputs, opencl), lambda: evaluate(root, inputs)):
        with pytest.raises(InvalidError) as caught:
            run()
        assert caught.value.label == label


def test_programs_with_and_without_variables_run_together(opencl: Device) -> None:
    """In a bundle each program has buffers of one size, so those with variables run alone."""
    symbolic, fixed = compile(UOp(Op.NEG, values(2, N))), compile(UOp(Op.NEG, values(2, 3)))
    x = np.arange(3, dtype=np.int32)
    rows = [{0: np.array(k), 2: x[:k]} for k in (1, 3)]
    found = run_many([Job(symbolic, rows), Job(fixed, [{2: x}])])
    assert [[y.tolist() for y in outcome] for outcome in found] == [  # type: ignore[union-attr]
        [[0], [0, -1, -2]],
        [[0, -1, -2]],
    ]


def test_an_address_of_no_elements_is_that_of_the_memory(opencl: Device) -> None:
    """M is 0 in some bindings; the distance of the FLIP would be below it."""
    whole = memory(4, plus(N, M))
    part = UOp(Op.FLIP, UOp(Op.SHRINK, whole, shape(N), shape(M)), arg=FlipArg((True,)))
    addresses = (UOp(Op.GETADDR, u, arg=GetAddrArg("GPU")) for u in (part, whole))
    root = UOp(Op.SUB, *addresses)
    assert_runs(root, compile(root), opencl)


def test_a_store_through_an_index_wants_a_number_of_places() -> None:
    last = UOp(Op.INDEX, memory(4, N), UOp(Op.SUB, N, index_const(1)))
    root = UOp(Op.SINK, UOp(Op.STORE, last, values(2)))
    with pytest.raises(UnsupportedError, match=r"SIZES\.c2"):
        compile(root)


def test_optimizations_want_numbers() -> None:
    upcast = Split(0, 4, AxisType.UPCAST)
    with pytest.raises(UnsupportedError, match="optimizations of a kernel with symbolic sizes"):
        compile(UOp(Op.NEG, values(2, N)), optimizations=[[upcast]])


def test_a_long_range_has_few_trials_and_all_sizes(opencl: Device) -> None:
    n = variable(0, 0, 1 << 20)
    x = values(2, n, 2)
    total = UOp(Op.ADD, x, UOp(Op.SHRINK, UOp(Op.EXPAND, values(3, 1, 2), shape(plus(n, 1), 2)),
                               shape(0, 0), shape(n, 2)))  # fmt: skip
    compiled, counting = compile(total), Counting(opencl)
    for size in (0, 1, 7, 1000, 70_001):
        inputs = inputs_of(total, {0: size})
        wanted = inputs[2] + inputs[3]
        assert_equal(listed(compiled.run(inputs, counting)), [wanted])
    assert len(counting.built) == 1


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("name", ["n", "a size"])
def test_the_name_of_a_variable_changes_nothing(name: str) -> None:
    n = variable(0, 1, 5)
    named = UOp(Op.PARAM, *n.src, arg=n.arg, tag=name)
    data = UOp(Op.PARAM, dims((5,)), arg=ParamArg(1, dtypes.int32))
    one = index_const(1)
    sizes = dims((UOp(Op.SUB, named, one),))
    root = UOp(Op.NEG, UOp(Op.SHRINK, data, dims((one,)), sizes))
    compiled = compile(root)
    for number in (1, 4):
        inputs: Inputs = {0: np.array(number), 1: np.arange(5, dtype=np.int32)}
        np.testing.assert_array_equal(compiled.run(inputs), -inputs[1][1:number])
