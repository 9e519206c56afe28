"""Counts wrong results: those of an adversary that pushes one op outside its accepted set."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.mutants.order import is_by_hand
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import groups
from uop.interpreter.accepted.order import is_float, is_nan
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.inputs import Inputs
from uop.interpreter.numeric.storage import to_bits
from uop.interpreter.values import Value, either
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

PUSHED = "adversary"
"""The name of the backend that pushes an op."""
EXHAUSTIVE = "exhaustive"
TWIN = "twin"
"""The name of groups whose programs do not contain their op."""
SEVERAL = re.compile(r"\((\d+) of \d+ elements are outside\)$")


def pushed(op: Op, seed: int, profile: Profile) -> Iterator[tuple[str, int]]:
    """The first program of each group about an op, and the number of elements pushed outside.

    Only programs of one output and one set of inputs; those written by hand first, exhaustive ones
    last.
    """
    about = [g for g in groups("op") if g.op == op.name and g.name != TWIN]
    for group in sorted(about, key=lambda g: (g.name == EXHAUSTIVE, not is_by_hand(g))):
        case = group.case(0, seed)
        if isinstance(case, Case) and len(case.batches) == 1:
            with np.errstate(all="ignore"):
                wrong = _moved(case.root, case.batches[0].inputs, op, profile)
            if wrong:
                yield str(case.id), wrong


def rejected(verdict: Verdict) -> int:
    """The number of elements that a verdict rejects."""
    if verdict.status is not Status.FAILED or verdict.failure is None:
        return 0
    several = SEVERAL.search(verdict.failure.message)
    return int(several[1]) if several else 1


def _moved(root: UOp, inputs: Inputs, op: Op, profile: Profile) -> int:
    """The number of specified elements that the adversary changes; 0 for several outputs."""
    value = evaluate_full(root, inputs)
    data = evaluate_adversarially(root, inputs, push=op, profile=profile)
    if not isinstance(value, Value) or not isinstance(data, np.ndarray):
        return 0
    moved = to_bits(value.data) != to_bits(data)
    if is_float(data.dtype):
        moved &= ~(is_nan(data) & is_nan(value.data))
    opened = either(value.unspecified, value.invalid)
    return int(np.count_nonzero(moved if opened is None else moved & ~opened))
