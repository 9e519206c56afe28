"""Level op, CAST and BITCAST: every pair of dtypes, and every value of the small ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from uop.conformance.suite import values
from uop.conformance.suite.boundaries import beside_ties
from uop.conformance.suite.choices import Choices, data_key, pick
from uop.conformance.suite.levels.group import Group, Program, op_group, program
from uop.conformance.suite.levels.op.elementwise import constant
from uop.interpreter.numeric.storage import BITS, Array, from_bits, np_dtype
from uop.spec.args import DTypeArg
from uop.spec.dtype import DType, Kind, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import Shape
from uop.spec.uop import UOp, param

OFTEN_INSIDE = 12
"""How many draws that mostly fit stand beside the special values, most of which do not."""

UNEVEN = (0.75, 1.75, -0.75, -1.75)
"""Numbers of every float dtype that lie closer to the integer away from zero."""

IN_SMOKE = ("int8", "float32")
"""What a smoke run converts each dtype to."""


def groups() -> Iterator[Group]:
    for source in values.VALUES:
        for target in values.VALUES:
            if not (source.is_float and target is dtypes.index):
                yield from _casts(source, target)
            if dtypes.index not in (source, target):
                yield _bitcast(source, target)


def _casts(source: DType, target: DType) -> Iterator[Group]:
    def group(name: str, build: partial[Program], counts: tuple[int, int, int]) -> Group:
        return op_group(Op.CAST, source, name, counts, build)

    smoke = int(target.name in IN_SMOKE)
    yield group(f"to-{target.name}", partial(_cast_edges, source, target), (smoke, 1, 1))
    yield group(f"chain-{target.name}", partial(_cast_chain, source, target), (0, 1, 4))
    if source.bits == 16:
        yield group(f"all-to-{target.name}", partial(_cast_all, source, target), (0, 1, 1))


def _cast(u: UOp, target: DType) -> UOp:
    return UOp(Op.CAST, u, arg=DTypeArg(target))


def _cast_edges(source: DType, target: DType, choices: Choices, index: int) -> Program:
    """Special values, as many draws that fit where those have no value, three as constants too.

    Of a float one of the constants is not an integer: rounded it is another one than cut off.
    """
    edges, ties = values.specials(source), beside_ties(source, target)
    n = max(len(edges), len(ties))
    batches = [np.resize(edges, n), values.draw_mixed(source, n, data_key(choices))]
    if len(ties):
        batches.append(np.resize(ties, n))
    if source.is_float and target.is_int:
        batches += [_fitting(source, target, n, data_key(choices)) for _ in range(OFTEN_INSIDE)]
    if (source, target) == (dtypes.uint64, dtypes.index):
        # An index of more than 63 bits has no meaning.
        batches = [b >> np.uint64(1) for b in batches]
    constants = [batches[0][choices.below(n)] for _ in range(3)]
    if source.is_float:
        constants[0] = np_dtype(source).type(pick(choices, UNEVEN))
    outputs = [_cast(constant(value, source), target) for value in constants]
    root = UOp(Op.TUPLE, _cast(param(0, (n,), source), target), *outputs)
    return program(root, *([b] for b in batches))


def _fitting(source: DType, target: DType, n: int, key: int) -> Array:
    """Ordinary floats, positive where the target has no sign."""
    draw = values.draw_ordinary if target.is_signed else values.draw_positive
    return draw(source, n, key)


def _cast_chain(source: DType, target: DType, choices: Choices, index: int) -> Program:
    """Through a second dtype and back: no round trip may be dropped."""
    data = values.draw_ordinary(source, 65, data_key(choices))
    if source.is_float and not target.is_float:
        data = _fitting(source, target, 65, data_key(choices))
    first = _cast(param(0, (65,), source), target)
    back = dtypes.int64 if source is dtypes.index else source
    return program(_cast(first, back), [data])


def _cast_all(source: DType, target: DType, choices: Choices, index: int) -> Program:
    data = values.every_pattern(source)
    if source.is_float and target.is_int:
        # What does not fit has no value: those elements are read as 1, so that the others count.
        low, high = float(target.min), float(target.max)
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            wide = data.astype(np.float64)
        inside = (wide > low - 1) & (wide < high)
        data = np.where(inside, data, np_dtype(source).type(1))
    return program(_cast(param(0, (len(data),), source), target), [data])


def _bitcast(source: DType, target: DType) -> Group:
    build = partial(_bitcast_edges, source, target)
    counts = (int(target.name in IN_SMOKE), 1, 4)
    return op_group(Op.BITCAST, source, f"to-{target.name}", counts, build)


def _bitcast_edges(source: DType, target: DType, choices: Choices, index: int) -> Program:
    """All special values and any bits, NaN payloads included, in whole elements of the target."""
    last = 8 * (1 + choices.below(3))
    shape: Shape = pick(choices, ((1, last), (2, 3, last), (5, last), (0, last)))
    if index == 0:
        shape = (-(-len(values.specials(source)) // last), last)
    n = int(np.prod(shape))
    batches = [_bytes_for(source, target, n, data_key(choices), k) for k in range(3)]
    root = UOp(Op.BITCAST, param(0, shape, source), arg=DTypeArg(target))
    return program(root, *([b.reshape(shape)] for b in batches))


def _bytes_for(source: DType, target: DType, n: int, key: int, k: int) -> Array:
    """Data of the source whose bytes are values of the target: for bool these are 0 and 1."""
    if target.kind is not Kind.BOOL:
        return np.resize(values.specials(source), n) if k == 0 else values.draw_bits(source, n, key)
    raw = values.draw_bits(dtypes.bool, n * source.itemsize, key).view(np.uint8)
    return from_bits(raw.view(BITS[source.itemsize]), source)
