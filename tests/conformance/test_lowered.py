"""Who is to blame for what a backend gives for kernels that we made of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uop.conformance.backends.interpreter import InterpreterBackend, interpret
from uop.conformance.judging import lowering
from uop.conformance.judging.compare import Symptom
from uop.conformance.judging.judge import NOT_CHARGED, SETTLED, Judge
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.protocol.types import Hello, Outcome, Outputs, Problem, ProblemKind, Program
from uop.conformance.run.replay import judge_files
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.workers.transport import Local
from uop.interpreter.numeric.storage import Array
from uop.spec.args import DTypeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.text.program import parse, print_program
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp, const, dims, param

Rule = Callable[[UOp], UOp]
Change = Callable[[Array], Array]
TRUNC, ZEROS = Profile(int_div="trunc"), Profile(pad_fill="zero")
I32 = dtypes.int32
X, Y = (param(slot, (4,), I32) for slot in (0, 1))
GIVEN = {0: np.array([-7, 7, 3, -8], np.int32), 1: np.array([2, -2, 3, 3], np.int32)}
PADDED = UOp(Op.PAD, UOp(Op.MUL, X, Y), dims((1,)), dims((6,)))
PRODUCT = UOp(Op.REDUCE, PADDED, arg=ReduceArg(Op.MUL, (0,)))
SAME = {Op.IDIV: Op.CDIV, Op.MOD: Op.CMOD}


def same(u: UOp) -> UOp:
    return u


def truncated(u: UOp) -> UOp:
    chosen = u.op in SAME and u.dtype is not dtypes.index
    return UOp(SAME[u.op], *u.src) if chosen else u


class Kernels(InterpreterBackend):
    """Takes kernels only, in which it changes nodes, and changes what they give."""

    def __init__(
        self, rule: Rule = lambda u: u, change: Callable[[Array], Array] = np.array
    ) -> None:
        self.rule, self.change = rule, change

    def hello(self) -> Hello:
        return replace(super().hello(), forms=frozenset({"kernel"}))

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self.ran(program) for program in programs]

    def ran(self, program: Program) -> Outcome:
        root, new = parse(program.text), dict[UOp, UOp]()
        for u in root.toposort():
            new[u] = self.rule(u.with_src(new[s] for s in u.src))
        found = interpret(replace(program, text=print_program(new[root])))
        return Outputs(tuple(tuple(map(self.change, batch)) for batch in found.batches))


def case_of(root: UOp, *inputs: dict[int, Array]) -> Case:
    batches = tuple(Batch(given) for given in inputs or ({0: GIVEN[0], 1: GIVEN[1]},))
    return Case(CaseId("op", "MIXED", "int32", "edges", 0), root, batches)


def judged(backend: InterpreterBackend, case: Case, profile: Profile) -> Verdict:
    (verdict,) = Judge(Local(backend), profile).judge([case])
    return verdict


ADDED = UOp(Op.ADD, X, Y)


@pytest.mark.parametrize("profile", [STRICT, TRUNC, ZEROS, Profile(cmp_nan="ieee")], ids=str)
def test_a_fault_of_our_lowering_is_not_charged(
    profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(ADDED)
    assert judged(Kernels(), case, profile).status is Status.PASSED
    assert judged(Kernels(change=np.zeros_like), case, profile).status is Status.FAILED
    lower_wrongly(monkeypatch, lambda u: UOp(Op.XOR, *u.src) if is_sum(u) else u)
    verdict = judged(Kernels(), case, profile)
    assert verdict.status is Status.SKIPPED
    assert (verdict.unjudged or verdict.reason) == (NOT_CHARGED if profile == STRICT else SETTLED)
    # What it was sent gives that neither.
    assert judged(Kernels(change=np.zeros_like), case, profile).status is Status.FAILED


@pytest.mark.parametrize("profile", [STRICT, TRUNC], ids=str)
def test_what_our_lowering_left_without_meaning_is_not_charged(
    profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower_wrongly(monkeypatch, outside)
    verdict = judged(Crashing(), case_of(ADDED), profile)
    assert verdict.status is Status.SKIPPED


class Crashing(Kernels):
    def ran(self, program: Program) -> Outcome:
        return Problem(ProblemKind.CRASH, "out of bounds")


def test_a_crash_of_what_has_a_meaning_is_charged() -> None:
    assert judged(Crashing(), case_of(ADDED), STRICT).status is Status.CRASHED


def is_sum(u: UOp) -> bool:
    return u.op is Op.ADD and u.dtype is I32


def outside(u: UOp) -> UOp:
    """An address one beyond."""
    if u.op is not Op.INDEX or u.addrspace is None:
        return u
    return UOp(Op.INDEX, u.src[0], UOp(Op.ADD, u.src[1], const(1, dtypes.index)))


def lower_wrongly(monkeypatch: pytest.MonkeyPatch, rule: Rule) -> None:
    right_lower: Callable[..., UOp] = lowering.lower

    def wrong_lower(root: UOp, stage: str) -> UOp:
        lowered = right_lower(root, stage)
        if stage == "callify":
            return lowered
        new: dict[UOp, UOp] = {}
        for u in lowered.toposort():
            new[u] = rule(u.with_src(new[s] for s in u.src))
        return new[lowered]

    monkeypatch.setattr(lowering, "lower", wrong_lower)


@pytest.mark.parametrize(
    ("root", "profile", "rule", "status"),
    [
        (UOp(Op.IDIV, X, Y), TRUNC, truncated, Status.PASSED),
        # What makes a CDIV of a floor makes another of a CDIV.
        (UOp(Op.CDIV, X, Y), TRUNC, truncated, Status.SKIPPED),
        # Kernels know no PAD: the lowering skips what is absent.
        (PRODUCT, ZEROS, same, Status.SKIPPED),
    ],
    ids=["IDIV", "CDIV", "PAD"],
)
def test_a_fault_is_charged_where_a_profile_decides_otherwise_than_the_reference(
    root: UOp, profile: Profile, rule: Rule, status: Status
) -> None:
    case = case_of(root)
    right = judged(Kernels(rule), case, profile)
    assert (right.status, right.reason) == (status, SETTLED if status is Status.SKIPPED else "")
    wrong = Kernels(rule, lambda a: a + np.int32(5))
    failure = judged(wrong, case, profile).failure
    assert failure is not None
    assert failure.symptom is Symptom.VALUE
    # And so does the program that is written for it.
    finding = find_cause(Judge(Local(wrong), profile), Failing(case, failure))
    files = parse_file(finding.text).cases
    assert [v.status for v in judge_files(files, Local(wrong))] == [Status.FAILED]
    assert judge_files(files, Local(Kernels(rule)))[0].status is not Status.FAILED


def test_of_a_fault_only_what_kernels_of_ours_may_not_give_is_told() -> None:
    """What they make of a CDIV is another by this profile in all elements but the third."""

    def wrong(a: Array) -> Array:
        return a + np.array([0, 0, 5, 0], np.int32)

    failure = judged(Kernels(truncated, wrong), case_of(UOp(Op.CDIV, X, Y)), TRUNC).failure
    assert failure is not None
    assert failure.element == 2
    assert failure.message == "output 0[2] is 6, accepted 1"


NUMBERS = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.tuples(NUMBERS, NUMBERS.filter(bool)), min_size=1, max_size=5), st.booleans())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_whoever_truncates_in_kernels_is_right_and_whoever_floors_is_not(
    pairs: list[tuple[int, int]], truncates: bool
) -> None:
    """By exact integers: both are right just where nothing is left over, or of one sign."""
    x, y = (param(slot, (len(pairs),), I32) for slot in (0, 1))
    inputs = {slot: np.array([pair[slot] for pair in pairs], np.int32) for slot in (0, 1)}
    verdict = judged(Kernels(truncated), case_of(UOp(Op.IDIV, x, y), inputs), TRUNC)
    assert verdict.status is Status.PASSED
    verdict = judged(Kernels(), case_of(UOp(Op.IDIV, x, y), inputs), TRUNC)
    same = all(a % b == 0 or (a < 0) == (b < 0) for a, b in pairs)
    assert verdict.status is (Status.PASSED if same else Status.FAILED)


def test_where_nothing_says_what_kernels_may_give_the_reference_tells() -> None:
    """Of the first element anything is accepted, for its index is not certain."""
    powers = UOp(Op.EXP2, param(0, (2,), dtypes.float32))
    index = UOp(Op.CAST, powers, arg=DTypeArg(I32))
    inputs = {0: np.array([2, 0], np.float32), 1: np.arange(9, dtype=np.int32)}
    case = case_of(UOp(Op.INDEX, param(1, (9,), I32), index), inputs)
    assert judged(Kernels(), case, STRICT).status is Status.PASSED
    assert judged(Kernels(change=np.zeros_like), case, STRICT).status is Status.FAILED


def test_two_runs_that_differ_are_charged_though_each_may_be() -> None:
    zeros = {0: np.zeros(4, np.float32), 1: -np.zeros(4, np.float32)}
    x, y = (param(slot, (4,), dtypes.float32) for slot in (0, 1))
    signs = iter(np.array([1, -1], np.float32))
    batch = Batch(zeros)
    case = replace(case_of(UOp(Op.MAX, x, y)), batches=(batch, batch))
    backend = Kernels(change=lambda a: np.copysign(a, next(signs)))
    failure = judged(backend, case, STRICT).failure
    assert failure is not None
    assert failure.symptom is Symptom.UNSTEADY
