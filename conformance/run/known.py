"""Reads the TOML file of known failures, and says what became of each entry in a run.

A failure without an entry fails the run, and so does an entry whose program passes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from uop.conformance.checks import KNOWN_FILE
from uop.conformance.judging.compare import Symptom
from uop.conformance.report.model import SKIPPED, BackendInfo, Conclusion, Failure, KnownFailure
from uop.conformance.report.options import ReportedOptions
from uop.conformance.run.commands import uop_command
from uop.conformance.shrink.signature import SIGNATURES
from uop.conformance.suite.case import CaseId
from uop.spec.case import FileCase, UopFile
from uop.spec.errors import UopError
from uop.spec.text.reading import read_bytes
from uop.spec.text.uop_file import parse_file

TEXTS = ("case", "signature", "dtypes", "reason", "link", "repro", "backend")
ANY = "any"
"""As `dtypes` of an entry: it covers what its program explains with other dtypes too."""
EXPIRES = "expires"
MOST_KNOWN = 1 << 22
"""The most bytes of a file of known failures."""
VERSION = "signatures"
ENTRY = re.compile(r"^\s*(\{|\[\[known\]\])")


class KnownError(UopError):
    """A file of known failures is malformed: says the line, what was expected and found."""


@dataclass(frozen=True, slots=True)
class KnownLine:
    """An entry: what fails, why, and the program that shows it, as a path from the file's folder.

    `backend` is a name as on the command line, or the name in a hello, alone or with a variant
    (`tinygrad:X86`); empty means any backend. `text` is that of the program.
    """

    case: str
    signature: str
    reason: str
    repro: str
    link: str = ""
    backend: str = ""
    expires: date | None = None
    line: int = 0
    dtypes: str = ""
    text: str = field(default="", compare=False)

    @property
    def cause(self) -> Failure:
        """The entry as a cause, which explains other failures."""
        kind = self.signature.partition(" ")[0]
        # Where a result is inexact with its own dtypes, it may be exact with others.
        label = Symptom.ULP if kind == Symptom.ULP.kind else ""
        return Failure(
            self.signature, self.signature, label, "", (), (), self.reason, self.repro, self.text
        )

    @property
    def key(self) -> str:
        return self.signature or self.case

    def has_expired(self, today: date) -> bool:
        """Whether the last day on which the entry holds is over."""
        return self.expires is not None and today > self.expires


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The entries of a file, in order."""

    path: Path = KNOWN_FILE
    entries: tuple[KnownLine, ...] = ()
    signatures: int = SIGNATURES
    """The version of the signatures; 1 where the file does not name it."""

    @property
    def is_old(self) -> bool:
        """Whether failures may have other signatures today."""
        return self.signatures < SIGNATURES

    def of(self, backend: BackendInfo, named: str) -> KnownFile:
        """The entries about a backend, where `named` is its name on the command line."""
        names = ("", backend.name, backend.identity, named)
        return replace(self, entries=tuple(e for e in self.entries if e.backend in names))

    def accepts(self, key: str, today: date) -> bool:
        """Whether an entry for a case id or a signature holds on this day."""
        return any(key == e.key and not e.has_expired(today) for e in self.entries)

    def cases(self) -> Iterator[FileCase]:
        """The programs of all entries, whose files were read with this one."""
        for entry in self.entries:
            yield from parse_file(entry.text, str(self.repro_of(entry))).cases

    def repro_of(self, entry: KnownLine) -> Path:
        return self.path.parent / entry.repro


def read_known(path: Path) -> KnownFile:
    """Read the file at a path. KnownError where it cannot be read or is malformed."""
    if path.exists() and not path.is_file():
        raise KnownError(f"{path}: expected a regular file: it is read more than once")
    try:
        return known_in(read_bytes(path, MOST_KNOWN).decode("utf-8-sig"), path)
    except OSError as error:
        raise KnownError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise KnownError(f"{path}: expected text in UTF-8: {error}") from None


def old_line(file: KnownFile, backend: str) -> str:
    """Says that a file is of an older version, and what to do about it."""
    return (
        f"{file.path}: its signatures are of version {file.signatures}, this uop makes version "
        f"{SIGNATURES}: run {uop_command('known', 'migrate', backend, '--known', file.path)}"
    )


def known_in(text: str, path: Path) -> KnownFile:
    """Parse the text of the file at a path. KnownError where it is malformed."""
    try:
        table = tomllib.loads(text)
        return KnownFile(path, _entries(table, path, text), _version(table, path))
    except ValueError as error:
        raise KnownError(f"{path}: expected TOML: {error}") from None
    except RecursionError:
        raise KnownError(f"{path}: expected TOML, found lists nested too deep") from None


def _version(table: Mapping[str, Any], path: Path) -> int:
    """The version of the signatures. KnownError where it is none, or newer than ours."""
    found = table.get(VERSION, 1)
    # isinstance would accept a bool too.
    if type(found) is not int or found < 1:
        raise KnownError(f"{path}: {VERSION}: expected a version such as 1, found {found!r}")
    if found > SIGNATURES:
        raise KnownError(
            f"{path}: expected signatures of version {SIGNATURES}, which this uop makes, or of an "
            f"older one; found version {found}"
        )
    return found


def _entries(table: Mapping[str, Any], path: Path, text: str) -> tuple[KnownLine, ...]:
    lines = [n for n, line in enumerate(text.splitlines(), 1) if ENTRY.match(line)]
    unknown = sorted(table.keys() - {"known", VERSION})
    if unknown or "known" not in table:
        wrong = f"found {', '.join(unknown)}" if unknown else "it is missing: is the file cut off?"
        raise KnownError(
            f"{path}: expected the optional key {VERSION!r} and the key 'known'; {wrong}"
        )
    rows = table["known"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise KnownError(f"{path}: known: expected a list of tables, found {rows!r}")
    # Line numbers are known only where each entry has a line of its own.
    numbers = lines if len(lines) == len(rows) else [0] * len(rows)
    entries = tuple(_entry(row, path, n) for row, n in zip(rows, numbers, strict=True))
    seen: dict[tuple[str, str], KnownLine] = {}
    for entry in entries:
        first = seen.setdefault((entry.key, entry.backend), entry)
        if first is not entry:
            raise KnownError(f"{path}:{entry.line}: {entry.key!r} stands in line {first.line} too")
    return entries


def _entry(row: Mapping[str, Any], path: Path, line: int) -> KnownLine:
    place = f"{path}:{line}" if line else str(path)
    for key, value in row.items():
        if key not in (*TEXTS, EXPIRES):
            expected = ", ".join((*TEXTS, EXPIRES))
            raise KnownError(f"{place}: expected keys of {expected}; found {key!r}")
        # isinstance would accept a datetime too.
        if key == EXPIRES and type(value) is not date:
            raise KnownError(f"{place}: {key}: expected a date such as 2030-12-31, found {value!r}")
        if key != EXPIRES and (not isinstance(value, str) or not value.strip()):
            raise KnownError(f"{place}: {key}: expected a text that is not empty, found {value!r}")
    for needed in ("reason", "repro"):
        if needed not in row:
            raise KnownError(f"{place}: expected a {needed}")
    if not row.keys() & {"case", "signature"}:
        raise KnownError(f"{place}: expected a case or a signature")
    if "case" in row:
        try:
            CaseId.parse(row["case"])
        except UopError as error:
            raise KnownError(f"{place}: case: {error}") from None
    entry = KnownLine(**{"case": "", "signature": "", **row, "line": line})
    text = _repro(path.parent / entry.repro, place)
    if entry.dtypes:
        _check_dtypes(entry, parse_file(text), place)
    return replace(entry, text=text)


def _check_dtypes(entry: KnownLine, repro: UopFile, place: str) -> None:
    if entry.dtypes != ANY:
        raise KnownError(f"{place}: dtypes: expected {ANY!r}, found {entry.dtypes!r}")
    if not entry.signature:
        raise KnownError(f"{place}: dtypes: expected a signature, as a case has its own dtypes")
    if [case.root is None for case in repro.cases] != [False]:
        raise KnownError(f"{place}: dtypes: expected one program that runs in {entry.repro}")


def _repro(path: Path, place: str) -> str:
    """The text of a program. KnownError, before the run starts, where it cannot be read."""
    if not path.is_file():
        raise KnownError(f"{place}: repro: no file {path}")
    try:
        text = read_bytes(path).decode("utf-8-sig")
        parse_file(text, str(path))
    except OSError as error:
        raise KnownError(f"{place}: repro: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KnownError(f"{place}: repro: {path}: expected text in UTF-8") from None
    except UopError as error:
        raise KnownError(f"{place}: repro: {error}") from None
    return text


@dataclass(slots=True, eq=False)
class KnownFailures:
    """The known failures of a run, and the cases that each of them covered."""

    file: KnownFile = field(default_factory=KnownFile)
    today: date = field(default_factory=date.today)
    covered: dict[str, list[str]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    """Signatures that are known without an entry."""

    @classmethod
    def of(cls, options: ReportedOptions) -> KnownFailures:
        """Those that a run reads and skips. KnownError for a file that is malformed."""
        file = KnownFile() if options.known is None else read_known(options.known)
        return cls(file, skipped=options.skip_causes)

    def covers(self, key: str, ids: Iterable[str]) -> bool:
        """Whether failures of a case id or a signature are known; records these cases if so.

        An expired entry is recorded without cases: its program is run, and the report says that it
        has expired.
        """
        is_known = key in self.skipped or self.file.accepts(key, self.today)
        if is_known or any(entry.key == key for entry in self.file.entries):
            self.covered.setdefault(key, []).extend(ids if is_known else ())
        return is_known

    def causes(self) -> tuple[Failure, ...]:
        """The entries that hold today for a signature, as causes."""
        entries = (e for e in self.file.entries if e.signature and not e.has_expired(self.today))
        return tuple(entry.cause for entry in entries)

    def covers_any_dtypes(self, cause: Failure) -> bool:
        """Whether an entry covers what its program explains with other dtypes too."""
        return any(e.dtypes and e.signature == cause.signature for e in self.file.entries)

    def selected(self, ids: Collection[str] | None) -> list[KnownLine]:
        """The entries to run the programs of: all, or those about `ids` where a run is narrowed."""
        entries = self.file.entries
        return [e for e in entries if ids is None or e.key in self.covered or e.case in ids]

    def results(
        self,
        entries: Iterable[KnownLine],
        verdicts: Mapping[Path, Conclusion],
        in_time: bool = True,
    ) -> list[KnownFailure]:
        """The state of each entry, by the verdict on its program where that was run.

        It was not where the backend was lost, or the run not `in_time`. Skipped signatures follow.
        """
        of_entries = [
            self._result(e, verdicts.get(self.file.repro_of(e)), in_time) for e in entries
        ]
        return [*of_entries, *map(self._skipped, self.skipped)]

    def _skipped(self, signature: str) -> KnownFailure:
        ids = tuple(sorted(self.covered.get(signature, [])))
        note = "" if ids else f"--skip-cause: {signature} matches no failure of this run"
        return KnownFailure(signature, "--skip-cause", "", "", "", ids, SKIPPED, "", note)

    def _result(self, entry: KnownLine, now: Conclusion | None, in_time: bool) -> KnownFailure:
        place, state, stale = f"{self.file.path}:{entry.line}", "known", ""
        ids = self.covered.get(entry.key, [])
        if now is Conclusion.CONFORMS:
            state, stale = "fixed", f"{place}: {entry.key} passes now: remove this line"
        elif entry.has_expired(self.today):
            state, stale = "expired", f"{place}: {entry.key} was accepted until {entry.expires}"
        elif now is Conclusion.INCONCLUSIVE and (entry.backend or ids):
            state, stale = "undecided", f"{place}: nothing follows from its program {entry.repro}"
        note = "" if ids or stale else f"{place}: {entry.key} matches no case of this run"
        if now is None and not in_time:
            note = f"{place}: the time was over before its program {entry.repro} was run"
        expires = "" if entry.expires is None else str(entry.expires)
        repro = str(self.file.repro_of(entry))
        return KnownFailure(
            entry.key,
            entry.reason,
            entry.link,
            expires,
            repro,
            tuple(sorted(ids)),
            state,
            stale,
            note,
        )
