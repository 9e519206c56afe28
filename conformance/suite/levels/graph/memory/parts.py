"""Generate level graph, parts: buffers of which a STORE writes a part.

- left-alone: values, gates and places with absent elements, which leave what is there.
- beside: parts that are equal, overlap, touch or lie apart, one written, then another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph.memory.buffers import (
    Memory,
    Steps,
    in_turn,
    indexed,
    less,
    minus,
    part_of,
    plus,
    scaled,
    steps_on,
    where,
)
from uop.conformance.suite.levels.graph.steps import MEMORY
from uop.conformance.suite.levels.group import Generated, Group, group
from uop.conformance.suite.levels.nodes import expand, fold, reshape, store
from uop.conformance.suite.values import draw_within
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.args import PadFill, SliceArg
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const, param

KINDS = (dtypes.int32, dtypes.float32, dtypes.uint8, dtypes.int16)
SIDES = (5, 6, 7)
"""The sides of matrices of which a part is present."""
FIRST, *OTHERS = ((3, 6), (4, 6), (2, 6), (4, 3), (2, 8), (8, 1), (9, 3), (0, 3), (10, 2), (5, 0))
"""Parts of a row of 12: those that overlap or hold the first, that touch it, that lie apart."""

_turned = partial(nodes.permute, order=(1, 0))
_bytes = partial(nodes.bitcast, dtype=dtypes.uint8)


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for dtype in vocabulary.of_dtypes(KINDS):
        for name, (steps, needs, kinds) in STEPS.items():
            args, all_needs = (steps, dtype, vocabulary), (*MEMORY, *needs)
            counts = (int(dtype in kinds), 2, 12)
            yield group("graph", None, dtype, name, counts, _steps, *args, needs=all_needs)


def _steps(
    steps: Steps, dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    side = SIDES[(KINDS.index(dtype) + index) % len(SIDES)]
    return steps_on(Memory(choices, dtype, side), Op.SINK, steps, vocabulary)


def _two_parts(m: Memory) -> tuple[UOp, UOp]:
    """Return matrices that are absent in two rows and a column, and in two columns and a row."""
    n = m.side
    x, z = m.input(n - 2, n - 1), m.input(n - 1, n - 2)
    return nodes.pad(x, (1, 0), (n, n)), nodes.pad(z, (0, 2), (n, n))


def _absent_values(m: Memory) -> Iterator[UOp]:
    """Store numbers that need no element, sums, choices, tests, conversions and copies of two
    matrices; every third one behind a STORE of the whole.
    """
    n, y, gate = m.side, m.input(m.side, m.side), m.gate(m.side, m.side)
    (p, q), own, flags = _two_parts(m), m.buffer(n, n), m.another(gate)
    one, none, no = const(1, m.dtype), const(0, m.dtype), const(False, dtypes.bool)
    values = [minus(p, p), UOp(Op.MUL, p, none), where(less(p, y), y, y)]
    if m.dtype.is_int:
        values += [UOp(Op.XOR, p, p), UOp(Op.AND, p, none), UOp(Op.MOD, p, one)]
    values += [plus(values[1], y), plus(p, q), minus(one, p), minus(y, p), UOp(Op.MAX, q, y)]
    values += [where(gate, p, y), where(gate, y, p), where(less(p, y), q, y), plus(own, p)]
    values += [UOp(Op.MULACC, y, y, q), nodes.cast(nodes.cast(p, dtypes.int64), m.dtype)]
    values += [UOp(Op.CONTIGUOUS, p), UOp(Op.LOAD, q), UOp(Op.LOAD, q, y, gate)]
    values.append(UOp(Op.LOAD, y, _turned(y), less(y, p)))
    values += [minus(p, expand(fold(Op.MAX, p, (axis,)), (n, n))) for axis in range(2)]
    for k, value in enumerate(values):
        write = store(own, value)
        yield write if k % 3 else in_turn(store(own, y), write)
    tests = UOp(Op.CMPEQ, p, p), UOp(Op.AND, less(p, y), no), UOp(Op.NOT, less(p, q))
    yield from (store(flags, test) for test in tests)


def _absent_views(m: Memory) -> Iterator[UOp]:
    """Store views of two matrices, edges of edges, results of bodies, stacks, rows, bytes, folds,
    and what is read at absent places; store to views, behind gates and at places that are absent.
    """
    n, y, own, row = m.side, m.input(m.side, m.side), m.buffer(m.side, m.side), m.buffer(m.side)
    p, q = _two_parts(m)
    x, z, whole = p.src[0], q.src[0], (n, n)
    wide = partial(nodes.pad, before=(0, 1), sizes=(n - 1, n))
    values = [_turned(p), nodes.flip(p, (True, False))]
    values += [expand(part_of(p, 2, 1), whole), nodes.pad(part_of(p, 0, 2), (2, 0), whole)]
    for inner, outer in product(PadFill, repeat=2):
        values.append(nodes.pad(wide(z, fill=inner), (1, 0), whole, outer))
    moved = part_of(own, 0, n - 1), part_of(own, 1, n - 1, 1)
    values += (nodes.pad(u, (1 - k, 0), whole) for k, u in enumerate(moved))
    values.append(nodes.pad(x, (1, 0), whole, PadFill.ZERO))
    kept, cut = param(0, whole, m.dtype), param(1, x.shape, m.dtype)
    values += nodes.call([_turned(kept), kept, nodes.pad(cut, (2, 1), whole)], p, x)
    yield from (store(own, value) for value in values)
    yield from (store(m.buffer(2, n, n), UOp(Op.STACK, *pair)) for pair in ((p, y), (y, p)))
    yield store(m.buffer(n * n), reshape(p, (n * n,)))
    edged, there = (nodes.pad(u, (1,), (n,)) for u in (m.input(n - 2), m.places(n, n - 2)))
    values = [indexed(u, index_const(k)) for k, u in enumerate((p, q))]
    values += [indexed(m.input(n), there), indexed(edged, m.places(n, n))]
    values.append(minus(edged, nodes.flip_all(edged)))
    yield from (store(row, value) for value in values)
    yield from (store(_bytes(row), _bytes(edged)), store(indexed(row, there), m.input(n)))
    for value, axis, op in product((p, minus(const(1, m.dtype), p)), range(2), (Op.ADD, Op.MAX)):
        yield m.kept(fold(op, value, (axis,)))
    for u in (_turned(own), nodes.flip(own, (True, False))):
        yield from (store(u, p), store(u, y, less(p, y)))
    yield from (store(own, p, m.gate(*whole)), store(own, q, less(p, y)))
    yield from (store(part_of(own, 1, 3), part_of(p, 0, 3)), in_turn(store(own, p), store(own, q)))


def _each_beside_another(m: Memory) -> Iterator[UOp]:
    """Write a part and read another one, of which some are named in other ways; move a row in
    place, read a copy after its buffer has changed, and write blocks.
    """
    row, table, size = m.buffer(12), m.buffer(6, 4), m.dtype.itemsize
    others = [part_of(row, *place) for place in (FIRST, *OTHERS)]
    others += [
        part_of(part_of(row, 1, 10), 3, 6),
        nodes.flip_all(part_of(nodes.flip_all(row), 2, 6)),
    ]
    others.append(UOp(Op.SLICE, row, index_const(4), arg=SliceArg(6, m.dtype)))
    others.append(nodes.bitcast(part_of(_bytes(row), 4 * size, 6 * size), m.dtype))
    pairs = [(part_of(row, *FIRST), other) for other in others]
    column, other, across = (
        nodes.shrink(table, (0, k), (6, n)) for k, n in ((1, 1), (0, 1), (1, 2))
    )
    rows, block = part_of(table, 1, 2), nodes.shrink(table, (2, 0), (2, 2))
    blocks = (column, other), (column, across), (across, rows), (rows, block), (block, across)
    for one, two in (*pairs, *blocks):
        yield in_turn(store(one, m.input(*one.shape)), m.kept(two))
    for before, *of in ((1, 0, 11), (0, 1, 11), (2, 0, 10)):
        yield store(row, nodes.pad(part_of(row, *of), (before,), (12,), PadFill.ZERO))
    for copied in (Op.CONTIGUOUS, Op.LOAD):
        copy = UOp(copied, row)
        yield m.kept(minus(nodes.after(row, plus(copy, m.input(12))), copy))
    for both in (*blocks, *((table, u) for u in (column, across, rows, block))):
        yield in_turn(*(store(u, m.input(*u.shape)) for u in both))


def _in_no_order(m: Memory) -> Iterator[UOp]:
    """Write two parts by parts of one value: as they stand, exchanged, equal, with a gap in either
    of them, as rows and as columns; write the lesser of two where they differ, and so many
    elements as a variable says.
    """
    row, x, low, high, few = m.buffer(12), m.input(12), (0, 6), (6, 6), (0, 5)
    ways = [((low, high), of) for of in ((low, high), (high, low), (low, low), (low, (5, 6)))]
    for places, of in (*ways, ((few, high), (few, high))):
        pairs = zip(places, of, strict=True)
        yield UOp(Op.SINK, *(store(part_of(row, *a), part_of(x, *b)) for a, b in pairs))
    for axis, order in product(range(2), ((0, 1), (1, 0))):
        table = reshape(row, ((2, 6), (6, 2))[axis])
        lines = [part_of(table, k, 1, axis) for k in order]
        values = (part_of(x, *half) for half in (low, high))
        written = zip(lines, values, strict=True)
        yield UOp(Op.SINK, *(store(u, reshape(value, u.shape)) for u, value in written))
    y, z = (m.input(12, draw=draw_within(1, 3)) for _ in range(2))
    yield UOp(Op.SINK, store(row, y, less(y, z)), store(row, z, less(z, y)))
    start, size = UOp(Op.STACK, index_const(1)), UOp(Op.STACK, m.variable(0, 9))
    part, value = (UOp(Op.SHRINK, u, start, size) for u in (row, x))
    yield in_turn(store(part, value), m.kept(scaled(row, 3)))


STEPS: dict[str, tuple[Steps, tuple[Op, ...], tuple[DType, ...]]] = {
    "left-alone": ((_absent_values, _absent_views), (Op.PAD,), KINDS),
    "beside": ((_each_beside_another, _in_no_order), (Op.SHRINK,), KINDS[:3]),
}
"""The steps of each kind of program, the op without which none is left, the dtypes in smoke."""
