"""Writes a corpus: one folder per case, and a manifest that is written last."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from uop.conformance.corpus.files import (
    GRAPH,
    INPUTS,
    MANIFEST,
    SCHEMA,
    CorpusError,
    Described,
    dtype_table,
    set_files,
)
from uop.conformance.judging.expected import accepted_on
from uop.conformance.protocol.codec import NAMES
from uop.conformance.suite.case import EFFORTS, LEVELS, Case, CaseId
from uop.conformance.suite.generate import AnyGroup, groups
from uop.interpreter.accepted.result import Accepted
from uop.spec.dtype import DTYPES
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.text import json_form
from uop.spec.text.profile_text import parse_profile

MEBIBYTE = 1 << 20
MOST_BYTES = MEBIBYTE // 4
"""What one case may take: a few large ones would crowd out hundreds."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and how many cases were left out because they are large or many."""

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
    """Write cases, as many as fit; the manifest says which seed they were made from.

    A folder that holds anything is refused: CorpusError. So is one that cannot be written; what was
    written stays, without a manifest.
    """
    if folder.exists() and any(folder.iterdir()):
        raise CorpusError(f"{folder} is not empty")
    lines: list[str] = []
    used = left_out = 0
    try:
        for case in cases:
            files = _files_of(case, profile)
            size = sum(len(data) for _, data in files.parts) + len(files.line)
            if files.parts and size <= MOST_BYTES and used + size <= most_bytes:
                _write(folder / str(case.id), files.parts)
                lines.append(files.line)
                used += size
            else:
                left_out += 1
        _write(folder, [(MANIFEST, "\n".join([_header(seed, profile), *lines, ""]).encode())])
    except OSError as error:
        raise CorpusError(f"cannot write {folder}: {error.strerror}") from error
    return Exported(len(lines), used, left_out)


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a case and its line in the manifest; no files where nothing is promised."""

    line: str = ""
    parts: Sequence[tuple[str, bytes]] = ()


def cases_of_all(seed: int) -> Iterator[Case]:
    """Cases of every group, the first of each before the second."""
    every = [group for level in LEVELS if level != "invalid" for group in groups(level)]
    for row in zip_longest(*(_ids(group) for group in every)):
        for group, id in zip(every, row, strict=True):
            case = None if id is None else group.case(id.index, seed)
            if isinstance(case, Case):
                yield case


def _ids(group: AnyGroup) -> Iterator[CaseId]:
    return (group.id(index) for index in range(group.count(EFFORTS[0])))


def _files_of(case: Case, profile: str) -> _Files:
    try:
        accepted = accepted_on(case, 0, parse_profile(profile))
    except (UndefinedError, UnsupportedError):
        return _Files()
    inputs = case.batches[0].inputs
    parts = [(GRAPH, json_form.dumps(case.root).encode())]
    if inputs:
        data = b"".join(np.ascontiguousarray(a).tobytes() for a in inputs.values())
        parts.append((INPUTS, data))
    parts += set_files(accepted)
    return _Files(json.dumps(_line(case, accepted)), parts)


def _line(case: Case, accepted: Sequence[Accepted]) -> dict[str, Any]:
    inputs = case.batches[0].inputs
    return {
        "id": str(case.id),
        "inputs": [
            {"slot": slot, **Described(DTYPES[NAMES[a.dtype]], a.shape).to_json()}
            for slot, a in inputs.items()
        ],
        "outputs": [Described(a.dtype, a.value.data.shape).to_json() for a in accepted],
    }


def _header(seed: int, profile: str) -> str:
    return json.dumps(
        {
            "schema": SCHEMA,
            "uop": version("uop"),
            "seed": seed,
            "profile": profile,
            "dtypes": dtype_table(),
        }
    )


def _write(folder: Path, parts: Sequence[tuple[str, bytes]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in parts:
        (folder / name).write_bytes(data)
