"""Generate level graph: random typed graphs of up to 30 live nodes, with one output or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from uop.conformance.suite.case import Batch, Evaluated, Source
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.graph import steps
from uop.conformance.suite.levels.graph.growth import Growth, GrowthStep, result_on
from uop.conformance.suite.levels.group import Generated, Group, group
from uop.conformance.suite.levels.nodes import after, flip_all, outputs, shrink, store
from uop.conformance.suite.values import Draw, draw_mixed, draw_special
from uop.conformance.suite.vocabulary import Vocabulary, whole
from uop.interpreter.numeric.storage import Array
from uop.interpreter.tensor.evaluation import FullOutput
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef, Shape
from uop.spec.uop import UOp

BASES: tuple[tuple[Shape, int], ...] = (
    ((8, 8), 4),
    ((4, 16), 4),
    ((5, 7), 3),
    ((3, 4, 8), 3),
    ((64,), 2),
    ((33,), 2),
    ((16, 16), 1),
    ((2, 3, 2, 4), 1),
)
"""The largest shapes of a graph, with their weights."""

FEWEST_NODES, MOST_NODES = 10, 30
TRIES = 4
"""The failed steps per node after which a graph is taken as it is."""
TRIES_OF_PART = 16
"""The same for a part of the language, which rules out many steps."""
FLAT: tuple[tuple[Shape, int], ...] = (((7,), 1), ((2, 2), 1), ((1,), 1))
"""Shapes for a backend whose values have few elements."""

NARROW = tuple(DTYPES[n] for n in ("int8", "uint8", "int16", "uint16"))
WIDE = tuple(DTYPES[n] for n in ("int32", "uint32", "int64", "uint64"))
SMALL_FLOATS = tuple(DTYPES[n] for n in ("float16", "bfloat16", "fp8e4m3", "fp8e5m2"))
FLOATS = (dtypes.float32, dtypes.float64)

ARITHMETIC = ((steps.binary, 8), (steps.unary, 3), (steps.ternary, 3))
CHOOSING = ((steps.compare, 2), (steps.select, 3), (steps.gated, 1))
MOVING = ((steps.view, 3), (steps.gather, 1), (steps.joined, 1), (steps.copied, 1))
CONVERTING = ((steps.convert, 4), (steps.reinterpret, 2))
ANYTHING: tuple[tuple[GrowthStep, int], ...] = (
    *ARITHMETIC,
    *CHOOSING,
    *MOVING,
    (steps.padded, 1),
    (steps.reduce, 1),
    (steps.called, 1),
)


NEEDS: dict[GrowthStep, tuple[Op, ...]] = {
    steps.select: (Op.WHERE,),
    steps.gated: (Op.LOAD,),
    steps.gather: (Op.INDEX,),
    steps.joined: (Op.STACK,),
    steps.called: steps.CALLED,
    steps.convert: (Op.CAST,),
    steps.reinterpret: (Op.BITCAST,),
    steps.padded: (Op.PAD,),
    steps.reduce: (Op.REDUCE,),
    steps.absent: (Op.PAD,),
    steps.with_constants: (Op.CONST,),
}
"""The ops without which a step has no result."""


@dataclass(frozen=True, slots=True)
class Flavour:
    """The dtypes a graph starts with, those it may turn to, and the weights of its steps."""

    homes: tuple[DType, ...]
    palette: tuple[DType, ...]
    table: tuple[tuple[GrowthStep, int], ...]
    counts: tuple[int, int, int] = (2, 12, 240)
    draw: Draw = draw_mixed
    """The data of the first inputs."""
    vocabulary: Vocabulary = field(default_factory=whole)
    """What the steps may use."""


FLAVOURS: dict[str, Flavour] = {
    "narrow": Flavour(
        NARROW,
        NARROW,
        (*ARITHMETIC, *CHOOSING, *CONVERTING, (steps.view, 1)),
        (3, 24, 700),
    ),
    "integers": Flavour(
        WIDE, (*WIDE, *NARROW), (*ANYTHING, (steps.convert, 2), (steps.reinterpret, 1))
    ),
    "floats": Flavour(FLOATS, FLOATS, (*ANYTHING, (steps.transcendental, 6), (steps.convert, 1))),
    "small-floats": Flavour(
        SMALL_FLOATS,
        (*SMALL_FLOATS, dtypes.float32),
        (*ANYTHING, (steps.transcendental, 4), (steps.convert, 3)),
    ),
    "casts": Flavour(
        (*WIDE, *FLOATS),
        (*NARROW, *WIDE, *SMALL_FLOATS, *FLOATS),
        (*ARITHMETIC, (steps.convert, 12), (steps.reinterpret, 6), (steps.select, 2)),
        (1, 24, 240),
    ),
    "pads": Flavour(
        (*NARROW, *WIDE, *FLOATS),
        (*WIDE, *FLOATS),
        ((steps.padded, 12), (steps.reduce, 4), *ARITHMETIC, *MOVING),
        (1, 24, 240),
    ),
    "absent": Flavour(
        (*NARROW, *WIDE, *SMALL_FLOATS, *FLOATS, dtypes.bool),
        (*WIDE, *FLOATS),
        ((steps.absent, 12), *ARITHMETIC, *CHOOSING, *CONVERTING, *MOVING),
        (1, 4, 120),
    ),
    "specials": Flavour(
        (*NARROW, *WIDE, *SMALL_FLOATS, *FLOATS),
        (*WIDE, *SMALL_FLOATS, *FLOATS),
        ((steps.reduce, 6), *ARITHMETIC, *CHOOSING, *CONVERTING, (steps.view, 2)),
        (1, 3, 120),
        draw_special,
    ),
    "chains": Flavour(
        (*NARROW, *SMALL_FLOATS),
        (*NARROW, *WIDE, *SMALL_FLOATS),
        ((steps.chain, 10), *ARITHMETIC, (steps.compare, 2), (steps.select, 2)),
        (1, 4, 120),
    ),
    "gates": Flavour(
        (*NARROW, *WIDE, *FLOATS),
        (*WIDE, *FLOATS),
        ((steps.gated, 8), (steps.gather, 3), (steps.compare, 4), (steps.select, 4), *ARITHMETIC),
        (1, 6, 120),
    ),
    "constants": Flavour(
        (*NARROW, *WIDE, *SMALL_FLOATS, *FLOATS),
        (*NARROW, *WIDE, *FLOATS),
        ((steps.with_constants, 10), *ARITHMETIC, *CHOOSING, *CONVERTING, (steps.view, 1)),
        (1, 3, 120),
    ),
    "nested": Flavour(
        (*FLOATS, *SMALL_FLOATS),
        FLOATS,
        ((steps.ternary, 8), (steps.binary, 8), (steps.unary, 2), (steps.select, 1)),
        (1, 12, 300),
    ),
}


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    """For every flavour and each dtype it may start with, then for each elementwise op."""
    for name in FLAVOURS:
        flavour = flavour_in(vocabulary, name)
        for home in flavour.homes:
            yield group("graph", None, home, name, flavour.counts, build, home, flavour)
    for declaration in DECLARATIONS.values():
        if declaration.is_elementwise and declaration.takes_values:
            op = declaration.op
            for dtype in (d for d in declaration.dtypes if d is not dtypes.index):
                args = (declaration, dtype, vocabulary)
                yield group("graph", op, dtype, "aimed", (0, 0, 2), _aimed, *args, needs=(op,))


def flavour_in(vocabulary: Vocabulary, name: str) -> Flavour:
    """Return a flavour without what the vocabulary lacks."""
    flavour = FLAVOURS[name]
    homes, palette = map(vocabulary.of_dtypes, (flavour.homes, flavour.palette))
    table = tuple((step, n) for step, n in flavour.table if vocabulary.has(*NEEDS.get(step, ())))
    return replace(flavour, homes=homes, palette=palette, table=table, vocabulary=vocabulary)


def flavours_in(
    vocabulary: Vocabulary, chosen: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, Flavour]]:
    """Yield flavours by name. They start with the chosen dtypes that are listed, else with any."""
    for name, homes in chosen.items():
        flavour = flavour_in(vocabulary, name)
        listed = vocabulary.of_dtypes(DTYPES[home] for home in homes)
        yield name, replace(flavour, homes=listed or flavour.homes)


def _aimed(
    declaration: OpDef, dtype: DType, vocabulary: Vocabulary, choices: Choices, index: int
) -> Generated:
    """Put one op of one dtype among others, several times."""
    table = ((steps.aimed(declaration, dtype), 10), *ARITHMETIC, *CHOOSING, *MOVING)
    return build(dtype, Flavour((dtype,), (dtype,), table, vocabulary=vocabulary), choices, index)


def build(home: DType, flavour: Flavour, choices: Choices, index: int) -> Generated:
    growth = grown(home, flavour, choices)
    return on_data(growth, rooted(growth, choices))


def on_data(growth: Growth, root: UOp) -> Generated:
    """Build a program on the data of the graph that it is made of."""
    return Generated(root, batches(growth, root))


def stored_graph(home: DType, flavour: Flavour, choices: Choices) -> Source:
    """Build a random graph whose outputs are stored, and its data."""
    growth = grown(home, flavour, choices)
    root = UOp(Op.SINK, *(stored(growth, choices, u) for u in growth.outputs()))
    return Source(root, batches(growth, root))


@np.errstate(all="ignore")
def grown(
    home: DType,
    flavour: Flavour,
    choices: Choices,
    bases: Sequence[tuple[Shape, int]] = BASES,
    nodes: tuple[int, int] = (FEWEST_NODES, MOST_NODES),
) -> Growth:
    """Grow a graph from inputs of the home dtype until it has a random size."""
    vocabulary = flavour.vocabulary
    base = choices.weighted(bases_in(vocabulary, bases))
    growth = Growth(choices, base, flavour.palette, vocabulary)
    for _ in range(choices.between(1, 3)):
        growth.add(growth.input(home, growth.base, flavour.draw))
    size = choices.between(*nodes)
    for _ in range((TRIES if vocabulary.is_whole else TRIES_OF_PART) * size):
        if len(growth.live) >= size:
            break
        candidate = choices.weighted(flavour.table)(growth)
        if candidate is not None:
            growth.add_if_useful(candidate)
    return growth


def bases_in(
    vocabulary: Vocabulary, bases: Sequence[tuple[Shape, int]] = BASES
) -> Sequence[tuple[Shape, int]]:
    """Return the shapes that a graph may start from, with weights; no value may be too large."""
    most = vocabulary.elements
    if most is None:
        return bases
    fits = [(shape, weight) for shape, weight in (*bases, *FLAT) if prod(shape) <= most]
    return fits or [((), 1)]


def rooted(growth: Growth, choices: Choices) -> UOp:
    """Make the unused nodes outputs: the root, members of a TUPLE, or stored into BUFFERs."""
    unused = growth.outputs()
    can_store = growth.vocabulary.has(Op.SINK, Op.STORE, Op.BUFFER, Op.SHRINK, Op.FLIP, Op.AFTER)
    if choices.chance(25) and can_store:
        return UOp(Op.SINK, *(stored(growth, choices, u) for u in unused))
    return unused[0] if len(unused) == 1 else outputs(*unused)


def stored(growth: Growth, choices: Choices, output: UOp) -> UOp:
    """Store an output: plain, gated, through views into a part, or read again afterwards."""
    shape, kind = output.shape, choices.below(5)
    if kind == 0:
        gate = growth.input(dtypes.bool, shape)
        return store(growth.buffer(output.dtype, shape), output, gate)
    if kind == 1 and shape:
        offset = [choices.below(2) for _ in shape]
        whole = growth.buffer(output.dtype, tuple(s + 1 for s in shape))
        return store(flip_all(shrink(whole, offset, shape)), output)
    target = growth.blank(output.dtype, shape)
    if kind == 2:
        copy = growth.blank(output.dtype, shape)
        return store(copy, flip_all(after(target, output)))
    return store(target, output)


def batches(growth: Growth, root: UOp) -> tuple[Batch, ...]:
    """Return the data that the graph grew on, and other data on which it has a meaning."""
    used = [slot for slot in sorted(slots_of(root)) if slot in growth.inputs]
    first, second = ({slot: growth.inputs[slot][k] for slot in used} for k in range(2))
    batch = _evaluated(first, root, growth.result(root))
    # Some graphs have a meaning on some inputs only: computed indices must fit.
    if not any(
        u.declaration.clauses or (u.dtype is dtypes.index and u.op not in (Op.CONST, Op.STACK))
        for u in root.toposort()
    ):
        return batch, Batch(second)
    other = _evaluated(second, root, result_on(root, second))
    return (batch,) if other.evaluated is None else (batch, other)


def _evaluated(inputs: Mapping[int, Array], root: UOp, result: FullOutput | None) -> Batch:
    return Batch(inputs, None if result is None else Evaluated(root, result))
