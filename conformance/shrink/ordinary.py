"""Looks for ordinary values on which a program fails that was shrunk to special ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from uop.conformance.judging.judge import Judge
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.shrink.reduce import Candidate, Probe, reduce_program
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.suite.choices import CountedChoices
from uop.conformance.suite.levels.graph.pairs import fitting_data
from uop.conformance.suite.values import draw_ordinary
from uop.spec.graph import kind_of, slots_of
from uop.spec.text.program import print_program

DRAWS = 64
"""The values that are tried for each input."""
Found = tuple[Candidate, CaseFailure]


def in_ordinary_values(
    judge: Judge, found: Found, probe: Probe, is_special: Callable[[Candidate], bool]
) -> Found:
    """The program with ordinary values if it fails alike on some, else as it is.

    A fault of ordinary values shows on special ones too, where cases of these come first.
    """
    program, failure = found
    root = program.root
    slots = slots_of(root)
    if kind_of(root).calls_kernels or failure.element is None or not is_special(program):
        return found
    choices = CountedChoices(0, print_program(root))
    drawn = (
        {slot: fitting_data(u, root, choices, draw_ordinary) for slot, u in slots.items()}
        for _ in range(DRAWS)
    )
    batches = tuple(Batch(inputs) for inputs in drawn)
    case = Case(CaseId("reduce", "MIXED", "MIXED", "ordinary", 0), root, batches)
    (verdict,) = judge.judge([case])
    if verdict.failure is None:
        return found
    ordinary = replace(program, inputs=batches[verdict.failure.batch].inputs)
    (shown,) = probe([ordinary])
    if shown is None or is_special(ordinary):
        return found

    def keeping(candidates: Sequence[Candidate]) -> list[CaseFailure | None]:
        shown = probe(candidates)
        return [None if is_special(c) else f for c, f in zip(candidates, shown, strict=True)]

    return reduce_program(ordinary, shown, keeping)
