"""Generate level graph, pairs: one op behind another, on a shared operand, beside constants.

Most rewrites look for two ops and a constant, which a random graph almost never holds together.
Here each pair of listed ops has its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, product, zip_longest
from math import prod

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, CountedChoices, shuffled
from uop.conformance.suite.levels.graph.pair_forms import (
    FORMS,
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
from uop.spec.dtype import INTS, VALUES, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import CONVERSIONS, Op
from uop.spec.uop import UOp

COUNTS = (1, 12, 80)
TOGETHER = 16
"""The pairs in one program; each is an output."""
ARITHMETIC = (Op.ADD, Op.SUB, Op.MUL)
FEW = 16
"""An input of fewer elements is folded."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(VALUES):
        if dtype is not dtypes.index and any(_forms(dtype, vocabulary)):
            yield group("graph", None, dtype, "pairs", COUNTS, _pairs, dtype, vocabulary)


def _pairs(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build the next pairs; after the last pair the first one follows, with other constants."""
    every = pairs(dtype, vocabulary)
    first = own_share(dtype, len(every)) + TOGETHER * index
    places = range(first, first + TOGETHER)
    chosen = ((every[k % len(every)], turn_of(dtype, k // len(every))) for k in places)
    made = [pair.made(choices, dtype, vocabulary, turn) for pair, turn in chosen]
    root = outputs(*dict.fromkeys(u for u in made if _is_spoken(vocabulary, u)) or made)
    return program(root, *data_for(root, choices))


def own_share(dtype: DType, count: int) -> int:
    """Return where a dtype begins, so that those of one kind share out what one program each has.

    Signed and unsigned integers take turns.
    """
    kind = [d for d in VALUES if d.kind is dtype.kind]
    if dtype.is_int:
        kind = sorted(INTS, key=lambda d: (d.bits, d.name))
    return count * kind.index(dtype) // len(kind)


def turn_of(dtype: DType, rounds: int) -> int:
    """Return what chooses constants: another one for each dtype and round."""
    return 2 * list(VALUES).index(dtype) + rounds


def data_for(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches of crossed values, special values, and mixed ones; a fold gets ordinary ones.

    The first two inputs of a program are crossed.
    """
    inputs = slots_of(root).items()
    return [
        {k: fitting_data(u, root, choices, _crossed(k)) for k, u in inputs},
        {k: fitting_data(u, root, choices, values.draw_special) for k, u in inputs},
        {k: fitting_data(u, root, choices, _mixed(u)) for k, u in inputs},
    ]


def _crossed(slot: int) -> values.Draw:
    """Draw a column of crossed values; special ones for the third input and later."""

    def draw(dtype: DType, n: int, key: int) -> Array:
        if slot > 1:
            return values.draw_special(dtype, n, key)
        return np.resize(values.crossed(dtype)[slot], n)

    return draw


def _mixed(u: UOp) -> values.Draw:
    return values.draw_ordinary if prod(u.shape) < FEW else values.draw_mixed


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
    order = CountedChoices(0, dtype.kind.value)
    forms = shuffled(order, list(_forms(dtype, vocabulary)))
    rows = zip_longest(*(shuffled(order, form) for form in forms))
    made = (pair for pair in chain.from_iterable(rows) if pair is not None)
    return tuple(_in_turn(pair for pair in made if _is_in(vocabulary, pair, dtype)))


def _in_turn(every: Iterable[Pair]) -> Iterator[Pair]:
    """Let the pairs of one outer op take turns in choosing constants."""
    turns: Counter[tuple[Op, ...]] = Counter()
    for pair in every:
        yield replace(pair, turn=turns[pair.ops[:1]])
        turns[pair.ops[:1]] += 1


def _forms(dtype: DType, vocabulary: Vocabulary) -> Iterator[list[Pair]]:
    """Yield the pairs of each form of which the vocabulary has the first."""
    g = binary_ops(dtype, vocabulary) + binary_wide_ops(dtype, vocabulary)
    c = comparisons(dtype, vocabulary)
    u = unary_ops(dtype, vocabulary) + unary_wide_ops(dtype, vocabulary)
    u += tuple(op for op in vocabulary.of(CONVERSIONS) if len(targets(op, dtype, vocabulary)) > 1)
    n = vocabulary.of(ARITHMETIC) if dtype.is_float else ()
    listed = {"f": g + c, "g": g, "c": c, "u": u, "r": vocabulary.of(FOLDS), "n": n}
    for places, build in FORMS:
        every = product(*(listed[place] for place in places))
        form = [Pair(build, ops) for ops in every]
        if form and _is_in(vocabulary, form[0], dtype):
            yield form


def _is_in(vocabulary: Vocabulary, pair: Pair, dtype: DType) -> bool:
    """Return whether a vocabulary has all that a pair holds."""
    if vocabulary.is_whole:
        return True
    return _is_spoken(vocabulary, pair.made(CountedChoices(0, ""), dtype, vocabulary))


def _is_spoken(vocabulary: Vocabulary, u: UOp) -> bool:
    return vocabulary.is_whole or all(map(vocabulary.takes, computed(u)))
