"""Executables as backends: whatever a worker does wrong is named, and costs one program."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from uop.conformance.backends import NoSuchBackendError
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind, Program
from uop.conformance.workers.command import Command, command_of
from uop.conformance.workers.processes import Workplace
from uop.conformance.workers.sessions import start
from uop.conformance.workers.transport import Allowance
from uop.conformance.workers.watch import tree_of
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import dtypes
from uop.spec.errors import BackendError
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp, param

WORKER = Path(__file__).parent / "worker_for_tests.py"
QUICK = Allowance(start_seconds=5.0, batch_seconds=0.8, program_seconds=0.0)
PATIENT = Allowance(start_seconds=30.0, batch_seconds=30.0, program_seconds=0.0)
SMALL = Allowance(start_seconds=5.0, bytes=32 << 20)
A, B = np.array([0.0, 1.0, -2.5], np.float32), np.array([1.0, 2.0, 4.0], np.float32)


def name_of(fault: str) -> str:
    return f"command:'{sys.executable}' -I -S '{WORKER}' {fault}"


def program(op: Op) -> Program:
    x, y = (param(slot, (3,), dtypes.float32) for slot in (0, 1))
    return Program(print_program(UOp(op, x, y)), ({0: A, 1: B},))


FINE, CULPRIT = program(Op.ADD), program(Op.MUL)


@contextmanager
def started(fault: str, folder: Path, allowance: Allowance = QUICK) -> Iterator[Command]:
    worker = Command(name_of(fault), Workplace(folder), allowance)
    try:
        yield worker
    finally:
        worker.close()


def run(worker: Command, *programs: Program) -> list[Outcome]:
    worker.submit(programs)
    return worker.collect()


def result(outcome: Outcome) -> Array:
    assert isinstance(outcome, Outputs), outcome
    return outcome.batches[0][0]


def is_there(pid: int) -> bool:
    """Whether a process runs: one that has ended may wait for somebody to ask how."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def problem(fault: str, folder: Path, allowance: Allowance = QUICK) -> Problem:
    """What the culprit is told; the programs before and after it run as they should."""
    with started(fault, folder, allowance) as worker:
        before, blamed, after = run(worker, FINE, CULPRIT, FINE)
    for outcome in (before, after):
        np.testing.assert_array_equal(result(outcome), A + B)
    assert isinstance(blamed, Problem)
    return blamed


def test_a_worker_runs_programs(tmp_path: Path) -> None:
    with started("none", tmp_path) as worker:
        outcomes = run(worker, FINE, CULPRIT)
    np.testing.assert_array_equal(result(outcomes[0]), A + B)
    np.testing.assert_array_equal(result(outcomes[1]), A * B)
    assert worker.hello.name == "faulty"
    assert worker.hello.forms == {"tensor"}
    assert worker.hello.editions == ("core",)
    assert worker.peak > 1 << 20


@pytest.mark.sampled(33)
@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("silent", ProblemKind.HANG, "no reply within 0.8 s"),
        ("half", ProblemKind.HANG, 'only half a line: \'{"id": '),
        ("no-newline", ProblemKind.HANG, "the line has no newline at its end"),
        ("half-and-exit", ProblemKind.CRASH, 'exit code 0 after half a line: \'{"id": '),
        ("endless", ProblemKind.PROTOCOL, "bytes without a reply"),
        ("loud-hang", ProblemKind.HANG, "still busy"),
        ("crash", ProblemKind.CRASH, "SIGSEGV; stderr: about to crash"),
        ("exit", ProblemKind.CRASH, "exit code 7"),
        ("child", ProblemKind.CRASH, "exit code 5"),
        ("children", ProblemKind.HANG, "no reply within 0.8 s"),
        ("too-many-bytes", ProblemKind.PROTOCOL, "data: expected 12 bytes for float32[3]"),
        ("odd-hex", ProblemKind.PROTOCOL, "data: expected bytes in hex, found 0"),
        ("number-as-data", ProblemKind.PROTOCOL, "data: expected bytes in hex, found 7"),
        ("bad-bool", ProblemKind.PROTOCOL, "expected bytes 0 and 1 for bool, found 7"),
        ("unknown-result", ProblemKind.PROTOCOL, "dtype: expected one of bool, "),
        ("negative-shape", ProblemKind.PROTOCOL, "expected a list of sizes that an array has"),
        ("many-axes", ProblemKind.PROTOCOL, "expected a list of sizes that an array has, found [1"),
        ("empty-and-large", ProblemKind.PROTOCOL, "found [0, 1000000000000000000000000000000]"),
        ("long-sizes", ProblemKind.PROTOCOL, "list of sizes that an array has, found [1000"),
        ("no-outputs", ProblemKind.PROTOCOL, "expected outputs or an error"),
        ("flat-outputs", ProblemKind.PROTOCOL, "outputs[0]: expected a list of arrays, found 7"),
        ("number-outputs", ProblemKind.PROTOCOL, "outputs[0][0]: expected an object"),
        ("two-sets", ProblemKind.PROTOCOL, "expected a list for each of 1 sets of inputs, found 2"),
        ("stray-file", ProblemKind.PROTOCOL, "file: expected a file in"),
        ("unsupported", ProblemKind.UNSUPPORTED, "no MUL here"),
        ("trap", ProblemKind.TRAP, "trapped"),
        ("compile", ProblemKind.COMPILE, "does not build"),
        ("unknown-class", ProblemKind.PROTOCOL, "class: expected one of unsupported, invalid"),
        ("error-no-object", ProblemKind.PROTOCOL, "error: expected an object, found later"),
        ("list-as-dtype", ProblemKind.PROTOCOL, "dtype: expected one of bool, "),
        ("object-as-outputs", ProblemKind.PROTOCOL, "outputs: expected a list for each set of"),
        ("file-without-name", ProblemKind.PROTOCOL, "file: expected a file in"),
        ("file-with-nul", ProblemKind.PROTOCOL, "file: expected a file in"),
        ("file-of-long-name", ProblemKind.PROTOCOL, "file: expected a file in"),
        ("escapes", ProblemKind.INTERNAL, "\\x1b[2J \\ud800 \\x00"),
        ("complains", ProblemKind.COMPILE, "does not build; stderr: line 3: expected ';'"),
        ("text-as-id", ProblemKind.PROTOCOL, 'reply: expected the id 2, found the id "2"'),
        ("without-id", ProblemKind.PROTOCOL, "reply: expected the id 2, found no id"),
        ("no-utf-8", ProblemKind.PROTOCOL, "reply: expected a line of JSON, found"),
        ("bom", ProblemKind.PROTOCOL, "Unexpected UTF-8 BOM"),
        ("utf-16", ProblemKind.PROTOCOL, "reply: expected a line of JSON, found"),
        ("deep-reply", ProblemKind.PROTOCOL, "reply: expected a line of JSON, found"),
        ("long-integer", ProblemKind.PROTOCOL, "reply: expected a line of JSON, found"),
        ("cut-reply", ProblemKind.PROTOCOL, "reply: expected a line of JSON, found"),
        ("newlines", ProblemKind.PROTOCOL, "more than 10000 lines without a reply"),
        ("closed-stdout", ProblemKind.CRASH, "closed its pipe"),
        ("late", ProblemKind.HANG, "no reply within 0.8 s, but one came a little later"),
    ],
)
def test_only_the_culprit_is_blamed(
    tmp_path: Path, fault: str, kind: ProblemKind, said: str
) -> None:
    blamed = problem(fault, tmp_path)
    assert blamed.kind is kind
    assert said in blamed.message


def test_lines_without_end_are_bounded(tmp_path: Path) -> None:
    assert "without a reply" in problem("blank-lines", tmp_path, PATIENT).message


@pytest.mark.parametrize(
    ("fault", "said"),
    [("leak", "at most 32 MiB more are allowed"), ("leak-in-child", "2 processes hold")],
)
def test_memory_is_bounded(tmp_path: Path, fault: str, said: str) -> None:
    blamed = problem(fault, tmp_path, SMALL)
    assert blamed.kind is ProblemKind.LEAK
    assert said in blamed.message


@pytest.mark.parametrize(("fault", "shape"), [("wrong-shape", (2,)), ("wrong-dtype", (3,))])
def test_another_shape_or_dtype_is_left_to_the_comparison(
    tmp_path: Path, fault: str, shape: tuple[int, ...]
) -> None:
    with started(fault, tmp_path) as worker:
        assert result(run(worker, CULPRIT)[0]).shape == shape


def test_lines_that_are_no_replies_are_shown_and_skipped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with started("garbage", tmp_path) as worker:
        np.testing.assert_array_equal(result(run(worker, CULPRIT)[0]), A * B)
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 3
    assert "'loading...'" in told[0]
    assert "12345" in told[2]


def test_a_full_stderr_stops_nothing(tmp_path: Path) -> None:
    with started("loud", tmp_path) as worker:
        np.testing.assert_array_equal(result(run(worker, CULPRIT)[0]), A * B)
        assert len(worker.process.stderr_text) < 1 << 16


@pytest.mark.slow
def test_nothing_that_a_worker_started_survives_it(tmp_path: Path) -> None:
    with started("children", tmp_path) as worker:
        leader = worker.process.process.pid
        run(worker, CULPRIT)
        assert tree_of(leader) == set()


@pytest.mark.parametrize("fault", ["daemon", "daemon-of-no-environment"])
def test_not_even_what_has_left_its_session_its_parent_and_its_environment(
    tmp_path: Path, fault: str
) -> None:
    with started(fault, tmp_path) as worker:
        blamed = run(worker, CULPRIT)[0]
        assert isinstance(blamed, Problem)
        daemon = int(blamed.message.rpartition("daemon ")[2])
        assert not is_there(daemon)


@pytest.mark.skipif(sys.platform != "linux", reason="needs the system to keep orphans together")
def test_nor_what_leaves_them_and_goes_on(tmp_path: Path) -> None:
    """The worker stays: its daemon ends when it does."""
    with started("daemon-beside", tmp_path) as worker:
        np.testing.assert_array_equal(result(run(worker, CULPRIT)[0]), A * B)
        daemon = int(bytes(worker.process.stderr_text).rpartition(b"daemon ")[2])
        assert is_there(daemon)
    assert not is_there(daemon)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("exit-at-start", "exit code 1; stderr: no device"),
        ("mute", "no reply within 1 s"),
        ("unflushed", "it does not flush stdout after each line"),
        ("other-protocol", "hello: protocol: expected 1, found 2"),
        ("protocol-as-text", 'hello: protocol: expected 1, found "1"'),
        ("protocol-as-truth", "hello: protocol: expected 1, found true"),
        ("unknown-op", "hello: ops: expected names that `uop explain` knows, found FROBNICATE"),
        ("unknown-dtype", "hello: dtypes: expected some of bool, .*, found float33"),
        ("unknown-edition", "hello: editions: expected some of core, .*, found 1999-01"),
        (
            "unknown-form",
            "hello: forms: expected some of tensor, .*, found spiral",
        ),
        ("unknown-offer", "hello: offers: expected some of check, .*, found coffee"),
        ("unknown-knob", "hello: profile: expected known knobs .*, found whatever"),
        ("ops-no-list", "hello: ops: expected a list of names, found ADD"),
        ("no-name", "hello: name: expected a string, found null"),
        ("empty-name", 'hello: name: expected 1 to 200 printable characters, found ""'),
        ("empty-device", 'hello: device: expected 1 to 200 printable characters, found ""'),
        ("red-name", r"hello: name: expected 1 to 200 printable characters, found ..u001b.31mred"),
        ("long-name", "hello: name: expected 1 to 200 printable characters, found xxx"),
        ("no-forms", "hello: forms: expected at least one, found none"),
        ("no-editions", "hello: editions: expected at least one, found none"),
        ("negative-limit", "hello: limits: elements: expected a number from 0 to .* found -1"),
    ],
)
def test_a_worker_that_does_not_start_says_why(tmp_path: Path, fault: str, said: str) -> None:
    slow = Allowance(start_seconds=1.0)
    with pytest.raises(BackendError, match=f"(?s)did not start: .*{said}"):
        Command(name_of(fault), Workplace(tmp_path), slow)


def test_a_worker_that_is_lost_too_often_ends_the_run(tmp_path: Path) -> None:
    allowance = Allowance(batch_seconds=5.0, restarts=2)
    with started("exit", tmp_path, allowance) as worker:
        run(worker, CULPRIT, CULPRIT)
        with pytest.raises(BackendError, match="lost 3 times"):
            run(worker, CULPRIT)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("command:", "expected command:PROGRAM"),
        ("command:./worker 'half", "No closing quotation"),
    ],
)
def test_a_command_is_a_line_of_words(name: str, said: str) -> None:
    with pytest.raises(NoSuchBackendError, match=said):
        command_of(name)


def test_a_missing_program_says_so(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="no-such-worker: No such file"):
        start("command:./no-such-worker", Workplace(tmp_path))


def test_a_file_that_is_no_program_says_so(tmp_path: Path) -> None:
    shutil.copy(WORKER, tmp_path / "worker")
    with pytest.raises(BackendError, match="Permission denied"):
        start(f"command:{tmp_path}/worker", Workplace(tmp_path))
