"""Comparisons of backends for tests, made by hand."""

from dataclasses import replace
from typing import Any

from reports import FAILED, FAILURE, PASSED, SKIPPED, report

from uop.conformance.compare.gather import compared, without_times
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.profile.card import Observation
from uop.conformance.report.model import Report, Tried, digest_of
from uop.conformance.suite.vocabulary import Vocabulary

TRIED = Tried(digest_of(FAILURE.text), Status.PASSED, "0x1p+0")
MISSING = "gone: no such library"
LIBERTY = """case card
%0 = PARAM [] {slot=0, dtype=float32} : float32[]
%1 = EXP2 %0 : float32[]
input 0 = 0x0p+0
expect 0 = 0x1p+0
"""


def ran(*verdicts: Verdict, name: str = "other", **fields: Any) -> Report:
    """A report whose backend lists EXP2 and SIN on floats."""
    made = report(*verdicts, backend=name)
    listed = Vocabulary("abc", frozenset({"EXP2", "SIN"}), frozenset({"float16", "float32"}))
    generator = replace(made.generator, vocabulary=listed)
    return replace(made, **{"generator": generator, **fields})


def failing(name: str = "some", **fields: Any) -> Report:
    return ran(PASSED, FAILED, name=name, **{"failures": (FAILURE,), **fields})


def seen(knob: str, observed: str, declares: str = "", *, ok: bool = True) -> Observation:
    point = knob or "NaN payload"
    return Observation(point, knob, observed, declares, ok, ("MAX(0x1p+0) = 1",), repro=LIBERTY)


def everything() -> Report:
    card = (seen("max_nan", "the NaN", "propagate"), replace(seen("", "kept"), point="NaN payload"))
    taken = replace(seen("contract", "fused", "true"), example="x * x, strict 1")
    parts = [
        ran(PASSED, name="interpreter", card=card, tried=(TRIED,)),
        failing(),
        ran(PASSED, SKIPPED, name="liberal", card=(taken,), tried=(TRIED,)),
        ran(PASSED, name="adapter", composed={"EXP2": ("MUL", "ADD")}),
        ran(name="a <b>|`c`", summary=replace(ran().summary, lost="it is gone")),
    ]
    return compared([without_times(one) for one in parts], [MISSING])
