"""Writes the suite as files, a folder per case, and reads them: accepted sets as raw bits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from pathlib import Path
from typing import Any

import numpy as np

from uop.conformance.judging.expected import accepted_on
from uop.conformance.suite.case import EFFORTS, LEVELS, Case
from uop.conformance.suite.generate import groups
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.sets import Sets, intervals, union
from uop.interpreter.numeric.storage import STORED, Array, Mask, is_shape, np_dtype
from uop.interpreter.values import Value, either
from uop.spec.distribution import own_version
from uop.spec.dtype import DTYPES, DType, dtypes
from uop.spec.errors import UndefinedError, UnsupportedError, UopError
from uop.spec.text import json_form
from uop.spec.text.profile_text import parse_profile

SCHEMA = "uop-corpus/2"
READABLE = ("uop-corpus/1", SCHEMA)
"""In the first, a set was one interval."""
MANIFEST = "manifest.jsonl"
GRAPH = "graph.json"
INPUTS = "inputs.bin"
OUTPUTS = "outputs.bin"
LOW, HIGH, FLAGS, REFERENCE = "low.bin", "high.bin", "flags.bin", "reference.bin"
"""The sets of a case. Where a file is missing, high and reference equal low, flags are 0."""
MEBIBYTE = 1 << 20
MOST_BYTES = MEBIBYTE // 4
"""The largest case that is written: a few larger ones would leave no room for hundreds."""


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


def _dtype_row(dtype: DType) -> dict[str, Any]:
    """The bits of a dtype, its order, and of a float the last bit pattern before NaN."""
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


@dataclass(frozen=True, slots=True)
class Exported:
    """The number of cases and bytes written, and of cases left out because they did not fit."""

    cases: int
    bytes: int
    left_out: int


def export(
    folder: Path,
    cases: Iterable[Case],
    *,
    seed: int = 0,
    profile: str = "strict",
    most_bytes: int = 20 * MEBIBYTE,
) -> Exported:
    """Write as many cases as fit; the manifest states the seed that generated them.

    ExportError for a folder that is not empty or cannot be written; files written before that
    stay, without a manifest.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ExportError(f"{folder} is not empty")
    lines: list[str] = []
    used = left_out = 0
    try:
        for case in cases:
            line, files = _case_files(case, profile)
            size = sum(len(data) for _, data in files) + len(line)
            if files and size <= MOST_BYTES and used + size <= most_bytes:
                _write(folder / str(case.id), files)
                lines.append(line)
                used += size
            else:
                left_out += 1
        _write(folder, [(MANIFEST, "\n".join([_header(seed, profile), *lines, ""]).encode())])
    except OSError as error:
        raise ExportError(f"cannot write {folder}: {error.strerror}") from error
    return Exported(len(lines), used, left_out)


def cases_of_all(seed: int) -> Iterator[Case]:
    """Cases of every group: the first of each group, then the second."""
    every = [group for level in LEVELS if level != "invalid" for group in groups(level)]
    counts = [group.count(EFFORTS[0]) for group in every]
    for index in range(max(counts)):
        for group, count in zip(every, counts, strict=True):
            case = group.case(index, seed) if index < count else None
            if isinstance(case, Case):
                yield case


def _case_files(case: Case, profile: str) -> tuple[str, list[tuple[str, bytes]]]:
    """The line of a case in the manifest, and its files; none where it cannot be judged."""
    try:
        accepted = accepted_on(case, 0, parse_profile(profile))
    except (UndefinedError, UnsupportedError):
        return "", []
    inputs = case.batches[0].inputs
    files = [(GRAPH, json_form.dumps(case.root).encode())]
    if inputs:
        files.append((INPUTS, joined(inputs.values())))
    return json.dumps(_line(case, accepted)), [*files, *set_files(accepted)]


def _line(case: Case, accepted: Sequence[Accepted]) -> dict[str, Any]:
    inputs = case.batches[0].inputs
    return {
        "id": str(case.id),
        "inputs": [
            {"slot": slot, **Described(STORED[a.dtype], a.shape).to_json()}
            for slot, a in inputs.items()
        ],
        "outputs": [Described(a.dtype, a.value.data.shape).to_json() for a in accepted],
        "intervals": count_of_intervals(accepted),
    }


def _header(seed: int, profile: str) -> str:
    return json.dumps(
        {
            "schema": SCHEMA,
            "uop": own_version(),
            "seed": seed,
            "profile": profile,
            "dtypes": {d.name: _dtype_row(d) for d in DTYPES.values() if d.name != "void"},
        }
    )


def _write(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files:
        (folder / name).write_bytes(data)
