"""Sends programs again: alone, one after the other, with more or other data, in reverse order.

A backend may be right on what it gets first, or on many programs together, and wrong on what users
do: run one program, and run it again with other data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from uop.conformance.coverage.value_classes import named, special_in
from uop.conformance.protocol.types import Outcome, Outputs, Program
from uop.conformance.suite.case import Batch, Case, InvalidCase
from uop.conformance.suite.choices import CountedChoices
from uop.conformance.suite.generate import case_by_id
from uop.conformance.suite.levels.graph.pairs import fitting_data
from uop.conformance.suite.values import draw_ordinary
from uop.conformance.suite.vocabulary import Vocabulary
from uop.conformance.workers.transport import Session
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.text.program import print_program
from uop.spec.uop import UOp


def case_to_send(id: str, seed: int, vocabulary: Vocabulary, *, again: bool) -> Case | InvalidCase:
    """The case of an id; on more data if it is sent again."""
    case = case_by_id(id, seed, vocabulary)
    return on_other_data(case) if again and isinstance(case, Case) else case


def on_other_data(case: Case) -> Case:
    """The case with one more batch: the elements of its first inputs, each one place further.

    The case itself where that changes nothing or has no meaning, and of a program that another one
    judges.
    """
    inputs = {slot: np.roll(a, 1) for slot, a in case.batches[0].inputs.items()}
    if case.source is not None or all(a.size < 2 for a in inputs.values()):
        return case
    try:
        evaluate_full(case.root, inputs)
    except (UndefinedError, UnsupportedError):
        return case
    return replace(case, batches=(*case.batches, Batch(inputs)))


def with_ordinary_data(case: Case) -> Case | None:
    """The program on ordinary data of the same shapes; None where it has no special data, or no
    meaning on others.
    """
    if not _special(case):
        return None
    (data,) = ordinary_data(case.root, 1)
    try:
        evaluate_full(case.root, data)
    except (UndefinedError, UnsupportedError):
        return None
    return Case(case.id, case.root, (Batch(data),))


def ordinary_data(root: UOp, count: int) -> list[dict[int, Array]]:
    """Batches of ordinary values for a program, each time the same."""
    choices, inputs = CountedChoices(0, print_program(root)), slots_of(root).items()
    return [
        {slot: fitting_data(u, root, choices, draw_ordinary) for slot, u in inputs}
        for _ in range(count)
    ]


def classes_beside(case: Case, other: Case) -> str:
    """The special classes of the inputs of a case that those of another lack, by name."""
    return ", ".join(named(_special(case) & ~_special(other)))


def _special(case: Case) -> int:
    return special_in(a for batch in case.batches for a in batch.inputs.values())


class Again:
    """A session whose programs run alone, with their batches in reverse order."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.hello = replace(session.hello, limits=replace(session.hello.limits, programs=1))

    def __getattr__(self, name: str) -> Any:
        """All else is of the session."""
        return getattr(self.session, name)

    def submit(self, programs: Sequence[Program]) -> None:
        self.session.submit([replace(p, batches=p.batches[::-1]) for p in programs])

    def collect(self) -> list[Outcome]:
        return [
            Outputs(outcome.batches[::-1]) if isinstance(outcome, Outputs) else outcome
            for outcome in self.session.collect()
        ]
