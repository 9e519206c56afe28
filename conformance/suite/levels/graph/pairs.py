"""Generate level graph, pairs: one op on another, on a shared operand, with constants.

Most rewrites look for two ops and a constant, which a random graph almost never holds together.
Here each pair of listed ops has its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, product, zip_longest
from math import prod

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices, CountedChoices
from uop.conformance.suite.levels.graph.pair_forms import FORMS, Pair, targets
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Counts, Generated, Group, group, program
from uop.conformance.suite.levels.nodes import outputs
from uop.conformance.suite.levels.op.elementwise import guarded
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import INTS, VALUES, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import CONVERSIONS, Op
from uop.spec.registry import DECLARATIONS
from uop.spec.uop import UOp, const, param

COUNTS = (1, 12, 80)
TOGETHER = 16
"""The pairs in one program; each is an output."""
ARITHMETIC = (Op.ADD, Op.SUB, Op.MUL)
FEW = 16
"""An input of fewer elements is folded."""
LONG = 1201
"""More than a thousand elements, and no multiple of a vector."""
CHAINS = 12
Build = Callable[[DType, Vocabulary, Choices, int], Generated]
IN_SMOKE = ("int8", "int32", "uint32", "float32")
"""The dtypes of a smoke run, and those on which it has all patterns of rewrites."""


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


def ordinary_first(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches for small inputs: of distinct values, special values, and mixed ones."""
    draws = (values.draw_ordinary, values.draw_special, values.draw_mixed)
    inputs = slots_of(root).items()
    return [{k: fitting_data(u, root, choices, draw) for k, u in inputs} for draw in draws]


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
        if user.declaration.is_partial and user.src[1] is u:
            data = guarded(user.op, (user.dtype, u.dtype), [data, data])[1]
    return data


@cache
def pairs(dtype: DType, vocabulary: Vocabulary) -> tuple[Pair, ...]:
    """Return all pairs of a dtype: one of each form, then a second one of each."""
    order = CountedChoices(0, dtype.kind.value)
    forms = order.shuffled(list(_forms(dtype, vocabulary)))
    rows = zip_longest(*(order.shuffled(form) for form in forms))
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
    ops = vocabulary.on(dtype)
    g, c, u = ops.binary + ops.binary_wide, ops.comparisons, ops.unary + ops.unary_wide
    u += tuple(op for op in vocabulary.of(CONVERSIONS) if len(targets(op, dtype, vocabulary)) > 1)
    n = vocabulary.of(ARITHMETIC) if dtype.is_float else ()
    listed = {"f": g + c, "g": g, "c": c, "u": u, "r": vocabulary.of(FOLDS), "n": n}
    for places, build in FORMS:
        every = product(*(listed[place] for place in places))
        form = [Pair(build, chosen) for chosen in every]
        if form and _is_in(vocabulary, form[0], dtype):
            yield form


def _is_in(vocabulary: Vocabulary, pair: Pair, dtype: DType) -> bool:
    """Return whether a vocabulary has all that a pair holds."""
    if vocabulary.is_whole:
        return True
    return _is_spoken(vocabulary, pair.made(CountedChoices(0, ""), dtype, vocabulary))


def _is_spoken(vocabulary: Vocabulary, u: UOp) -> bool:
    return vocabulary.is_whole or vocabulary.speaks(u)


def aliased(vocabulary: Vocabulary) -> Iterator[Group]:
    """Return groups of ops whose operands are one node, on long vectors, of chains of three, and of
    programs that differ in a constant: a backend may treat these in another way.
    """
    return groups_of(vocabulary, lambda dtype: KINDS)


def groups_of(
    vocabulary: Vocabulary,
    kinds: Callable[[DType], Iterable[tuple[str, Counts, Build]]],
    in_smoke: Collection[str] = IN_SMOKE,
) -> Iterator[Group]:
    """Yield the groups of some kinds on each dtype; a smoke run has those of few dtypes."""
    for dtype in vocabulary.of_dtypes(VALUES):
        for name, (few, default, full), build in kinds(dtype) if dtype is not dtypes.index else ():
            if _has_first(build, dtype, vocabulary):
                counts = (few if dtype.name in in_smoke else 0, default, full)
                yield group("graph", None, dtype, name, counts, build, dtype, vocabulary)


def _has_first(build: Build, dtype: DType, vocabulary: Vocabulary) -> bool:
    """Return whether a vocabulary has what the first program holds; the whole language has it.

    A TUPLE is packaging, which a backend without it does without.
    """
    if vocabulary.is_whole:
        return True
    root = build(dtype, vocabulary, CountedChoices(0, ""), 0).root
    values = root.src if root.op is Op.TUPLE else (root,)
    return len(root.src) > 0 and all(map(vocabulary.speaks, values))


def _aliased(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Apply each op to one long vector twice, to two, and to the result of another op twice."""
    x, y = _inputs(2, LONG, dtype, vocabulary)
    results, ops = [], vocabulary.on(dtype)
    for op in (*ops.binary, *ops.comparisons, *ops.binary_wide):
        results.append(UOp(op, x, y))
        if not DECLARATIONS[op].is_partial:
            twice = UOp(choices.pick(ops.binary or (op,)), x, y)
            fits = twice.dtype is dtype and not twice.declaration.is_partial
            results += [UOp(op, x, x), *([UOp(op, twice, twice)] if fits else [])]
    results += [UOp(op, x) for op in ops.unary + ops.unary_wide]
    return on_data(results, vocabulary, choices)


def _three(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build chains of three ops on four inputs, from the left and from the right."""
    inputs = _inputs(4, 65, dtype, vocabulary)
    ops = vocabulary.on(dtype).total
    results = []
    for k in range(CHAINS if ops else 0):
        a, b, c, d = choices.shuffled(inputs)
        f, g, h = (choices.pick(ops) for _ in range(3))
        left = UOp(h, UOp(g, UOp(f, a, b), c), d)
        right = UOp(h, a, UOp(g, b, UOp(f, c, d)))
        results.append(right if k % 2 else left)
    return on_data(results, vocabulary, choices)


def _inputs(count: int, length: int, dtype: DType, vocabulary: Vocabulary) -> list[UOp]:
    """Return inputs of a length, or of the most elements that a value may have."""
    shape = (min(length, vocabulary.elements or length),)
    return [param(slot, shape, dtype) for slot in range(count)]


def _constants(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build one graph with other constants in each program: it is no program of before."""
    x, y = _inputs(2, 6, dtype, vocabulary)
    numbers = (k + 3 + 2 * (index % 50) for k in range(2))
    c, d = (const(n % 2 == 1 if dtype is dtypes.bool else n, dtype) for n in numbers)
    values = [UOp(Op.ADD, UOp(Op.MUL, x, c), d), UOp(Op.MAX, y, c)]
    values.append(UOp(Op.WHERE, UOp(Op.CMPLT, x, c), y, d))
    return on_data(values, vocabulary, choices)


def on_data(
    results: Iterable[UOp],
    vocabulary: Vocabulary,
    choices: Choices,
    data: Callable[[UOp, Choices], list[dict[int, Array]]] = data_for,
) -> Generated:
    """Return a program of the results that a vocabulary has."""
    root = outputs(*dict.fromkeys(u for u in results if vocabulary.speaks(u)))
    return program(root, *data(root, choices))


KINDS: tuple[tuple[str, Counts, Build], ...] = (
    ("aliased", (1, 1, 4), _aliased),
    ("three", (1, 1, 12), _three),
    ("constants-alone", (2, 2, 9), _constants),
)
"""Each with its numbers of programs; a smoke run has those of few dtypes."""
