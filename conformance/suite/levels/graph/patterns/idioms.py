"""Generate level graph: what programs write in several ops, and compilers recognise as one.

`idioms.toml` has the lines of these groups, of all but alike:

- computed-reads: elements read by indices that wrap, are clamped, rolled, scaled or constant, of
  views, of other reads and of a table as one row; views and folds of what is read.
- rearranged: blocks, tiles, diagonals, rolls, concatenations, by chains of views.
- windows: windows of a row that overlap, leave gaps or are padded; scans by masks and by steps.
- picks: one-hot rows, places of the largest and the least, ranks, counts, sums by number. Many
  elements are equal.
- alike, alike-views: values that differ in one thing: the order of operands, a constant, a dtype,
  an axis, an offset. A compiler that computes equal values once may take them for equal.
- quantised: numbers of 8 and 16 bits with a scale and a zero point; sums that saturate, quotients
  that round, high halves of products, two numbers in a byte.
- bit-tricks: bits counted, turned, moved and selected by masks.
- float-bits: signs, exponents and orders of floats from their bits; rounding by large numbers.
- normalised: rows and columns less their largest or their mean, in proportion to their sums.
- factors: folds of what a scalar or a row scales, bounds in either order, own folds, and products
  of matrices.
- losses: losses by number and by proportion, masks, means, and steps that depend on folds.
- moving-offsets: offsets, indices, masks and values that are computed of variables.
- bound-sizes: sizes that are variables, at both ends of their range.
- free-sizes: sizes, and offsets beside them, that are computed of inputs.
- other-ranks: views and folds of rank 4, 5 and 0, of no elements, of edges and of copies.
- same-bits: constants and folds of the same bits as a float and as an integer of either sign.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from itertools import chain
from math import inf, nan, prod
from typing import Any

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import pairs
from uop.conformance.suite.levels.graph.chains import MOVED
from uop.conformance.suite.levels.graph.patterns.rewrites import (
    COMPOSED,
    NAMED,
    Argument,
    Builder,
    alternatives,
)
from uop.conformance.suite.levels.group import Counts, Group
from uop.conformance.suite.values import array, draw_bits, draw_ordinary, draw_within, sample
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array
from uop.spec.args import ConstArg, PadArg, PadFill
from uop.spec.dtype import FLOATS, INTS, NUMBERS, DType, dtypes
from uop.spec.errors import InvalidError
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import is_variable
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp, const, index_const, param, variable

SPELLED = {"int8", "uint8", "int32", "uint64", "float16", "float32"}
TRICKS = {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}
TRICKS |= {"float16", "bfloat16", "float32", "float64"}
"""The dtypes of a smoke run."""
COUNTS: Counts = (1, 2, 8)
SHORT = tuple(d for d in INTS if d.bits < 32)
WITH_FIELDS = tuple(d for d in FLOATS if d.bits > 8)
NORMALISED = (
    *(dtypes.int8, dtypes.uint32, dtypes.int32),
    *(dtypes.float16, dtypes.float32, dtypes.float64),
)
READ = 9
"""How many indices read a table."""
ROWS = 7
"""How many rows it has; idioms.toml knows the sizes of inputs too."""
DEEP = 150
"""The elements of a table that a signed byte cannot number."""
STRIPES = {"stripes1": 0x55, "stripes2": 0x33, "stripes4": 0x0F, "bytes": 0x01}
"""What each byte of a constant is: the bits of each second group of 1, 2 and 4, and the lowest."""

TEXTS = "idioms.toml", "numbers.toml", "models.toml"
"""The files with lines; those of a group are in one of them."""

KINDS_SPELLED, KINDS_OF_TRICKS = pairs.Kinds(), pairs.Kinds()


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    yield from KINDS_SPELLED.groups(vocabulary, SPELLED)
    yield from KINDS_OF_TRICKS.groups(vocabulary, TRICKS)


@cache
def lines(name: str) -> tuple[tuple[str, ast.expr], ...]:
    """Return the lines of a group: what each names, if anything, and how it is built."""
    tables = (tomllib.loads((files(__package__) / t).read_text("utf-8")) for t in TEXTS)
    text = next(table[name] for table in tables if name in table)
    every = chain.from_iterable(map(alternatives, text.splitlines()))
    return tuple(
        (ast.unparse(line.targets[0]) if isinstance(line, ast.Assign) else "", line.value)
        for line in ast.parse("\n".join(every)).body
        if isinstance(line, ast.Assign | ast.Expr)
    )


def results(name: str, p: pairs.Plan, **named: Argument) -> Iterator[UOp]:
    """Yield the results of a group, without those that have no meaning on the dtype."""
    builder = Builder(p.dtype, p.vocabulary, 0, pairs.LENGTH, names=named, forms=COMPOSED | FORMS)
    absent: set[str] = set()
    for target, value in lines(name):
        try:
            if absent & {e.id for e in ast.walk(value) if isinstance(e, ast.Name)}:
                raise ValueError("a name in it has no meaning")
            if isinstance(value, ast.Lambda):
                builder.forms[target] = partial(_applied, builder, value)
            elif target:
                builder.names[target] = builder.node(value, p.dtype)
            else:
                yield builder.node(value, p.dtype)
        except (InvalidError, ValueError):
            absent.add(target)


def _applied(builder: Builder, form: ast.Lambda, *args: Argument) -> UOp:
    names = dict(zip((arg.arg for arg in form.args.args), args, strict=True))
    return replace(builder, names=builder.names | names).node(form.body, builder.home)


def _counted(n: int) -> UOp:
    return _listed(*range(n))


def _listed(*values: int) -> UOp:
    return UOp(Op.STACK, *(const(value, dtypes.int32) for value in values))


def _row(u: UOp) -> UOp:
    return nodes.reshape(u, (1, prod(u.shape)))


def _column(u: UOp) -> UOp:
    return nodes.reshape(u, (prod(u.shape), 1))


def _flat(u: UOp) -> UOp:
    return nodes.reshape(u, (prod(u.shape),))


def _part(u: UOp, first: int, count: int) -> UOp:
    """Return elements of a vector, or rows."""
    rest = u.shape[1:]
    return nodes.shrink(u, (first, *(0 for _ in rest)), (count, *rest))


def _placed(u: UOp, first: int, count: int) -> UOp:
    """Return a vector of so many elements, or a matrix of so many rows, 0 around those of u."""
    rest = u.shape[1:]
    return nodes.pad(u, (first, *(0 for _ in rest)), (count, *rest), PadFill.ZERO)


def _rolled(u: UOp, by: int) -> UOp:
    n = u.shape[0]
    ahead, behind = _part(u, n - by, by), _part(u, 0, n - by)
    return UOp(Op.ADD, _placed(ahead, 0, n), _placed(behind, by, n))


def _repeated(u: UOp, axis: int, count: int) -> UOp:
    """Return u with copies along a new axis."""
    shape = (*u.shape[:axis], 1, *u.shape[axis:])
    return nodes.expand(nodes.reshape(u, shape), (*shape[:axis], count, *shape[axis + 1 :]))


def _every(u: UOp, first: int, step: int) -> UOp:
    """Return each element of a vector that is a multiple of a step behind the first one."""
    count = u.shape[0] // step
    whole = nodes.reshape(_part(u, 0, count * step), (count, step))
    return _flat(nodes.shrink(whole, (0, first), (count, 1)))


def _windows_of(u: UOp, size: int, apart: int = 1) -> UOp:
    """Return windows along the last axis as columns, by views of copies: in each its elements are
    so far apart.
    """
    *rest, n = u.shape
    row, none = n + apart, [0] * len(rest)
    count = -(-size * row // n)
    copies = nodes.reshape(_repeated(u, len(rest), count), (*rest, count * n))
    part = nodes.shrink(copies, (*none, 0), (*rest, size * row))
    rows = nodes.reshape(part, (*rest, size, row))
    return nodes.shrink(rows, (*none, 0, 0), (*rest, size, n - apart * (size - 1)))


def _seen(u: UOp, axis: int, size: int, step: int, apart: int) -> UOp:
    """Return windows along an axis, so many steps from one another. Their elements, so far apart,
    are along a new first axis.
    """
    before, (n, *behind) = u.shape[:axis], u.shape[axis:]
    count = (n - apart * (size - 1) - 1) // step + 1
    none = [0] * len(u.shape)
    longer = nodes.pad(u, none, (*before, n + step, *behind), PadFill.ZERO)
    found = []
    for k in range(size):
        start = [*none[:axis], k * apart, *none[axis + 1 :]]
        part = nodes.shrink(longer, start, (*before, count * step, *behind))
        split = nodes.reshape(part, (*before, count, step, *behind))
        first = nodes.shrink(split, (*none, 0), (*before, count, 1, *behind))
        found.append(nodes.reshape(first, (*before, count, *behind)))
    return UOp(Op.STACK, *found)


def _stacked(*sizes: UOp | int) -> UOp:
    """Return a shape or an offset of which some numbers are variables."""
    return UOp(Op.STACK, *(n if isinstance(n, UOp) else index_const(n) for n in sizes))


def _below_zero(dtype: DType, n: int, key: int) -> Array:
    """Draw numbers below zero, unless the dtype has none."""
    return draw_within(*((-5, -1) if dtype.is_signed or dtype.is_float else (1, 5)))(dtype, n, key)


FORMS: dict[str, Callable[..., UOp]] = {
    "N": lambda value: const(value, dtypes.int32),
    "REAL": lambda value: const(value, dtypes.float32),
    "AT": index_const,
    "LIST": _listed,
    "COUNT": _counted,
    "ROW": _row,
    "COLUMN": _column,
    "FLAT": _flat,
    "SCALAR": lambda u: nodes.reshape(u, ()),
    "PART": _part,
    "PLACED": _placed,
    "ROLLED": _rolled,
    "REPEATED": _repeated,
    "EVERY": _every,
    "WINDOWS": _windows_of,
    "SEEN": _seen,
    "UP_TO": lambda n: UOp(Op.CMPLE, _column(_counted(n)), _row(_counted(n))),
    "CUT": lambda u, first, n: UOp(Op.SHRINK, u, _stacked(first), _stacked(n)),
    "PUT": lambda u, first, n: UOp(
        Op.PAD, u, _stacked(first), _stacked(n), arg=PadArg(PadFill.ZERO)
    ),
    "SHRINK2": lambda u, i, j, n: UOp(Op.SHRINK, u, _stacked(i, j), _stacked(n, n)),
    "SIZED": lambda u, n: UOp(Op.SHRINK, u, _stacked(0), _stacked(n)),
    "SIZED2": lambda u, n, m: UOp(Op.SHRINK, u, _stacked(0, 0), _stacked(n, m)),
    "EDGED": lambda u, n, first=1: UOp(
        Op.PAD, u, _stacked(first), _stacked(n), arg=PadArg(PadFill.INVALID)
    ),
    "LONGER": lambda u, n: UOp(Op.PAD, u, _stacked(1), _stacked(n), arg=PadArg(PadFill.ZERO)),
    "EXPANDED": lambda u, n: UOp(Op.EXPAND, u, _stacked(n)),
    "SHAPED": lambda u, n, m: UOp(Op.RESHAPE, u, _stacked(n, m)),
    "BITS_OF": lambda u, bits: UOp(Op.CONST, arg=ConstArg(bits, u.dtype)),
    "BYTE": lambda u: (nodes.bitcast if u.dtype.bits == 8 else nodes.cast)(u, dtypes.uint8),
}
"""The forms that idioms.toml has besides those of compositions.toml: numbers that are int32 or
float32, an index, a list of numbers, shapes, parts and copies, a triangle, parts, edges, copies and
shapes by variables, a constant by its bits, and the lowest byte."""


def of_width(dtype: DType, is_signed: bool) -> DType:
    return next(d for d in INTS if d.bits == dtype.bits and d.is_signed is is_signed)


@KINDS_SPELLED.add("computed-reads", COUNTS, NUMBERS, pairs.drawn(draw_bits, draw_ordinary))
def _computed_reads(p: pairs.Plan) -> Iterator[UOp]:
    """Read rows by indices that are computed, of a table and of views of it."""
    n = ROWS
    place, near, far = (param(slot, (READ,), dtypes.int32) for slot in (2, 3, 4))
    table, row = param(0, (n, 4), p.dtype), param(1, (1, 4), p.dtype)
    named = {"place": place, "near": near, "far": far, "t": table, "row": row}
    named |= {"many": param(5, (DEEP,), p.dtype), "deep": param(6, (READ,), dtypes.int32)}
    yield from results("computed-reads", p, **named, step=p.choices.between(1, n - 2))
    # Every program has both ends, and a pair that is its own reverse in no order.
    for slot, low, high, first in (
        (2, 0, n - 1, (n - 1, 0, 1, 0)),
        (3, -n, n - 1, (-n, -1, 0, n - 1)),
        (4, -40, 40, (-40, -1, n - 1, n, 3 * n + 1)),
        (6, 0, DEEP - 1, (DEEP - 1, 0, 127, 128)),
    ):
        p.given[slot] = sample(draw_within(low, high), dtypes.int32, READ, p.choices)
        p.given[slot][: len(first)] = first


@KINDS_SPELLED.add("rearranged", COUNTS, NUMBERS, pairs.drawn(draw_bits, draw_ordinary))
def _rearranged(p: pairs.Plan) -> Iterator[UOp]:
    """Order elements anew by chains of views, as frontends do for what has no op."""
    x, y = p.inputs(2, (12,))
    square, plane = param(2, (3, 3), p.dtype), param(3, (4, 6), p.dtype)
    return results("rearranged", p, x=x, y=y, square=square, plane=plane)


@KINDS_SPELLED.add("windows", COUNTS, NUMBERS, pairs.drawn(draw_ordinary, draw_within(1, 3)))
def _windows(p: pairs.Plan) -> Iterator[UOp]:
    """Fold windows of a vector, and all elements up to each one."""
    x, plane, w = (param(k, s, p.dtype) for k, s in enumerate(((10,), (4, 5), (3,))))
    return results("windows", p, x=x, plane=plane, w=w)


@KINDS_SPELLED.add("picks", COUNTS, NUMBERS, pairs.just_given)
def _picks(p: pairs.Plan) -> Iterator[UOp]:
    """Find places and numbers of elements, in rows where many are equal, and use them."""
    shapes: dict[int, Shape] = {0: (4, 5), 1: (4, 5), 3: (4, 3), 4: (READ,)}
    keys, values, table, weights = (param(slot, s, p.dtype) for slot, s in shapes.items())
    named = {"keys": keys, "values": values, "table": table, "weights": weights}
    yield from results("picks", p, **named, numbers=param(2, (READ,), dtypes.int32))
    few = draw_within(-4 * p.dtype.is_signed, -1 if p.dtype.is_signed else 2)
    for slot, shape in shapes.items():
        draw = few if slot in (0, 4) else draw_within(-5 * p.dtype.is_signed, 5)
        p.given[slot] = sample(draw, p.dtype, shape, p.choices)
    # One row of equal elements, one where two are the largest, one with both ends of the dtype.
    p.given[0][0], p.given[0][1, 1:3] = p.given[0][0, 0], p.given[0][1].max()
    p.given[0][2, :2] = array(p.dtype, map(p.dtype.encode, (p.dtype.min, p.dtype.max)))
    p.given[2] = sample(draw_within(-1, 4), dtypes.int32, READ, p.choices)
    p.given[2][:4] = -1, 4, 1, 1


@KINDS_SPELLED.add("alike", COUNTS, NUMBERS)
def _alike(p: pairs.Plan) -> Iterator[UOp]:
    """Apply each op to the same operands in other orders, along other axes, to other numbers."""
    x, y, z = p.inputs(3)
    numbers = [p.const(k) for k in p.choices.shuffled((2, 3, 5))[:2]]
    if p.dtype.is_float:
        numbers += [p.const(k) for k in (0.0, -0.0)]
    own, divisions = p.vocabulary.on(p.dtype), p.of(Op.CDIV, Op.CMOD) if p.dtype.is_int else ()
    for op in (*own.binary, *own.comparisons, *divisions):
        yield from (UOp(op, x, number) for number in numbers)
        if not DECLARATIONS[op].is_partial:
            yield from (UOp(op, *both) for both in ((x, y), (y, x), (x, z)))
            yield from (UOp(op, number, x) for number in numbers)
    yield from (UOp(Op.MULACC, *three) for three in ((x, y, z), (x, z, y), (z, y, x)))
    tests = [UOp(op, *both) for op in (Op.CMPLT, Op.CMPLE) for both in ((x, y), (y, x))]
    yield from (UOp(Op.WHERE, t, *both) for t in tests for both in ((x, y), (y, x), (x, z)))
    for dtype in p.vocabulary.of_dtypes(d for d in NUMBERS if d is not dtypes.index):
        if dtype.is_float or not p.dtype.is_float:
            yield nodes.cast(x, dtype)
            if dtype.is_float and p.dtype.is_float:
                yield nodes.cast(nodes.cast(x, dtype), p.dtype)
        if dtype.bits == p.dtype.bits:
            yield nodes.bitcast(x, dtype)
        if dtype.is_int and not p.dtype.is_float:
            yield nodes.cast(nodes.cast(x, dtype), dtypes.int64)


@KINDS_SPELLED.add("alike-views", COUNTS, NUMBERS, pairs.ordinary_first)
def _alike_views(p: pairs.Plan) -> Iterator[UOp]:
    """Take views, folds and parts of a cube along each axis, and join vectors in each order."""
    cube, square = param(2, (3, 3, 3), p.dtype), param(3, (3, 3), p.dtype)
    return results("alike-views", p, cube=cube, square=square)


def _moved_to_ends(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches with each variable at both ends of its range, and between."""
    batches = pairs.drawn(draw_ordinary, draw_within(1, 3), draw_bits)(root, choices)
    for slot, u in slots_of(root).items():
        if is_variable(u):
            for turn, batch in enumerate(batches):
                batch[slot] = nodes.number_of(u, turn + slot)
    return batches


@KINDS_SPELLED.add("moving-offsets", COUNTS, MOVED, _moved_to_ends)
def _moving_offsets(p: pairs.Plan) -> Iterator[UOp]:
    """Cut, pad, read and mask by variables, whose numbers are inputs."""
    shapes: dict[str, Shape] = {"x": (32,), "y": (4,), "plane": (6, 6)}
    named = {name: param(slot, s, p.dtype) for slot, (name, s) in enumerate(shapes.items())}
    named |= {"n": variable(7, 0, 4), "m": variable(8, 1, 6), "low": variable(9, -4, 3)}
    named["PLACES"] = UOp(Op.STACK, *map(index_const, range(32)))
    return results("moving-offsets", p, **named)


@KINDS_SPELLED.add(
    "bound-sizes", COUNTS, MOVED, pairs.drawn(draw_ordinary, draw_within(1, 3), _below_zero)
)
def _bound_sizes(p: pairs.Plan) -> Iterator[UOp]:
    """Use sizes of which each is a variable with a number."""
    shapes: dict[str, Shape] = {"x": (8,), "z": (8,), "y": (2,), "plane": (4, 4), "w": (6,)}
    named = {name: param(slot, s, p.dtype) for slot, (name, s) in enumerate(shapes.items())}
    named["first"] = nodes.shrink(named["x"], (0,), (1,))
    ranges = {"least": (2, 8, 2), "most": (1, 8, 8), "inner": (1, 8, 5), "also_inner": (3, 6, 5)}
    ranges |= {"one": (1, 4, 1), "nothing": (0, 4, 0), "two": (1, 3, 2), "three": (1, 4, 3)}
    ranges["also_three"] = (3, 4, 3)
    for slot, (name, (low, high, value)) in enumerate(ranges.items(), len(shapes)):
        named[name] = UOp(Op.BIND, variable(slot, low, high), index_const(value))
    sizes = named["inner"], named["two"]
    named["own"] = param(20, sizes[:1], p.dtype)
    named["own_rows"] = param(21, sizes, p.dtype)
    return results("bound-sizes", p, **named)


@KINDS_SPELLED.add("free-sizes", COUNTS, MOVED, _moved_to_ends)
def _free_sizes(p: pairs.Plan) -> Iterator[UOp]:
    """Fold, move and join so many elements as inputs say: none, all and some of them."""
    shapes: dict[str, Shape] = {"x": (8,), "z": (8,), "plane": (4, 8)}
    named = {name: param(slot, s, p.dtype) for slot, (name, s) in enumerate(shapes.items())}
    named |= {"n": variable(6, 0, 8), "k": variable(7, 0, 7), "m": variable(8, 1, 4)}
    return results("free-sizes", p, **named)


@KINDS_SPELLED.add("other-ranks", COUNTS, MOVED, pairs.drawn(_below_zero, draw_ordinary))
def _other_ranks(p: pairs.Plan) -> Iterator[UOp]:
    """Move and fold values of few and of many axes; all elements of one batch are below 0."""
    shapes: dict[str, Shape] = {"q": (2, 2, 2, 2), "five": (2, 1, 3, 2, 2), "plane": (4, 6)}
    shapes |= {"x": (5,), "row": (6,), "cube": (3, 3, 3)}
    named = {name: param(slot, s, p.dtype) for slot, (name, s) in enumerate(shapes.items())}
    return results("other-ranks", p, **named)


@KINDS_OF_TRICKS.add("same-bits", COUNTS, WITH_FIELDS)
def _same_bits(p: pairs.Plan) -> Iterator[UOp]:
    """Use constants that a compiler may take for one another, beside elements of three dtypes."""
    form, bits = p.dtype.format, p.dtype.bits
    named = {"top_bit": 1 << bits - 2, "all_bits": (1 << bits - 1) - 1}
    named |= {"exponent_bits": form.exponent_mask, "ones_place": p.dtype.encode(1)}
    signed, unsigned = of_width(p.dtype, True), of_width(p.dtype, False)
    return results("same-bits", p, **named, signed=signed, unsigned=unsigned)


@KINDS_OF_TRICKS.add("quantised", (2, 2, 8), SHORT)
def _quantised(p: pairs.Plan) -> Iterator[UOp]:
    """Convert to the dtype by a scale and a zero point, with sums and products before."""
    low, high, bits = int(p.dtype.min), int(p.dtype.max), p.dtype.bits
    zero, other = (low + high + 1) // 2 + p.choices.between(3, 9), p.choices.between(3, 9)
    twin = of_width(p.dtype, not p.dtype.is_signed)
    named = {"below": low - 1, "beyond": high + 1}
    named |= {"low": low, "high": high, "low_half": low // 2, "high_half": high // 2}
    named |= {"zero": zero, "other": other, "scale": p.choices.pick((3, 5, 7))}
    named |= {"five": 5 * zero * other, "bits": bits, "top": bits - 1}
    edge = -1 << bits - 1 if twin.is_signed else 1 << bits - 1
    return results("quantised", p, **named, twin=twin, edge=edge)


@KINDS_OF_TRICKS.add("bit-tricks", COUNTS, INTS)
def _bit_tricks(p: pairs.Plan) -> Iterator[UOp]:
    """Count, turn, move and select bits."""
    bits, unsigned = p.dtype.bits, of_width(p.dtype, False)
    u, v = (nodes.bitcast(a, unsigned) if p.dtype.is_signed else a for a in p.inputs(2))
    half, by, everything = bits // 2, p.choices.between(1, bits - 1), (1 << bits) - 1
    start, low = p.choices.between(1, half - 1), (1 << half) - 1
    named = {name: byte * (everything // 255) for name, byte in STRIPES.items()}
    named |= {"by": by, "rest": bits - by, "half": half, "top": bits - 1, "bits": bits}
    named |= {"last_byte": bits - 8, "edge": 1 << bits - 1, "low_mask": low, "start": start}
    named |= {"field": low << start, "around": everything ^ low << start}
    named |= {"low_but_one": low >> 1, "start_mask": low << start - 1 & int(p.dtype.max)}
    return results("bit-tricks", p, **named, u=u, v=v, unsigned=unsigned)


@KINDS_OF_TRICKS.add("float-bits", COUNTS, WITH_FIELDS)
def _float_bits(p: pairs.Plan) -> Iterator[UOp]:
    """Read and change the fields of floats, and order and round floats by them."""
    form, bits, magic = p.dtype.format, p.dtype.bits, 1.5 * 2.0**p.dtype.format.fraction_bits
    sign, exponent, fraction = form.sign_bit, form.exponent_mask, form.fraction_bits
    count = fraction // 2 + 1
    named = {"sign": sign, "rest": sign - 1, "exponent": exponent, "head": sign | exponent}
    named |= {"fraction": fraction, "exponents": exponent >> fraction, "bias": form.bias}
    named |= {"fraction_mask": form.fraction_mask, "step": 1 << fraction, "top": bits - 1}
    named |= {"count": count, "below": (1 << count - 1) - 1, "up": 1 << count - 1}
    named |= {"cut1": 2 * sign - 2, "cut": 2 * sign - (1 << count), "one": p.dtype.encode(1)}
    signed, unsigned = of_width(p.dtype, True), of_width(p.dtype, False)
    named["magic_bits"] = p.dtype.encode(magic)
    return results("float-bits", p, **named, signed=signed, unsigned=unsigned, magic=magic)


def _exact(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return small numbers, both signs and none, of which sums and quotients by 4 are exact."""
    inputs = slots_of(root).items()
    ends = ((-9, 9), (0, 3)), ((0, 20), (0, 20))
    return [
        {
            k: sample(draw_within(*ends[u.dtype.min >= 0][batch]), u.dtype, u.shape, choices)
            for k, u in inputs
        }
        for batch in range(2)
    ]


@KINDS_OF_TRICKS.add("normalised", COUNTS, NORMALISED, _exact)
def _normalised(p: pairs.Plan) -> Iterator[UOp]:
    """Use the largest, the sum, the mean or the variance of rows and of columns beside elements.

    The squares have as many rows as columns, so a wrong axis has the right shape.
    """
    x, y = p.inputs(2, (4, 4))
    row, column = (nodes.shrink(y, (0, 0), shape) for shape in ((1, 4), (4, 1)))
    return results("normalised", p, x=x, y=y, r=row, c=column)


def _put(batch: dict[int, Array], slot: int, place: Any, value: Any) -> None:
    """Change an input, if a small vocabulary has left a program that reads it."""
    if slot in batch:
        batch[slot][place] = value


def _with_ties(batch: dict[int, Array], slot: int) -> None:
    """Let the largest element of the last row come twice more."""
    if slot in batch:
        batch[slot][3, :2] = batch[slot][3].max()


def _telling(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches of small numbers, of any bits or infinities and the like, and ordinary ones.

    Slot 0 has rows with equal elements, slots 2 and 3 are single numbers.
    """
    batches = [_exact(root, choices)[0], *pairs.drawn(draw_bits, draw_ordinary)(root, choices)]
    if not root.src:
        return batches
    _put(batches[0], 2, ..., -3 if root.src[0].dtype.min < 0 else 3)
    _put(batches[0], 3, ..., 2)
    for batch in batches[:2]:
        _with_ties(batch, 0)
    if root.src[0].dtype.is_float:
        rows = (1, inf, -inf, 2), (nan, -1, -3, 2), (0, -0.0, -0.0, 0)
        _put(batches[1], 0, np.s_[:3, :4], rows)
        _put(batches[1], 3, ..., -0.0)
    return batches


@KINDS_OF_TRICKS.add("factors", COUNTS, NORMALISED, _telling)
def _factors(p: pairs.Plan) -> Iterator[UOp]:
    """Scale and bound elements by a number, a row or a column, and fold and multiply them."""
    shapes: dict[str, Shape] = {"x": (4, 4), "y": (4, 4), "s": (1, 1), "t": (1, 1)}
    shapes |= {"r": (1, 4), "c": (4, 1)}
    named = {name: param(slot, s, p.dtype) for slot, (name, s) in enumerate(shapes.items())}
    return results("factors", p, **named)


def _graded(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches with elements far below others, infinities, zeros, and sums too large."""
    batches = pairs.drawn(draw_within(-9, 9), draw_ordinary, draw_ordinary)(root, choices)
    for batch, scale in zip(batches, (-3, 0, 2), strict=True):
        _put(batch, 3, ..., np.abs(batch.get(3, 0)))
        _put(batch, 3, np.s_[:, ::2], 0)
        _put(batch, 3, 3, 0)
        _put(batch, 2, ..., scale)
        _put(batch, 0, (2, 0), -2000)
        _with_ties(batch, 0)
    _put(batches[1], 0, np.s_[0, :2], (-inf, 1))
    _put(batches[1], 0, np.s_[1, :3], (inf, -inf, nan))
    _put(batches[1], 0, np.s_[2, 1:], (0, -0.0, -0.0, 0))
    if root.src:
        _put(batches[1], 0, 3, NAMED["large"](root.src[0].dtype))
    return batches


@KINDS_OF_TRICKS.add("losses", COUNTS, NORMALISED[3:], _graded)
def _losses(p: pairs.Plan) -> Iterator[UOp]:
    """Compare rows with numbers, proportions and other rows, and take a step."""
    x, y, t = (param(slot, (4, 5), p.dtype) for slot in (0, 1, 3))
    named = {"x": x, "y": y, "t": t, "s": param(2, (1, 1), p.dtype)}
    labels = param(4, (4,), dtypes.int32)
    yield from results("losses", p, **named, labels=labels, never=-inf)
    p.given[4] = array(dtypes.int32, (n % 2**32 for n in p.choices.shuffled((-1, 0, 4, 5))))
