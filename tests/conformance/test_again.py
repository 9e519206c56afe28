"""Backends that are right on what they get first: programs that are judged again show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import c_uint8
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.judging.judge import ALONE_PASSES
from uop.conformance.judging.judging import WHEN_AGAIN, Tasks
from uop.conformance.judging.verdict import Status
from uop.conformance.protocol.types import (
    Hello,
    Outcome,
    Outputs,
    Problem,
    ProblemKind,
    Program,
)
from uop.conformance.report.files import write_repros
from uop.conformance.report.html.page import page
from uop.conformance.report.model import PASSES_ANEW, Conclusion, Report
from uop.conformance.report.text import failure_lines
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.conformance.run.pool import Pool
from uop.conformance.run.replay import replay
from uop.conformance.run.selection import AGAIN, to_send_again
from uop.conformance.run.tasks import Judge, Judged, tasks_again, tasks_of
from uop.conformance.shrink.sequence import Sequences
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.suite.own_cases import OwnCases
from uop.conformance.workers.again import Again, on_other_data
from uop.conformance.workers.in_process import InProcess
from uop.conformance.workers.serve import BORDER, BORDERS, run
from uop.conformance.workers.transport import Local
from uop.interpreter.numeric.storage import Array
from uop.spec.args import DTypeArg
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp, const, param


def wrong(outcome: Outcome) -> Outcome:
    """An outcome whose first element differs in its first bit."""
    assert isinstance(outcome, Outputs)
    return Outputs(tuple(tuple(map(_wrong, outputs)) for outputs in outcome.batches))


def _wrong(array: Array) -> Array:
    data = array.copy()
    data.reshape(-1).view(np.uint8)[:1] ^= 1
    return data


class Small(InterpreterBackend):
    def hello(self) -> Hello:
        return replace(super().hello(), ops=frozenset({"PARAM", "CONST", "ADD", "MUL", "NEG"}))


class WrongAlone(Small):
    """A fault of the path of one program."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        return outcomes if len(programs) > 1 else list(map(wrong, outcomes))


class Remembering(Small):
    """A cache by program, which forgets that inputs differ."""

    def __init__(self) -> None:
        self.seen: dict[str, Outcome] = {}

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        return [self.seen.setdefault(p.text, o) for p, o in zip(programs, outcomes, strict=True)]


class RightOnce(Small):
    """A result that is wrong whenever its program was run before."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        for k, program in enumerate(programs):
            outcomes[k] = wrong(outcomes[k]) if program.text in self.seen else outcomes[k]
            self.seen.add(program.text)
        return outcomes


class InPlace(Small):
    """A backend that computes in the memory of its inputs."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        for program in programs:
            for batch in program.batches:
                for array in batch.values():
                    array.reshape(-1).view(np.uint8)[:1] ^= 1
        return outcomes


class Beyond(Small):
    """A backend whose result depends on the byte behind an input."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        return [
            wrong(o) if any(map(is_odd_behind, p.batches)) else o
            for p, o in zip(programs, outcomes, strict=True)
        ]


def is_odd_behind(batch: Mapping[int, Array]) -> bool:
    behind = (c_uint8.from_address(a.ctypes.data + a.nbytes) for a in batch.values() if a.size)
    return any(byte.value & 1 for byte in behind)


@pytest.mark.slow
@pytest.mark.parametrize("cheat", [WrongAlone, Remembering, RightOnce, InPlace, Beyond])
def test_a_cheat_does_not_conform(cheat: type[Small], tmp_path: Path) -> None:
    report = judged(cheat.__name__, tmp_path)
    assert report.conclusion is Conclusion.DOES_NOT
    assert report.failures


def judged(name: str, folder: Path) -> Report:
    """Judge as the command does, which starts the processes first."""
    options = options_for(name, folder)
    return conform(options, None, Pool.start(options))


def options_for(name: str, folder: Path) -> Options:
    return Options(
        f"test_again:{name}",
        profile="strict",
        dtypes=("int32",),
        levels=("op",),
        effort="smoke",
        workers=1,
        output=folder,
    )


class Recording(Local):
    """Keeps what it was sent."""

    def submit(self, programs: Sequence[Program]) -> None:
        self.sent = list(programs)
        super().submit(programs)


def test_a_program_is_sent_alone_with_its_batches_in_reverse() -> None:
    root = UOp(Op.ADD, param(0, (2,), dtypes.int32), param(0, (2,), dtypes.int32))
    inputs = [np.array([k, 7], np.int32) for k in range(3)]
    session = Recording(Small())
    again = Again(session)
    assert again.hello.limits.programs == 1 < session.hello.limits.programs
    again.submit([Program(print_program(root), tuple({0: a} for a in inputs))])
    assert [batch[0][0] for batch in session.sent[0].batches] == [2, 1, 0]
    (outcome,) = again.collect()
    assert isinstance(outcome, Outputs)
    for a, (output,) in zip(inputs, outcome.batches, strict=True):
        np.testing.assert_array_equal(output, a + a)


def test_a_case_is_sent_again_on_other_data_where_that_has_a_meaning() -> None:
    id, x = CaseId("op", "ADD", "int32", "test", 0), param(0, (3,), dtypes.int32)
    data = {0: np.array([5, 6, 7], np.int32)}
    _, other = on_other_data(Case(id, UOp(Op.NEG, x), (Batch(data),))).batches
    assert other.inputs[0].tolist() == [7, 5, 6]
    # The last element becomes the first, which is no index.
    first = UOp(Op.INDEX, x, const(0, dtypes.index))
    indexed = UOp(Op.INDEX, x, UOp(Op.CAST, first, arg=DTypeArg(dtypes.index)))
    case = Case(id, indexed, (Batch({0: np.array([1, 2, 9], np.int32)}),))
    assert on_other_data(case) is case
    case = Case(id, param(0, (1,), dtypes.int32), (Batch({0: np.array([1], np.int32)}),))
    assert on_other_data(case) is case


def test_a_program_that_is_wrong_alone_fails_when_it_is_judged_again() -> None:
    tasks = Tasks.of(Local(WrongAlone()), "wrong", "strict", 0, OwnCases())
    ids = tuple(f"op/{op}/int32/edges/0@2" for op in ("ADD", "MUL"))
    first, second = (tasks.answered(Judge(ids, again=how)) for how in ("", "alone"))
    assert isinstance(first, Judged)
    assert isinstance(second, Judged)
    assert {verdict.status for verdict in first.verdicts} == {Status.PASSED}
    for verdict in second.verdicts:
        assert verdict.failure is not None
        assert verdict.failure.again
        assert verdict.failure.message.startswith(WHEN_AGAIN)


class WrongAfterMUL(Small):
    """A fault that depends on the program before it in a call."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        for k in range(1, len(programs)):
            if "MUL" in programs[k - 1].text and "MUL" not in programs[k].text:
                outcomes[k] = wrong(outcomes[k])
        return outcomes


def test_programs_are_judged_again_in_other_company() -> None:
    tasks = Tasks.of(Local(WrongAfterMUL()), "wrong", "strict", 0, OwnCases())
    ids = [CaseId.parse(f"op/{op}/int32/edges/0@2") for op in ("ADD", "MUL")]
    *alone, other = (tasks.answered(task) for task in (*tasks_of(ids, 2), *tasks_again(ids)))
    for judged in alone:
        assert isinstance(judged, Judged)
        assert {verdict.status for verdict in judged.verdicts} == {Status.PASSED}
    assert isinstance(other, Judged)
    passed, failed = other.verdicts
    assert passed.status is Status.PASSED
    assert failed.failure is not None
    assert failed.failure.message.startswith(f"{WHEN_AGAIN}, together: {ALONE_PASSES}")
    assert not failed.failure.again


class WrongLater(Small):
    """Wrong whenever a program was run on the same data before."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, frozenset[bytes]]] = set()

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        for k, program in enumerate(programs):
            data = (b"".join(a.tobytes() for a in batch.values()) for batch in program.batches)
            key = program.text, frozenset(data)
            outcomes[k] = wrong(outcomes[k]) if key in self.seen else outcomes[k]
            self.seen.add(key)
        return outcomes


@pytest.mark.parametrize("backend", ["WrongLater", "WrongAlone"])
def test_a_run_fails_by_what_fails_again_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    options = options_for(backend, tmp_path)
    report = conform(options, pool=InProcess(options))
    assert report.conclusion is Conclusion.DOES_NOT
    assert any(WHEN_AGAIN in failure.message for failure in report.case_failures.values())


class Writing(InterpreterBackend):
    """Changes a byte of the memory around its input: `at` is counted from its first byte."""

    def __init__(self, at: int) -> None:
        self.at = at

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        c_uint8.from_address(programs[1].batches[1][0].ctypes.data + self.at).value ^= 1
        return outcomes


@pytest.mark.parametrize("at", [-BORDER, -1, 0, 7, 8, 7 + BORDER])
def test_who_changes_an_input_or_memory_beside_it_has_no_outputs(at: int) -> None:
    text = print_program(UOp(Op.NEG, param(0, (2,), dtypes.int32)))
    batch = {0: np.array([3, 4], np.int32)}
    outcomes = run(Writing(at), [Program(text, (batch, batch))] * 3, BORDERS[0])
    kinds = [o.kind if isinstance(o, Problem) else None for o in outcomes]
    assert kinds == [None, ProblemKind.PROTOCOL, None]


@pytest.mark.slow
def test_what_no_new_process_repeats_has_a_repro_that_runs_twice(tmp_path: Path) -> None:
    report = judged("RightOnce", tmp_path)
    assert report.summary.again > 0
    assert not any(failure.repeats for failure in report.failures)
    assert all(failure.after == (failure.id,) for failure in report.failures)
    write_repros(report.failures)
    for failure in report.failures:
        *before, last = replay([Path(failure.repro)], "test_again:RightOnce")
        assert last.verdict.status.is_failure
        assert not any(one.verdict.status.is_failure for one in before)
    report = judged("WrongAlone", tmp_path)
    assert all(failure.repeats for failure in report.failures)


@pytest.mark.slow
def test_what_no_sequence_repeats_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sequences, "of", lambda self, cause, before: cause)
    report = judged("RightOnce", tmp_path)
    lines = failure_lines(report)
    assert any(PASSES_ANEW in line for line in lines)
    for failure in report.failures:
        first = failure.values[0]
        assert failure.anew not in ("", first.got)
        both = (
            f"in the run: {first.place} is {first.got}; "
            f"in the new process: {first.place} is {failure.anew}"
        )
        assert both in failure.remarks
        assert f"{both[0].upper()}{both[1:]}." in page(report)
    assert any("in the new process: output 0[" in line for line in lines)


def test_the_seed_selects_what_is_judged_again() -> None:
    ids = [CaseId("op", op, "int32", "edges", k) for op in ("ADD", "MUL", "NEG") for k in range(30)]
    ids.append(CaseId("op", "ADD", "int32", "launches", 0))
    first = to_send_again(ids, "smoke", 0)
    assert first[0].group == "launches"
    assert len(to_send_again(ids, "full", 0)) == 4 <= AGAIN["smoke"]
    assert first != to_send_again(ids, "smoke", 1)
