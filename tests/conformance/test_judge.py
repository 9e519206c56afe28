"""The judge looks at every batch and output of every program, and at how a backend fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest

from uop.conformance.backends.interpreter import InterpreterBackend, is_sharded
from uop.conformance.judging.judge import ALONE_PASSES, CONFIRMED, MEASURED, SENT, Judge
from uop.conformance.judging.lowering import not_listed
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.protocol.types import (
    LOST,
    Hello,
    Limits,
    Outcome,
    Outputs,
    Problem,
    ProblemKind,
    Program,
)
from uop.conformance.suite.case import Batch, Case, CaseId, Twin
from uop.conformance.suite.generate import cases
from uop.conformance.workers.transport import Local
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import dtypes
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param

X = param(0, (3,), dtypes.int32)
BATCHES = tuple(Batch({0: np.array([k, 5, 9], np.int32)}) for k in range(3))
TRIPLE, PLUS = (UOp(op, X, const(3, dtypes.int32)) for op in (Op.MUL, Op.ADD))
Change = Callable[[Array], Array]


def case(root: UOp, index: int = 0, twins: tuple[Twin, ...] = ()) -> Case:
    return Case(CaseId("graph", "MIXED", "int32", "random", index), root, BATCHES, None, twins)


CASES = [case(UOp(Op.ADD, X, const(k, dtypes.int32)), k) for k in range(5)]


class Limited(InterpreterBackend):
    """The interpreter, with limits and a fault."""

    def __init__(self, fault: Callable[[list[Outcome]], None], limits: Limits) -> None:
        self.fault, self.limits = fault, limits

    def hello(self) -> Hello:
        return replace(super().hello(), limits=self.limits)

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        self.fault(outcomes)
        return outcomes


def changed(outcome: Outcome, batch: int, output: int, change: Change) -> Outcome:
    assert isinstance(outcome, Outputs)
    batches = [list(outputs) for outputs in outcome.batches]
    batches[batch][output] = change(batches[batch][output])
    return Outputs(tuple(map(tuple, batches)))


def flipped(array: Array) -> Array:
    return ~array


def judged(fault: Callable[[list[Outcome]], None], *cases: Case, **limits: int) -> list[Verdict]:
    return Judge(Local(Limited(fault, Limits(**limits))), STRICT).judge(cases)


@pytest.mark.parametrize("culprit", range(len(CASES)))
def test_each_program_is_judged_by_its_own_outcome(culprit: int) -> None:
    """Two programs in a call; the first element of the first batch names the program."""

    def fault(outcomes: list[Outcome]) -> None:
        for k, outcome in enumerate(outcomes):
            assert isinstance(outcome, Outputs)
            if outcome.batches[0][0][0] == culprit:
                outcomes[k] = changed(outcome, 0, 0, flipped)

    failed = [v.status is Status.FAILED for v in judged(fault, *CASES, programs=2)]
    assert failed == [k == culprit for k in range(len(CASES))]


@pytest.mark.parametrize("change", [flipped, lambda a: a.view(np.uint32), lambda a: a[None]])
@pytest.mark.parametrize("output", range(2))
@pytest.mark.parametrize("batch", range(len(BATCHES)))
def test_each_output_of_each_batch_is_looked_at(batch: int, output: int, change: Change) -> None:
    """Its values, its dtype and its shape."""

    def fault(outcomes: list[Outcome]) -> None:
        outcomes[0] = changed(outcomes[0], batch, output, change)

    (verdict,) = judged(fault, case(UOp(Op.TUPLE, TRIPLE, PLUS)))
    assert verdict.failure is not None
    assert (verdict.failure.batch, verdict.failure.output) == (batch, output)


def test_a_batch_without_outputs_fails() -> None:
    def fault(outcomes: list[Outcome]) -> None:
        assert isinstance(outcomes[0], Outputs)
        outcomes[0] = Outputs(outcomes[0].batches[:-1])

    (verdict,) = judged(fault, case(PLUS))
    assert verdict.status is Status.FAILED


@pytest.mark.parametrize("kind", ProblemKind)
def test_only_what_is_unsupported_is_skipped(kind: ProblemKind) -> None:
    def fault(outcomes: list[Outcome]) -> None:
        outcomes[0] = Problem(kind, "why")

    (verdict,) = judged(fault, case(PLUS))
    others = Status.CRASHED if kind in LOST else Status.FAILED
    is_excused = kind in (ProblemKind.ADAPTER, ProblemKind.OURS, ProblemKind.KILLED)
    is_skipped = is_excused or kind is ProblemKind.UNSUPPORTED
    assert verdict.status is (Status.SKIPPED if is_skipped else others)
    assert verdict.unjudged == ("why" if is_excused else "")


def test_a_failure_that_passes_alone_is_a_failure() -> None:
    def fault(outcomes: list[Outcome]) -> None:
        if len(outcomes) > 1:
            outcomes[:] = [changed(outcome, 0, 0, flipped) for outcome in outcomes]

    many = [case(UOp(Op.ADD, X, const(k, dtypes.int32)), k) for k in range(CONFIRMED + 2)]
    verdicts = judged(fault, *many)
    assert {v.status for v in verdicts} == {Status.FAILED}
    messages = [v.failure.message for v in verdicts if v.failure is not None]
    alone = [message.startswith(ALONE_PASSES) for message in messages]
    assert alone == [k < CONFIRMED for k in range(len(many))]


def test_a_twin_is_judged_by_what_the_case_means() -> None:
    same, other = (Twin("other", root, BATCHES) for root in (PLUS, TRIPLE))
    right, wrong = judged(lambda outcomes: None, case(PLUS, 0, (same,)), case(PLUS, 1, (other,)))
    assert right.status is Status.PASSED
    assert wrong.failure is not None
    assert wrong.failure.program == 1


def test_a_value_of_the_most_elements_is_judged() -> None:
    for elements, status in ((3, Status.PASSED), (2, Status.SKIPPED)):
        (verdict,) = judged(lambda outcomes: None, case(PLUS), elements=elements)
        assert verdict.status is status


SINE = UOp(Op.SIN, param(0, (3,), dtypes.float32))
SINES = [
    Case(
        CaseId("graph", "MIXED", "float32", "random", k),
        SINE,
        (Batch({0: np.array([k, 0.5, 2], np.float32)}),),
    )
    for k in range(5, 8)
]


@pytest.mark.parametrize(
    ("ulps", "passes", "measured"), [(0, True, 0), (1, True, 3), (1 << 12, False, 3)]
)
def test_sets_are_computed_where_a_result_is_not_the_reference(
    ulps: int, passes: bool, measured: int
) -> None:
    def fault(outcomes: list[Outcome]) -> None:
        for k, outcome in enumerate(outcomes):
            outcomes[k] = changed(outcome, 0, 0, lambda a: (a.view(np.int32) + ulps).view(a.dtype))

    verdicts = judged(fault, *SINES)
    assert [v.status is Status.PASSED for v in verdicts] == [passes] * len(SINES)
    assert [v.counts.measured for v in verdicts] == [measured] * len(SINES)


def test_the_sets_of_some_cases_are_always_computed() -> None:
    cases = [case(X, k) for k in range(64)]
    measured = [v.counts.measured for v in judged(lambda _: None, *cases)]
    assert measured == [9 * (crc32(str(c.id).encode()) % MEASURED == 0) for c in cases]
    assert 0 < measured.count(9) < 16


def test_a_case_of_void_needs_no_dtype() -> None:
    hello = replace(InterpreterBackend().hello(), dtypes=frozenset({"int32"}))
    assert not not_listed(CaseId("op", "SINK", "void", "hand", 0), hello)
    assert not_listed(CaseId("op", "ADD", "int8", "hand", 0), hello)


class Counted(InterpreterBackend):
    """Counts the programs that it gets."""

    def __init__(self) -> None:
        self.count = 0

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        self.count += len(programs)
        return super().run(programs)


def test_the_interpreter_gets_few_of_the_programs_that_it_gives_the_reference_of() -> None:
    every = [case for case in cases(effort="smoke") if isinstance(case, Case)][::9]
    programs = [program for case in every for program in case.programs]
    others = [p for p in programs if p.source is not None or is_sharded(p.root)]
    sent = [p for p in programs if p not in others and p.id.part(SENT) == 0]
    assert others
    assert sent
    for is_interpreter, expected in ((True, len(others) + len(sent)), (False, len(programs))):
        backend = Counted()
        judge = Judge(Local(backend), STRICT)
        judge.interpreter = judge.session if is_interpreter else None
        assert {verdict.status for verdict in judge.judge(every)} == {Status.PASSED}
        assert backend.count == expected
