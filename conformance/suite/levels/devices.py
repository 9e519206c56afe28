"""Generate level device: programs by hand on a device, each op on shards, copies, collectives.

The whole value is judged, whichever device holds which part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, product

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes, sharded, written
from uop.conformance.suite.levels.graph.steps import FOLDS
from uop.conformance.suite.levels.group import Generated, Group, group, program, with_data
from uop.conformance.suite.levels.op.absent import positive
from uop.conformance.suite.levels.op.elementwise import operand_dtypes
from uop.conformance.suite.values import array, draw_ordinary, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.args import AllReduceArg, Device, DTypeArg, PadFill
from uop.spec.dtype import DTYPES, INTS, DType, dtypes
from uop.spec.frontend import collectives
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.properties import axis
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp, const, param

DEVICE = written.DEVICE
PREFERRED = (dtypes.int32, dtypes.float32)
MOST_SHARDS = 4
"""The most devices that hold the operands of one op."""


def groups_of_ops() -> Iterator[Group]:
    """Yield groups about one op: programs by hand on a named device, and each op on shards."""
    yield from written.placed()
    for declaration in DECLARATIONS.values():
        if _keeps_shards(declaration):
            op, taken = declaration.op, declaration.dtypes or PREFERRED
            dtype = next((d for d in PREFERRED if d in taken), taken[0])
            yield group("device", op, dtype, "shards", (0, 1, 6), _on_shards, declaration, dtype)


def _keeps_shards(declaration: OpDef) -> bool:
    """Return whether each shard of the result depends on shards alone; args are simple."""
    is_copy = declaration.axis is axis.of_first and declaration.src == ("T",)
    is_simple = declaration.arg in (None, DTypeArg)
    return (declaration.axis is axis.inherit or is_copy) and is_simple


def _on_shards(declaration: OpDef, dtype: DType, choices: Choices, index: int) -> Generated:
    """Use a whole value for each operand in turn, and shards for the others."""
    arg = DTypeArg(dtypes.float32) if declaration.arg is not None else None
    dts = operand_dtypes(declaration, dtype) if arg is None else (dtype,)
    n = choices.between(2, MOST_SHARDS)
    rows = n * choices.between(1, 3)
    on = sharded.devices(n)
    whole = (index + 1) % len(dts) if len(dts) > 1 else None
    operands = [
        param(k, (3,), d) if k == whole else param(k, (rows, 3), d, on) for k, d in enumerate(dts)
    ]
    data = positive(declaration.op, operands, choices)
    return program(UOp(declaration.op, *operands, arg=arg), data)


HOMES = tuple(DTYPES[n] for n in ("int32", "uint8", "int64", "float32", "float64", "bfloat16"))
NUMBERS = (3, 8, 5, 2, 7, 4, 6)
"""How many devices fold together: few programs have some that are no power of two."""
COLLECTED = tuple(DTYPES[n] for n in ("int32", "float32", "int8", "float16"))
FOLDED = (*COLLECTED, *(DTYPES[n] for n in ("uint8", "uint32", "int64")))


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    needs = (Op.LOAD,)
    for dtype in COLLECTED:
        counts = (1, sharded.MOST if dtype is COLLECTED[0] else 1, 3 * sharded.MOST)
        for name in COLLECTIVES:
            args = (dtype, name)
            yield group(
                "device", Op.REPLICATED, dtype, name, counts, _collective, *args, needs=needs
            )
        counts = (1, len(NUMBERS), 6 * len(NUMBERS))
        for op in (Op.ALLREDUCE, Op.LOAD):
            yield group("device", op, dtype, "devices", counts, _shards, op, dtype, needs=needs)
        few = (1, 1, 10)
        yield group("device", Op.ALLREDUCE, dtype, "rests", few, _rests, dtype, needs=needs)
        yield group("device", Op.LOAD, dtype, "parts", few, _parts, dtype, needs=needs)
        few = (1, 2, 12)
        for name, steps in ON_MEMORY.items():
            of_steps = (steps, dtype, vocabulary)
            held = (*needs, Op.STORE, Op.AFTER, Op.SINK, Op.BUFFER)
            yield group("device", Op.BUFFER, dtype, name, few, _on_memory, *of_steps, needs=held)
        few, both = (int(dtype is not COLLECTED[-1]), 1, 10), (dtype, vocabulary)
        yield group("device", Op.LOAD, dtype, "turned", few, _turned, *both, needs=needs)
        yield group("device", Op.LOAD, dtype, "apart", few, _apart, *both, needs=needs)
        yield group("device", Op.LOAD, dtype, "sent", few, _sent, *both, needs=needs)
    for dtype in FOLDED:
        args_ = (dtype, vocabulary)
        yield group("device", Op.ALLREDUCE, dtype, "folds", (1, 1, 10), _folds, *args_, needs=needs)
    for dtype in HOMES:
        args_ = (dtype, vocabulary)
        yield group(
            "device", None, dtype, "sharded", (1, 5, 60), sharded.sharded, *args_, needs=needs
        )
        if vocabulary.on(dtype).unary:
            yield group("device", Op.LOAD, dtype, "moved", (1, 1, 20), _moved, *args_, needs=needs)


OF_ONE = ("broadcast", "scatter")
"""The collectives that take a value on one device; the others take shards."""

COLLECTIVES: dict[str, Callable[[Tensor, tuple[str, ...]], Tensor]] = {
    "broadcast": collectives.broadcast,
    "scatter": collectives.scatter,
    "gather": lambda t, d: collectives.gather(t, d[0]),
    "reduce": lambda t, d: collectives.reduce(t, d[-1]),
    "allgather": lambda t, d: collectives.allgather(t),
    "reduce-scatter": lambda t, d: collectives.reduce_scatter(t),
    "allreduce": lambda t, d: collectives.allreduce(t),
}


def _collective(dtype: DType, name: str, choices: Choices, index: int) -> Generated:
    """Build a collective as the documents write it, on 1 to 8 devices in turn."""
    n = 1 + index % sharded.MOST
    size = n * n * choices.between(1, 4)
    on = sharded.devices(n)
    t = param(0, (size,), dtype, on[0] if name in OF_ONE else on)
    root = COLLECTIVES[name](Tensor(t), on).uop
    return with_data(root, choices, *sharded.DRAWS)


def _shards(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold or gather the shards of each number of devices, to one of them or another one; a fold to
    all too. Half of the devices do not stand in the order of their names.
    """
    n = NUMBERS[index % len(NUMBERS)]
    on = sharded.devices(n) if choices.chance(50) else tuple(choices.shuffled(sharded.devices(n)))
    t = param(0, (n * choices.between(1, 3), choices.between(1, 5)), dtype, on)
    if op is Op.ALLREDUCE:
        targets: tuple[Device, ...] = (on[0], on[-1], "E", on)
        fold = FOLDS[(index + n) % len(FOLDS)]
        root = UOp(op, t, arg=AllReduceArg(fold, choices.pick(targets)))
    else:
        root = nodes.copied(t, choices.pick((on[0], on[-1], "E")))
    return with_data(root, choices, *sharded.DRAWS)


def _rests(dtype: DType, choices: Choices, index: int) -> Generated:
    """Fold rows that the number of devices does not divide, to one of them, another one and all."""
    n = choices.between(2, MOST_SHARDS)
    on = sharded.devices(n)
    t = param(0, (n * (n * choices.between(1, 3) + choices.between(1, n - 1)),), dtype, on)
    targets: tuple[Device, ...] = (on[0], "E", on)
    args = (AllReduceArg(choices.pick(FOLDS), to) for to in targets)
    return with_data(
        nodes.outputs(*(UOp(Op.ALLREDUCE, t, arg=arg) for arg in args)), choices, *sharded.DRAWS
    )


def _folds(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Fold shards by each op, to all devices; on data of one sign too, which 0 does not bound, with
    the lowest value in some columns.
    """
    on = sharded.devices(choices.between(2, sharded.MOST))
    t = param(0, (len(on), 5), dtype, on)
    folds = (*FOLDS, *vocabulary.of([Op.MIN]))
    root = nodes.outputs(*(UOp(Op.ALLREDUCE, t, arg=AllReduceArg(fold, on)) for fold in folds))
    low = -np.abs(sample(draw_ordinary, dtype, t.shape, choices)) - np_dtype(dtype).type(1)
    low[choices.between(0, len(on) - 1), :2] = array(dtype, [dtype.encode(dtype.min)])
    return program(
        root, [low], *([sample(draw, dtype, t.shape, choices)] for draw in sharded.DRAWS)
    )


def _parts(dtype: DType, choices: Choices, index: int) -> Generated:
    """Gather shards on one device, and take the part of each device and one of two devices."""
    n, rows = choices.between(2, sharded.MOST), choices.between(2, 4)
    t = param(0, (n * rows, 3), dtype, sharded.devices(n))
    whole = nodes.copied(t, choices.pick((*sharded.devices(n), "E")))
    starts = [*(k * rows for k in range(n)), choices.between(1, rows - 1)]
    root = nodes.outputs(*(nodes.shrink(whole, (start, 0), (rows, 3)) for start in starts))
    return with_data(root, choices, *sharded.DRAWS)


def _heard(found: Iterable[Tensor], vocabulary: Vocabulary, choices: Choices) -> Generated:
    """Return a program of those values that the vocabulary has."""
    heard = filter(vocabulary.speaks, (t.uop for t in found))
    return with_data(nodes.outputs(*heard), choices, *sharded.DRAWS)


def _turned(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Gather, split anew and fold shards that lie along the second or the third axis, of matrices
    too, and add what every device has whole; split over another number of devices.
    """
    on = sharded.devices(choices.between(2, 4))
    rows = len(on) * choices.between(2, 3)
    t, whole = Tensor(param(0, (rows, 2, 3), dtype, on)), Tensor(param(1, (rows, 1, 1), dtype))
    places = Tensor.stack(*(Tensor(k, dtype) for k in range(rows)))
    found = [t + whole.expand(t.shape), t - places.reshape(rows, 1, 1)]
    for first, order in enumerate(((1, 0, 2), (1, 2, 0)), 1):
        u = t.permute(order)
        found += [u.copy(to) for to in (on[0], sharded.devices(2))]
        op = Op.MAX if dtype.is_float else choices.pick((Op.ADD, Op.MAX, Op.MUL))
        found.append(u.reduce(op, first))
    found += _spread(u, on, Tensor(param(3, u.shape, dtype)))
    matrix = Tensor(param(2, (rows, 3), dtype, on)).T
    found += [matrix.copy(to) for to in (on[0], "E", sharded.devices(3))]
    fewer_or_more = (d for d in range(2, sharded.MOST) if rows % d == 0 and d != len(on))
    found.append(t.copy(sharded.devices(next(fewer_or_more, 1) + 1)[:0:-1]))
    return _heard(found, vocabulary, choices)


def _spread(u: Tensor, on: tuple[str, ...], w: Tensor) -> Iterator[Tensor]:
    """Join, pick, pad, split and fold shards along the last axis, with whole values, and gather."""
    first, second, last = u.shape
    yield from (w - u, u - w.shrink_to(1, 1, last), w.shrink_to(first, second, 1) - u)
    padded = u.pad((1, 1), (0, 0), (0, 0))
    split = u.reshape(first, second, len(on), last // len(on))
    folds = [v.reduce(Op.MAX, axes) for v, axes in ((padded, 2), (u, (0, 2)), (split, 3))]
    yield from (v.copy("E") for v in (Tensor.stack(u, u - w), u[1], *folds))


def _apart(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Subtract shards, whole values, their folds and copies from one another, in either order; move
    rows across devices and along them, and fold some axes of shards, padded and cut ones; copy the
    bytes of values.
    """
    n = choices.between(2, MOST_SHARDS)
    on, shape = sharded.devices(n), (2 * n, 2, 3)
    t, u, single = (
        Tensor(param(slot, shape, dtype, to)) for slot, to in ((0, on), (1, on), (3, on[-1]))
    )
    whole = Tensor(param(2, shape[1:], dtype))
    found = [t - u, u - t, t - whole, whole - t, t.copy(on[-1]) - single, single - u.copy(on[-1])]
    for op, axes in product(FOLDS, ((0,), (1,), (0, 2), (1, 2), (0, 1, 2))):
        if not (dtype.is_float and op is Op.MUL):
            found.append(t.reduce(op, axes))
    for op, to in ((Op.ADD, on), (Op.MAX, on), (Op.MAX, on[-1]), (Op.ADD, "E")):
        found.append(Tensor.of(Op.ALLREDUCE, t - u, arg=AllReduceArg(op, to)))
    found.append(t - t.reduce(Op.MAX, 0).expand(shape))
    split = t.reshape(n, 2, 2, 3)
    found += [split.reduce(Op.MAX, axes) for axes in ((0,), (1,), (1, 2))]
    for k in (1, 2):
        first = [int(a == k) for a in range(3)]
        around = [(by, by) for by in first]
        found += [t.flip(k), t.shrink(*zip(first, shape, strict=True))]
        padded = t.pad(*around, fill=PadFill.ZERO)
        found += [padded, padded.reduce(Op.MAX, k), t.pad(*around).reduce(Op.MAX, k)]
    for order in ((1, 0, 2), (2, 1, 0)):
        found.append(t.permute(order).copy("E") - u.permute(order).copy("E"))
    found += [t.copy(on[::-1]).copy("E") - u.copy("E"), Tensor.stack(t, u)]
    on_the_way = single
    for k, to in enumerate((on[0], "E", on[-1]), 1):
        on_the_way = on_the_way.copy(to) - k
    found.append(on_the_way)
    for own in (single, t):
        wide = own.cast(dtypes.int16) if dtype.bits == 8 else own
        copy = wide.bitcast(dtypes.uint8).copy("E")
        found += [copy, copy.bitcast(wide.dtype)]
    test = t < whole
    found += [test.where(t, u), test.where(whole, t)]
    return _heard(found, vocabulary, choices)


def _sent(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Copy views of a value to another device, and other bits, edges, joints and folds of it; view
    the copies there, and copy them on or back.
    """
    side = choices.between(4, 6)
    t, row = (Tensor(param(k, (n, side), dtype, DEVICE)) for k, n in enumerate((side, 1)))
    bits = t.bitcast(next(d for d in INTS if d.bits == dtype.bits and d is not dtype))
    turned, part, line = t.T, t.shrink((1, side - 1), (2, side)), t.reshape(-1)
    sent = [bits, t.bitcast(dtypes.uint8), turned, part, t.flip(0), row.expand(t.shape)]
    sent += [t.pad((1, 1), (2, 1), fill=PadFill.ZERO), part.pad((1, 3), (2, 3)), part.T]
    sent += [line, turned.reshape(-1), line.shrink((3, 3 + side)), Tensor.stack(t, turned)]
    sent += [u.reduce(Op.MAX, k) for u in (t, turned) for k in range(2)]
    sent += [t[1], bits.cast(dtypes.int64)]
    found = [u.copy("E") for u in sent]
    copy = t.copy("E")
    found += [copy - u.copy("E") for u in (turned, row)]
    found += [copy.T, copy.bitcast(bits.dtype), copy.pad((1, 1), (2, 1))]
    found += [u.T.flip(0).copy("F") for u in (copy, t)]
    return _heard([*found, *_there_and_back(t)], vocabulary, choices)


def _there_and_back(t: Tensor) -> Iterator[Tensor]:
    """Copy a square and copies of it: converted on the way, read by data, beside other values."""
    less = dtypes.bfloat16 if t.dtype.is_float else dtypes.bool
    there, turned, side = t.copy("E"), t.T, len(t)
    for u in (t.cast(less).copy("E"), there.cast(less)):
        yield from (u.cast(t.dtype), u.copy(DEVICE).cast(t.dtype))
    for first, last in ((DEVICE, "E"), ("E", DEVICE), ("F", "E")):
        yield (turned.copy(first) - 3).copy(last)
        yield turned.copy(first).copy(last) - t.copy(last)
    number = Tensor(3, t.dtype).reshape(1, 1).expand(t.shape).copy("E")
    yield from (number, number - there)
    row = Tensor(param(2, (side,), dtypes.int32, DEVICE)) % side
    yield from (there[row.copy("E")], t[row].copy("E"))
    for u in (t, there, turned, t.shrink((0, side), (1, 2)).expand(t.shape)):
        yield u.shrink((1, 2), (0, side)).copy("F")


def _moved(dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int) -> Generated:
    """Build a chain of copies between single devices, with an op on each device."""
    shape: Shape = choices.pick(((7,), (3, 4), (2, 3, 2)))
    t = param(0, shape, dtype, "D0")
    for k in range(choices.between(1, 3)):
        t = nodes.copied(t, f"D{k + 1}")
        t = UOp(choices.pick(vocabulary.on(dtype).unary), t)
    return with_data(t, choices, *sharded.DRAWS)


@dataclass(slots=True)
class _Slots:
    """The buffers and inputs of one program, in rows that the devices share out."""

    choices: Choices
    dtype: DType
    on: tuple[str, ...]
    slots: Iterator[int] = field(default_factory=count)

    @property
    def shape(self) -> Shape:
        return (2 * len(self.on), 3)

    def buffer(self, on: Device, shape: Shape = (), dtype: DType | None = None) -> UOp:
        return nodes.buffer(next(self.slots), shape or self.shape, dtype or self.dtype, on)

    def input(self, on: Device, shape: Shape = (), dtype: DType | None = None) -> UOp:
        return param(next(self.slots), shape or self.shape, dtype or self.dtype, on)


def _on_memory(
    steps: Sequence[Callable[[_Slots], Iterator[UOp]]],
    dtype: DType,
    vocabulary: Vocabulary,
    choices: Choices,
    index: int,
) -> Generated:
    """Do each step on buffers of its own; an odd number of devices comes first."""
    number = NUMBERS[(COLLECTED.index(dtype) + 2 * index) % len(NUMBERS)]
    slots = _Slots(choices, dtype, sharded.devices(number))
    effects = [effect for step in steps for effect in step(slots)]
    heard = filter(vocabulary.speaks, effects)
    return with_data(UOp(Op.SINK, *heard), choices, draw_ordinary, draw_ordinary)


def _updated(s: _Slots) -> Iterator[UOp]:
    """Update shards: by inputs, behind a gate, by views and folds, and a part of each row."""
    own = s.buffer(s.on)
    yield nodes.store(own, UOp(Op.ADD, own, s.input(s.on)))
    yield nodes.store(s.buffer(s.on), s.input(s.on), s.input(s.on, dtype=dtypes.bool))
    own = s.buffer(s.on)
    yield nodes.store(own, nodes.flip(own, (False, True)))
    for k in range(2):
        own = s.buffer(s.on)
        total = nodes.expand(nodes.fold(Op.MAX, own, (k,)), s.shape)
        yield nodes.store(own, UOp(Op.SUB, own, total))
    own, rows = s.buffer(s.on), s.shape[0]
    part = nodes.shrink(own, (0, 1), (rows, 2))
    yield nodes.store(part, nodes.shrink(own, (0, 0), (rows, 2)))
    own = s.buffer(s.on)
    moved = nodes.copied(nodes.flip(nodes.copied(own, s.on[0]), (True, False)), s.on)
    yield nodes.store(own, UOp(Op.SUB, moved, s.input(s.on)))


def _gathered_again(s: _Slots) -> Iterator[UOp]:
    """Gather shards before and after an update, on a device that has some and on another one."""
    for to in (s.on[0], s.on[-1], "E"):
        own, before, after = s.buffer(s.on), s.buffer(to), s.buffer(to)
        first = nodes.store(before, nodes.copied(own, to))
        change = nodes.store(UOp(Op.AFTER, own, first), s.input(s.on))
        yield nodes.store(after, nodes.copied(UOp(Op.AFTER, own, change), to))
    rows = s.shape[0]
    for start, end in ((1, rows), (0, rows - 1), (2, rows - 1)):
        part = nodes.shrink(nodes.copied(s.input(s.on), s.on[0]), (start, 1), (end - start, 2))
        yield nodes.store(s.buffer(s.on[-1], part.shape), nodes.copied(part, s.on[-1]))
    whole, own = s.input("E"), s.buffer(s.on)
    yield nodes.store(own, UOp(Op.SUB, nodes.copied(whole, s.on), own))


def _exchanged(s: _Slots) -> Iterator[UOp]:
    """Copy between two devices and change the source, and swap what they hold."""
    a, b = s.on[0], s.on[-1]
    for is_part in (False, True):
        source, target = s.buffer(a), s.buffer(b, (2, 2) if is_part else ())
        part = nodes.shrink(source, (1, 1), (2, 2)) if is_part else source
        copy = nodes.store(target, nodes.copied(part, b))
        yield nodes.store(UOp(Op.AFTER, source, copy), s.input(a))
    one, two, kept = s.buffer(a), s.buffer(b), s.buffer(b)
    first = nodes.store(kept, nodes.copied(one, b))
    second = nodes.store(UOp(Op.AFTER, one, first), nodes.copied(two, a))
    yield nodes.store(UOp(Op.AFTER, two, second), UOp(Op.AFTER, kept, first))


def _copied_first(s: _Slots) -> Iterator[UOp]:
    """Copy views of a buffer, and of shards, to the same devices, other ones, there and back; store
    the copy, change the buffer, and store the copy once more.
    """
    (rows, columns), (a, b), few = s.shape, (s.on[0], s.on[-1]), s.on[:2]
    views: tuple[Callable[[UOp], UOp], ...] = (
        lambda u: u,
        lambda u: nodes.bitcast(u, dtypes.uint8),
        lambda u: nodes.flip(nodes.shrink(u, (0, 1), (u.shape[0], 2)), (False, True)),
        lambda u: nodes.shrink(u, (1, 1), (2, 2)),
        lambda u: nodes.permute(u, (1, 0)),
        lambda u: nodes.pad(UOp(Op.SUB, u, const(1, u.dtype)), (1, 0), (rows + 2, columns)),
    )
    ways: list[tuple[Callable[[UOp], UOp], tuple[Device, ...]]]
    ways = [*product(views, ((a, a),)), *product((*views[:2], views[-1]), ((a, b, a),))]
    ways += [(views[0], (a, "E", b)), *product(views[:2], ((few, few),)), (views[0], (few, a))]
    for view, (home, *path) in ways:
        own = s.buffer(home, (2 * len(few), 3) if home is few else ())
        copy = view(own)
        for to in path:
            copy = nodes.copied(copy, to)
        early, late = (s.buffer(copy.device, copy.shape, copy.dtype) for _ in range(2))
        kept = nodes.store(early, copy)
        change = nodes.store(UOp(Op.AFTER, own, kept), s.input(home, own.shape))
        yield nodes.store(UOp(Op.AFTER, late, change), copy)


def _trained(s: _Slots) -> Iterator[UOp]:
    """Move weights on one device, or shared out, by what all devices computed, in two steps."""
    row = (1, 3)
    for to in (s.on[0], "E"):
        weight, velocity = s.buffer(to, row), s.buffer(to, row)
        for _ in range(2):
            slope = nodes.fold(Op.ADD, s.input(s.on), (0,))
            kept = UOp(Op.MUL, velocity, const(3, s.dtype))
            new = UOp(Op.ADD, kept, nodes.copied(slope, to))
            velocity = nodes.after(velocity, new)
            weight = nodes.after(weight, UOp(Op.SUB, weight, velocity))
            velocity = UOp(Op.AFTER, velocity, weight.src[1])
        yield weight.src[1]
    own = s.buffer(s.on)
    for _ in range(2):
        total = UOp(Op.ALLREDUCE, s.input(s.on), arg=AllReduceArg(Op.ADD, s.on))
        wide = nodes.expand(nodes.fold(Op.ADD, total, (0,)), s.shape)
        own = nodes.after(own, UOp(Op.SUB, own, wide))
    yield own.src[1]


ON_MEMORY: dict[str, tuple[Callable[[_Slots], Iterator[UOp]], ...]] = {
    "updated": (_updated, _gathered_again),
    "exchanged": (_exchanged, _trained, _copied_first),
}
"""The steps of each kind of program on buffers."""
