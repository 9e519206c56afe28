"""Generate level graph, pairs: one op behind another, on a shared operand, beside constants.

Most rewrites look for two ops and a constant, which a random graph almost never holds together.
Here each pair of listed ops has its turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, product, zip_longest

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, CountedChoices, shuffled
from uop.conformance.suite.levels.graph.pair_forms import (
    CONVERSIONS,
    FORMS,
    Operands,
    Pair,
    targets,
)
from uop.conformance.suite.levels.graph.steps import (
    FOLDS,
    binary_ops,
    binary_wide_ops,
    comparisons,
    unary_ops,
    unary_wide_ops,
)
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.nodes import outputs
from uop.conformance.suite.levels.op.elementwise import guarded
from uop.conformance.suite.levels.op.patterns import BY_FIT
from uop.conformance.suite.vocabulary import Vocabulary, computed
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

COUNTS = (0, 16, 160)
TOGETHER = 4
"""The pairs in one program; each is an output."""
ARITHMETIC = (Op.ADD, Op.SUB, Op.MUL)
DRAWS = (values.draw_special, values.draw_mixed, values.draw_ordinary)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(VALUES):
        if dtype is not dtypes.index and any(_forms(dtype, vocabulary)):
            yield group("graph", None, dtype, "pairs", COUNTS, _pairs, dtype, vocabulary)


def _pairs(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build the next pairs; after the last pair the first one follows, with other constants."""
    every, first = pairs(dtype, vocabulary), TOGETHER * index
    chosen = (every[k % len(every)] for k in range(first, first + TOGETHER))
    made = (pair.made(Operands(choices, dtype, vocabulary)) for pair in chosen)
    root = outputs(*dict.fromkeys(made))
    inputs = slots_of(root).items()
    return program(
        root, *({k: fitting_data(u, root, choices, draw) for k, u in inputs} for draw in DRAWS)
    )


def fitting_data(u: UOp, root: UOp, choices: Choices, draw: values.Draw) -> Array:
    """Return data for an input, which fits if it is a divisor or the count of a shift."""
    data = values.sample(draw, u.dtype, u.shape, choices)
    for user in root.toposort():
        if user.op in BY_FIT and user.src[1] is u:
            data = guarded(user.op, (user.dtype, u.dtype), [data, data])[1]
    return data


@cache
def pairs(dtype: DType, vocabulary: Vocabulary) -> tuple[Pair, ...]:
    """Return all pairs of a dtype: one of each form, then a second one of each."""
    order = CountedChoices(0, dtype.name)
    forms = shuffled(order, list(_forms(dtype, vocabulary)))
    rows = zip_longest(*(shuffled(order, form) for form in forms))
    made = (pair for pair in chain.from_iterable(rows) if pair is not None)
    return tuple(pair for pair in made if _is_in(vocabulary, pair, dtype))


def _forms(dtype: DType, vocabulary: Vocabulary) -> Iterator[list[Pair]]:
    """Yield the pairs of each form of which the vocabulary has the first."""
    g = binary_ops(dtype, vocabulary) + binary_wide_ops(dtype, vocabulary)
    c = comparisons(dtype, vocabulary)
    u = unary_ops(dtype, vocabulary) + unary_wide_ops(dtype, vocabulary)
    u += tuple(op for op in vocabulary.of(CONVERSIONS) if len(targets(op, dtype, vocabulary)) > 1)
    n = vocabulary.of(ARITHMETIC) if dtype.is_float else ()
    listed = {"f": g + c, "g": g, "c": c, "u": u, "r": vocabulary.of(FOLDS), "n": n}
    for places, build in FORMS:
        form = [Pair(build, ops) for ops in product(*(listed[place] for place in places))]
        if form and _is_in(vocabulary, form[0], dtype):
            yield form


def _is_in(vocabulary: Vocabulary, pair: Pair, dtype: DType) -> bool:
    """Return whether a vocabulary has all that a pair holds."""
    if vocabulary.is_whole:
        return True
    made = pair.made(Operands(CountedChoices(0, ""), dtype, vocabulary))
    return all(map(vocabulary.takes, computed(made)))
