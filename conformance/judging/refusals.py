"""Says whether a backend refuses a program for its data: on ordinary data it then takes it."""

from __future__ import annotations

from functools import reduce
from operator import or_

from uop.conformance.coverage.value_classes import SPECIAL, classes_in
from uop.conformance.suite.case import Batch, Case
from uop.conformance.suite.choices import CountedChoices
from uop.conformance.suite.levels.graph.pairs import fitting_data
from uop.conformance.suite.values import draw_ordinary
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import STORED
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.text.program import print_program


def special_in(case: Case) -> int:
    """The special classes of the inputs of a case, as a bit mask."""
    arrays = (a for batch in case.batches for a in batch.inputs.values())
    return reduce(or_, (classes_in(a, STORED[a.dtype]) for a in arrays), 0) & SPECIAL


def with_ordinary_data(case: Case) -> Case | None:
    """The program on ordinary data of the same shapes; None where it has no special data, or no
    meaning on others.
    """
    if not special_in(case):
        return None
    root, choices = case.root, CountedChoices(0, print_program(case.root))
    data = {
        slot: fitting_data(u, root, choices, draw_ordinary) for slot, u in slots_of(root).items()
    }
    try:
        evaluate_full(root, data)
    except (UndefinedError, UnsupportedError):
        return None
    return Case(case.id, root, (Batch(data),))
