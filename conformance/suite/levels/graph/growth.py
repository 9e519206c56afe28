"""Grow a graph: interpret each node at once, so that constant ones are dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from math import prod

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.nodes import buffer, constant
from uop.conformance.suite.vocabulary import Vocabulary, computed
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric import storage
from uop.interpreter.numeric.storage import Array, to_bits
from uop.interpreter.tensor.evaluation import FullOutput, meaning_of
from uop.interpreter.values import Value, either
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.graph import slots_of
from uop.spec.latitude import Exact, Rounded, Ulp
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, const, param

MOST_OPEN = 0.04
"""The largest share of absent or unspecified elements in a node that others build on."""

MOST_NAN = 0.3
"""The largest share of NaNs; more of them hide the rest of the graph."""

MOST_OUTPUTS = 4

DEEPEST_WIDE = 2
"""The most ops with a budget in a row: after more, any result is accepted."""

SMALL = (1, 2, 3, 5, 7, 10)


@dataclass(slots=True, eq=False)
class Growth:
    """The candidates, which later nodes may use, and their values.

    The shape of every candidate broadcasts to `base`. `unused` holds those that nothing uses yet,
    `live` all nodes at or below a candidate but for sources and shapes, and `loose` those for which
    a backend may return another value than the reference.
    """

    choices: Choices
    base: Shape
    palette: tuple[DType, ...]
    vocabulary: Vocabulary
    candidates: list[UOp] = field(default_factory=list)
    unused: dict[UOp, None] = field(default_factory=dict)
    live: dict[UOp, None] = field(default_factory=dict)
    wide: dict[UOp, int] = field(default_factory=dict)
    loose: set[UOp] = field(default_factory=set)
    known: dict[UOp, Value] = field(default_factory=dict)
    inputs: dict[int, tuple[Array, Array]] = field(default_factory=dict)
    taken: set[UOp] = field(default_factory=set)
    """Nodes that are known to be in the vocabulary."""
    slots: int = 0

    # Leaves.

    def input(self, dtype: DType, shape: Shape, draw: values.Draw = values.draw_mixed) -> UOp:
        """Add a PARAM with data of its own."""
        self.slots += 1
        return self._with_data(param(self.slots - 1, shape, dtype), draw)

    def buffer(self, dtype: DType, shape: Shape) -> UOp:
        """Add a BUFFER that starts with contents."""
        return self._with_data(self.blank(dtype, shape), values.draw_mixed)

    def blank(self, dtype: DType, shape: Shape) -> UOp:
        """Return a BUFFER that must be written whole before it is read."""
        self.slots += 1
        return buffer(self.slots - 1, shape, dtype)

    def _with_data(self, u: UOp, draw: values.Draw) -> UOp:
        n = prod(u.shape)
        key = self.choices.data_key()
        first, second = (draw(u.dtype, n, key + k).reshape(u.shape) for k in (0, 1 << 33))
        self.inputs[self.slots - 1] = (first, second)
        self.known[u] = Value(first)
        return u

    def constant(self, dtype: DType) -> UOp:
        """Return a constant: small, special, or of any bits."""
        kind = self.choices.below(4)
        if dtype is dtypes.bool:
            return const(kind % 2 == 0, dtype)
        if kind < 2:
            return const(self.choices.pick(SMALL if dtype.min == 0 else (*SMALL, -1, -3)), dtype)
        draw = values.draw_special if kind == 2 else values.draw_ordinary
        return constant(values.sample(draw, dtype, 1, self.choices), dtype)

    # Values.

    def value(self, u: UOp) -> Value:
        """Return the value of a node on the first batch.

        Raises UndefinedError if it has no meaning.
        """
        known = self.known.get(u)
        if known is None:
            sources = u.data_src
            # Only what one step has built is unknown: a few nodes deep.
            operands = [self.value(s) for s in sources]
            self.known[u] = known = _computed(u, operands)
            self.wide[u] = max((self.width(s) for s in sources), default=0) + _widens(u)
            if _is_loose(u) or not self.loose.isdisjoint(sources):
                self.loose.add(u)
        return known

    def width(self, u: UOp) -> int:
        """Return the most ops with a budget in a row at and above a node with a value."""
        return self.wide.get(u, 0)

    # Growing.

    def add_if_useful(self, u: UOp) -> bool:
        """Make the node a candidate, unless what follows it would be dead, constant or open."""
        if u in self.candidates or not self._is_spoken(u):
            return False
        try:
            value = self.value(u)
        except UndefinedError:
            return False
        useful = self.width(u) <= DEEPEST_WIDE and _is_alive(value) and not self._repeats(u, value)
        if useful:
            self.add(u)
        return useful

    def _is_spoken(self, u: UOp) -> bool:
        """Return whether the vocabulary has the new nodes from u down."""
        if self.vocabulary.is_whole:
            return True
        new = [n for n in computed(u, self.taken) if n not in self.taken]
        if not all(map(self.vocabulary.takes, new)):
            return False
        self.taken.update(new)
        return True

    def add(self, u: UOp) -> None:
        """Make the node a candidate; the candidates below it count as used."""
        self._count(u)
        self.candidates.append(u)
        self.unused[u] = None

    def _repeats(self, u: UOp, value: Value) -> bool:
        """Return whether an op on several operands returns one of them: the others are dead."""
        if len(u.src) < 2 or not u.declaration.is_elementwise:
            return False
        same = (self.known[s].data for s in u.src if s.dtype is u.dtype and s.shape == u.shape)
        return any(np.array_equal(to_bits(value.data), to_bits(data)) for data in same)

    def _count(self, u: UOp) -> None:
        """Record the new nodes from u down."""
        if u in self.live or u.op in (Op.PARAM, Op.BUFFER, Op.CONST):
            return
        self.live[u] = None
        for s in u.data_src:
            self.unused.pop(s, None)
            self._count(s)

    def outputs(self) -> list[UOp]:
        """Return the nodes that nothing uses, at most MOST_OUTPUTS; one even if it is an input."""
        computed = [u for u in self.unused if u in self.live] or self.candidates[-1:]
        return computed[-MOST_OUTPUTS:]

    def result(self, root: UOp) -> FullOutput | None:
        """Return the result of a program on the first batch, where all its outputs are known.

        A value that is read from memory is not: growing interprets nodes, not the order of STOREs.
        """
        if any(u.op is Op.BUFFER for u in root.toposort()):
            return None
        if root.op is not Op.TUPLE:
            return self.known.get(root)
        members = tuple(self.known[u] for u in root.src if u in self.known)
        return members if len(members) == len(root.src) else None

    def take(self, fits: Callable[[UOp], bool] = lambda u: True) -> UOp | None:
        """Return a candidate that fits; three times in four one that is not used yet."""
        if self.choices.below(4):
            options = [u for u in self.unused if fits(u)]
            if options:
                return self.choices.pick(options)
        options = [u for u in self.candidates if fits(u)]
        return self.choices.pick(options) if options else None

    def take_like(self, u: UOp, exact: bool = False) -> UOp:
        """Return another operand for an op on `u`: a candidate, an input or a constant."""
        if self.choices.below(6) == 0 and self.vocabulary.has(Op.CONST):
            return self.constant(u.dtype)
        narrow = exact or bool(self.width(u))
        other = self.take(
            lambda v: v.dtype is u.dtype and v is not u and not (narrow and self.width(v))
        )
        if other is not None:
            return other
        fresh = self.input(u.dtype, self.choices.pick(parts(self.base)))
        if self._is_spoken(fresh):
            self.add(fresh)
        return fresh


def parts(base: Shape) -> Sequence[Shape]:
    """Return shapes that broadcast to the base.

    They are mostly itself, then without its first axis, then with 1 as its last axis.
    """
    return (base, base, base, base[1:] or base, (*base[:-1], 1))


def _computed(u: UOp, operands: list[Value]) -> Value:
    if u.op is Op.CONST:
        return Value(storage.constant(u.arg.bits, u.dtype))  # type: ignore[union-attr]
    meaning = meaning_of(u)
    return operands[0] if meaning is None else meaning(u, *operands)


def _is_loose(u: UOp) -> bool:
    if isinstance(DECLARATIONS[u.op].latitude, Exact | Rounded):
        return False
    return u.dtype.is_float or any(s.dtype.is_float for s in u.src)


def _widens(u: UOp) -> int:
    """Return whether the accepted set of the node is wider than those of its operands."""
    if not u.dtype.is_float:
        return 0
    if u.op is Op.REDUCE:
        return int(u.arg.op is not Op.MAX)  # type: ignore[union-attr]
    return int(isinstance(DECLARATIONS[u.op].latitude, Ulp))


def _is_alive(value: Value) -> bool:
    """Return whether the elements differ, and almost all are ordinary."""
    data = value.data
    if not data.size:
        return False
    gone = either(value.invalid, value.unspecified)
    if gone is not None and np.count_nonzero(gone) > MOST_OPEN * data.size:
        return False
    if data.dtype.kind not in "biu":
        nans = np.count_nonzero(np.isnan(data))
        if nans > MOST_NAN * data.size:
            return False
    bits = to_bits(np.ascontiguousarray(data)).reshape(-1)
    return data.size == 1 or bool((bits != bits[0]).any())


def has_meaning(root: UOp, inputs: Mapping[int, Array]) -> bool:
    return result_on(root, inputs) is not None


def result_on(root: UOp, inputs: Mapping[int, Array]) -> FullOutput | None:
    """Return the result of a program; None where it has no meaning on these inputs."""
    used = slots_of(root)
    try:
        return evaluate_full(root, {slot: a for slot, a in inputs.items() if slot in used})
    except UndefinedError:
        return None


GrowthStep = Callable[[Growth], UOp | None]
"""Puts a few ops on candidates and returns the result, or None where nothing fits."""
StepOn = Callable[[Growth, UOp], UOp | None]


def on_candidate(fits: Callable[[Growth, UOp], bool]) -> Callable[[StepOn], GrowthStep]:
    """Decorate a function of a candidate that fits; without one the step returns None."""

    def decorated(build: StepOn) -> GrowthStep:
        @wraps(build)
        def step(g: Growth) -> UOp | None:
            u = g.take(lambda v: fits(g, v))
            return None if u is None else build(g, u)

        return step

    return decorated


def is_number(g: Growth, v: UOp) -> bool:
    return v.dtype is not dtypes.bool


def is_narrow(g: Growth, v: UOp) -> bool:
    """Return whether no op with a budget stands above the candidate."""
    return not g.width(v)


def is_narrow_number(g: Growth, v: UOp) -> bool:
    return is_number(g, v) and is_narrow(g, v)


def is_long(g: Growth, v: UOp) -> bool:
    """Return whether an axis is longer than 1."""
    return any(s > 1 for s in v.shape)
