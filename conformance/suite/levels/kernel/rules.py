"""Generate level kernel, rules: the left sides of the rules of our compiler, each under its name.

A rule that is wrong on counters, on data or for some constants is wrong here; so is a rule that
another compiler has for the same left side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from uop.compiler.rewriting.patterns import BOOLS, PLACE, Pattern, patterns
from uop.compiler.rewriting.rules import RULES
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Generated, Group, group
from uop.conformance.suite.levels.kernel import scalar
from uop.conformance.suite.levels.nodes import cast, store
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import AxisType
from uop.spec.dtype import VALUES, DType, dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const

SMOKE = (dtypes.bool, dtypes.int32, dtypes.float32)
"""The dtypes of a smoke run."""
DRAWN = 4
"""How often a program holds each left side, with other constants."""
NUMBERS = (*range(-7, 8), -12, 9, 12, 16, 21, 24, 30)
COUNTS, BELOW = (24, 5), 7
"""How far the counters x and y count; x begins so far below 0."""
PLACES = COUNTS[0] * COUNTS[1]
TARGET, BITS, FLAGS, SOURCE = range(4)
"""The slots: results, and those that are bools; bools that are read, and values."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for rule in dict.fromkeys(p.rule for p in _every()):
        for dtype in VALUES:
            if dtype is not dtypes.index and (lefts := _lefts(rule, dtype, vocabulary)):
                name, counts = f"rule-{rule.replace('_', '-')}", (int(dtype in SMOKE), 1, 20)
                needs = (*scalar.KERNEL_OPS, Op.SPECIAL, Op.RANGE, Op.END, Op.GROUP)
                args = (lefts, dtype)
                yield group("kernel", None, dtype, name, counts, _program, *args, needs=needs)


def _every() -> list[Pattern]:
    return [pattern for stage in RULES for pattern in patterns(stage)]


@cache
def _lefts(rule: str, dtype: DType, vocabulary: Vocabulary) -> tuple[Pattern, ...]:
    """Return the patterns of a rule that a vocabulary has on a dtype."""
    found = []
    for pattern in (p for p in _every() if p.rule == rule):
        effect = _Kernel(dtype).effect(pattern, next(pattern.constants(NUMBERS)), 0)
        if effect is not None and vocabulary.speaks(effect):
            found.append(pattern)
    return tuple(found)


def _program(lefts: Sequence[Pattern], dtype: DType, choices: Choices, index: int) -> Generated:
    """Store each left side for some constants, at all positions of two counters."""
    kernel = _Kernel(dtype, DRAWN * len(lefts))
    effects: list[UOp] = []
    for pattern in lefts:
        chosen = list(pattern.constants(NUMBERS))
        for _ in range(min(DRAWN, len(chosen))):
            effect = kernel.effect(pattern, choices.pick(chosen), len(effects))
            if effect is not None:
                effects.append(effect)
    body = UOp(Op.SINK, scalar.closed(UOp(Op.GROUP, *effects), kernel.counters[1:]))
    return scalar.with_contents(scalar.launch(body, *kernel.memories), choices)


@dataclass(slots=True)
class _Kernel:
    """Builds the effects of a kernel over two counters. An index is stored as a number."""

    dtype: DType
    effects: int = 1
    """The most effects that it may have."""
    counters: tuple[UOp, UOp] = (
        scalar.special("gidx0", COUNTS[0]),
        scalar.loop(1, COUNTS[1], AxisType.REDUCE),
    )

    @property
    def memories(self) -> list[scalar.Memory]:
        return [
            scalar.Memory(TARGET, PLACES * self.effects, self.dtype),
            scalar.Memory(BITS, PLACES * self.effects, dtypes.bool),
            scalar.Memory(FLAGS, 3 * PLACES, dtypes.bool),
            scalar.Memory(SOURCE, 3 * PLACES, self.dtype),
        ]

    def effect(self, pattern: Pattern, constants: Mapping[str, int], number: int) -> UOp | None:
        """Return what stores a left side; None if the dtype has none, or no such constant."""
        home = self.dtype if pattern.dtype is None else pattern.dtype
        if home not in pattern.dtypes or (home is dtypes.index and self.dtype is not dtypes.int32):
            return None
        target, bits, _, held = (memory.param for memory in self.memories)
        position = scalar.flat(self.counters)
        here = scalar.plus(position, PLACES * number)

        def leaf(name: str) -> UOp:
            if name == PLACE:
                return (
                    scalar.at(target, here) if pattern.op is Op.STORE else scalar.at(held, position)
                )
            return self._index(name, number) if home is dtypes.index else self._read(name)

        try:
            value = pattern.graph(home, constants, leaf)
        except (InvalidError, ValueError):
            return None
        if pattern.op is Op.STORE:
            return value
        value = cast(value, self.dtype) if value.dtype is dtypes.index else value
        return store(scalar.at(bits if value.dtype is dtypes.bool else target, here), value)

    def _read(self, name: str) -> UOp:
        """Return an element of memory, another one for each name."""
        slot = FLAGS if name in BOOLS else SOURCE
        shift = PLACES * ("pqxyz".index(name) % 3) + 1
        return self.memories[slot].load(
            scalar.modulo(scalar.plus(scalar.flat(self.counters), shift), 3 * PLACES)
        )

    def _index(self, name: str, number: int) -> UOp:
        """Return a condition on counters, or an index: by turns a sum, a counter, or data."""
        x, y = self.counters
        below = scalar.plus(x, -BELOW)
        turns = {
            "x": (below, x, cast(self._read("x"), dtypes.index)),
            "y": (y, y, cast(self._read("y"), dtypes.index)),
            "z": (scalar.times(y, 3),),
            "p": (UOp(Op.CMPLT, below, index_const(3)),),
            "q": (UOp(Op.CMPLT, index_const(1), y),),
        }[name]
        return turns[number % len(turns)]
