"""Gives entries of a file of known failures the signatures that their programs have today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uop.conformance.judging.self_test import require_fit
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.native import check_native
from uop.conformance.report.model import BackendInfo
from uop.conformance.run.known import KnownFile, KnownLine, read_known
from uop.conformance.run.known_update import rename
from uop.conformance.run.replay import judge_files
from uop.conformance.shrink.repro import signature_now
from uop.conformance.shrink.signature import SIGNATURES, number_in
from uop.conformance.suite.case import MIXED, CaseId, NoSuchCaseError
from uop.conformance.suite.own_cases import read_cases, suite_case
from uop.conformance.workers.sessions import known, started
from uop.spec.case import FileCase
from uop.spec.errors import UopError

ANY = CaseId("op", MIXED, MIXED, "migrate", 0)
"""The signature of a program that runs does not depend on its case."""


class LeftAloneError(UopError):
    """Says why an entry keeps its signature, whatever that is."""


@dataclass(frozen=True, slots=True)
class Migration:
    """What became of the entries that name a signature."""

    path: Path
    renamed: Mapping[KnownLine, str]
    """Those about the backend with another signature today, and that."""
    left: Mapping[KnownLine, str]
    """Those about it that are left alone, and why."""
    same: int
    """The number of those whose signature is today's."""
    others: int
    """The number of those about other backends."""
    version: int
    """The version of the file now: ours once all of its signatures are known to be of it."""


def migrate(path: Path, backend: str, *, native: bool = False) -> tuple[Migration, str]:
    """Judge the programs of entries about a backend, and rewrite the signatures that differ.

    Also returns why the file could not be written, empty if it could. KnownError for a malformed
    file; NativeError for native code that is not allowed; BackendError where the backend does not
    start.
    """
    known(backend)
    file = read_known(path)
    check_native(file.cases(), native=native)
    named = [entry for entry in file.entries if entry.signature]
    now: dict[KnownLine, str] = {}
    left: dict[KnownLine, str] = {}
    with started(backend) as session:
        require_fit(session)
        about = file.of(BackendInfo.of(session.hello), backend).entries
        for entry in filter(about.__contains__, named):
            cases = read_cases(file.repro_of(entry))
            try:
                signature = _signature(cases, judge_files(cases, session))
            except LeftAloneError as why:
                left[entry] = str(why)
            else:
                now[entry] = signature + number_in(entry.signature)
    new = {entry: signature for entry, signature in now.items() if signature != entry.signature}
    clashing = _clashing(file, new)
    left |= {entry: f"{new.pop(entry)} stands in two lines then" for entry in clashing}
    others = len(named) - len(now.keys() | left.keys())
    version = file.signatures if left or others else SIGNATURES
    same = len(now) - len(new) - len(clashing)
    return Migration(path, new, left, same, others, version), rename(path, new, version)


def _signature(cases: Sequence[FileCase], verdicts: Sequence[Verdict]) -> str:
    """The signature of the first failure of a file. LeftAloneError where there is none."""
    for case, verdict in zip(cases, verdicts, strict=True):
        if verdict.failure is not None:
            return signature_now(suite_case(_id(case), case), verdict.failure)
    if all(verdict.status is Status.PASSED for verdict in verdicts):
        raise LeftAloneError("its program passes")
    reason = next(verdict.reason for verdict in verdicts if verdict.status is Status.SKIPPED)
    raise LeftAloneError(f"its program is not judged: {reason}")


def _id(case: FileCase) -> CaseId:
    """The id of a case, which tells the op and dtype of a program that must be rejected."""
    if case.root is not None:
        return ANY
    try:
        return CaseId.parse(case.id or "")
    except NoSuchCaseError:
        raise LeftAloneError("its program does not say of which case it is") from None


def _clashing(file: KnownFile, new: Mapping[KnownLine, str]) -> set[KnownLine]:
    """Entries that cannot have another signature, as two entries would have it then."""
    clashing: set[KnownLine] = set()
    while True:
        keys = {e: e.key if e in clashing else new.get(e, e.key) for e in file.entries}
        counts = Counter((key, entry.backend) for entry, key in keys.items())
        found = {e for e in new.keys() - clashing if counts[keys[e], e.backend] > 1}
        if not found:
            return clashing
        clashing |= found
