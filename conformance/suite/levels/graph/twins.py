"""Level twin: programs beside others that say the same in other words, judged by one accepted set.

A value in memory of its own, an input as a constant, an op as what it decomposes into, a part as a
FUNCTION, the words of an edition: none of it may change what a program gives. And what is run
twice on the same data gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.case import MIXED, Batch, Twin
from uop.conformance.suite.choices import Choices, data_key
from uop.conformance.suite.levels.graph.functions import outlined
from uop.conformance.suite.levels.graph.growth import Growth
from uop.conformance.suite.levels.graph.random_graph import (
    Flavour,
    batches,
    flavour_in,
    grown,
    homes_in,
    rooted,
)
from uop.conformance.suite.levels.group import Counts, Group, Program
from uop.conformance.suite.levels.op.elementwise import (
    constant,
    decomposed,
    edge_columns,
    guarded,
    operand_dtypes,
)
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.interpreter.rules.movement import data_sources
from uop.spec.args import BinaryArg, DTypeArg
from uop.spec.dtype import DTYPES, DType, Kind
from uop.spec.editions import EDITIONS, parse, print_program
from uop.spec.errors import UnsupportedError
from uop.spec.graph import inlined, outside, replaced, slot_of
from uop.spec.latitude import Ulp
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, dims, param
from uop.spec.walk import outside_bodies

Way = Callable[[Growth, UOp], UOp]
"""How a value gets a memory of its own."""
Build = Callable[[DType, Flavour, Choices, int], Program]

HOMES: dict[str, tuple[str, ...]] = {
    "narrow": ("int8", "uint16"),
    "integers": ("int32", "uint64"),
    "floats": ("float32", "float64"),
    "small-floats": ("float16", "bfloat16", "fp8e4m3"),
    "pads": ("int64", "float32"),
}
"""The dtypes that graphs start with, by the flavour in which they grow."""

BASES: tuple[tuple[Shape, int], ...] = (((8,), 3), ((3, 4), 3), ((2, 3, 2), 2), ((17,), 1))
"""Small, for an input may become that many constants."""
FEWEST_NODES, MOST_NODES = 6, 12
MOST_LISTED = 8
"""Elements of an input that are written as CONSTs; those of a larger one as bytes."""


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    for name, chosen in HOMES.items():
        homes = homes_in(vocabulary, name, chosen)
        for home in homes:
            for kind, build, counts, needs in KINDS:
                made = partial(build, DTYPES[home], flavour_in(vocabulary, name))
                # A smoke run takes each flavour once.
                kept = (counts[0] if home == homes[0] else 0, *counts[1:])
                yield Group("twin", MIXED, home, f"{name}-{kind}", kept, made, needs)
    for declaration in DECLARATIONS.values():
        if declaration.decomposition is None or declaration.arg is not None:
            continue
        if not isinstance(declaration.latitude, Ulp):
            for dtype in declaration.dtypes:
                op = declaration.op
                made = partial(_decomposed_op, op, dtype)
                yield Group("twin", op.name, dtype.name, "decomposed", (0, 1, 1), made, (op,))


def _split(way: Way, home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """Each node, then all of them, read from a memory of their own."""
    growth, root = _grown(home, flavour, choices)
    if way is stored and any(u.op is Op.BITCAST for u in outside(root)):
        way = loaded  # Of a place there is no BITCAST.
    nodes = [u for u in outside(root) if u in growth.known and data_sources(u)]
    # What is absent leaves a buffer as it was, and what was there before nobody has written.
    whole = [u for u in nodes if way is copied or growth.value(u).invalid is None]
    given = _twice(growth, root)
    twins = [
        Twin(f"with {u.op.name} in memory", replaced(root, {u: way(growth, u)}), given)
        for u in whole
    ]
    if len(whole) > 1:
        together = _every(growth, root, way, set(whole))
        twins.append(Twin("with every value in memory", together, given))
    return Program(root, given, twins=tuple(twins))


def copied(growth: Growth, u: UOp) -> UOp:
    """The value, from a place of its own."""
    return UOp(Op.CONTIGUOUS, u)


def stored(growth: Growth, u: UOp) -> UOp:
    """The buffer that the value was stored to."""
    target = growth.blank(u.dtype, u.shape)
    return UOp(Op.AFTER, target, UOp(Op.STORE, target, u))


def loaded(growth: Growth, u: UOp) -> UOp:
    """The value, read back from a buffer that it was stored to."""
    return UOp(Op.LOAD, stored(growth, u))


def _every(growth: Growth, root: UOp, way: Way, split: set[UOp]) -> UOp:
    done: dict[UOp, UOp] = {}
    for u in outside(root):
        sources = outside_bodies(u)
        body = u.src[: len(u.src) - len(sources)]
        rebuilt = u.with_src((*body, *(done[s] for s in sources)))
        done[u] = way(growth, rebuilt) if u in split else rebuilt
    return done[root]


def _constants(home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """Each input in turn, then all of them, written into the program."""
    growth, root = _grown(home, flavour, choices)
    given = _twice(growth, root)
    data = given[0].inputs
    params = [u for u in outside(root) if u.op is Op.PARAM]
    literals = {u: literal(data[slot_of(u)], u.dtype) for u in params}
    twins = [_without(f"with input {slot_of(u)} constant", root, given[0], {u: literals[u]})
             for u in params]  # fmt: skip
    if len(params) > 1:
        twins.append(_without("with every input constant", root, given[0], literals))
    return Program(root, given, twins=tuple(twins))


def literal(data: Array, dtype: DType) -> UOp:
    """A value of these bits without an input: a STACK of CONSTs, or bytes where it is large."""
    if data.size > MOST_LISTED and dtype.kind is not Kind.INDEX:
        raw = UOp(Op.BINARY, arg=BinaryArg(np.ascontiguousarray(data).tobytes()))
        flat = UOp(Op.BITCAST, raw, arg=DTypeArg(dtype))
        return UOp(Op.RESHAPE, flat, dims(data.shape))
    members = [constant(value, dtype) for value in data.reshape(-1)]
    return UOp(Op.RESHAPE, UOp(Op.STACK, *members), dims(data.shape)) if data.shape else members[0]


def _without(name: str, root: UOp, batch: Batch, literals: Mapping[UOp, UOp]) -> Twin:
    gone = {slot_of(u) for u in literals}
    left = Batch({slot: a for slot, a in batch.inputs.items() if slot not in gone})
    return Twin(name, replaced(root, literals), (left,))


def _decomposed(home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """Every op as what it decomposes into, but for those whose decomposition has a larger error."""
    growth, root = _grown(home, flavour, choices)
    given = _twice(growth, root)
    smaller = decomposed(root, is_exact)
    return Program(root, given, twins=(Twin("decomposed", smaller, given),))


def is_exact(u: UOp) -> bool:
    """Whether what an op decomposes into gives what the op may give, and nothing else."""
    return not isinstance(u.declaration.latitude, Ulp)


def _decomposed_op(op: Op, dtype: DType, choices: Choices, index: int) -> Program:
    """One op and its decomposition on special values, and on ordinary ones."""
    dts = operand_dtypes(DECLARATIONS[op], dtype)
    columns = edge_columns(op, dts)
    n = len(columns[0])
    ordinary = guarded(op, dts, [values.draw_ordinary(d, n, data_key(choices)) for d in dts])
    root = UOp(op, *(param(k, (n,), d) for k, d in enumerate(dts)))
    given = tuple(Batch(dict(enumerate(data))) for data in (columns, ordinary))
    return Program(root, given, twins=(Twin("decomposed", decomposed(root), given),))


def _called(home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """Written out, and with parts that FUNCTIONs compute."""
    growth, _ = _grown(home, flavour, choices)
    root = UOp(Op.TUPLE, *(inlined(u) for u in growth.outputs()))
    given = _twice(growth, root)
    twins = [
        Twin(
            f"with FUNCTIONs {depth} deep",
            UOp(Op.TUPLE, *outlined(choices, root.src, depth)),
            given,
        )
        for depth in (1, 2)
    ]
    return Program(root, given, twins=tuple(twins))


def _editions(home: DType, flavour: Flavour, choices: Choices, index: int) -> Program:
    """Read back from the words of each edition that has words for all of it.

    Values only: an edition may know a buffer by its size, and then the outputs are flat.
    """
    growth, _ = _grown(home, flavour, choices)
    root = UOp(Op.TUPLE, *growth.outputs())
    given = _twice(growth, root)
    read = {edition: _read_back(root, edition) for edition in EDITIONS}
    twins = (Twin(f"in the words of {e}", u, given) for e, u in read.items() if u is not None)
    return Program(root, given, twins=tuple(twins))


def _read_back(root: UOp, edition: str) -> UOp | None:
    try:
        return parse(print_program(root, edition), edition)
    except UnsupportedError:
        return None


def _grown(home: DType, flavour: Flavour, choices: Choices) -> tuple[Growth, UOp]:
    with np.errstate(all="ignore"):
        growth = grown(home, flavour, choices, BASES, (FEWEST_NODES, MOST_NODES))
        return growth, rooted(growth, choices)


def _twice(growth: Growth, root: UOp) -> tuple[Batch, ...]:
    """The data of a graph, the first of it again: equal bits are expected of it."""
    given = batches(growth, root)
    return (*given, given[0])


MEMORY = (Op.BUFFER, Op.STORE, Op.AFTER)
LITERALS = (Op.CONST, Op.STACK, Op.RESHAPE, Op.BINARY, Op.BITCAST)
KINDS: tuple[tuple[str, Build, Counts, tuple[Op, ...]], ...] = (
    ("copied", partial(_split, copied), (1, 3, 60), (Op.CONTIGUOUS,)),
    ("stored", partial(_split, stored), (0, 2, 40), MEMORY),
    ("loaded", partial(_split, loaded), (0, 1, 40), (*MEMORY, Op.LOAD)),
    ("constants", _constants, (1, 3, 60), LITERALS),
    ("decomposed", _decomposed, (0, 2, 40), ()),
    ("called", _called, (0, 2, 40), (Op.FUNCTION, Op.GETTUPLE, Op.TUPLE)),
    ("editions", _editions, (0, 1, 20), ()),
)
"""Each with how many there are and the ops that it needs."""
