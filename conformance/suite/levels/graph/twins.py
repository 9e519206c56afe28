"""Generate level twin: equivalent programs, which are judged by one accepted set.

Twins put a value in memory of its own, an input into a constant, an op into its decomposition, a
part into a FUNCTION, or a program into another edition. None of these may change the results. Two
runs on the same data must give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

import numpy as np

from uop.conformance.suite.case import Batch, Twin
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import random_graph
from uop.conformance.suite.levels.graph.functions import outlined
from uop.conformance.suite.levels.graph.growth import Growth
from uop.conformance.suite.levels.graph.steps import CALLED
from uop.conformance.suite.levels.group import Counts, Generated, Group, group
from uop.conformance.suite.levels.op import elementwise
from uop.conformance.suite.values import draw_ordinary
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import BinaryArg
from uop.spec.dtype import DType, Kind
from uop.spec.editions import EDITIONS, parse, print_program
from uop.spec.errors import UnsupportedError
from uop.spec.graph import inlined, outside, outside_bodies, over, rebuild, replaced, slot_of
from uop.spec.latitude import Ulp
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp

Way = Callable[[Growth, UOp], UOp]
"""Gives a value a memory of its own."""
Build = Callable[[DType, random_graph.Flavour, Choices, int], Generated]

HOMES: dict[str, tuple[str, ...]] = {
    "narrow": ("int8", "uint16"),
    "integers": ("int32", "uint64"),
    "floats": ("float32", "float64"),
    "small-floats": ("float16", "bfloat16", "fp8e4m3"),
    "pads": ("int64", "float32"),
}
"""The dtypes that graphs start with, by the flavour in which they grow."""

BASES: tuple[tuple[Shape, int], ...] = (((8,), 3), ((3, 4), 3), ((2, 3, 2), 2), ((17,), 1))
"""Base shapes and their weights; small, because an input may become that many constants."""
FEWEST_NODES, MOST_NODES = 6, 12
MOST_LISTED = 8
"""The most elements of an input that are written as CONSTs; a larger one is written as bytes."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for name, flavour in random_graph.flavours_in(vocabulary, HOMES):
        for home in flavour.homes:
            for kind, build, (smoke, default, full), needs in KINDS:
                # A smoke run takes each flavour once.
                counts = (smoke if home is flavour.homes[0] else 0, default, full)
                args = (home, flavour)
                yield group("twin", None, home, f"{name}-{kind}", counts, build, *args, needs=needs)
    for op, d in DECLARATIONS.items():
        if d.decomposition is not None and d.arg is None and not isinstance(d.latitude, Ulp):
            for dtype in d.dtypes:
                args_, needs = (op, dtype), (op,)
                name, counts = "decomposed", (0, 1, 1)
                yield group("twin", op, dtype, name, counts, _decomposed_op, *args_, needs=needs)


def _split(
    way: Way, home: DType, flavour: random_graph.Flavour, choices: Choices, index: int
) -> Generated:
    """Read each node, then all of them, from a memory of its own."""
    growth, root = _grown(home, flavour, choices)
    if way is stored and any(u.op is Op.BITCAST for u in outside(root)):
        way = loaded  # BITCAST takes no place in memory.
    values = [u for u in outside(root) if u in growth.known and u.data_src]
    # An absent element leaves a buffer as it was, and nothing was written there before.
    whole = [u for u in values if way is copied or growth.value(u).invalid is None]
    data = _twice(growth, root)
    twins = [
        Twin(f"with {u.op.name} in memory", replaced(root, {u: way(growth, u)}), data)
        for u in whole
    ]

    def split_up(u: UOp, operands: list[UOp]) -> UOp:
        rebuilt = over(u, operands)
        return way(growth, rebuilt) if u in whole else rebuilt

    if len(whole) > 1:
        together = rebuild(root, split_up, outside_bodies)
        twins.append(Twin("with every value in memory", together, data))
    return Generated(root, data, twins=tuple(twins))


def copied(growth: Growth, u: UOp) -> UOp:
    """Return the value read from memory of its own."""
    return UOp(Op.CONTIGUOUS, u)


def stored(growth: Growth, u: UOp) -> UOp:
    """Return the buffer after the value is stored to it."""
    return nodes.after(growth.blank(u.dtype, u.shape), u)


def loaded(growth: Growth, u: UOp) -> UOp:
    """Return the value read back from a buffer after a store."""
    return UOp(Op.LOAD, stored(growth, u))


def _constants(
    home: DType, flavour: random_graph.Flavour, choices: Choices, index: int
) -> Generated:
    """Write each input in turn, then all of them, into the program as constants."""
    growth, root = _grown(home, flavour, choices)
    every = _twice(growth, root)
    data = every[0].inputs
    literals = {u: literal(data[slot_of(u)], u.dtype) for u in outside(root) if u.op is Op.PARAM}
    twins = [
        _without(f"with input {slot_of(u)} constant", root, every[0], {u: value})
        for u, value in literals.items()
    ]
    if len(literals) > 1:
        twins.append(_without("with every input constant", root, every[0], literals))
    return Generated(root, every, twins=tuple(twins))


def literal(data: Array, dtype: DType) -> UOp:
    """Return a value of these bits without an input: a STACK of CONSTs, or bytes if it is large."""
    if data.size > MOST_LISTED and dtype.kind is not Kind.INDEX:
        raw = UOp(Op.BINARY, arg=BinaryArg(np.ascontiguousarray(data).tobytes()))
        return nodes.reshape(nodes.bitcast(raw, dtype), data.shape)
    members = [nodes.constant(value, dtype) for value in data.reshape(-1)]
    return nodes.reshape(UOp(Op.STACK, *members), data.shape) if data.shape else members[0]


def _without(name: str, root: UOp, batch: Batch, literals: Mapping[UOp, UOp]) -> Twin:
    gone = {slot_of(u) for u in literals}
    left = Batch({slot: a for slot, a in batch.inputs.items() if slot not in gone})
    return Twin(name, replaced(root, literals), (left,))


def _decomposed(
    home: DType, flavour: random_graph.Flavour, choices: Choices, index: int
) -> Generated:
    """Replace ops by their decompositions, unless a decomposition has a larger error."""
    growth, root = _grown(home, flavour, choices)
    twin = elementwise.decomposed(root, keeps=lambda u: isinstance(u.declaration.latitude, Ulp))
    return _twins(root, _twice(growth, root), {"decomposed": twin})


def _decomposed_op(op: Op, dtype: DType, choices: Choices, index: int) -> Generated:
    """Build one op and its decomposition on special values, then on ordinary ones."""
    dts = elementwise.operand_dtypes(DECLARATIONS[op], dtype)
    columns = elementwise.edge_columns(op, dts)
    n = len(columns[0])
    root = elementwise.on_inputs(op, dts, n)
    ordinary = elementwise.samples(op, draw_ordinary, dts, n, choices)
    every = tuple(Batch(dict(enumerate(data))) for data in (columns, ordinary))
    return _twins(root, every, {"decomposed": elementwise.decomposed(root)})


def _called(home: DType, flavour: random_graph.Flavour, choices: Choices, index: int) -> Generated:
    """Build a graph and, as its twin, the same with parts that FUNCTIONs compute."""
    growth, _ = _grown(home, flavour, choices)
    root = nodes.outputs(*(inlined(u) for u in growth.outputs()))
    data = _twice(growth, root)
    called = {
        f"with FUNCTIONs {depth} deep": nodes.outputs(*outlined(choices, root.src, depth))
        for depth in (1, 2)
    }
    return _twins(root, data, called)


def _editions(
    home: DType, flavour: random_graph.Flavour, choices: Choices, index: int
) -> Generated:
    """Print a graph in each edition that can express all of it, and read it back.

    Roots are values only: an edition may know a buffer by its size, which makes outputs flat.
    """
    growth, _ = _grown(home, flavour, choices)
    root, twins = nodes.outputs(*growth.outputs()), dict[str, UOp]()
    for edition in EDITIONS:
        with suppress(UnsupportedError):
            twins[f"in the words of {edition}"] = parse(print_program(root, edition), edition)
    return _twins(root, _twice(growth, root), twins)


def _twins(root: UOp, data: tuple[Batch, ...], twins: Mapping[str, UOp]) -> Generated:
    return Generated(root, data, twins=tuple(Twin(name, u, data) for name, u in twins.items()))


def _grown(home: DType, flavour: random_graph.Flavour, choices: Choices) -> tuple[Growth, UOp]:
    growth = random_graph.grown(home, flavour, choices, BASES, (FEWEST_NODES, MOST_NODES))
    return growth, random_graph.rooted(growth, choices)


def _twice(growth: Growth, root: UOp) -> tuple[Batch, ...]:
    """Return the batches of a graph with the first one repeated: it must give equal bits."""
    data = random_graph.batches(growth, root)
    return (*data, data[0])


KINDS: tuple[tuple[str, Build, Counts, tuple[Op, ...]], ...] = (
    ("copied", partial(_split, copied), (1, 3, 60), (Op.CONTIGUOUS,)),
    ("stored", partial(_split, stored), (0, 2, 40), (Op.BUFFER, Op.STORE, Op.AFTER)),
    ("loaded", partial(_split, loaded), (0, 1, 40), (Op.BUFFER, Op.STORE, Op.AFTER, Op.LOAD)),
    ("constants", _constants, (1, 3, 60), (Op.CONST, Op.STACK, Op.RESHAPE, Op.BINARY, Op.BITCAST)),
    ("decomposed", _decomposed, (0, 2, 40), ()),
    ("called", _called, (0, 2, 40), CALLED),
    ("editions", _editions, (0, 1, 20), ()),
)
"""Each with its counts and the ops that it needs."""
