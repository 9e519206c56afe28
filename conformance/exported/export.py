"""Exports the suite: a folder per case, and at last the manifest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uop.conformance.exported.files import (
    GRAPH,
    INPUTS,
    MANIFEST,
    SCHEMA,
    Described,
    ExportError,
    count_of_intervals,
    dtype_table,
    joined,
    set_files,
)
from uop.conformance.judging.expected import accepted_on
from uop.conformance.suite.case import EFFORTS, LEVELS, Case
from uop.conformance.suite.generate import groups
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.storage import STORED
from uop.spec.distribution import own_version
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.text import json_form
from uop.spec.text.profile_text import parse_profile

MEBIBYTE = 1 << 20
MOST_BYTES = MEBIBYTE // 4
"""The largest case that is written: a few larger ones would leave no room for hundreds."""


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
            "dtypes": dtype_table(),
        }
    )


def _write(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files:
        (folder / name).write_bytes(data)
