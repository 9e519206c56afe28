"""Random graphs on shards, whose inputs are split over the same devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.growth import has_meaning
from uop.conformance.suite.levels.group import Generated, program
from uop.conformance.suite.levels.op.movement import random_permute
from uop.conformance.suite.values import draw_mixed, draw_ordinary, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import Device, PadFill
from uop.spec.dtype import DType
from uop.spec.errors import InvalidError
from uop.spec.graph import LEAVES
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, param

MOST = 8
"""The most devices."""
DRAWS = (draw_ordinary, draw_mixed)


def devices(n: int) -> tuple[str, ...]:
    return tuple(f"D{k}" for k in range(n))


def sharded(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build a random graph on shards: ops that keep them, folds, and copies to other devices."""
    walk = ShardedGraph(choices, dtype, vocabulary)
    for _ in range(40):
        if len(walk.made) >= 12:
            break
        with suppress(InvalidError):
            walk.add_if_useful(choices.weighted(TABLE)(walk))
    return walk.program()


@dataclass(slots=True)
class ShardedGraph:
    """A graph under construction, all of whose inputs are split over the same devices."""

    choices: Choices
    dtype: DType
    vocabulary: Vocabulary
    n: int = field(init=False)
    made: dict[UOp, None] = field(default_factory=dict)
    used: set[UOp] = field(default_factory=set)
    inputs: dict[int, list[Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.n = self.choices.between(1, MOST)
        rows = self.n * self.choices.between(1, 3)
        shape: Shape = self.choices.pick(((rows, 4), (rows, 3, 2), (rows,)))
        for _ in range(2):
            self.made[self.input(shape, devices(self.n))] = None

    def input(self, shape: Shape, device: Device) -> UOp:
        """Add a PARAM, or a BUFFER with contents."""
        slot = len(self.inputs)
        self.inputs[slot] = [sample(draw, self.dtype, shape, self.choices) for draw in DRAWS]
        if self.choices.chance(25):
            return nodes.buffer(slot, shape, self.dtype, device)
        return param(slot, shape, self.dtype, device)

    def take(self) -> UOp:
        """Return a value: three times in four one that nothing uses yet."""
        fresh = [u for u in self.made if u not in self.used]
        return self.choices.pick(fresh if fresh and self.choices.below(4) else list(self.made))

    def other(self, u: UOp) -> UOp:
        """Return a value that goes with u: of its shape, or a whole one of fewer or more axes."""
        fits = [v for v in self.made if v.device == u.device and v.shape == u.shape and v is not u]
        if fits and self.choices.chance(75):
            return self.choices.pick(fits)
        more = self.choices.chance(25)
        whole = self.input((2, *u.shape) if more else u.shape[1:] or (1,), None)
        return UOp(Op.CONTIGUOUS, whole) if whole.op is Op.BUFFER else whole

    def add_if_useful(self, u: UOp) -> None:
        """Add a node unless it has no meaning on the data, or too many elements."""
        if u in self.made or prod(u.shape) > 2000 or not prod(u.shape):
            return
        if not self.vocabulary.speaks(u):
            return
        if all(has_meaning(u, inputs) for inputs in self.batches()):
            self.made[u] = None
            self.used.update(u.toposort()[:-1])

    def batches(self) -> list[dict[int, Array]]:
        return [{slot: data[k] for slot, data in self.inputs.items()} for k in range(len(DRAWS))]

    def program(self) -> Generated:
        """Return the unused values: together, or stored into buffers on their devices."""
        computed = [u for u in self.made if u.op not in LEAVES]
        results = [u for u in computed if u not in self.used][-4:] or computed[-1:]
        results = results or [UOp(Op.CONTIGUOUS, next(iter(self.made)))]
        root = results[0] if len(results) == 1 else nodes.outputs(*results)
        if self.choices.chance(30):
            root = self._stored(results) or root
        return program(root, *self.batches())

    def _stored(self, results: Sequence[UOp]) -> UOp | None:
        stores: list[UOp] = []
        for u in results:
            # A buffer is split along its first axis.
            with suppress(InvalidError):
                slot = len(self.inputs) + len(stores)
                stores.append(nodes.store(nodes.buffer(slot, u.shape, u.dtype, u.device), u))
        return UOp(Op.SINK, *stores) if stores else None


def elementwise(w: ShardedGraph) -> UOp:
    u = w.take()
    ops = w.vocabulary.on(u.dtype)
    if w.choices.chance(30) and ops.unary:
        return UOp(w.choices.pick(ops.unary), u)
    return UOp(w.choices.pick(ops.total), u, w.other(u)) if ops.total else turned(w)


def turned(w: ShardedGraph) -> UOp:
    u = w.take()
    if w.choices.chance(40):
        return nodes.flip(u, (w.choices.chance(50) for _ in u.shape))
    return random_permute(w.choices, u)


def reshaped(w: ShardedGraph) -> UOp:
    """Reshape two axes into one, or one into two."""
    u = w.take()
    k = w.choices.below(len(u.shape))
    before, size, after = u.shape[:k], u.shape[k], u.shape[k + 1 :]
    if after and w.choices.chance(50):
        return nodes.reshape(u, (*before, size * after[0], *after[1:]))
    outer = w.choices.pick([d for d in range(1, size + 1) if size % d == 0])
    return nodes.reshape(u, (*before, outer, size // outer, *after))


def resized(w: ShardedGraph) -> UOp:
    """Take a part along one axis, or pad with zeros."""
    u = w.take()
    k = w.choices.below(len(u.shape))
    before = w.choices.between(0, 2)
    offset = [before * (a == k) for a in range(len(u.shape))]
    if w.choices.chance(50):
        return nodes.pad(u, offset, (s + 3 * (a == k) for a, s in enumerate(u.shape)), PadFill.ZERO)
    return nodes.shrink(u, offset, (s - (before + 1) * (a == k) for a, s in enumerate(u.shape)))


def folded(w: ShardedGraph) -> UOp:
    """Fold some axes, maybe that of the shards; then every device has the result."""
    u = w.take()
    axes = tuple(k for k in range(len(u.shape)) if w.choices.chance(50)) or (0,)
    return nodes.fold(
        Op.MAX if u.dtype.is_float else w.choices.pick((Op.ADD, Op.MAX, Op.MUL)), u, axes
    )


def copied(w: ShardedGraph) -> UOp:
    """Copy to other devices, to one, or split anew along another axis."""
    u = w.take()
    if w.choices.chance(50):
        u = random_permute(w.choices, u)
    fits = [n for n in range(1, MOST + 1) if u.shape[0] % n == 0]
    target: Device = "E" if w.choices.chance(50) else devices(w.choices.pick(fits))
    return nodes.copied(u, target)


def replicate(w: ShardedGraph) -> UOp:
    """Return a whole copy for each device."""
    u = w.take()
    return nodes.reshape(
        nodes.replicated(nodes.copied(nodes.copies(u, w.n), devices(w.n))), u.shape
    )


def stacked(w: ShardedGraph) -> UOp:
    u = w.take()
    return UOp(Op.STACK, u, w.other(u))


TABLE: tuple[tuple[Callable[[ShardedGraph], UOp], int], ...] = (
    (elementwise, 8),
    (turned, 2),
    (reshaped, 2),
    (resized, 2),
    (folded, 2),
    (copied, 2),
    (replicate, 1),
    (stacked, 1),
)
