"""Why a ledger leaves a point open: what was skipped, what was not run, what a profile decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.coverage.exercised import AXIS, RULES, Exercised, exercised
from uop.conformance.coverage.ledger import CLOSED, ENDED, NO_CASE, Ledger
from uop.conformance.coverage.points import Point
from uop.conformance.coverage.value_classes import BIT
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import MAY_END, Status, Verdict
from uop.conformance.profile.points import knob_points
from uop.conformance.report.tally import Tally, main_reason
from uop.conformance.run.options import Options
from uop.conformance.run.selection import selected
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.generate import case_by_id
from uop.conformance.workers.transport import Local
from uop.spec.latitude import KNOBS
from uop.spec.text.profile_text import parse_profile, profile_of

NOTHING = Exercised("", {}, {})
ADD = "op/ADD/float32/edges/0@2"
SIN = "op/SIN/float32/edges/0@2"
SHAPE = 1 << RULES.index("shape")


def ledger(*ids: str, narrowed: bool = True) -> Ledger:
    return Ledger([CaseId.parse(id) for id in ids], narrowed)


def tally(*verdicts: Verdict) -> Tally:
    found = Tally()
    for verdict in verdicts:
        found.add(verdict)
    return found


def test_programs_that_were_skipped_say_why_a_rule_was_not_met() -> None:
    mixed = "device/MIXED/int32/sharded/0@2"
    found = ledger(ADD, mixed, narrowed=False)
    skipped = Verdict(mixed, Status.SKIPPED, reason="one device")
    found.add(skipped, replace(NOTHING, rules={"ADD": AXIS, "PAD": AXIS | SHAPE}))
    why = found.unseen(tally(skipped))
    assert why[Point("rule", "ADD", detail="axis")] == "one device"
    assert why[Point("rule", "PAD", detail="shape")] == "one device"
    assert why[Point("rule", "MUL", detail="axis")] == NO_CASE
    assert why[Point("rule", "PAD", detail="device")] == NO_CASE


def test_what_is_not_made_is_told_by_its_cell() -> None:
    found = ledger(ADD, SIN)
    why = found.unseen(tally(Verdict(SIN, Status.SKIPPED, reason="no SIN")))
    for point in (Point("cell", "SIN", "float32"), Point("rule", "SIN", detail="shape")):
        assert why[point] == "no SIN"
    assert why[Point("cell", "ADD", "float32")] == ENDED
    assert found.gaps(tally(Verdict(SIN, Status.SKIPPED, reason="no SIN"))) == {
        point for point in why if (point.about, point.dtype) == ("ADD", "float32")
    }


def test_what_was_not_run_is_told_so() -> None:
    why = ledger(ADD, "invalid/ADD/void/arity/0@2").unseen(Tally())
    kinds = {(point.kind, reason) for point, reason in why.items()}
    ended = {(kind, ENDED) for kind in ("cell", "value", "latitude", "label", "decision")}
    # Programs about other ops may show what an op derives.
    assert kinds == ended | {("rule", NO_CASE)}


def test_a_point_is_told_by_the_reason_of_the_cases_that_would_have_shown_it() -> None:
    """No storage for an index, of which only what divides by zero was not even sent."""
    ids = [f"op/IDIV/index/edges/{k}" for k in range(4)]
    found, skipped = ledger(*ids), []
    for id, reason, classes in (
        (ids[0], MAY_END, BIT["zero"] | BIT["power"]),
        (ids[1], MAY_END, BIT["zero"] | BIT["power"]),
        (ids[2], "no storage", BIT["ordinary"] | BIT["power"]),
        (ids[3], "too large", BIT["ordinary"]),
    ):
        skipped.append(Verdict(id, Status.SKIPPED, reason=reason))
        found.add(skipped[-1], replace(NOTHING, values={"IDIV index": classes}))
    why = found.unseen(tally(*skipped))
    told = {str(point): reason for point, reason in why.items() if point.kind != "decision"}
    assert told == {
        "cell IDIV index": "no storage",
        "value IDIV index zero": MAY_END,
        "value IDIV index ordinary": "no storage",
        "value IDIV index power": "no storage",
        "value IDIV index beside power": "no storage",
        "value IDIV index halfway": "no storage",
        "rule IDIV dtype": "no storage",
        "rule IDIV shape": "no storage",
    }
    assert why[Point("decision", "D-030")] == "no storage"


def test_the_main_reason_is_that_of_most_cases_whatever_came_first() -> None:
    assert main_reason({}) is None
    assert main_reason({"b": 1, "a": 1}) == "a"
    assert main_reason({"a": 1, "b": 2, MAY_END: 9}) == "b"
    assert main_reason({MAY_END: 1}) == MAY_END


PROFILES = {
    str(profile_of({point.knob: text}))
    for point in knob_points()
    for text in (*point.declares.values(), point.mixed)
    if text
}
OPS = ("ADD", "MAX", "CMPGE", "CMPLE", "CMPGT", "RECIP", "CAST", "REDUCE", "IDIV", "CMOD", "INDEX")
CLOSED_BY_IEEE = {
    Point("latitude", op, dtype) for op in ("CMPGE", "CMPLE") for dtype in ("float32", "fp8e5m2")
}


def test_the_profiles_have_every_knob() -> None:
    """But that of copies of signalling NaNs: no program shows what all copies do."""
    assert {text.partition("=")[0] for text in PROFILES} == {"strict", *KNOBS} - {"snan"}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", sorted(PROFILES))
def test_what_is_not_shown_under_a_knob_has_its_true_reason(text: str) -> None:
    """The profile leaves no choice there, or no case would show it that was not skipped for that.

    What shows what is told by the cases, not by the ledger.
    """
    dtypes = ("float32", "fp8e5m2", "int8")
    ids = selected(Options("interpreter", levels=("op",), ops=OPS, dtypes=dtypes))
    found, told = Ledger(ids, True, parse_profile(text)), Tally()
    made = [case_by_id(str(id)) for id in ids]
    shown = {str(case.id): exercised(case) for case in made}
    judge = Judge(Local(InterpreterBackend()), found.profile)
    verdicts = {verdict.id: verdict for verdict in judge.judge(made)}
    for id, verdict in verdicts.items():
        told.add(verdict)
        found.add(verdict, shown[id])
    why = found.unseen(told)
    closed = {point for point, reason in why.items() if reason == CLOSED}
    assert closed == (CLOSED_BY_IEEE if text == "cmp_nan=ieee" else set())
    assert not closed & found.gaps(told)
    for point, reason in why.items():
        showing = [verdicts[id] for id, seen in shown.items() if would_show(point, id, seen)]
        if point in closed:
            # Programs of nothing but that op.
            edges = [verdict for verdict in showing if "/edges/" in verdict.id]
            assert all(verdict.counts.single == verdict.counts.elements for verdict in edges)
            assert edges
        else:
            assert all(verdict.status is Status.SKIPPED for verdict in showing), point
            assert reason in ({verdict.reason for verdict in showing} or {NO_CASE}), point


def would_show(point: Point, id: str, seen: Exercised) -> bool:
    if point.kind == "rule":
        return bool(seen.rules.get(point.about, 0) >> RULES.index(point.detail) & 1)
    if point.kind == "value":
        return bool(seen.values.get(f"{point.about} {point.dtype}", 0) & BIT[point.detail])
    return id.startswith(f"op/{point.about}/{point.dtype}/")
