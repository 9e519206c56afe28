"""Level device: values split over up to eight devices, copies between them, and the collectives.

What counts is the whole value, whatever device holds which part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import prod

from uop.conformance.suite import values
from uop.conformance.suite.case import MIXED, Batch
from uop.conformance.suite.choices import (
    Choices,
    between,
    chance,
    data_key,
    pick,
    shuffled,
    weighted,
)
from uop.conformance.suite.levels.graph.steps import binary_ops, unary_ops
from uop.conformance.suite.levels.group import Group, Program, program
from uop.conformance.suite.vocabulary import Vocabulary, computed
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array
from uop.spec.args import (
    BufferArg,
    Device,
    FlipArg,
    LoadArg,
    PadArg,
    PadFill,
    PermuteArg,
    ReduceArg,
    ReplicatedArg,
)
from uop.spec.dtype import DTYPES, DType
from uop.spec.errors import InvalidError, UndefinedError
from uop.spec.frontend import collectives
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import LEAVES, slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, dims, param

MOST = 8
"""Devices, at most."""
HOMES = tuple(DTYPES[n] for n in ("int32", "uint8", "int64", "float32", "float64", "bfloat16"))
COLLECTED = tuple(DTYPES[n] for n in ("int32", "float32", "int8", "float16"))


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in COLLECTED:
        for name, made in COLLECTIVES.items():
            build = partial(_collective, dtype, made)
            counts = (1, MOST if dtype is COLLECTED[0] else 1, 3 * MOST)
            yield Group("device", Op.REPLICATED.name, dtype.name, name, counts, build, (Op.LOAD,))
    for dtype in HOMES:
        build = partial(_sharded, dtype, vocabulary)
        yield Group("device", MIXED, dtype.name, "sharded", (1, 5, 60), build, (Op.LOAD,))
        if unary_ops(dtype, vocabulary):
            build = partial(_moved, dtype, vocabulary)
            yield Group("device", Op.LOAD.name, dtype.name, "moved", (1, 1, 20), build, (Op.LOAD,))


def devices(n: int) -> tuple[str, ...]:
    return tuple(f"D{k}" for k in range(n))


Collective = Callable[[Tensor, tuple[str, ...]], Tensor]

OF_ONE: dict[str, Collective] = {
    "broadcast": collectives.broadcast,
    "scatter": collectives.scatter,
}
"""What takes a value on one device; the others take shards."""

COLLECTIVES: dict[str, Collective] = {
    **OF_ONE,
    "gather": lambda t, d: collectives.gather(t, d[0]),
    "reduce": lambda t, d: collectives.reduce(t, d[-1]),
    "allgather": lambda t, d: collectives.allgather(t),
    "reduce-scatter": lambda t, d: collectives.reduce_scatter(t),
    "allreduce": lambda t, d: collectives.allreduce(t),
}


def _collective(dtype: DType, made: Collective, choices: Choices, index: int) -> Program:
    """As the documents write it, on 1 to 8 devices in turn."""
    n = 1 + index % MOST
    size = n * n * between(choices, 1, 4)
    on = devices(n)
    t = param(0, (size,), dtype, on[0] if made in OF_ONE.values() else on)
    root = made(Tensor(t), on).uop
    return program(root, *([draw(dtype, size, data_key(choices))] for draw in DRAWS))


DRAWS = (values.draw_ordinary, values.draw_mixed)


def _moved(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """Between single devices: a chain of copies, with an op on each device."""
    shape: Shape = pick(choices, ((7,), (3, 4), (2, 3, 2)))
    t = param(0, shape, dtype, "D0")
    for k in range(between(choices, 1, 3)):
        t = UOp(Op.LOAD, t, arg=LoadArg(f"D{k + 1}"))
        t = UOp(pick(choices, unary_ops(dtype, vocabulary)), t)
    return program(t, *([_data(draw, dtype, shape, choices)] for draw in DRAWS))


def _sharded(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Program:
    """A random graph on shards: ops that keep them, folds over them, copies to other devices."""
    walk = Walk(choices, dtype, vocabulary)
    for _ in range(40):
        if len(walk.made) >= 12:
            break
        with suppress(InvalidError):
            walk.offer(weighted(choices, TABLE)(walk))
    return walk.program()


@dataclass(slots=True)
class Walk:
    """A graph in the making, all of whose inputs are split over the same devices."""

    choices: Choices
    dtype: DType
    vocabulary: Vocabulary
    n: int = field(init=False)
    made: dict[UOp, None] = field(default_factory=dict)
    used: set[UOp] = field(default_factory=set)
    inputs: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.n = between(self.choices, 1, MOST)
        rows = self.n * between(self.choices, 1, 3)
        shape: Shape = pick(self.choices, ((rows, 4), (rows, 3, 2), (rows,)))
        for _ in range(2):
            self.made[self.input(shape, devices(self.n))] = None

    def input(self, shape: Shape, device: Device) -> UOp:
        """A PARAM, or a BUFFER with contents."""
        slot = len(self.inputs)
        self.inputs[slot] = _pair(self.dtype, shape, self.choices)
        if chance(self.choices, 25):
            return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, self.dtype, device))
        return param(slot, shape, self.dtype, device)

    def take(self) -> UOp:
        """Three times in four one that nothing uses yet."""
        fresh = [u for u in self.made if u not in self.used]
        return pick(self.choices, fresh if fresh and self.choices.below(4) else list(self.made))

    def other(self, u: UOp) -> UOp:
        """One that goes with u: of its shape, or a whole one of its last axes."""
        fits = [v for v in self.made if v.device == u.device and v.shape == u.shape and v is not u]
        if fits and chance(self.choices, 75):
            return pick(self.choices, fits)
        whole = self.input(u.shape[1:] or (1,), None)
        return UOp(Op.CONTIGUOUS, whole) if whole.op is Op.BUFFER else whole

    def offer(self, u: UOp) -> None:
        """Keep a node unless it has no meaning on the data, or too many elements."""
        if u in self.made or prod(u.shape) > 2000 or not prod(u.shape):
            return
        if not all(map(self.vocabulary.takes, computed(u))):
            return
        used = slots_of(u)
        try:
            for k in (0, 1):
                evaluate_full(u, {s: data[k] for s, data in self.inputs.items() if s in used})
        except UndefinedError:
            return
        self.made[u] = None
        self.used.update(u.toposort()[:-1])

    def program(self) -> Program:
        """What nothing uses: together, or stored into buffers on the devices it is on."""
        computed = [u for u in self.made if u.op not in LEAVES]
        outputs = [u for u in computed if u not in self.used][-4:] or computed[-1:]
        outputs = outputs or [UOp(Op.CONTIGUOUS, next(iter(self.made)))]
        root = outputs[0] if len(outputs) == 1 else UOp(Op.TUPLE, *outputs)
        if chance(self.choices, 30):
            # A buffer is split along its first axis: not every value fits into one.
            with suppress(InvalidError):
                root = self._stored(outputs)
        kept = slots_of(root)
        return Program(
            root,
            tuple(
                Batch({s: data[k] for s, data in self.inputs.items() if s in kept}) for k in (0, 1)
            ),
        )

    def _stored(self, outputs: Sequence[UOp]) -> UOp:
        """Each value into a buffer on its devices."""
        stores: list[UOp] = []
        for u in outputs:
            slot = len(self.inputs) + len(stores)
            buffer = UOp(Op.BUFFER, dims(u.shape), arg=BufferArg(slot, u.dtype, u.device))
            stores.append(UOp(Op.STORE, buffer, u))
        return UOp(Op.SINK, *stores)


def elementwise(w: Walk) -> UOp:
    u = w.take()
    unary, binary = (ops(u.dtype, w.vocabulary) for ops in (unary_ops, binary_ops))
    if chance(w.choices, 30) and unary:
        return UOp(pick(w.choices, unary), u)
    whole = [o for o in binary if o not in PARTIAL]
    return UOp(pick(w.choices, whole), u, w.other(u)) if whole else turned(w)


def turned(w: Walk) -> UOp:
    u = w.take()
    if chance(w.choices, 40):
        return UOp(Op.FLIP, u, arg=FlipArg(tuple(chance(w.choices, 50) for _ in u.shape)))
    return UOp(Op.PERMUTE, u, arg=PermuteArg(tuple(shuffled(w.choices, range(len(u.shape))))))


def reshaped(w: Walk) -> UOp:
    """Two axes as one, or one as two."""
    u = w.take()
    shape = list(u.shape)
    k = w.choices.below(len(shape))
    if k + 1 < len(shape) and chance(w.choices, 50):
        return UOp(Op.RESHAPE, u, dims((*shape[:k], shape[k] * shape[k + 1], *shape[k + 2 :])))
    divisors = [d for d in range(1, shape[k] + 1) if shape[k] % d == 0]
    outer = pick(w.choices, divisors)
    return UOp(Op.RESHAPE, u, dims((*shape[:k], outer, shape[k] // outer, *shape[k + 1 :])))


def resized(w: Walk) -> UOp:
    """A part along one axis, or zeros around."""
    u = w.take()
    k = w.choices.below(len(u.shape))
    before = between(w.choices, 0, 2)
    offset = dims(tuple(before * (a == k) for a in range(len(u.shape))))
    if chance(w.choices, 50):
        sizes = tuple(s + 3 * (a == k) for a, s in enumerate(u.shape))
        return UOp(Op.PAD, u, offset, dims(sizes), arg=PadArg(PadFill.ZERO))
    sizes = tuple(s - (before + 1) * (a == k) for a, s in enumerate(u.shape))
    return UOp(Op.SHRINK, u, offset, dims(sizes))


def folded(w: Walk) -> UOp:
    """Over some axes, maybe that of the shards; the result is on every device then."""
    u = w.take()
    axes = tuple(k for k in range(len(u.shape)) if chance(w.choices, 50)) or (0,)
    op = Op.MAX if u.dtype.is_float else pick(w.choices, (Op.ADD, Op.MAX, Op.MUL))
    return UOp(Op.REDUCE, u, arg=ReduceArg(op, axes))


def copied(w: Walk) -> UOp:
    """To other devices, to one, or split anew along another axis."""
    u = w.take()
    if chance(w.choices, 50):
        u = UOp(Op.PERMUTE, u, arg=PermuteArg(tuple(shuffled(w.choices, range(len(u.shape))))))
    fits = [n for n in range(1, MOST + 1) if u.shape[0] % n == 0]
    target: Device = "E" if chance(w.choices, 50) else devices(pick(w.choices, fits))
    return UOp(Op.LOAD, u, arg=LoadArg(target))


def replicated(w: Walk) -> UOp:
    """A whole copy for each device."""
    u = w.take()
    spread = UOp(Op.EXPAND, UOp(Op.RESHAPE, u, dims((1, *u.shape))), dims((w.n, *u.shape)))
    there = UOp(Op.LOAD, spread, arg=LoadArg(devices(w.n)))
    return UOp(Op.RESHAPE, UOp(Op.REPLICATED, there, arg=ReplicatedArg((0,))), dims(u.shape))


def stacked(w: Walk) -> UOp:
    u = w.take()
    return UOp(Op.STACK, u, w.other(u))


PARTIAL = (Op.IDIV, Op.MOD, Op.SHL, Op.SHR)
TABLE: tuple[tuple[Callable[[Walk], UOp], int], ...] = (
    (elementwise, 8),
    (turned, 2),
    (reshaped, 2),
    (resized, 2),
    (folded, 2),
    (copied, 2),
    (replicated, 1),
    (stacked, 1),
)


def _data(draw: values.Draw, dtype: DType, shape: Shape, choices: Choices) -> Array:
    return draw(dtype, prod(shape), data_key(choices)).reshape(shape)


def _pair(dtype: DType, shape: Shape, choices: Choices) -> tuple[Array, Array]:
    first, second = (_data(draw, dtype, shape, choices) for draw in DRAWS)
    return first, second
