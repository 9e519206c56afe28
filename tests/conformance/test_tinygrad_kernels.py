"""Kernels on tinygrad: loops, work items, optimizations, and what its code generator refuses."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from uop.compiler.pipeline import lower
from uop.conformance.backends.tinygrad import TinygradBackend
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind, Program
from uop.conformance.suite.levels import nodes
from uop.conformance.workers.processes import Workplace
from uop.conformance.workers.transport import Worker
from uop.spec import uop
from uop.spec.dtype import dtypes
from uop.spec.errors import BackendError
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp

pytest.importorskip("tinygrad", reason="needs the extra tinygrad")

pytestmark = pytest.mark.slow


A = np.array([7, -7, 100, -128], np.int8)


@pytest.fixture(scope="module")
def backend() -> TinygradBackend:
    started = TinygradBackend("PYTHON")
    started.hello()
    return started


LOOP = """
%0 = PARAM [4] {slot=0, dtype=int8, addrspace=GLOBAL}
%1 = RANGE 4 {id=0}
%2 = INDEX %0, %1
%3 = PARAM [8] {slot=2, dtype=int8, addrspace=GLOBAL}
%4 = RANGE 2 {id=1, axis_type=REDUCE}
%5 = MUL %1, 2
%6 = ADD %5, %4
%7 = INDEX %3, %6
%8 = CMPLT %6, 5
%9 = CONST {value=1, dtype=int8}
%10 = LOAD %7, %9, %8
%11 = REDUCE %10, %4 {op=ADD}
%12 = CMPNE %1, 1
%13 = STORE %2, %11, %12
%14 = END %13, %1
%15 = SINK %14
%16 = BUFFER [4] {slot=0, dtype=int8}
%17 = BUFFER [3] {slot=1, dtype=int8}
%18 = BUFFER [8] {slot=2, dtype=int8}
%19 = CALL %15, %16, %17, %18
%20 = SINK %19
"""
"""Sums of two; from the sixth element on ones; the second sum is not stored; one argument idles."""


def test_a_kernel_with_gates_and_a_fold(backend: TinygradBackend) -> None:
    eight = np.array([100, 27, 1, 2, 3, 4, 5, 6], np.int8)
    found = backend.run([Program(LOOP, ({0: A, 2: eight},))])[0]
    assert isinstance(found, Outputs), found
    np.testing.assert_array_equal(found.batches[0][0], [127, A[1], 3 + 1, 1 + 1])


def test_work_items(backend: TinygradBackend) -> None:
    text = (
        "%0 = PARAM [4] {slot=0, dtype=int8, addrspace=GLOBAL}\n"
        '%1 = SPECIAL 4 {name="gidx0"}\n%2 = INDEX %0, %1\n%3 = LOAD %2\n%4 = NEG %3\n'
        "%5 = STORE %2, %4\n%6 = SINK %5\n%7 = BUFFER [4] {slot=0, dtype=int8}\n"
        "%8 = CALL %6, %7\n%9 = SINK %8"
    )
    found = backend.run([Program(text, ({0: A},))])[0]
    assert isinstance(found, Outputs), found
    np.testing.assert_array_equal(found.batches[0][0], -A)


@pytest.fixture
def groupless(
    backend: TinygradBackend, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TinygradBackend]:
    """A device without work groups, as the processor of the host is."""
    renderer = import_module("tinygrad.runtime.ops_python").PythonRenderer
    monkeypatch.setattr(renderer, "has_local", False)
    backend.child.close()
    yield backend
    backend.child.close()


ITEMS = """
%0 = PARAM [6] {slot=0, dtype=int8, addrspace=GLOBAL}
%1 = SPECIAL 2 {name="gidx0"}
%2 = SPECIAL 3 {name="lidx0"}
%3 = MUL %1, 3
%4 = ADD %3, %2
%5 = INDEX %0, %4
%6 = PARAM [6] {slot=1, dtype=int8, addrspace=GLOBAL}
%7 = INDEX %6, %4
%8 = BUFFER [1] {slot=0, dtype=int8, addrspace=REG}
%9 = INDEX %8, 0
%10 = CONST {value=7, dtype=int8}
%11 = STORE %9, %10
%12 = RANGE 4 {id=0, axis_type=REDUCE}
%13 = AFTER %8, %11, %12
%14 = INDEX %13, 0
%15 = LOAD %14
%16 = LOAD %7
%17 = ADD %15, %16
%18 = STORE %14, %17
%19 = END %18, %12
%20 = AFTER %8, %19
%21 = INDEX %20, 0
%22 = LOAD %21
%23 = STORE %5, %22
%24 = PARAM [6] {slot=2, dtype=int8, addrspace=GLOBAL}
%25 = INDEX %24, %4
%26 = NEG %16
%27 = STORE %25, %26
%28 = SINK %23, %27
%29 = BUFFER [6] {slot=0, dtype=int8}
%30 = BUFFER [6] {slot=1, dtype=int8}
%31 = BUFFER [6] {slot=2, dtype=int8}
%32 = CALL %28, %29, %30, %31
%33 = SINK %32
"""
"""Each work item adds an element four times to 7, in a register, and stores its negative too."""


def test_registers_of_work_items(backend: TinygradBackend) -> None:
    items_agree(backend.run([Program(ITEMS, ({1: SIX},))])[0])


def test_without_work_groups_items_are_iterations(groupless: TinygradBackend) -> None:
    """Each iteration starts with registers of its own, and has all of the effects."""
    items_agree(groupless.run([Program(ITEMS, ({1: SIX},))])[0])


SIX = np.array([1, -2, 3, 4, 5, 6], np.int8)


def items_agree(found: Outcome) -> None:
    assert isinstance(found, Outputs), found
    np.testing.assert_array_equal(found.batches[0][0], 7 + 4 * SIX)
    np.testing.assert_array_equal(found.batches[0][1], -SIX)


def test_items_that_share_memory_are_no_iterations(groupless: TinygradBackend) -> None:
    shared = ITEMS.replace("addrspace=REG", "addrspace=LOCAL")
    refused(groupless, shared, "PYTHON has no work groups: no memory of a work group")


def refused(backend: TinygradBackend, text: str, reason: str) -> None:
    (found,) = backend.run([Program(text, ({},))])
    assert isinstance(found, Problem)
    assert (found.kind, found.message) == (ProblemKind.UNSUPPORTED, reason)


def products(sequence: str) -> UOp:
    """Sums of products, [6, 8] @ [8, 10]; axes 0 and 1 are over outputs, 2 is folded."""
    a = nodes.reshape(uop.param(0, (6, 8), dtypes.int32), (6, 1, 8))
    b = nodes.reshape(uop.param(1, (10, 8), dtypes.int32), (1, 10, 8))
    sums = nodes.fold(Op.ADD, UOp(Op.MUL, a, b), (2,))
    sink = UOp(Op.SINK, nodes.store(nodes.buffer(2, sums.shape, dtypes.int32), sums))
    return lower(sink, "optimize", optimizations=[parse_optimizations(sequence)])


LEFT = np.arange(48, dtype=np.int32).reshape(6, 8)


RIGHT = np.arange(80, dtype=np.int32).reshape(10, 8) ** 2 - 40


def products_agree(found: Outcome) -> None:
    assert isinstance(found, Outputs), found
    np.testing.assert_array_equal(found.batches[0][0].reshape(6, 10), LEFT @ RIGHT.T)


@pytest.mark.parametrize(
    ("sequence", "opts"),
    [
        ("SPLIT(0, 3, UPCAST, INNER)", "UPCAST 0 3"),
        ("SPLIT(1, 5, LOCAL, INNER)", "LOCAL 1 5"),
        ("SPLIT(2, 4, UNROLL, INNER)", "UNROLL 0 4"),
        ("SPLIT(2, 2, GROUP_REDUCE, INNER)", "GROUP 0 2"),
        ("SPLIT(2, 2, GROUP_REDUCE, OUTER)", "GROUPTOP 0 2"),
        ("SPLIT(0, 6, UPCAST, INNER)", "UPCAST 0 6"),
        # Two of one axis, and one of the axis that an Opt made.
        ("SPLIT(1, 5, LOCAL, INNER); SPLIT(1, 2, UPCAST, INNER)", "LOCAL 1 5; UPCAST 1 2"),
        ("SPLIT(0, 6, LOCAL, INNER); SPLIT(1, 2, UPCAST, INNER)", "LOCAL 0 6; UPCAST 1 2"),
        ("SPLIT(2, 4, GROUP_REDUCE, INNER); SPLIT(3, 2, UNROLL, INNER)", "GROUP 0 4; UNROLL 0 2"),
        ("SPLIT(0, 3, UPCAST, INNER); SPLIT(3, 8, UNROLL, INNER)", "UPCAST 0 3; UNROLL 0 8"),
        # A loop of tinygrad is swapped and made longer before.
        ("SWAP(0, 1); PADTO(0, 4); SPLIT(0, 3, LOCAL, INNER)", "LOCAL 0 3"),
        ("SPLIT(0, 1, UPCAST, INNER)", ""),
    ],
)
def test_optimized_kernels_are_optimized_by_tinygrad(
    backend: TinygradBackend, sequence: str, opts: str
) -> None:
    root = products(sequence)
    products_agree(backend.run([Program(print_program(root), ({0: LEFT, 1: RIGHT},))])[0])
    (call,) = backend._plan(root).linear.src
    applied = [f"{o.op.name} {o.axis} {o.arg}" for o in call.src[0].src[0].arg.applied_opts]
    assert "; ".join(applied) == opts


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [
        ("SPLIT(0, 3, THREAD, OUTER)", "PYTHON has no threads: no THREAD"),
        ("SPLIT(1, 5, LOCAL, INNER)", "PYTHON has no work groups: no LOCAL"),
        ("SPLIT(2, 2, GROUP_REDUCE, INNER)", "PYTHON has no work groups: no GROUP"),
    ],
)
def test_a_device_says_which_opt_it_lacks(
    groupless: TinygradBackend, sequence: str, reason: str
) -> None:
    refused(groupless, print_program(products(sequence)), reason)


def test_threads_are_those_of_any_processor(tmp_path: Path) -> None:
    text = print_program(products("SPLIT(1, 10, THREAD, OUTER)"))
    products_agree(on_worker("tinygrad:CPU", Program(text, ({0: LEFT, 1: RIGHT},)), tmp_path))


def test_what_kernels_may_not_hold(backend: TinygradBackend) -> None:
    smallest = LOOP.replace("%4 {op=ADD}", "%4 {op=MIN}")
    refused(backend, smallest, "tinygrad's code generator folds by ADD, MUL and MAX over loops")
    warp = LOOP.replace("RANGE 4 {id=0}", "RANGE 4 {id=0, axis_type=WARP}")
    refused(backend, warp, "tinygrad makes the axes of a warp itself")
    shared = ITEMS.replace("addrspace=REG", "addrspace=LOCAL")
    refused(backend, shared, "tinygrad makes each memory of a work group of a kernel itself")


def started(name: str, folder: Path) -> Worker:
    try:
        return Worker(name, Workplace(folder))
    except BackendError as error:
        pytest.skip(str(error))


def on_worker(name: str, program: Program, folder: Path) -> Outcome:
    worker = started(name, folder)
    worker.submit([program])
    (found,) = worker.collect()
    worker.close()
    return found


def test_a_processor_that_traps_says_so(tmp_path: Path) -> None:
    worker = started("tinygrad:X86", tmp_path)
    worker.close()
    assert "int_div_traps=true" in worker.hello.profile


def test_work_items_of_a_processor(tmp_path: Path) -> None:
    items_agree(on_worker("tinygrad:X86", Program(ITEMS, ({1: SIX},)), tmp_path))
