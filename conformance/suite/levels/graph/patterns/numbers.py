"""Generate level graph: numbers of one dtype by way of others, as programs write what has no op.

`numbers.toml` has the lines of these groups, of all but converted:

- converted: each dtype to each other one and on to a third, or back. What the one between drops
  or rounds is gone.
- composed: exponentials, logarithms, powers, roots, angles and curves by EXP2, LOG2, SIN, SQRT and
  RECIP. Operands are small and large, negative, subnormal, infinite and no numbers.
- divisions: quotients by what is computed, in wider dtypes and by floats, that round in each way.
- hashes: steps of hashes and generators of random numbers, floats of bits, codes.
- packed: bytes in integers, colours, numbers with a point, sums that saturate.
- accumulated: steps, sums and products in a wider dtype, and back; means, counts, factors.
- compared: comparisons and selections by way of other dtypes, bounds, truths as numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

import numpy as np

from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels import nodes
from uop.conformance.suite.levels.graph import pairs
from uop.conformance.suite.levels.graph.patterns.idioms import STRIPES, of_width, results
from uop.conformance.suite.levels.group import Counts, Group
from uop.conformance.suite.values import (
    draw_bits,
    draw_ordinary,
    draw_special,
    draw_within,
    sample,
    specials,
)
from uop.conformance.suite.vocabulary import Vocabulary
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import FLOATS, INTS, NUMBERS, VALUES, DType, dtypes
from uop.spec.graph import slots_of
from uop.spec.uop import UOp, param

MANY = 300
"""The terms of a long sum: of bytes it needs more than 16 bits."""
MIXERS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
"""Odd factors of hashes, whose highest bits are set in each width."""
NARROW = tuple(d for d in NUMBERS if d.bits <= 16)
FLOATS_OF_BITS = {16: dtypes.float16, 32: dtypes.float32, 64: dtypes.float64}
WITH_HALVES = tuple(d for d in INTS if d.bits > 8)
KINDS = pairs.Kinds()


def _on(names: str) -> pairs.CountsOf:
    """Return counts that give a program of a smoke run to each of these dtypes."""
    few = names.split()

    def counts(dtype: DType, vocabulary: Vocabulary) -> Counts:
        return int(dtype.name in few), 2, 8

    return counts


def groups(vocabulary: Vocabulary) -> Iterator[Group]:
    yield from KINDS.groups(vocabulary, {d.name for d in VALUES})


def _from_specials(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches of all special values, of any bits and of ordinary numbers."""
    drawn = pairs.drawn(draw_bits, draw_ordinary)(root, choices)
    special = {k: np.resize(specials(u.dtype), u.shape) for k, u in slots_of(root).items()}
    return [special, *drawn]


@KINDS.add(
    "converted",
    _on("int8 uint8 int32 uint32 int64 float16 bfloat16 float32 float64 fp8e4m3 fp8e5m2"),
    NUMBERS,
    _from_specials,
)
def _converted(p: pairs.Plan) -> Iterator[UOp]:
    """Convert to each dtype, and on to the first one and to two that are wide."""
    x = param(0, specials(p.dtype).shape, p.dtype)
    kinds = [d for d in p.vocabulary.of_dtypes(VALUES) if d not in (p.dtype, dtypes.index)]
    last = (p.dtype, dtypes.int64, dtypes.float32)
    for middle in kinds:
        once = nodes.cast(x, middle)
        yield from (nodes.cast(once, d) for d in p.vocabulary.of_dtypes(last) if d is not middle)


GRADES = (-12, -9, -6, -3, -1, 0, 1, 2, 3)
"""The exponents of operands of functions."""


def _graded(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return batches of numbers of all sizes, and of special ones beside ordinary ones."""
    batches = pairs.drawn(draw_ordinary, draw_special)(root, choices)
    for slot, u in slots_of(root).items():
        if u.dtype.is_float:
            scales = np.resize(np.array(GRADES[slot::2], np.float64), u.shape)
            scaled = (batches[0][slot].astype(np.float64) / 4) * 2**scales
            scaled[:12] = 0, -0.0, inf, -inf, nan, 1, -1, 20, -20, 100, -100, 0.5
            batches[0][slot] = scaled.astype(np_dtype(u.dtype))
        else:
            batches[0][slot] = np.resize(np.arange(-40, 40, dtype=np.int32), u.shape)
    return batches


@KINDS.add("composed", _on("float16 bfloat16 float32 float64"), FLOATS, _graded)
def _composed(p: pairs.Plan) -> Iterator[UOp]:
    """Compose functions of those that have an op."""
    return results("composed", p, k=param(2, (pairs.LENGTH,), dtypes.int32))


@KINDS.add("divisions", _on("int8 int16 int32 uint32 int64"), INTS)
def _divisions(p: pairs.Plan) -> Iterator[UOp]:
    """Divide by what is computed, by way of wider integers and of floats."""
    return results("divisions", p)


def _bits_named(p: pairs.Plan) -> dict[str, UOp | DType | int]:
    """Return the unsigned bits of two inputs, and numbers that follow from how many they are."""
    bits, unsigned = p.dtype.bits, of_width(p.dtype, False)
    u, v = (nodes.bitcast(a, unsigned) if p.dtype.is_signed else a for a in p.inputs(2))
    bytes_of = ((1 << bits) - 1) // 255 * STRIPES["bytes"]
    named: dict[str, UOp | DType | int] = {"u": u, "v": v, "unsigned": unsigned}
    named |= {"bytes": bytes_of, "high_bits": 128 * bytes_of, "low_bits": 127 * bytes_of}
    return named | {"bits": bits, "top": bits - 1, "half": bits // 2, "half_less": bits // 2 - 1}


@KINDS.add("hashes", _on("uint16 int32 uint32 uint64"), WITH_HALVES)
def _hashes(p: pairs.Plan) -> Iterator[UOp]:
    """Mix bits, and make floats and codes of them."""
    bits, float = p.dtype.bits, FLOATS_OF_BITS[p.dtype.bits]
    precision = float.format.precision
    named = {f"mix{k}": m >> 64 - bits | 1 for k, m in enumerate(MIXERS, 1)}
    named |= {"drop": bits - precision + 1, "one_bits": float.encode(1), "fewer": bits - precision}
    parts = {"whole_part": 2.0**-bits, "part": 2.0**-precision}
    return results("hashes", p, **_bits_named(p), **named, **parts, float=float)


@KINDS.add("packed", _on("int16 int32 uint32 int64"), WITH_HALVES)
def _packed(p: pairs.Plan) -> Iterator[UOp]:
    """Compute with the bytes of integers."""
    return results("packed", p, **_bits_named(p))


MANY_AT, WEIGHTS_AT = 3, 5
"""The slots of the inputs of long sums."""


def _near_ends(root: UOp, choices: Choices) -> list[dict[int, Array]]:
    """Return the usual batches; long sums are of the largest numbers, or of 0 and 1."""
    batches = pairs.data_for(root, choices)
    for slot in (MANY_AT, WEIGHTS_AT):
        for k, batch in enumerate(batches):
            if slot in batch:
                u = slots_of(root)[slot]
                high = 1 if k % 2 else int(u.dtype.max) if u.dtype.is_int else 300
                batch[slot] = sample(
                    draw_within(high - high // 8 - k % 2, high), u.dtype, u.shape, choices
                )
    return batches


@KINDS.add("accumulated", _on("int8 uint8 int16 float16 bfloat16 fp8e4m3"), NARROW, _near_ends)
def _accumulated(p: pairs.Plan) -> Iterator[UOp]:
    """Compute in a wider dtype, and convert what comes of it back."""
    acc = dtypes.float32 if p.dtype.is_float else dtypes.int32
    many = param(MANY_AT, (2, MANY), p.dtype)
    q, weights = param(4, (pairs.LENGTH,), dtypes.int8), param(WEIGHTS_AT, (2, MANY), dtypes.int8)
    return results("accumulated", p, acc=acc, many=many, q=q, weights=weights)


@KINDS.add(
    "compared", _on("int32 uint32 int64 float16 bfloat16 float32 fp8e4m3"), NUMBERS, pairs.data_for
)
def _compared(p: pairs.Plan) -> Iterator[UOp]:
    """Compare by way of other dtypes, and select by it."""
    return results("compared", p)
