"""Reports for tests, made by hand."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from uop.conformance.judging.compare import Counts, Symptom
from uop.conformance.judging.elements import Element, Errors
from uop.conformance.judging.verdict import CaseFailure, Status, Verdict
from uop.conformance.profile.card import Observation
from uop.conformance.report.model import BackendInfo, Failure, LedgerSums, Report
from uop.conformance.report.options import Origin
from uop.conformance.report.tally import Tally
from uop.conformance.run.options import Options
from uop.spec.dtype import DTYPES
from uop.spec.ops.names import Op

OPTIONS = Options("some")
REPRO = """case wrong
%0 = PARAM [1] {slot=0, dtype=int8}
%1 = ADD %0, %0
input 0 = [1]
expect 0 = [2]
"""
"""A program that the interpreter passes."""
LARGEST = Element("output 0[3]", ("0x1p+0",), "0x1.8p+0", "0x1p+0 to 0x1.8p+0")
ERRORS = Errors((90, 0, 0, 0, 0, 0, 0, 0, 10, 0), 1.0, LARGEST)
PASSED = Verdict(
    "op/EXP2/float32/edges/0@2", Status.PASSED, 2, Counts(100, 100, 90, 95, 1.0), errors=ERRORS
)
WRONG = Element("output 0[]", ("0x0p+0",), "0x1p+1", "0x1p+0")
FAILED = replace(
    PASSED,
    id="op/EXP2/float32/edges/1@2",
    status=Status.FAILED,
    failure=CaseFailure(Symptom.VALUE, "output 0[] is 0x1p+1, accepted 0x1p+0", values=(WRONG,)),
)
SKIPPED = Verdict("op/SIN/float16/edges/0@2", Status.SKIPPED, reason="no float16")
CRASHED = replace(FAILED, id="graph/MIXED/int8/random/0@2", status=Status.CRASHED)
TEXT = """case op/EXP2/float32/edges/1@2
; output 0[] is 0x1p+1, accepted 0x1p+0
%0 = PARAM [] {slot=0, dtype=float32} : float32[]
%1 = EXP2 %0 : float32[]
input 0 = 0x0p+0
accept 0 = 0x1p+0
"""
FAILURE = Failure(
    FAILED.id,
    "result EXP2 float32",
    "value",
    "op",
    ("EXP2",),
    ("float32",),
    "output 0[] is 0x1p+1, accepted 0x1p+0",
    "uop-failures/result-EXP2-float32.uop",
    TEXT,
    (WRONG,),
)

WEIRD: list[Any] = [
    *(None, True, -1, 0, 1.5, 10**4000, float("inf"), float("nan"), [], {}),
    *("", "\ud800", "\0", "x\n", "..\n", "a/b", "op/ADD/float32/edges/x"),
]
NAMES = ("\ud800", "\0", "x", "op/ADD/float32/edges", "op/ADD/float32/edges/0/" + 5000 * "1")


def tally_of(*verdicts: Verdict) -> Tally:
    tally = Tally()
    for verdict in verdicts:
        tally.add(verdict)
    return tally


def report(
    *verdicts: Verdict,
    failures: tuple[Failure, ...] = (),
    backend: str = "some",
    card: tuple[Observation, ...] | None = None,
    ledger: LedgerSums | None = None,
    origin: Origin | None = None,
    interrupted: bool = False,
    **fields: Any,
) -> Report:
    info, options = BackendInfo(backend, "1", "device"), replace(OPTIONS, backend=backend)
    made = tally_of(*verdicts).report(info, "strict", options, 1.5, failures, **fields)
    summary = replace(made.summary, interrupted=interrupted)
    return replace(made, summary=summary, card=card, ledger=ledger, origin=origin)


def failing() -> Report:
    """One of everything."""
    return report(PASSED, FAILED, SKIPPED, CRASHED, failures=(FAILURE,))


def full(verdict: Verdict = PASSED) -> Report:
    """A report with a cell for every op and dtype, all of them failing if that verdict does."""
    ids = (f"op/{op.name}/{dtype}/edges/0@2" for op, dtype in product(Op, DTYPES))
    failures = tuple(
        replace(FAILURE, message="a\nlong " * 100, signature=str(k)) for k in range(20)
    )
    return report(*(replace(verdict, id=id) for id in ids), failures=failures)


def damaged(found: Any) -> Iterator[Any]:
    """The data with one part replaced, left out, or under another name."""
    parts = found.items() if isinstance(found, dict) else enumerate(found[:2])
    for key, part in parts:
        others = [*WEIRD, *(damaged(part) if isinstance(part, dict | list) else ())]
        if isinstance(found, list):
            yield from ([*found[:key], other, *found[key + 1 :]] for other in others)
            continue
        rest = {name: value for name, value in found.items() if name != key}
        yield from ({**rest, key: other} for other in others)
        yield from ({**rest, name: part} for name in NAMES)
        yield rest
