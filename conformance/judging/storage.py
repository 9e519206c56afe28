"""Converts arrays and accepted sets to and from the data of `.uop` files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from uop.interpreter.accepted.result import Accepted, NaN
from uop.interpreter.accepted.sets import Sets, intervals, union
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import BITS, STORED, Array, from_bits, np_dtype, to_bits
from uop.interpreter.tensor.evaluation import FullOutput
from uop.interpreter.values import Value
from uop.spec.case import ElementSet, FileCase, UopFile
from uop.spec.dtype import DType, dtypes
from uop.spec.text import array as literal
from uop.spec.text.codec import encode_scalar
from uop.spec.text.literal import print_literal
from uop.spec.text.uop_file import print_file
from uop.spec.uop import UOp


def to_literal(a: Array) -> literal.Array:
    """Convert an array in storage dtype to the data of a file."""
    little = a.astype(a.dtype.newbyteorder("<"), copy=False) if a.dtype.kind in "iuf" else a
    return literal.Array(STORED[a.dtype], a.shape, np.ascontiguousarray(little).tobytes())


def from_literal(a: literal.Array) -> Array:
    """Convert the data of a file to an array in storage dtype."""
    return np.frombuffer(a.data, np_dtype(a.dtype)).reshape(a.shape)


def to_literals(arrays: Mapping[int, Array]) -> dict[int, literal.Array]:
    """Convert the inputs of a program, by slot."""
    return {slot: to_literal(a) for slot, a in arrays.items()}


def file_text(case: FileCase) -> str:
    """The text of a file of one case."""
    return print_file(UopFile((case,)))


def spelled(bits: int, dtype: DType) -> str:
    """A value as a literal of a `.uop` file; an invalid bool as its bits."""
    if dtype is dtypes.bool and bits > 1:
        return f"0x{bits:02x}"
    return print_literal(encode_scalar(bits, dtype))


def output_keys(root: UOp, inputs: Mapping[int, Array]) -> list[int]:
    """The keys of the outputs in a file: positions, or the slots of written buffers."""
    return sorted(numbered(evaluate_full(root, inputs)))


def numbered(result: FullOutput) -> dict[int, Value]:
    """The results of a program by their keys in a file."""
    if isinstance(result, dict):
        return result
    return dict(enumerate(result if isinstance(result, tuple) else (result,)))


def element_sets(accepted: Accepted) -> tuple[ElementSet, ...]:
    """One set of bit patterns per element, in row-major order."""
    parts = intervals(accepted.spread)
    ends = [(to_bits(s.lo), to_bits(s.hi)) for s in parts]
    columns = (accepted.nan, accepted.any, *(end for pair in ends for end in pair))
    rows = zip(*(np.asarray(column).reshape(-1).tolist() for column in columns), strict=True)
    return tuple(_element_set(*row) for row in rows)


def _element_set(nan: int, anything: bool, *ends: int) -> ElementSet:
    if anything:
        return ElementSet(any=True)
    match NaN(nan):
        case NaN.EXACT:
            return ElementSet(nan_bits=tuple(dict.fromkeys(ends)))
        case NaN.MUST:
            return ElementSet(nan=True)
    found = dict.fromkeys(zip(ends[::2], ends[1::2], strict=True))
    return ElementSet(tuple(found), nan=nan == NaN.MAY)


def accepted_of(u: UOp, sets: Sequence[ElementSet]) -> Accepted:
    """The accepted sets of an output in a file.

    With numbers, or with two others, a NaN by its bits means any NaN.
    """
    storage = BITS[u.dtype.itemsize]

    def column(bits: Sequence[int]) -> Array:
        return from_bits(np.array(bits, storage).reshape(u.shape), u.dtype)

    def mask(flags: Sequence[bool]) -> Array:
        return np.array(flags, np.bool_).reshape(u.shape)

    exact = [0 < len(s.nan_bits) <= 2 and not (s.intervals or s.nan) for s in sets]
    # Without intervals the ends are those of one NaN or of two; anything where there are none.
    ends = ((min(s.nan_bits, default=0), max(s.nan_bits, default=0)) for s in sets)
    parts = [s.intervals or (pair,) for s, pair in zip(sets, ends, strict=True)]
    most = max(map(len, parts), default=1)
    lows, highs = (
        [column([p[min(k, len(p) - 1)][end] for p in parts]) for k in range(most)] for end in (0, 1)
    )
    accepted = replace(
        Sets(*lows, *highs) if most == 1 else union(np.stack(lows), np.stack(highs)),
        nan=mask([s.nan or bool(s.nan_bits) for s in sets]),
        only=mask([not s.intervals and not s.any for s in sets]),
        exact=mask(exact),
        any=mask([s.any for s in sets]),
    )
    return Accepted(u.dtype, Value(accepted.lo), accepted)
