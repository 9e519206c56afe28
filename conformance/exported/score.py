"""Judges output files by the accepted sets of an exported suite."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uop.conformance.exported import files
from uop.conformance.judging.compare import Symptom, compare
from uop.conformance.judging.verdict import CaseFailure, Status, Verdict, verdict_on_batches
from uop.conformance.protocol.untrusted import sanitized
from uop.conformance.report.model import BackendInfo, Failure, Report
from uop.conformance.report.options import Origin, ReportedOptions
from uop.conformance.report.tally import Tally
from uop.conformance.suite.case import CaseId
from uop.interpreter.accepted.sets import MOST_GAPS
from uop.spec.text.reading import MOST_OF_DOCUMENT, read_bytes

SKIPPED = "skipped.txt"
"""This file in the folder of a case says why there are no outputs."""
REASON = 200
"""The report keeps this many characters of it."""
HEADER = {"uop": str, "profile": str, "seed": int}
"""The fields of the first line of a manifest, and their types."""


@dataclass(frozen=True, slots=True)
class ExportedCase:
    """A case of an exported suite, as its manifest describes it."""

    id: str
    outputs: tuple[files.Described, ...]
    intervals: int = 1


def score(exported: Path, outputs: Path, command: Sequence[str] = ()) -> Report:
    """Judge every case of an exported suite by the file `outputs/ID/outputs.bin`.

    A case without that file is skipped; a file of another size fails. ExportError where the
    exported suite is missing or truncated.
    """
    begun = time.monotonic()
    if not outputs.is_dir():
        raise files.ExportError(f"{outputs} is not a folder")
    header, entries = read_manifest(exported)
    tally, failures = Tally(), []
    for entry in entries:
        verdict = _verdict(exported / entry.id, outputs / entry.id, entry)
        tally.add(verdict)
        if verdict.failure is not None:
            failures.append(_failure(verdict, verdict.failure, exported / entry.id))
    info = BackendInfo(outputs.name or str(outputs), header["uop"], "files")
    seconds = time.monotonic() - begun
    options = ReportedOptions(
        info.name, header["seed"], levels=(), effort="", exported=exported, outputs=outputs
    )
    report = tally.report(info, header["profile"], options, seconds, tuple(failures))
    return replace(report, origin=Origin.now(command))


def read_manifest(exported: Path) -> tuple[dict[str, Any], list[ExportedCase]]:
    """Read the header and the cases. ExportError for another schema or a truncated file."""
    path = exported / files.MANIFEST
    try:
        if path.exists() and not path.is_file():
            raise files.ExportError(f"{path}: expected a file")
        header, *lines = read_bytes(path, MOST_OF_DOCUMENT).decode().splitlines()
        first = json.loads(header)
        if not isinstance(first, dict) or first.get("schema") not in files.READABLE:
            raise files.ExportError(f"{path}: expected the schema {' or '.join(files.READABLE)}")
        for name, kind in HEADER.items():
            if type(first.get(name)) is not kind:
                raise files.ExportError(f"{path}: {name}: expected {kind.__name__}")
        return first, list(_entries(lines))
    except OSError as error:
        raise files.ExportError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise files.ExportError(f"{path} is not a manifest, or is truncated: {error}") from error


def _entries(lines: list[str]) -> Iterator[ExportedCase]:
    for line in lines:
        entry = json.loads(line)
        outputs = tuple(files.Described.from_json(output) for output in entry["outputs"])
        count = entry.get("intervals", 1)
        if type(count) is not int or not 1 <= count <= MOST_GAPS + 1:
            raise ValueError(f"intervals: expected 1 to {MOST_GAPS + 1}, found {count}")
        yield ExportedCase(str(CaseId.parse(str(entry["id"]))), outputs, count)


def _verdict(case: Path, results: Path, entry: ExportedCase) -> Verdict:
    skipped = results / SKIPPED
    if skipped.is_file():
        with skipped.open(encoding="utf-8", errors="replace") as file:
            reason = sanitized(file.read(REASON).strip())
        return Verdict(entry.id, Status.SKIPPED, reason=reason)
    if not (results / files.OUTPUTS).exists():
        return Verdict(entry.id, Status.SKIPPED, reason="no outputs")
    accepted = files.read_sets(case, entry.outputs, entry.intervals)
    try:
        outputs = files.read_arrays(results / files.OUTPUTS, entry.outputs)
    except files.ExportError as error:
        failure = CaseFailure(Symptom.VALUE, str(error))
        return Verdict(entry.id, Status.FAILED, 1, failure=failure)
    compared = compare(accepted, outputs)
    wrong = compared.mismatch
    if wrong is None:
        return verdict_on_batches(entry.id, [compared], None)
    failure = CaseFailure(wrong.symptom, wrong.message, 0, wrong.output, wrong.element)
    return verdict_on_batches(entry.id, [compared], failure)


def _failure(verdict: Verdict, failure: CaseFailure, folder: Path) -> Failure:
    id, label = CaseId.parse(verdict.id), str(failure.symptom)
    signature, ops, dtypes = f"{label} {id.op} {id.dtype}", (id.op,), (id.dtype,)
    return Failure(
        verdict.id, signature, label, id.level, ops, dtypes, failure.message, str(folder)
    )
