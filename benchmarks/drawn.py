"""What a fuzz run draws: how large its programs are, how much of them tells, how few are alike."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod

import numpy as np
from figure import Figure, at_least, at_most

from uop.conformance.fuzz.fuzz import drawn, groups_to_draw
from uop.conformance.shrink.reduce import is_computing
from uop.conformance.suite.case import LEVELS, Case
from uop.conformance.suite.generate import case_by_id
from uop.conformance.suite.vocabulary import whole
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import to_bits
from uop.interpreter.tensor.evaluation import FullOutput
from uop.interpreter.values import Value, either
from uop.spec.dtype import dtypes
from uop.spec.text.program import print_program
from uop.spec.uop import UOp

PROGRAMS, SEED = 2000, 1


def fuzz_programs() -> Iterator[Figure]:
    """The random programs of a fuzz run: those of level op are no whole programs."""
    groups = {level: groups_to_draw(level, whole()) for level in LEVELS if level != "op"}
    ids = islice(drawn(groups, SEED), PROGRAMS)
    made = [case_by_id(str(id), SEED) for id in ids]
    cases = [case for case in made if isinstance(case, Case)]
    nodes = live = constant = outputs = gone = elements = 0
    for case in cases:
        values: dict[UOp, Value] = {}
        found = listed(evaluate_full(case.root, case.batches[0].inputs, values.__setitem__))
        counted = [u for u in values if is_computing(u) and u.dtype is not dtypes.index]
        nodes += len(counted)
        live += sum(tells(values[u]) for u in counted)
        outputs += len(found)
        constant += sum(not tells(value) for value in found)
        elements += sum(value.data.size for value in found)
        open_ = (either(value.invalid, value.unspecified) for value in found)
        gone += sum(int(np.count_nonzero(mask)) for mask in open_ if mask is not None)
    sizes = [prod(a.shape) for case in cases for a in case.batches[0].inputs.values()]
    alike = len(cases) - len({print_program(case.root) for case in cases})
    yield at_least(f"computing nodes of {len(cases):,} programs, mean", nodes / len(cases), 11, "")
    yield at_least("elements of an input, mean", sum(sizes) / len(sizes), 64, "")
    yield at_least("nodes whose elements differ", 100 * live / nodes, 95, "%")
    yield at_least("outputs whose elements differ", 100 * (1 - constant / outputs), 90, "%")
    yield at_least("distinct programs", 100 * (1 - alike / len(cases)), 95, "%")
    yield at_most("unspecified elements of outputs", 100 * gone / elements, 1, "%")


def listed(result: FullOutput) -> list[Value]:
    if isinstance(result, Value):
        return [result]
    return list(result.values() if isinstance(result, dict) else result)


def tells(value: Value) -> bool:
    """Whether the elements differ, or there is only one."""
    bits = to_bits(np.ascontiguousarray(value.data)).reshape(-1)
    return bits.size == 1 or bool((bits != bits[:1]).any())
