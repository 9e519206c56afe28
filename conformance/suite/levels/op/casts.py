"""Generate level op, CAST and BITCAST: every pair of dtypes, every value of the small ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.choices import Choices
from uop.conformance.suite.levels.group import Generated, Group, group, program
from uop.conformance.suite.levels.nodes import bitcast, cast, constant, outputs
from uop.interpreter.numeric.storage import BITS, Array, from_bits, np_dtype
from uop.spec.dtype import DTYPES, FLOATS, VALUES, DType, Kind, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import param

OFTEN_INSIDE = 12
"""Random arrays that mostly fit, in addition to special values, most of which do not."""

UNEVEN = (0.75, 1.75, -0.75, -1.75)
"""Numbers of every float dtype that lie closer to the integer away from zero."""

IN_SMOKE = ("int8", "float32")
"""The dtypes that a smoke run converts each dtype to."""
SMALL_FLOATS = tuple(d for d in FLOATS if d.bits < 32)
"""Floats that backends keep as other bits, so that one of their zeros may be taken for a number."""
LONG = (dtypes.int64, dtypes.uint64)
"""Integers with bits below the last one of any float that a conversion may go through."""


def groups() -> Iterator[Group]:
    for source in VALUES:
        if source.is_int or source.is_float:
            yield group("op", Op.CAST, source, "through", (1, 1, 4), _cast_through, source)
        for target in VALUES:
            pair, to = (source, target), f"to-{target.name}"
            smoke = int(target.name in IN_SMOKE)
            zeros = int(target is dtypes.bool and source in SMALL_FLOATS)
            far = int(target is dtypes.bfloat16 and source in LONG)
            if not (source.is_float and target is dtypes.index):
                edges = (smoke | zeros | far, 1, 1)
                yield group("op", Op.CAST, source, to, edges, _cast_edges, *pair)
                chain = f"chain-{target.name}"
                yield group("op", Op.CAST, source, chain, (far, 1, 4), _cast_chain, *pair)
                if source.bits == 16:
                    yield group("op", Op.CAST, source, f"all-{to}", (0, 1, 1), _cast_all, *pair)
            if dtypes.index not in pair:
                yield group("op", Op.BITCAST, source, to, (smoke, 1, 4), _bitcast_edges, *pair)


def _cast_edges(source: DType, target: DType, choices: Choices, index: int) -> Generated:
    """Convert special values, random ones that fit for those without a value, and three constants.

    One constant of a float is not an integer: rounding and truncation differ on it.
    """
    edges, ties = values.specials(source), values.around_ties(source, target)
    n = max(len(edges), len(ties))
    batches = [np.resize(edges, n), values.sample(values.draw_mixed, source, n, choices)]
    if len(ties):
        batches.append(np.resize(ties, n))
    if source.is_float and target.is_int:
        batches += [_fitting(source, target, n, choices) for _ in range(OFTEN_INSIDE)]
    if (source, target) == (dtypes.uint64, dtypes.index):
        # An index of more than 63 bits has no meaning.
        batches = [b >> np.uint64(1) for b in batches]
    constants = [batches[0][choices.below(n)] for _ in range(3)]
    if source.is_float:
        constants[0] = np_dtype(source).type(choices.pick(UNEVEN))
    operands = [param(0, (n,), source), *(constant(value, source) for value in constants)]
    return program(outputs(*(cast(u, target) for u in operands)), *([b] for b in batches))


def _fitting(source: DType, target: DType, n: int, choices: Choices) -> Array:
    """Return ordinary floats, positive where the target has no sign."""
    return values.sample(
        values.draw_ordinary if target.is_signed else values.draw_positive, source, n, choices
    )


def _cast_chain(source: DType, target: DType, choices: Choices, index: int) -> Generated:
    """Convert to a second dtype and back: no round trip may be dropped."""
    ties = values.around_ties(source, target)
    n = max(65, len(ties))
    data = values.sample(values.draw_ordinary, source, n, choices)
    if source.is_float and not target.is_float:
        data = _fitting(source, target, n, choices)
    first = cast(param(0, (n,), source), target)
    back = cast(first, dtypes.int64 if source is dtypes.index else source)
    return program(back, [data], *([[np.resize(ties, n)]] if len(ties) else []))


def _cast_through(source: DType, choices: Choices, index: int) -> Generated:
    """Convert twice: the dtype in between drops a sign, a fraction or high bits."""
    if source.is_float:
        steps = [(dtypes.int32, dtypes.bool), (dtypes.int8, dtypes.bool), (dtypes.int8, source)]
        data = _fitting(source, dtypes.int8, OFTEN_INSIDE, choices)
        fractions = np.resize(np.array(UNEVEN, np_dtype(source)), OFTEN_INSIDE)
        batches = [[data], [fractions]]
    else:
        kind = "uint" if source.is_signed else "int"
        other = DTYPES[f"{kind}{source.bits}"]
        steps = [(other, dtypes.int64), (other, dtypes.float32), (dtypes.int8, dtypes.bool)]
        batches = [[values.specials(source)]]
    x = param(0, batches[0][0].shape, source)
    return program(outputs(*(cast(cast(x, middle), last) for middle, last in steps)), *batches)


def _cast_all(source: DType, target: DType, choices: Choices, index: int) -> Generated:
    data = values.every_pattern(source)
    if source.is_float and target.is_int:
        # An element that does not fit has no value: it is read as 1, so that the others count.
        low, high = float(target.min), float(target.max)
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            wide = data.astype(np.float64)
        data = np.where((wide > low - 1) & (wide < high), data, np_dtype(source).type(1))
    return program(cast(param(0, (len(data),), source), target), [data])


def _bitcast_edges(source: DType, target: DType, choices: Choices, index: int) -> Generated:
    """Bitcast all special values and any bits, NaN payloads included, in whole target elements."""
    last = 8 * (1 + choices.below(3))
    shape: Shape = choices.pick(((1, last), (2, 3, last), (5, last), (0, last)))
    if index == 0:
        shape = (-(-len(values.specials(source)) // last), last)
    n = int(np.prod(shape))
    batches = [_bytes_for(source, target, n, choices.data_key(), k) for k in range(3)]
    root = bitcast(param(0, shape, source), target)
    return program(root, *([b.reshape(shape)] for b in batches))


def _bytes_for(source: DType, target: DType, n: int, key: int, k: int) -> Array:
    """Return source data whose bytes are values of the target: for bool these are 0 and 1."""
    if target.kind is not Kind.BOOL:
        return np.resize(values.specials(source), n) if k == 0 else values.draw_bits(source, n, key)
    raw = values.draw_bits(dtypes.bool, n * source.itemsize, key).view(np.uint8)
    return from_bits(raw.view(BITS[source.itemsize]), source)
