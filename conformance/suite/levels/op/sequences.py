"""Generate level op, sequences: what a rewrite of two ops may exchange, join or drop.

Views of cubes, whose shapes do not show the order; functions and their inverses; ops on widened
integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.group import Generated, Group, group, program, with_data
from uop.conformance.suite.values import draw_bits, draw_mixed, draw_ordinary, sample
from uop.spec.args import PadFill
from uop.spec.dtype import FLOATS, INTS, DType, dtypes
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

SIDE = 3
CUBE = (SIDE, SIDE, SIDE)
CYCLES = ((1, 2, 0), (2, 0, 1))
SWAPS = ((1, 0, 2), (0, 2, 1), (2, 1, 0))
OF_CUBES = (dtypes.int32, dtypes.float32, dtypes.uint8)
RANKS = (4, 5)

Turn = Callable[[Choices, UOp, int], UOp]
"""Returns a view of a cube that is a cube; as the first and as the second of two it differs."""


def groups() -> Iterator[Group]:
    for op in TURNS:
        for k, dtype in enumerate(OF_CUBES):
            # A smoke run takes some with all dtypes, the others with the first.
            counts = (int(k == 0 or op in (Op.PERMUTE, Op.PAD)), 2, 6)
            yield group("op", op, dtype, "cubes", counts, _cubes, op, dtype)
    for op in CYCLIC:
        for k, dtype in enumerate(OF_CUBES):
            counts = (int(k < 2), 1, 4)
            yield group("op", op, dtype, "cycles", counts, CYCLIC[op], dtype)
    for dtype in FLOATS:
        yield group("op", Op.EXP2, dtype, "undone", (1, 2, 6), _undone, dtype)
    for dtype in INTS:
        if dtype.bits < max(d.bits for d in INTS):
            yield group("op", Op.CAST, dtype, "widened", (1, 2, 6), _widened, dtype)


def _flipped(choices: Choices, t: UOp, which: int) -> UOp:
    axis = choices.below(SIDE)
    return nodes.flip(t, (k == axis for k in range(SIDE)))


def _cut(choices: Choices, t: UOp, which: int) -> UOp:
    """Drop one end of an axis, and put zeros at the other end or there."""
    axis = choices.below(SIDE)
    offset, before = ([n * (k == axis) for k in range(SIDE)] for n in (1, choices.below(2)))
    sizes = [SIDE - (k == axis) for k in range(SIDE)]
    return nodes.pad(nodes.shrink(t, offset, sizes), before, CUBE, PadFill.ZERO)


def _padded(choices: Choices, t: UOp, which: int) -> UOp:
    """Put zeros at the front of an axis, and drop its end."""
    axis = choices.below(SIDE)
    before = [int(k == axis) for k in range(SIDE)]
    padded = nodes.pad(t, before, [SIDE + b for b in before], PadFill.ZERO)
    return nodes.shrink(padded, (0,) * SIDE, CUBE)


def _copied(choices: Choices, t: UOp, which: int) -> UOp:
    """Copy one position of an axis to all."""
    axis, position = choices.below(SIDE), choices.below(SIDE)
    offset = [position * (k == axis) for k in range(SIDE)]
    sizes = [1 if k == axis else SIDE for k in range(SIDE)]
    return nodes.expand(nodes.shrink(t, offset, sizes), CUBE)


def _reshaped(choices: Choices, t: UOp, which: int) -> UOp:
    """Exchange an axis and the other two, which are one for that."""
    merged = nodes.reshape(t, (SIDE * SIDE, SIDE) if which else (SIDE, SIDE * SIDE))
    return nodes.reshape(nodes.permute(merged, (1, 0)), CUBE)


TURNS: dict[Op, Turn] = {
    # All axes turn, then two are exchanged: in the other order that gives something else.
    Op.PERMUTE: lambda choices, t, which: nodes.permute(t, choices.pick((CYCLES, SWAPS)[which])),
    Op.FLIP: _flipped,
    Op.SHRINK: _cut,
    Op.PAD: _padded,
    Op.EXPAND: _copied,
    Op.RESHAPE: _reshaped,
}


def _cubes(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    """Put each view of a cube after and before this one; add copies to a view of them."""
    cube = param(0, CUBE, dtype)
    results = []
    for other in TURNS:
        pairs = {(op, other), (other, op)}
        for first, second in sorted(pairs, key=lambda pair: [o.name for o in pair]):
            turned = TURNS[first](choices, cube, 0)
            results.append(TURNS[second](choices, turned, 1))
    copies = nodes.expand(param(1, (1, SIDE, SIDE), dtype), CUBE)
    one, two = (TURNS[op](choices, copies, which) for which in range(2))
    results += [UOp(Op.ADD, one, copies), UOp(Op.ADD, copies, two)]
    return with_data(nodes.outputs(*results), choices, draw_ordinary)


def _cycled(dtype: DType, choices: Choices, index: int) -> Generated:
    """Turn equal axes of rank 4 and 5 around, by each number of places, and once more."""
    results = []
    for slot, rank in enumerate(RANKS):
        t = param(slot, (2,) * rank, dtype)
        for by in range(1, rank):
            order = [(k + by) % rank for k in range(rank)]
            turned = nodes.permute(t, order)
            results += [turned, nodes.permute(turned, choices.shuffled(range(rank)))]
    return with_data(nodes.outputs(*results), choices, draw_bits)


def _repeated(dtype: DType, choices: Choices, index: int) -> Generated:
    """Expand each axis and each two axes of rank 4 and 5 where all sizes are equal."""
    results: list[UOp] = []
    for rank in RANKS:
        for pair in combinations_with_replacement(range(rank), 2):
            shape = [1 if k in pair else 2 for k in range(rank)]
            results.append(nodes.expand(param(len(results), shape, dtype), (2,) * rank))
    return with_data(nodes.outputs(*results), choices, draw_bits)


CYCLIC: dict[Op, Callable[[DType, Choices, int], Generated]] = {
    Op.PERMUTE: _cycled,
    Op.EXPAND: _repeated,
}
"""Ops on values of rank 4 and 5 whose axes are equal: shapes do not show what goes wrong."""


def _undone(dtype: DType, choices: Choices, index: int) -> Generated:
    """Apply what would be nothing on real numbers: special values show that it is not."""
    special = values.specials(dtype)
    x, y = (Tensor(param(k, special.shape, dtype)) for k in range(2))
    results = [x.exp2().log2(), x.log2().exp2(), (x * x).sqrt(), x.recip().recip()]
    results += [x * y / y, x / y * y, x + y - y, x - x.trunc()]
    batches = [
        [data, np.roll(data, choices.between(1, len(data) - 1))]
        for data in (special, sample(draw_mixed, dtype, len(special), choices))
    ]
    return program(nodes.outputs(*(t.uop for t in results)), *batches)


def _widened(dtype: DType, choices: Choices, index: int) -> Generated:
    """Compute on integers made wider, where the narrow ones would lose bits, sign or order."""
    wider = [d for d in INTS if d.bits > dtype.bits]
    n = len(values.specials(dtype))
    x, y = (Tensor(param(k, (n,), dtype)) for k in range(2))
    results = []
    for target in choices.shuffled(wider)[:2]:
        a, b = x.cast(target), y.cast(target)
        count, small = choices.between(1, dtype.bits - 1), choices.between(2, 9)
        results += [a << count, a >> count, a * small, a + b, a - b, a < b, a.maximum(b)]
        results += [a // small, a % small, (-x).cast(target).cast(choices.pick(INTS))]
    special = values.specials(dtype)
    edges = [special, np.roll(special, choices.between(1, n - 1))]
    mixed = [sample(draw_mixed, dtype, n, choices) for _ in edges]
    return program(nodes.outputs(*(t.uop for t in results)), edges, mixed)
