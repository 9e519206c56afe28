"""What a run of the suite says about a fault in this project's compiler: the stage and the rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reports import failing

from uop.conformance.backends import MUTANT
from uop.conformance.backends.compiled import OpenCLBackend
from uop.conformance.judging.judge import Judge
from uop.conformance.protocol.types import BLAMED, Program
from uop.conformance.report.model import Failure
from uop.conformance.report.text import failure_lines
from uop.conformance.shrink.explain import Failing
from uop.conformance.shrink.repro import find_cause
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id
from uop.conformance.workers.sessions import started
from uop.spec.latitude import STRICT
from uop.spec.text.program import print_program


def cause(mutant: str, id: str) -> Failure:
    """The shrunk failure of a case on OpenCL with a seeded fault."""
    case = case_by_id(id)
    with started(MUTANT + mutant) as session:
        judge = Judge(session, STRICT)
        (verdict,) = judge.judge([case])
        assert verdict.failure is not None
        return find_cause(judge, Failing(case, verdict.failure))


@pytest.mark.usefixtures("opencl")
def test_a_fault_in_a_rule_is_named_with_both_sides_and_their_values() -> None:
    found = cause("half-a-multiple-is-a-multiple", "op/RESHAPE/int32/hand-digits/0")
    (blamed,) = [line for line in found.message.splitlines() if line.startswith(BLAMED)]
    assert "/divide_remainder changes a value (at " in blamed
    assert "before 1, after 0" in blamed
    assert ";   |     %2 = IDIV" in found.text


@pytest.mark.usefixtures("opencl")
def test_a_fault_in_the_source_is_named_with_its_line() -> None:
    found = cause("truths-of-whole-parts", "op/CAST/float32/hand-float32_to_bool/0")
    assert f"{BLAMED}render: output 0[] is false, accepted true" in found.message
    assert "the source for cuda-host is wrong too" in found.message or "cuda" not in found.message
    assert "the first wrong node: %1 = CAST %0 {dtype=bool} : bool[]" in found.message
    assert "= (i64)t0 != 0;" in found.message


@pytest.mark.usefixtures("opencl")
def test_nothing_is_to_blame_for_what_is_right() -> None:
    case = case_by_id("op/RESHAPE/int32/hand-digits/0")
    assert isinstance(case, Case)
    backend = OpenCLBackend()
    backend.hello()
    batches = tuple(batch.inputs for batch in case.batches)
    assert backend.locate(Program(print_program(case.root), batches)) == ""


def test_the_terminal_names_it_on_a_line_of_its_own() -> None:
    report = failing()
    firing = f"{BLAMED}select/decompose changes a value (before 1, after 2)"
    message = f"it is 1, accepted 2\nits stage select leaves something else\n{firing}\n  before"
    report = replace(report, failures=(replace(report.failures[0], message=message),))
    assert f"       {firing}" in failure_lines(report)
