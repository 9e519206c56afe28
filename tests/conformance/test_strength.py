"""How strong a verdict is, in figures and in a line."""

from __future__ import annotations

from dataclasses import replace

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.coverage.ledger import opened, programs_of, strength_line
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.report.model import Strength
from uop.conformance.report.tally import Tally
from uop.conformance.suite.generate import groups

HELLO = replace(
    InterpreterBackend().hello(),
    name="small",
    ops=frozenset({"PARAM", "ADD", "REDUCE"}),
    dtypes=frozenset({"int32"}),
)


def tally(*verdicts: Verdict) -> Tally:
    found = Tally()
    for verdict in verdicts:
        found.add(verdict)
    return found


def test_an_op_opens_what_lacks_it_alone() -> None:
    skipped = tally(
        Verdict("op/REDUCE/int32/MAX-axes/0", Status.SKIPPED, reason="small does not support MAX"),
        Verdict("op/REDUCE/int32/MAX-axes/1", Status.SKIPPED, reason="small does not support MAX"),
        Verdict("op/ADD/int32/a/0", Status.SKIPPED, reason="small does not support MAX, TUPLE"),
        Verdict("invalid/ADD/void/c1/0", Status.SKIPPED, reason="small does not support MAX"),
    )
    assert opened((), "smoke", HELLO, skipped, 0) == {"MAX": 2}
    mul = [g for g in groups("op") if (g.op, g.dtype) == ("MUL", "int32")]
    assert opened(mul, "smoke", HELLO, tally(), 0) == {
        "MUL": sum(g.count("smoke") for g in mul if "hand" not in g.name)
    }
    # A dtype that is not listed is no op that would open something.
    other = [g for g in groups("op") if (g.op, g.dtype) == ("MUL", "int8")]
    assert opened(other, "smoke", HELLO, tally(), 0) == {}


def test_texts_that_must_be_rejected_do_not_count() -> None:
    judged = tally(
        Verdict("op/ADD/int32/edges/0", Status.PASSED),
        Verdict("invalid/ADD/void/c1/0", Status.PASSED),
    )
    assert programs_of(judged) == 1


def test_the_line_says_what_one_more_op_brings() -> None:
    figures = Strength(24, 25, 400, 1000, {"MAX": 1200, "OR": 0})
    assert strength_line(figures) == (
        "24 of 25 listed cells judged, 40% of the suite applied; "
        "one more op in the list: MAX 1,200 programs more"
    )
    assert strength_line(Strength(0, 0, 0, 0, {})) == ("nothing of the suite applied")
