"""Generate level graph, models: what frontends write in many ops and compilers compute as one.

`models.toml` has the lines of these groups, of all but sized-calls. Beside each pattern stand some
that differ from it in one thing: an axis, a constant, an order of operands, one more use.

- proportions: powers in proportion to their sum, logarithms of sums, slopes, masked rows.
- attended: sums of values by scores of fewer queries than keys, with each kind of mask and bias.
- norms: rows, columns and groups less their mean, by their deviation or by a root of squares.
- pooled: windows of planes, products with them, elements repeated and spaced.
- layouts: orders of axes beside operands of lower rank, folds, joints, edges and products.
- fused: several uses of a value and of its folds; folds of what is read; long rows with a rest.
- scattered: elements by number, orders, sums and the largest so far, some of them equal.
- requantised: numbers of few bits by factors of rows and columns, there and back.
- layers: layers, norms, windows of channels, heads and rows by number as frontends spell them.
- recurrent: gates, pairs that turn, steps of training, random bits.
- sized-calls: bodies whose sizes are variables, with folds, views and reads of these sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import pairs
from uop.conformance.suite.levels.graph.patterns.idioms import READ, SHORT, results
from uop.conformance.suite.levels.group import Counts, Group
from uop.conformance.suite.values import draw_bits, draw_ordinary, draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import NUMBERS, dtypes
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, index_const, param, variable

OF_POWERS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
"""The dtypes of programs with powers, roots and quotients."""
OF_SMOKE = {"int32", "uint8", "float16", "float32"}
"""The dtypes of the others in a smoke run."""
LONG = 201
"""The elements of a long row: no multiple of what a device computes at once."""
COUNTS: Counts = (1, 2, 8)
ROUNDED, SPELLED, NARROW = pairs.Kinds(), pairs.Kinds(), pairs.Kinds()


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    yield from ROUNDED.groups(vocabulary, {d.name for d in OF_POWERS})
    yield from SPELLED.groups(vocabulary, OF_SMOKE)
    yield from NARROW.groups(vocabulary, {d.name for d in SHORT})


def _named(p: pairs.Plan, **shapes: Shape) -> dict[str, UOp]:
    """Return inputs with names; slots are in their order."""
    return {name: param(slot, s, p.dtype) for slot, (name, s) in enumerate(shapes.items())}


_few = pairs.drawn(draw_within(-4, 4), draw_within(-4, 4))


def _far_from_zero(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches of small numbers, and of rows whose powers are too large, too small or none,
    with infinities.
    """
    batches = _few(root, choices)
    if 0 in batches[1]:
        batches[0][0][:2, :2] = 4
        far = batches[1][0] + np.array([[1500], [-1500], [0], [30]])
        far[0, :2], far[2], far[3, 0] = -inf, -inf, -1500
        batches[1][0] = far.astype(batches[1][0].dtype)
    return batches


def _scaled(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches of small numbers, of ordinary ones, and with large ones in slot 0, whose
    squares have no narrow float; the second has a row of zeros.
    """
    batches = [*_few(root, choices), *pairs.drawn(draw_ordinary)(root, choices)]
    if 0 in batches[1]:
        batches[1][0] *= batches[1][0].dtype.type(256)
        batches[1][0][1] = 0
    return batches


def _tied(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches of whole numbers, ordinary ones and those of one sign; the first has ties."""
    signed = all(u.dtype.min < 0 for u in slots_of(root).values())
    low = draw_within(-5, -1) if signed else draw_within(1, 5)
    return pairs.drawn(draw_within(-3 * signed, 3), draw_ordinary, low)(root, choices)


def _by_powers(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches of any bits and of small numbers; factors are powers of two."""
    batches = pairs.drawn(draw_bits, draw_within(1, 9))(root, choices)
    for batch in batches:
        for slot in (2, 3):
            if slot in batch:
                powers = choices.shuffled((-2, -1, 0, 1))
                batch[slot][:] = 2.0 ** np.array(powers).reshape(batch[slot].shape)
    return batches


@ROUNDED.add("proportions", COUNTS, OF_POWERS, _far_from_zero)
def _proportions(p: pairs.Plan) -> Iterator[UOp]:
    """Divide powers by their sums, some of them left out."""
    named = _named(p, x=(4, 5), y=(4, 5), t=(4, 5), r=(1, 5))
    return results("proportions", p, **named, never=-inf)


@ROUNDED.add("attended", COUNTS, OF_POWERS, _scaled)
def _attended(p: pairs.Plan) -> Iterator[UOp]:
    """Sum up values by scores of three queries and five keys; a query may see no key."""
    named = _named(p, q=(3, 4), keys=(5, 4), values=(5, 2), bias=(3, 5))
    yield from results("attended", p, **named, keep=param(4, (3, 5), dtypes.bool), never=-inf)
    p.given[4] = sample(draw_bits, dtypes.bool, (3, 5), p.choices)
    p.given[4][1], p.given[4][2, :2] = False, (True, False)


@ROUNDED.add("norms", COUNTS, OF_POWERS, _scaled)
def _norms(p: pairs.Plan) -> Iterator[UOp]:
    """Take means from rows, columns and groups, and divide by roots."""
    return results("norms", p, **_named(p, x=(4, 8), y=(4, 8), r=(1, 8), b=(1, 8), c=(4, 1)))


@ROUNDED.add("layers", COUNTS, OF_POWERS, _few)
def _layers(p: pairs.Plan) -> Iterator[UOp]:
    """Compute layers of models whose sizes are powers of two."""
    named = _named(p, x=(4, 8), y=(4, 8), w=(8, 8), b=(8,), image=(2, 4, 4))
    numbers: dict[str, UOp] = {"ids": param(5, (6,), dtypes.int32)}
    numbers["n"] = variable(6, 3, 8)
    yield from results("layers", p, **named, **numbers, never=-inf)
    p.given[5] = sample(draw_within(0, 7), dtypes.int32, (6,), p.choices)
    p.given[6] = nodes.number_of(numbers["n"], 2)


@ROUNDED.add("recurrent", COUNTS, OF_POWERS, _scaled)
def _recurrent(p: pairs.Plan) -> Iterator[UOp]:
    """Compute steps of recurrences and of training."""
    named = _named(p, x=(4, 8), h=(4, 4), g=(4, 4), w=(4, 4))
    return results("recurrent", p, **named, bits=param(4, (4, 4), dtypes.uint32))


@SPELLED.add("pooled", COUNTS, NUMBERS, _tied)
def _pooled(p: pairs.Plan) -> Iterator[UOp]:
    """Fold windows of a plane, multiply with them, and repeat or space elements."""
    return results("pooled", p, **_named(p, plane=(6, 7), few=(2, 2), cube=(2, 4, 4)))


@SPELLED.add("layouts", COUNTS, NUMBERS, _tied)
def _layouts(p: pairs.Plan) -> Iterator[UOp]:
    """Order axes of equal sizes anew beside operands of lower rank."""
    return results("layouts", p, **_named(p, cube=(3, 3, 3), line=(3,), square=(3, 3)))


def _at_ends(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return such batches; the largest or the least of the long row is its last, and one inside."""
    batches = _tied(root, choices)
    for batch, end in zip(batches, (9, 5, -9), strict=True):
        if 3 in batch:
            batch[3][[133, LONG - 1]] = max(end, 0) if batch[3].dtype.kind == "u" else end
    return batches


@SPELLED.add("fused", COUNTS, NUMBERS, _at_ends)
def _fused(p: pairs.Plan) -> Iterator[UOp]:
    """Use a value in several folds, and fold what is read."""
    return results("fused", p, **_named(p, x=(5, 6), y=(5, 6), r=(1, 6), long=(LONG, 1)))


@SPELLED.add("scattered", COUNTS, NUMBERS, _tied)
def _scattered(p: pairs.Plan) -> Iterator[UOp]:
    """Sum up by number and order elements of which some are equal."""
    numbers = param(2, (READ,), dtypes.int32)
    yield from results("scattered", p, **_named(p, x=(READ,), base=(1, 5)), numbers=numbers)
    p.given[2] = np.array((1, *p.choices.shuffled((-1, 0, 1, 1, 3, 3, 5, 3))), np.int32)


@NARROW.add("requantised", COUNTS, SHORT, _by_powers)
def _requantised(p: pairs.Plan) -> Iterator[UOp]:
    """Convert to floats by factors of rows and columns, and back."""
    r, c = (param(slot, s, dtypes.float32) for slot, s in ((2, (1, 4)), (3, (4, 1))))
    ends = {"low": int(p.dtype.min), "high": int(p.dtype.max)}
    return results("requantised", p, **_named(p, x=(4, 4), y=(4, 4)), r=r, c=c, **ends)


@SPELLED.add("sized-calls", COUNTS, NUMBERS, _tied)
def _sized_calls(p: pairs.Plan) -> Iterator[UOp]:
    """Call a body with a size inside its range, and with the largest."""
    size = variable(0, 1, 8)
    x, plane = param(1, (8,), p.dtype), param(2, (8, 3), p.dtype)
    body = {"n": size, "x": x, "plane": plane, "w": param(3, (size,), p.dtype)}
    body["PLACES"] = UOp(Op.STACK, *map(index_const, range(8)))
    values = [*filter(p.vocabulary.speaks, results("sized-calls", p, **body))]
    for n in map(index_const, (3, 8)):
        part = UOp(Op.SHRINK, x, UOp(Op.STACK, index_const(0)), UOp(Op.STACK, n))
        yield from nodes.call(values, n, x, plane, part)
