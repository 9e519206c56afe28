"""Generate level graph, aliased: ops whose operands are one node, on long vectors; chains of three.

A backend may treat an operand that it meets twice, or the elements beyond the first thousand, in
another way than the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from uop.conformance.suite.choices import Choices, CountedChoices, pick, shuffled
from uop.conformance.suite.levels.graph.pairs import data_for
from uop.conformance.suite.levels.graph.steps import (
    binary_ops,
    binary_wide_ops,
    comparisons,
    unary_ops,
    unary_wide_ops,
)
from uop.conformance.suite.levels.group import Counts, Generated, Group, group, program
from uop.conformance.suite.levels.nodes import outputs
from uop.conformance.suite.levels.op.patterns import BY_FIT
from uop.conformance.suite.vocabulary import Vocabulary, computed
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, param

LENGTH = 1201
"""More than a thousand elements, and no multiple of a vector."""
CHAINS = 12
Build = Callable[[DType, Vocabulary, Choices, int], Generated]
IN_SMOKE = ("int8", "int32", "uint32", "float32")
"""The dtypes of a smoke run."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(VALUES):
        for name, (few, default, full), build in KINDS:
            if dtype is not dtypes.index and _is_spoken(build, dtype, vocabulary):
                counts = (few if dtype.name in IN_SMOKE else 0, default, full)
                yield group("graph", None, dtype, name, counts, build, dtype, vocabulary)


def _is_spoken(build: Build, dtype: DType, vocabulary: Vocabulary) -> bool:
    """Return whether a vocabulary has what the first program holds."""
    root = build(dtype, vocabulary, CountedChoices(0, ""), 0).root
    return len(root.src) > 0 and all(map(vocabulary.takes, computed(root)))


def _binary(dtype: DType, vocabulary: Vocabulary) -> tuple[Op, ...]:
    ops = binary_ops(dtype, vocabulary) + comparisons(dtype, vocabulary)
    return ops + binary_wide_ops(dtype, vocabulary)


def _aliased(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Apply each op to one long vector twice, to two, and to the result of another op twice."""
    x, y = _inputs(2, LENGTH, dtype, vocabulary)
    results = []
    for op in _binary(dtype, vocabulary):
        results.append(UOp(op, x, y))
        if op not in BY_FIT:
            twice = UOp(pick(choices, binary_ops(dtype, vocabulary) or (op,)), x, y)
            fits = twice.dtype is dtype and twice.op not in BY_FIT
            results += [UOp(op, x, x), *([UOp(op, twice, twice)] if fits else [])]
    results += [
        UOp(op, x) for op in unary_ops(dtype, vocabulary) + unary_wide_ops(dtype, vocabulary)
    ]
    return _on_data(results, vocabulary, choices)


def _three(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build chains of three ops on four inputs, from the left and from the right."""
    inputs = _inputs(4, 65, dtype, vocabulary)
    ops = [op for op in binary_ops(dtype, vocabulary) if op not in BY_FIT]
    results = []
    for k in range(CHAINS if ops else 0):
        a, b, c, d = shuffled(choices, inputs)
        f, g, h = (pick(choices, ops) for _ in range(3))
        left = UOp(h, UOp(g, UOp(f, a, b), c), d)
        right = UOp(h, a, UOp(g, b, UOp(f, c, d)))
        results.append(right if k % 2 else left)
    return _on_data(results, vocabulary, choices)


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
    return _on_data(values, vocabulary, choices)


def _on_data(results: list[UOp], vocabulary: Vocabulary, choices: Choices) -> Generated:
    root = outputs(*dict.fromkeys(u for u in results if all(map(vocabulary.takes, computed(u)))))
    return program(root, *data_for(root, choices))


KINDS: tuple[tuple[str, Counts, Build], ...] = (
    ("aliased", (1, 1, 4), _aliased),
    ("three", (1, 2, 12), _three),
    ("constants-alone", (2, 3, 9), _constants),
)
"""Each with its numbers of programs; a smoke run has those of few dtypes."""
