"""tinygrad as a backend: what is said to it, what it cannot be told, and that both are seen."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

from uop.compiler.pipeline import lower
from uop.conformance.backends import GROUP, tinygrad
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.backends.tinygrad import TinygradBackend
from uop.conformance.backends.tinygrad_graph import COMPOSED, Graph, Language
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind, Program
from uop.conformance.suite.levels import nodes
from uop.conformance.workers.transport import Worker
from uop.interpreter.numeric.storage import STORAGE, Array, to_bits
from uop.spec import uop
from uop.spec.args import LoadArg
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.errors import BackendError, UnsupportedError
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp

pytest.importorskip("tinygrad", reason="needs the extra tinygrad")


@pytest.fixture(scope="module")
def backend() -> TinygradBackend:
    started = TinygradBackend("PYTHON")
    started.hello()
    return started


def outcome(backend: TinygradBackend, text: str, *inputs: Array) -> Outputs | Problem:
    (found,) = backend.run([Program(text, (dict(enumerate(inputs)),))])
    return found


def outputs(backend: TinygradBackend, text: str, *inputs: Array) -> tuple[Array, ...]:
    found = outcome(backend, text, *inputs)
    assert isinstance(found, Outputs), found
    return found.batches[0]


def test_it_is_registered() -> None:
    assert "tinygrad" in {entry.name for entry in entry_points(group=GROUP)}


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(UnsupportedError, match="'ABACUS': expected one of PYTHON, CL, CPU, X86"):
        TinygradBackend("ABACUS").hello()


def test_a_missing_package_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(tinygrad, "import_module", missing)
    with pytest.raises(UnsupportedError, match=r"No module named 'tinygrad'.*uop\[tinygrad\]"):
        TinygradBackend("CL").hello()


def test_a_program_that_ends_the_process_costs_only_itself(
    backend: TinygradBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = type(backend)._outcome

    def outcome_or_end(self: TinygradBackend, program: Program) -> Outcome:
        if "IDIV" in program.text:
            os.kill(os.getpid(), signal.SIGKILL)
        return calm(self, program)

    monkeypatch.setattr(TinygradBackend, "_outcome", outcome_or_end)
    backend.child.close()
    texts = (f"{param('int8')}\n%1 = {op}" for op in ("NEG %0", "IDIV %0, %0", "TRUNC %0"))
    first, second, third = backend.run([Program(text, ({0: A},)) for text in texts])
    assert isinstance(first, Outputs)
    assert second == Problem(ProblemKind.CRASH, "the process was ended by SIGKILL")
    assert isinstance(third, Outputs)
    backend.child.close()


def test_it_says_where_it_runs_and_what_its_pad_does(backend: TinygradBackend) -> None:
    hello = backend.hello()
    assert (hello.name, hello.variant) == ("tinygrad", "PYTHON")
    assert hello.device == "PYTHON (PythonRenderer)"
    assert hello.dtypes == frozenset(DTYPES)
    assert hello.forms == {"tensor", "kernel"}
    assert "pad_fill=zero" in hello.profile


A, B = np.array([7, -7, 100, -128], np.int8), np.array([2, 2, 100, 3], np.int8)
X, Y = np.array([1.5, -0.0, 3.0, 0.1], np.float32), np.array([0.25, 0.0, -3.0, 7.0], np.float32)


INTEGER_OPS = (
    *("ADD", "SUB", "MUL", "MAX", "IDIV", "MOD", "CDIV", "CMOD", "XOR", "OR", "AND"),
    *("CMPLT", "CMPNE", "CMPEQ", "CMPGT", "CMPGE", "CMPLE"),
)


@pytest.mark.parametrize("op", INTEGER_OPS)
def test_two_integers(backend: TinygradBackend, op: str) -> None:
    agrees(backend, f"{param('int8')}\n{param('int8', 1)}\n%2 = {op} %0, %1", A, B)


@pytest.mark.parametrize("op", ["NEG", "TRUNC"])
def test_one_integer(backend: TinygradBackend, op: str) -> None:
    agrees(backend, f"{param('int8')}\n%1 = {op} %0", A)


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "CMPLT", "CMPGE"])
def test_two_floats(backend: TinygradBackend, op: str) -> None:
    agrees(backend, f"{param('float32')}\n{param('float32', 1)}\n%2 = {op} %0, %1", X, Y)


@pytest.mark.parametrize("count", ["int8", "uint8", "int64"])
@pytest.mark.parametrize("op", ["SHL", "SHR"])
def test_a_shift_counts_in_any_dtype(backend: TinygradBackend, op: str, count: str) -> None:
    counts = np.array([0, 1, 2, 7], count)
    agrees(backend, f"{param('int8')}\n{param(count, 1)}\n%2 = {op} %0, %1", A, counts)


def test_three_operands(backend: TinygradBackend) -> None:
    text = f"{param('int8')}\n{param('int8', 1)}\n%2 = CMPLT %0, %1\n%3 = WHERE %2, %0, %1"
    agrees(backend, text, A, B)
    agrees(backend, f"{param('int8')}\n{param('int8', 1)}\n%2 = MULACC %0, %1, %0", A, B)


@pytest.mark.parametrize("op", COMPOSED)
def test_it_says_of_which_ops_it_composes_others(
    backend: TinygradBackend, op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of integers and floats; NOT is of bools, and a LOAD has a gate."""
    dtype = dtypes.bool if op == "NOT" else dtypes.float32
    x, y, z = (uop.param(slot, (2,), dtype) for slot in range(3))
    gated = (x, y, uop.param(2, (2,), dtypes.bool))
    src = {"NEG": (x,), "NOT": (x,), "MULACC": (x, y, z), "LOAD": gated}.get(op, (x, y))
    language, made = Language(backend.tinygrad), list[str]()

    def node(name: str, *src: object, arg: object = None) -> object:
        made.append({"RECIPROCAL": "RECIP"}.get(name, name))
        return Language.node(language, name, *src, arg=arg)

    monkeypatch.setattr(language, "node", node)
    graph = Graph(language, lambda u: backend.tinygrad.Tensor.empty(2, dtype=u.dtype.name).uop)
    graph.translated([UOp(Op[op], *src, arg=LoadArg() if op == "LOAD" else None)])
    assert set(made) == set(COMPOSED[op])


def test_a_copy_with_a_gate_takes_the_other_value(backend: TinygradBackend) -> None:
    text = f"{param('int8')}\n{param('int8', 1)}\n%2 = CMPLT %0, %1\n%3 = LOAD %0, %1, %2"
    agrees(backend, text, A, B)


CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "words",
    [
        "PERMUTE %0 {order=(1,2,0)}",
        "FLIP %0 {flags=(true,false,true)}",
        "RESHAPE %0, [4,6]",
        "SHRINK %0, [1,0,2], [1,3,2]",
        "PAD %0, [1,0,2], [4,3,6] {fill=ZERO}",
        "INDEX %0, 1, 2",
        "REDUCE %0 {op=ADD, axes=(1,)}",
        "REDUCE %0 {op=MAX, axes=(0,2)}",
        "REDUCE %0 {op=ADD, axes=()}",
        "STACK %0, %0",
    ],
)
def test_movement(backend: TinygradBackend, words: str) -> None:
    agrees(backend, f"%0 = PARAM [2,3,4] {{slot=0, dtype=int32}}\n%1 = {words}", CUBE)


def test_axes_of_size_1_grow_in_place(backend: TinygradBackend) -> None:
    """A 3-cycle of sizes: a permutation used for its inverse would show."""
    text = "%0 = PARAM [1,3,1] {slot=0, dtype=int32}\n%1 = EXPAND %0, [2,3,4]"
    agrees(backend, text, np.array([5, 6, 7], np.int32).reshape(1, 3, 1))


def test_bits_pass_as_they_are(backend: TinygradBackend) -> None:
    """Storage goes in and out as bytes, of the dtypes that numpy has no name for too."""
    for name in ("bfloat16", "fp8e4m3", "fp8e5m2", "float16"):
        kind = DTYPES[name]
        first = DTYPES[name].encode(1.0)
        patterns = np.arange(first, first + 4, dtype=np.uint8 if kind.itemsize == 1 else np.uint16)
        text = f"%0 = PARAM [4] {{slot=0, dtype={name}}}\n%1 = BITCAST %0 {{dtype=uint{kind.bits}}}"
        (found,) = outputs(backend, text, patterns.view(STORAGE[name]))
        np.testing.assert_array_equal(found, patterns)


def test_several_outputs_and_each_batch(backend: TinygradBackend) -> None:
    text = f"{param('int8')}\n%1 = NEG %0\n%2 = TUPLE %0, %1"
    (found,) = backend.run([Program(text, ({0: A}, {0: B}))])
    assert isinstance(found, Outputs)
    for batch, given in zip(found.batches, (A, B), strict=True):
        np.testing.assert_array_equal(batch[0], given)
        np.testing.assert_array_equal(batch[1], -given)


def test_constants_alone_have_a_value(backend: TinygradBackend) -> None:
    text = "%0 = CONST {value=2, dtype=int32}\n%1 = CONST {value=3, dtype=int32}\n%2 = ADD %0, %1"
    (found,) = outputs(backend, text)
    assert (found.shape, found.item()) == ((), 5)


@pytest.mark.parametrize("words", ["NEG %0", "PAD %0, [0], [2] {fill=ZERO}"])
def test_no_elements(backend: TinygradBackend, words: str) -> None:
    text = f"%0 = PARAM [0] {{slot=0, dtype=int32}}\n%1 = {words}"
    agrees(backend, text, np.zeros(0, np.int32))


def test_a_buffer_is_stored_to(backend: TinygradBackend) -> None:
    text = "%0 = BUFFER [4] {slot=0, dtype=int8, addrspace=GLOBAL}\n"
    text += "%1 = PARAM [4] {slot=1, dtype=int8}\n%2 = STORE %0, %1\n%3 = SINK %2"
    found = backend.run([Program(text, ({1: A},))])[0]
    assert isinstance(found, Outputs)
    np.testing.assert_array_equal(found.batches[0][0], A)


def test_what_is_read_after_a_store_is_an_output_too(backend: TinygradBackend) -> None:
    text = (
        "%0 = BUFFER [4] {slot=0, dtype=int8}\n%1 = BUFFER [4] {slot=1, dtype=int8}\n"
        "%2 = PARAM [4] {slot=2, dtype=int8}\n%3 = STORE %1, %2\n%4 = AFTER %1, %3\n"
        "%5 = NEG %4\n%6 = STORE %0, %5\n%7 = SINK %6"
    )
    (found,) = backend.run([Program(text, ({2: A},))])
    assert isinstance(found, Outputs), found
    np.testing.assert_array_equal(found.batches[0][0], -A)
    np.testing.assert_array_equal(found.batches[0][1], A)


def test_a_function_is_called(backend: TinygradBackend) -> None:
    text = (
        "%0 = PARAM [4] {slot=0, dtype=int8}\n%1 = NEG %0\n%2 = TUPLE %1\n"
        "%3 = PARAM [4] {slot=1, dtype=int8}\n%4 = FUNCTION %2, %3\n%5 = GETTUPLE %4 {idx=0}"
    )
    found = backend.run([Program(text, ({1: A},))])[0]
    assert isinstance(found, Outputs)
    np.testing.assert_array_equal(found.batches[0][0], -A)


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


def test_problems_say_where_they_happened(
    backend: TinygradBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*args: object, **kwargs: object) -> None:
        raise RuntimeError("no")

    realize = import_module("tinygrad.engine.realize")
    for name, kind in (("run_linear", ProblemKind.TRAP), ("compile_linear", ProblemKind.COMPILE)):
        monkeypatch.setattr(realize, name, failing)
        backend.child.close()
        found = outcome(backend, f"{param('int8')}\n%1 = NEG %0", A)
        assert found == Problem(kind, "RuntimeError: no")
    monkeypatch.undo()
    backend.child.close()


def test_what_kernels_may_not_hold(backend: TinygradBackend) -> None:
    smallest = LOOP.replace("%4 {op=ADD}", "%4 {op=MIN}")
    refused(backend, smallest, "tinygrad's code generator folds by ADD, MUL and MAX over loops")
    warp = LOOP.replace("RANGE 4 {id=0}", "RANGE 4 {id=0, axis_type=WARP}")
    refused(backend, warp, "tinygrad makes the axes of a warp itself")
    shared = ITEMS.replace("addrspace=REG", "addrspace=LOCAL")
    refused(backend, shared, "tinygrad makes each memory of a work group of a kernel itself")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("%0 = PARAM [2] {slot=0, dtype=index}\n%1 = NEG %0", "integers of any size"),
        ("%0 = PARAM [2] {slot=0, dtype=int8}\n%1 = REDUCE %0 {op=MIN, axes=(0)}", "REDUCE by MIN"),
        ("%0 = CONST {value=nan:0x7fc00001, dtype=float32}\n%1 = NEG %0", "payload"),
        ("%0 = PARAM [2] {slot=0, dtype=int8}\n%1 = NOOP %0", "no NOOP"),
        ("%0 = PARAM [2] {slot=0, dtype=int8}\n%1 = SIN %0", "refused before"),
    ],
)
def test_what_cannot_be_said_is_no_failure(
    backend: TinygradBackend, text: str, reason: str
) -> None:
    found = outcome(backend, text, np.zeros(2, np.int8))
    assert isinstance(found, Problem)
    assert found.kind is ProblemKind.UNSUPPORTED
    assert reason in found.message


def param(dtype: str, slot: int = 0) -> str:
    return f"%{slot} = PARAM [4] {{slot={slot}, dtype={dtype}}}"


def agrees(backend: TinygradBackend, text: str, *inputs: Array) -> None:
    """The same bits as the reference, on inputs where no latitude plays."""
    (expected,) = InterpreterBackend().run([Program(text, (dict(enumerate(inputs)),))])
    assert isinstance(expected, Outputs), expected
    found = outputs(backend, text, *inputs)
    for a, b in zip(found, expected.batches[0], strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(to_bits(a), to_bits(b))


def started(name: str, folder: Path) -> Worker:
    try:
        return Worker(name, folder)
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
