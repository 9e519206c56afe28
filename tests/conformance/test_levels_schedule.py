"""Level schedule: no sequence of optimizations changes what a program may give, at any stage."""

from __future__ import annotations

from collections import Counter

import pytest

from uop.compiler.pipeline import compile
from uop.conformance.backends.interpreter import InterpreterBackend, in_order
from uop.conformance.judging.compare import compare
from uop.conformance.judging.expected import accepted_on
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import Status
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import Case
from uop.conformance.suite.choices import CountedChoices
from uop.conformance.suite.generate import cases, groups
from uop.conformance.suite.levels.kernel.optimizations import random_sequence
from uop.conformance.workers.transport import Local
from uop.interpreter.evaluate import evaluate
from uop.spec.args import AxisType, RangeArg
from uop.spec.graph import calls, slot_of, slots_of, written
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

pytestmark = pytest.mark.slow

CASES = [c for c in cases(["schedule"], effort="default") if isinstance(c, Case)]


@pytest.mark.parametrize("case", CASES[::2], ids=lambda c: str(c.id))
def test_every_stage_gives_what_the_graph_may_give(case: Case) -> None:
    last = len(case.batches) - 1
    accepted = accepted_on(case, last, STRICT)
    inputs = case.batches[last].inputs
    has_warps = any(u.op is Op.WMMA for u in case.root.toposort())
    programs = {"": case.root, **compile(case.root, "cuda" if has_warps else "opencl").stages}
    slots = {slot_of(u) for u in written(case.root)}
    for stage, program in programs.items():
        left = evaluate(program, {k: v for k, v in inputs.items() if k in slots_of(program)})
        assert isinstance(left, dict)
        result = {slot: a for slot, a in left.items() if slot in slots}
        mismatch = compare(accepted, in_order(result)).mismatch
        assert mismatch is None, f"{stage}: {mismatch.message}"


def test_the_programs_have_axes_of_every_type() -> None:
    types = Counter(
        u.arg.axis_type
        for case in CASES
        if not case.group.endswith("-called")
        for u in case.root.toposort()
        if u.op is Op.RANGE and isinstance(u.arg, RangeArg)
    )
    assert set(types) == set(AxisType) - {AxisType.LOOP}
    assert min(types.values()) > 2


def test_a_sequence_is_a_function_of_its_choices() -> None:
    (first, *_) = (call.src[0] for call in calls(CASES[0].root))
    one, other = (random_sequence(CountedChoices(7, "x"), first) for _ in range(2))
    assert one == other


def test_a_kernel_without_meaning_has_failed_where_its_graph_has_one() -> None:
    """What our compiler has made is not passed over: its loops are longer here."""
    case = next(c for c in CASES if c.group == "folds" and c.dtype == "int32")
    ranges = [u for u in case.root.toposort() if u.op is Op.RANGE]
    longer = {r: UOp(Op.RANGE, index_const(64), arg=r.arg) for r in ranges}
    wrong = Case(case.id, case.root.substitute(longer), case.batches, case.source)
    judge = Judge(Local(InterpreterBackend()), STRICT)
    (right, verdict) = judge.judge([case, wrong])
    assert right.status is Status.PASSED
    assert verdict.status is Status.FAILED
    assert verdict.failure is not None
    assert "INDEX.u1" in verdict.failure.message
    finding = find_cause(judge, Failing(wrong, verdict.failure))
    assert "accept 2" in finding.text


def test_each_kernel_of_kept_rows_is_optimized() -> None:
    """A costly value that much is computed from is stored by a kernel of its own."""
    kept = [group for group in groups("schedule") if group.name == "kept"]
    drawn = [group.case(index, 0) for group in kept for index in range(40)]
    programs = [calls(case.root) for case in drawn if isinstance(case, Case)]
    assert {len(program) for program in programs} == {1, 2}
    for call in (call for program in programs for call in program):
        types = {u.arg.axis_type for u in call.src[0].toposort() if isinstance(u.arg, RangeArg)}
        assert AxisType.UPCAST in types
