"""Judges outputs that somebody has written as files, by the sets of a corpus."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uop.conformance.corpus.files import (
    MANIFEST,
    OUTPUTS,
    SCHEMA,
    CorpusError,
    Described,
    read_arrays,
    read_sets,
)
from uop.conformance.judging.compare import Mismatch, Symptom, compare
from uop.conformance.judging.verdict import Fault, Status, Verdict
from uop.conformance.protocol.untrusted import sanitized
from uop.conformance.report.asked import Asked
from uop.conformance.report.model import BackendInfo, Failure, Report
from uop.conformance.report.origin import Origin
from uop.conformance.report.tally import Tally
from uop.conformance.suite.case import CaseId

SKIPPED = "skipped.txt"
"""In the folder of a case: why there are no outputs."""
REASON = 200
"""Characters of it, at most."""
HEADER = {"uop": str, "profile": str, "seed": int}
"""What the first line of a manifest says, and of which type."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A case of a corpus, as its manifest describes it."""

    id: str
    outputs: tuple[Described, ...]


def score(corpus: Path, outputs: Path, command: Sequence[str] = ()) -> Report:
    """Judge every case of a corpus by the file `outputs/ID/outputs.bin`.

    A case without one is skipped, one of another size fails. CorpusError for a corpus that is none
    or is cut off.
    """
    begun = time.monotonic()
    if not outputs.is_dir():
        raise CorpusError(f"{outputs} is no folder")
    header, entries = read_manifest(corpus)
    tally, failures = Tally(), []
    for entry in entries:
        verdict = _verdict(corpus / entry.id, outputs / entry.id, entry)
        tally.add(verdict)
        if verdict.fault is not None:
            failures.append(_failure(verdict, verdict.fault, corpus / entry.id))
    info = BackendInfo(outputs.name or str(outputs), header["uop"], "files")
    seconds = time.monotonic() - begun
    options = Asked(info.name, header["seed"], levels=(), effort="", corpus=corpus, outputs=outputs)
    found = tally.report(info, header["profile"], options, seconds, tuple(failures))
    return replace(found, origin=Origin.now(command))


def read_manifest(corpus: Path) -> tuple[dict[str, Any], list[Entry]]:
    """The header and the cases. CorpusError for what is no manifest of this schema, or cut off."""
    path = corpus / MANIFEST
    try:
        header, *lines = path.read_text(encoding="utf-8").splitlines()
        first = json.loads(header)
        if not isinstance(first, dict) or first.get("schema") != SCHEMA:
            raise CorpusError(f"{path}: expected the schema {SCHEMA}")
        for name, kind in HEADER.items():
            if type(first.get(name)) is not kind:
                raise CorpusError(f"{path}: {name}: expected {kind.__name__}")
        return first, list(_entries(lines))
    except OSError as error:
        raise CorpusError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CorpusError(f"{path} is no manifest, or cut off: {error}") from error


def _entries(lines: list[str]) -> Iterator[Entry]:
    for line in lines:
        found = json.loads(line)
        outputs = tuple(Described.from_json(output) for output in found["outputs"])
        yield Entry(str(CaseId.parse(str(found["id"]))), outputs)


def _verdict(case: Path, given: Path, entry: Entry) -> Verdict:
    skipped = given / SKIPPED
    if skipped.is_file():
        with skipped.open(encoding="utf-8", errors="replace") as file:
            reason = sanitized(file.read(REASON).strip())
        return Verdict(entry.id, Status.SKIPPED, reason=reason)
    if not (given / OUTPUTS).exists():
        return Verdict(entry.id, Status.SKIPPED, reason="no outputs")
    accepted = read_sets(case, entry.outputs)
    try:
        outputs = read_arrays(given / OUTPUTS, entry.outputs)
    except CorpusError as error:
        fault = Fault(Symptom.VALUE, str(error))
        return Verdict(entry.id, Status.FAILED, 1, fault=fault)
    found = compare(accepted, outputs)
    wrong = found.mismatch
    return Verdict(
        entry.id,
        Status.PASSED if wrong is None else Status.FAILED,
        checks=1,
        elements=found.elements,
        single=found.single,
        constrained=found.constrained,
        max_ulp=found.max_ulp,
        fault=None if wrong is None else _fault(wrong),
    )


def _fault(wrong: Mismatch) -> Fault:
    return Fault(wrong.symptom, wrong.message, 0, wrong.output, wrong.element)


def _failure(verdict: Verdict, fault: Fault, folder: Path) -> Failure:
    id = CaseId.parse(verdict.id)
    signature = f"{fault.symptom} {id.op} {id.dtype}"
    label = str(fault.symptom)
    ops, dtypes = (id.op,), (id.dtype,)
    return Failure(verdict.id, signature, label, id.level, ops, dtypes, fault.message, str(folder))
