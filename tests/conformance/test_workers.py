"""Backends in processes: what they do wrong is a result, and only of the program that caused it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from uop.conformance.backends import NoSuchBackendError, find, load, names
from uop.conformance.protocol.types import Outcome, Outputs, Problem, ProblemKind, Program
from uop.conformance.workers import transport
from uop.conformance.workers.processes import Workplace
from uop.conformance.workers.transport import LOSSES, Allowance, Worker
from uop.interpreter.numeric.storage import Array, np_dtype, to_bits
from uop.spec.dtype import dtypes
from uop.spec.errors import BackendError, ChangedError, UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp, param

QUICK = Allowance(batch_seconds=1.0, program_seconds=0.0, bytes=32 << 20)
SLOW = Allowance(batch_seconds=30.0, bytes=32 << 20)
DATA = np.array([0.0, 1.0, -2.5], np.float32)


def program(op: Op) -> Program:
    return Program(print_program(UOp(op, param(0, (3,), dtypes.float32))), ({0: DATA},))


FINE, CULPRIT = program(Op.TRUNC), program(Op.SIN)


@contextmanager
def started(name: str, folder: Path, allowance: Allowance = QUICK) -> Iterator[Worker]:
    worker = Worker(f"backends_for_tests:{name}", Workplace(folder), allowance)
    try:
        yield worker
    finally:
        worker.close()


def run(worker: Worker, *programs: Program) -> list[Outcome]:
    worker.submit(programs)
    return worker.collect()


def result(outcome: Outcome) -> Array:
    assert isinstance(outcome, Outputs), outcome
    return outcome.batches[0][0]


def test_arrays_of_every_dtype_survive_the_wire(tmp_path: Path) -> None:
    worker = Worker("interpreter", Workplace(tmp_path))
    bits = np.arange(256, dtype=np.uint8)
    try:
        for dtype in (dtypes.bool, dtypes.fp8e4m3, dtypes.bfloat16, dtypes.float64, dtypes.int16):
            a = (bits & 1 if dtype is dtypes.bool else bits).view(np_dtype(dtype))
            same = UOp(Op.CONTIGUOUS, param(0, a.shape, dtype))
            (outcome,) = run(worker, Program(print_program(same), ({0: a},)))
            back = result(outcome)
            assert back.dtype == a.dtype
            np.testing.assert_array_equal(to_bits(back), to_bits(a))
    finally:
        worker.close()


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("Crashing", ProblemKind.CRASH, "SIGSEGV"),
        ("Exiting", ProblemKind.CRASH, "exit code 7"),
        ("Hanging", ProblemKind.HANG, "1 s"),
        ("Leaking", ProblemKind.LEAK, "MiB"),
        ("Raising", ProblemKind.CRASH, "exit code 1: KeyError: 'boo'"),
        ("Told", ProblemKind.INTERNAL, r"esc \x1b[2J \ud800"),
        ("Confused", ProblemKind.PROTOCOL, "expected Outputs or a Problem, found NoneType"),
        ("Untyped", ProblemKind.PROTOCOL, "an output: expected a numpy array, found list"),
    ],
)
def test_only_the_culprit_in_a_batch_is_blamed(
    tmp_path: Path, name: str, kind: ProblemKind, said: str
) -> None:
    with started(name, tmp_path) as worker:
        outcomes = run(worker, FINE, CULPRIT, FINE)
        blamed = outcomes[1]
        assert isinstance(blamed, Problem)
        assert blamed.kind is kind
        assert said in blamed.message
        for place in (0, 2):
            np.testing.assert_array_equal(result(outcomes[place]), np.trunc(DATA))
        # The worker is there for the next batch.
        np.testing.assert_array_equal(result(run(worker, FINE)[0]), np.trunc(DATA))


def test_a_hang_among_many_programs_costs_a_timeout_together_and_some_alone(tmp_path: Path) -> None:
    """By halves it would be waited for at each of them."""
    begun = time.monotonic()
    with started("Hanging", tmp_path) as worker:
        outcomes = run(worker, *[FINE] * 5, CULPRIT, *[FINE] * 10)
        assert worker.starts == 3
        took = time.monotonic() - begun
    assert took >= (1 + LOSSES) * QUICK.batch_seconds
    assert [k for k, o in enumerate(outcomes) if isinstance(o, Problem)] == [5]


def test_what_a_backend_says_before_it_crashes_is_told(tmp_path: Path) -> None:
    with started("Crashing", tmp_path) as worker:
        (outcome,) = run(worker, CULPRIT)
    assert isinstance(outcome, Problem)
    assert "about to crash" in outcome.message


def test_a_crash_of_programs_together_is_counted_and_not_charged(tmp_path: Path) -> None:
    with started("CrashingTogether", tmp_path) as worker:
        for count in (1, 2):
            for outcome in run(worker, FINE, FINE):
                np.testing.assert_array_equal(result(outcome), np.trunc(DATA))
            assert worker.retried == count


@pytest.mark.parametrize("how", ["hangs", "exits", "killed", "leaks"])
def test_what_happens_once_is_not_charged(tmp_path: Path, how: str) -> None:
    with started(f"Once:{how}={tmp_path / 'done'}", tmp_path) as worker:
        assert isinstance(run(worker, FINE, CULPRIT, FINE)[1], Outputs)
        assert (worker.retried, worker.starts) == (1, 2)


@pytest.mark.parametrize("count", [LOSSES - 1, LOSSES])
def test_what_happens_alone_twice_again_is_charged(tmp_path: Path, count: int) -> None:
    with started(f"Once:exits={tmp_path / 'done'}={count}", tmp_path) as worker:
        (outcome,) = run(worker, CULPRIT)
    assert isinstance(outcome, Problem) == (count == LOSSES)


@pytest.mark.parametrize(
    ("grows", "kind", "said"),
    [
        (False, ProblemKind.CRASH, "SIGKILL"),
        (True, ProblemKind.KILLED, "killed the process 4 times, as no memory was left"),
    ],
    ids=["by itself", "by the system"],
)
def test_a_process_that_is_always_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grows: bool, kind: ProblemKind, said: str
) -> None:
    counts = iter(range(100))
    monkeypatch.setattr(transport, "kills", lambda: next(counts) if grows else 0)
    with started(f"Once:killed={tmp_path / 'done'}=99", tmp_path) as worker:
        outcomes = run(worker, FINE, CULPRIT, FINE)
    blamed = outcomes[1]
    assert isinstance(blamed, Problem)
    assert (blamed.kind, said in blamed.message) == (kind, True)
    assert isinstance(outcomes[2], Outputs)


def test_a_process_that_is_killed_at_its_start_is_started_again(tmp_path: Path) -> None:
    with started(f"Once:killed-first={tmp_path / 'done'}", tmp_path) as worker:
        assert isinstance(run(worker, FINE)[0], Outputs)


def test_a_backend_that_is_another_one_after_a_restart_ends_the_run(tmp_path: Path) -> None:
    said = "after a restart: expected Once 1 on test, found Once 1 on another device"
    with (
        started(f"Once:changes={tmp_path / 'done'}=99", tmp_path) as worker,
        pytest.raises(ChangedError, match=said),
    ):
        run(worker, CULPRIT)


def test_memory_that_is_taken_while_a_program_runs_ends_it(tmp_path: Path) -> None:
    with started(f"Once:takes={tmp_path / 'done'}=99", tmp_path, SLOW) as worker:
        (outcome,) = run(worker, CULPRIT)
    assert isinstance(outcome, Problem)
    assert outcome.kind is ProblemKind.LEAK
    assert "MiB more than before" in outcome.message


def test_output_of_a_driver_does_not_disturb_the_frames(tmp_path: Path) -> None:
    with started("Chattering", tmp_path) as worker:
        rounded = np.sin(DATA.astype(np.float64)).astype(np.float32)
        np.testing.assert_array_equal(result(run(worker, CULPRIT)[0]), rounded)


def test_a_backend_that_is_lost_too_often_ends_the_run(tmp_path: Path) -> None:
    allowance = Allowance(batch_seconds=5.0, restarts=2)
    with started("Exiting", tmp_path, allowance) as worker:
        run(worker, CULPRIT)
        run(worker, CULPRIT)
        with pytest.raises(BackendError, match="lost 3 times"):
            run(worker, CULPRIT)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Missing", "pip install driver"),
        ("DeadAtStart", "exit code 1"),
        ("UnknownKnob", "hello: profile: expected known knobs"),
        ("NoHello", "hello: expected a Hello, found dict"),
        ("Saying:no-limits", "hello: limits: expected Limits, found NoneType"),
        ("Saying:no-programs", "hello: limits: programs: expected a number from 1 to .* found 0"),
        ("Saying:word-programs", "hello: limits: programs: expected a number from 1 .* found x"),
        ("Saying:negative-elements", "hello: limits: elements: expected a number .* found -1"),
        ("Saying:most-programs", "hello: limits: programs: expected a .*, found 1180591620717"),
        ("Saying:number-op", "hello: ops: expected a list of names, found .*5"),
        ("Saying:no-dtypes", "hello: dtypes: expected a list of names, found null"),
        ("Saying:one-edition", "hello: editions: expected a list of names, found core"),
        ("Saying:number-profile", "hello: profile: expected a string, found 7"),
        ("Saying:red-profile", r"hello: profile: expected .*, found .\\u001b\[31m=1"),
    ],
)
def test_a_backend_that_does_not_start_says_why(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(BackendError, match=said), started(name, tmp_path):
        pass


def test_a_module_that_cannot_be_imported_says_so(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="no_such_module"):
        Worker("no_such_module:Backend", Workplace(tmp_path))


def test_a_backend_in_the_current_folder_needs_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "from uop.conformance.backends.interpreter import InterpreterBackend as Mine\n"
    )
    monkeypatch.chdir(tmp_path)
    worker = Worker("mine:Mine", Workplace(tmp_path / "scratch"))
    worker.close()
    assert worker.hello.name == "interpreter"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(NoSuchBackendError) as error:
        find("nonsense")
    for name in names():
        assert name in str(error.value)


@pytest.mark.parametrize("name", [":x", "mine:", "mine::x", "a-b:C", ""])
def test_what_names_no_class_is_no_backend(name: str) -> None:
    with pytest.raises(NoSuchBackendError, match="no backend"):
        find(name)


def test_a_package_adds_backends_and_replaces_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = "mine = interpreter:Mine\nopencl = interpreter:Mine\nmodule = json\n"
    folder = tmp_path / "mine-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[uop.backends]\n{named}")
    own = find("opencl")
    monkeypatch.syspath_prepend(tmp_path)
    assert (find("opencl"), find("mine")[0].value) == (own, "interpreter:Mine")
    assert names().count("opencl") == 1
    with pytest.raises(UnsupportedError, match="json is not a class"):
        load("module")


def test_the_shipped_backends_are_registered() -> None:
    assert set(names()) >= {"adversary", "interpreter", "opencl"}


def test_close_ends_the_process(tmp_path: Path) -> None:
    worker = Worker("interpreter", Workplace(tmp_path))
    process = worker.process.popen
    worker.close()
    assert process.returncode is not None
