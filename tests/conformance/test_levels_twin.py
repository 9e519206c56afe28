"""Twins say what their case says: the reference agrees, who prefers one form does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uop.conformance.backends.adversary import AdversaryBackend
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import SETTLED, Judge
from uop.conformance.judging.verdict import Status
from uop.conformance.protocol.types import Outcome, Outputs, Program
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.strategies import HypothesisChoices
from uop.conformance.suite import generate, values
from uop.conformance.suite.case import Batch, Case, CaseId, Twin
from uop.conformance.suite.levels.graph import twins as twin
from uop.conformance.suite.levels.graph.random_graph import FLAVOURS
from uop.conformance.workers.transport import Local
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import to_bits
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param


def of_kind(kind: str) -> list[Case]:
    """A case for each flavour and dtype."""
    groups = [g for g in generate.groups("twin") if g.name.endswith(kind)]
    cases = [g.case(0, 0) for g in groups]
    assert all(isinstance(c, Case) for c in cases)
    return cases  # type: ignore[return-value]


@pytest.mark.parametrize("backend", [InterpreterBackend(), AdversaryBackend()])
def test_who_takes_the_liberties_of_the_spec_is_not_accused(
    backend: InterpreterBackend | AdversaryBackend,
) -> None:
    cases = [c for kind, *_ in twin.KINDS for c in of_kind(f"-{kind}")[::4]]
    verdicts = Judge(Local(backend), STRICT).judge(cases)
    assert [v.failure for v in verdicts if v.status is not Status.PASSED] == []


def test_a_twin_of_each_kind_is_another_program() -> None:
    for kind, *_ in twin.KINDS:
        twins = [t for c in of_kind(f"-{kind}") for t in c.twins if t.root is not c.root]
        assert twins, kind


def test_a_value_in_memory_is_the_only_difference() -> None:
    (case, *_) = of_kind("-copied")
    for one in case.twins[:-1]:
        ops = [[u.op for u in root.toposort()] for root in (case.root, one.root)]
        assert ops[1].count(Op.CONTIGUOUS) == ops[0].count(Op.CONTIGUOUS) + 1


def test_constants_need_no_input() -> None:
    for case in of_kind("-constants"):
        whole = case.twins[-1]
        assert all(u.op is not Op.PARAM for u in whole.root.toposort() if not u.tag) or any(
            u.op is Op.FUNCTION for u in whole.root.toposort()
        )
        assert len(whole.batches[0].inputs) < len(case.batches[0].inputs)


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d is not dtypes.void])
def test_a_literal_has_the_bits_of_the_data(dtype: object) -> None:
    for shape in ((), (3,), (2, 3), (4, 5)):
        n = int(np.prod(shape))
        data = values.draw_special(dtype, n, 7).reshape(shape)  # type: ignore[arg-type]
        made = evaluate(twin.literal(data, dtype))  # type: ignore[arg-type]
        assert isinstance(made, np.ndarray)
        assert made.shape == shape
        assert (to_bits(made) == to_bits(data)).all()


X = param(0, (3,), dtypes.int8)
SUM = UOp(Op.ADD, X, const(100, dtypes.int8))
WIDE = UOp(Op.CMPLT, SUM, const(100, dtypes.int8))
SPLIT = UOp(Op.CMPLT, UOp(Op.CONTIGUOUS, SUM), const(100, dtypes.int8))
GIVEN = (Batch({0: np.array([1, 27, 28], np.int8)}),)


def case_of(root: UOp, *twins: Twin, batches: tuple[Batch, ...] = GIVEN) -> Case:
    return Case(CaseId("twin", "MIXED", "int8", "test", 0), root, batches, twins=twins)


class Changing(InterpreterBackend):
    """The other answer in the second element, where a text is in the program."""

    def __init__(self, text: str) -> None:
        self.text = text

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [
            self._changed(outcome) if self.text in program.text else outcome
            for program, outcome in zip(programs, super().run(programs), strict=True)
        ]

    def _changed(self, outcome: Outcome) -> Outcome:
        assert isinstance(outcome, Outputs)
        for (output,) in outcome.batches:
            output[1:2] = output[1:2] == 0
        return outcome


def test_a_twin_that_differs_is_reported_with_both_values() -> None:
    judge = Judge(Local(Changing("CONTIGUOUS")), STRICT)
    case = case_of(WIDE, Twin("with ADD in memory", SPLIT, GIVEN))
    (verdict,) = judge.judge([case])
    assert verdict.status is Status.FAILED
    assert verdict.failure is not None
    assert verdict.failure.program == 1
    assert verdict.failure.message == (
        "with ADD in memory: output 0[1] is true, accepted false; otherwise it is false"
    )
    finding = find_cause(judge, Failing(case, verdict.failure))
    assert "CONTIGUOUS" in finding.ops


def test_a_case_that_fails_itself_is_reported_as_such() -> None:
    judge = Judge(Local(Changing("ADD")), STRICT)
    (verdict,) = judge.judge([case_of(WIDE, Twin("with ADD in memory", SPLIT, GIVEN))])
    assert verdict.failure is not None
    assert verdict.failure.program == 0


def test_a_twin_is_judged_by_what_its_case_may_give() -> None:
    """x + 1 is no twin of x + 2, though the backend is right about both."""
    one, two = (UOp(Op.ADD, X, const(k, dtypes.int8)) for k in (1, 2))
    judge = Judge(Local(InterpreterBackend()), STRICT)
    case = case_of(one, Twin("otherwise", two, GIVEN))
    (verdict,) = judge.judge([case])
    assert verdict.failure is not None
    assert "output 0[0] is 3, accepted 2 " in verdict.failure.message
    assert "2" in find_cause(judge, Failing(case, verdict.failure)).text


class Truncating(InterpreterBackend):
    """Rounds IDIV and MOD toward zero, as CDIV and CMOD, which stay what they are."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        texts = [p.text.replace("= IDIV", "= CDIV").replace("= MOD", "= CMOD") for p in programs]
        return super().run([replace(p, text=t) for p, t in zip(programs, texts, strict=True)])


@pytest.mark.parametrize(
    ("op", "dtype", "profile", "backend"),
    [
        ("CMPGE", "float32", Profile(cmp_nan="ieee"), InterpreterBackend()),
        ("CMPLE", "float32", Profile(cmp_nan="ieee"), InterpreterBackend()),
        ("CDIV", "int8", Profile(int_div="trunc"), Truncating()),
        ("CMOD", "int8", Profile(int_div="trunc"), Truncating()),
    ],
)
def test_what_a_profile_says_of_an_op_is_not_asked_of_its_decomposition(
    op: str, dtype: str, profile: Profile, backend: InterpreterBackend
) -> None:
    """NOT(a < b) is true beside a NaN; what makes a CDIV of a floor makes another of a CDIV."""
    case = generate.case_by_id(f"twin/{op}/{dtype}/decomposed/0", 0)
    (verdict,) = Judge(Local(backend), profile).judge([case])
    assert (verdict.status, verdict.reason) == (Status.SKIPPED, SETTLED), verdict.failure


@pytest.mark.parametrize("op", ["CDIV", "CMOD"])
def test_an_index_floors_so_that_its_decompositions_hold(op: str) -> None:
    case = generate.case_by_id(f"twin/{op}/index/decomposed/0", 0)
    found = [
        Judge(Local(backend), Profile(int_div="trunc")).judge([case])[0].status
        for backend in (InterpreterBackend(), Truncating())
    ]
    assert found == [Status.PASSED, Status.FAILED]


class Alternating(InterpreterBackend):
    """Every second run gives the other zero, which MAX may."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        for outcome in outcomes:
            assert isinstance(outcome, Outputs)
            for k, (output,) in enumerate(outcome.batches):
                output[:] = np.copysign(output, -1.0 if k % 2 else 1.0)
        return outcomes


def test_two_equal_runs_give_equal_bits() -> None:
    zeros = Batch({0: np.zeros(3, np.float32), 1: -np.zeros(3, np.float32)})
    again = Batch(dict(zeros.inputs))
    root = UOp(Op.MAX, param(0, (3,), dtypes.float32), param(1, (3,), dtypes.float32))
    judge = Judge(Local(Alternating()), STRICT)
    case, other = (case_of(root, batches=(zeros, b)) for b in (zeros, again))
    found, accepted = judge.judge([case, other])
    assert found.failure is not None
    assert found.failure.symptom is Symptom.UNSTEADY
    assert found.failure.message == "two equal runs: output 0[0] is 0x0p+0, then -0x0p+0"
    assert accepted.status is Status.PASSED
    assert find_cause(judge, Failing(case, found.failure)).label == Symptom.UNSTEADY.value


@given(st.data(), st.sampled_from(twin.KINDS))
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_hypothesis_drives_the_builder(
    data: st.DataObject, kind: tuple[str, twin.Build, tuple[int, int, int], tuple[Op, ...]]
) -> None:
    made = kind[1](dtypes.int32, FLAVOURS["integers"], HypothesisChoices(data), 0)
    case = Case(CaseId("twin", "MIXED", "int32", "test", 0), made.root, made.batches,
                twins=made.twins)  # fmt: skip
    (verdict,) = Judge(Local(InterpreterBackend()), STRICT).judge([case])
    assert verdict.failure is None
