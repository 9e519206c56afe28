"""Reads and writes the files of an exported suite: arrays and accepted sets as raw bits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from pathlib import Path
from typing import Any

import numpy as np

from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.sets import Sets, intervals, union
from uop.interpreter.numeric.storage import Array, Mask, is_shape, np_dtype
from uop.interpreter.values import Value, either
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.errors import UopError

SCHEMA = "uop-corpus/2"
READABLE = ("uop-corpus/1", SCHEMA)
"""In the first, a set was one interval."""
MANIFEST = "manifest.jsonl"
GRAPH = "graph.json"
INPUTS = "inputs.bin"
OUTPUTS = "outputs.bin"
LOW, HIGH, FLAGS, REFERENCE = "low.bin", "high.bin", "flags.bin", "reference.bin"
"""The sets of a case. Where a file is missing, high and reference equal low, flags are 0."""


class Flag(IntFlag):
    """Which results an element accepts beside those from low to high; one byte per element."""

    ANYTHING = 1
    NAN = 2
    ONLY_NAN = 4
    EXACT = 8
    """Only the bits in low, and those in high."""


class ExportError(UopError):
    """A folder is not an exported suite, or one of its files is missing or truncated."""


@dataclass(frozen=True, slots=True)
class Described:
    """An array of a case: its dtype and shape, as the manifest gives them."""

    dtype: DType
    shape: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name, "shape": list(self.shape)}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Described:
        dtype, shape = DTYPES[described["dtype"]], described["shape"]
        if not is_shape(shape, np_dtype(dtype).itemsize):
            raise ValueError(f"expected a shape, found {shape}")
        return cls(dtype, tuple(shape))

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def dtype_table() -> dict[str, dict[str, Any]]:
    """For each dtype its bits, its order, and of floats the last bit pattern before NaN."""
    return {dtype.name: _dtype_row(dtype) for dtype in DTYPES.values() if dtype.name != "void"}


def _dtype_row(dtype: DType) -> dict[str, Any]:
    bits = 8 * np_dtype(dtype).itemsize
    if dtype.is_float:
        last = dtype.format.max_bits + dtype.format.has_inf
        return {"bits": bits, "order": "float", "last": last}
    return {"bits": bits, "order": "signed" if dtype.is_signed else "unsigned"}


def count_of_intervals(accepted: Sequence[Accepted]) -> int:
    """The most intervals that a set of these outputs has."""
    return max((len(a.spread.gaps) + 1 for a in accepted), default=1)


def set_files(accepted: Sequence[Accepted]) -> Iterator[tuple[str, bytes]]:
    """The files of the accepted sets of a case, without redundant ones."""
    parts = [intervals(a.spread) for a in accepted]
    rows = [[p[min(k, len(p) - 1)] for p in parts] for k in range(count_of_intervals(accepted))]
    low = joined(s.lo for row in rows for s in row)
    high = joined(s.hi for row in rows for s in row)
    flags = joined(_flags(a.spread) for a in accepted)
    reference = joined(a.value.data for a in accepted)
    yield LOW, low
    if high != low:
        yield HIGH, high
    if any(flags):
        yield FLAGS, flags
    if reference != low[: len(reference)]:
        yield REFERENCE, reference


def read_sets(folder: Path, outputs: Sequence[Described], count: int) -> tuple[Accepted, ...]:
    """Read the accepted sets of a case, as `count` intervals for each element.

    ExportError where a file has another size.
    """
    rows = list(outputs) * count
    low = read_arrays(folder / LOW, rows)
    high = read_arrays(folder / HIGH, rows) if (folder / HIGH).exists() else low
    has_reference = (folder / REFERENCE).exists()
    reference = read_arrays(folder / REFERENCE, outputs) if has_reference else low[: len(outputs)]
    flags: Sequence[Array | None] = [None] * len(outputs)
    if (folder / FLAGS).exists():
        flags = read_arrays(folder / FLAGS, [Described(dtypes.uint8, d.shape) for d in outputs])
    lows, highs = (
        [np.stack(end[k :: len(outputs)]) for k in range(len(outputs))] for end in (low, high)
    )
    parts = zip(outputs, lows, highs, reference, flags, strict=True)
    return tuple(_accepted(d.dtype, lo, hi, value, flag) for d, lo, hi, value, flag in parts)


def read_arrays(path: Path, described: Sequence[Described]) -> list[Array]:
    """Read consecutive arrays. ExportError for another number of bytes."""
    expected = sum(d.elements * np_dtype(d.dtype).itemsize for d in described)
    if path.exists() and not path.is_file():
        # A pipe or a device may have no end.
        raise ExportError(f"{path}: expected a file of {expected} bytes")
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size == expected else b""
    except OSError as error:
        raise ExportError(f"cannot read {path}: {error.strerror}") from error
    if len(data) != expected:
        raise ExportError(f"{path}: expected {expected} bytes, found {size}")
    arrays, at = [], 0
    for d in described:
        storage = np_dtype(d.dtype)
        # A bool byte that is neither 0 nor 1 is kept: it equals neither.
        arrays.append(np.frombuffer(data, storage, d.elements, at).reshape(d.shape))
        at += d.elements * storage.itemsize
    return arrays


def _accepted(
    dtype: DType, low: Array, high: Array, reference: Array, flags: Array | None
) -> Accepted:
    ends = Sets(low[0], high[0]) if len(low) == 1 else union(low, high)
    if flags is None:
        return Accepted(dtype, Value(reference), ends)

    def where(*wanted: Flag) -> Mask | None:
        mask = np.asarray(flags & np.uint8(sum(wanted))).astype(np.bool_)
        return mask if mask.any() else None

    sets = replace(
        ends,
        nan=where(Flag.NAN, Flag.ONLY_NAN, Flag.EXACT),
        only=where(Flag.ONLY_NAN, Flag.EXACT),
        exact=where(Flag.EXACT),
        any=where(Flag.ANYTHING),
    )
    return Accepted(dtype, Value(reference, None, sets.any), sets)


def _flags(s: Sets) -> Array:
    flags = np.zeros(s.lo.shape, np.uint8)
    masks = ((Flag.ANYTHING, either(s.any, s.invalid)), (Flag.NAN, s.nan),
             (Flag.ONLY_NAN, s.only), (Flag.EXACT, s.exact))  # fmt: skip
    for flag, mask in masks:
        if mask is not None:
            flags |= np.where(mask, np.uint8(flag), np.uint8(0))
    return flags


def joined(arrays: Iterable[Array]) -> bytes:
    """The bytes of consecutive arrays."""
    return b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
