"""tinygrad as a backend: what is said to it, what it cannot be told, and that both are seen."""

from __future__ import annotations

import os
import signal
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points

import numpy as np
import pytest

from uop.conformance.backends import GROUP, tinygrad_library
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.backends.tinygrad import TinygradBackend
from uop.conformance.backends.tinygrad_graph import COMPOSED, Graph
from uop.conformance.backends.tinygrad_library import Language
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind, Program
from uop.interpreter.numeric.storage import STORAGE, Array, to_bits
from uop.spec import uop
from uop.spec.args import LoadArg
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

pytest.importorskip("tinygrad", reason="needs the extra tinygrad")

pytestmark = pytest.mark.slow


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

    monkeypatch.setattr(tinygrad_library, "import_module", missing)
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
    tinygrad = import_module("tinygrad")
    language, made = Language(tinygrad, "PYTHON"), list[str]()

    def node(name: str, *src: object, arg: object = None) -> object:
        made.append({"RECIPROCAL": "RECIP"}.get(name, name))
        return Language.node(language, name, *src, arg=arg)

    monkeypatch.setattr(language, "node", node)
    empty = partial(tinygrad.Tensor.empty, 2, device="PYTHON")
    graph = Graph(language, lambda u: empty(dtype=u.dtype.name).uop)
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
