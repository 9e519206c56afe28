"""Known failures of an adopter: a TOML file with one line for each, strict in both directions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from uop.conformance.checks import KNOWN_FILE
from uop.conformance.report.model import BackendInfo, Conclusion, KnownFailure
from uop.conformance.suite.case import CaseId
from uop.spec.errors import UopError
from uop.spec.text.uop_file import parse_file

TEXTS = ("case", "signature", "reason", "link", "repro", "backend")
EXPIRES = "expires"
ENTRY = re.compile(r"^\s*(\{|\[\[known\]\])")


class KnownError(UopError):
    """A file of known failures that cannot be used: the line, what was expected, what was found."""


@dataclass(frozen=True, slots=True)
class KnownLine:
    """One line: what fails, why, and the program that shows it, as a path from the file's folder.

    `backend` is a name in a hello, alone or with a variant, as `tinygrad:X86`; empty for any. Or it
    is what stands on the command line.
    """

    case: str
    signature: str
    reason: str
    repro: str
    link: str = ""
    backend: str = ""
    expires: date | None = None
    line: int = 0

    @property
    def key(self) -> str:
        return self.signature or self.case

    def has_expired(self, today: date) -> bool:
        """The day that it names is the last one."""
        return self.expires is not None and today > self.expires


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The entries of a file, in order."""

    path: Path = KNOWN_FILE
    entries: tuple[KnownLine, ...] = ()

    def of(self, backend: BackendInfo, named: str) -> KnownFile:
        """Only those about a backend, which is so named on the command line."""
        names = ("", backend.name, backend.identity, named)
        return replace(self, entries=tuple(e for e in self.entries if e.backend in names))

    def accepts(self, key: str, today: date) -> bool:
        """Whether failures of a case id or a signature are known, and may still be."""
        return any(key == e.key and not e.has_expired(today) for e in self.entries)

    def repro_of(self, entry: KnownLine) -> Path:
        return self.path.parent / entry.repro


def read_known(path: Path) -> KnownFile:
    """The file at a path. KnownError where it is none."""
    try:
        return known_in(path.read_text("utf-8-sig"), path)
    except OSError as error:
        raise KnownError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise KnownError(f"{path}: expected text in UTF-8: {error}") from None


def known_in(text: str, path: Path) -> KnownFile:
    """What the file at a path would hold by its text. KnownError where that is none."""
    try:
        return KnownFile(path, _entries(tomllib.loads(text), path, text))
    except tomllib.TOMLDecodeError as error:
        raise KnownError(f"{path}: expected TOML: {error}") from None


def _entries(found: Mapping[str, Any], path: Path, text: str) -> tuple[KnownLine, ...]:
    lines = [n for n, line in enumerate(text.splitlines(), 1) if ENTRY.match(line)]
    unknown = sorted(found.keys() - {"known"})
    if unknown or "known" not in found:
        said = f"found {', '.join(unknown)}" if unknown else "it is missing: is the file cut off?"
        raise KnownError(f"{path}: expected the one key 'known'; {said}")
    given = found["known"]
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise KnownError(f"{path}: known: expected a list of tables, found {given!r}")
    # Where entries are written in another way than one to a line the lines are not known.
    places = lines if len(lines) == len(given) else [0] * len(given)
    entries = tuple(_entry(one, path, n) for one, n in zip(given, places, strict=True))
    seen: dict[tuple[str, str], KnownLine] = {}
    for entry in entries:
        first = seen.setdefault((entry.key, entry.backend), entry)
        if first is not entry:
            raise KnownError(f"{path}:{entry.line}: {entry.key!r} stands in line {first.line} too")
    return entries


def _entry(given: Mapping[str, Any], path: Path, line: int) -> KnownLine:
    place = f"{path}:{line}" if line else str(path)
    for key, value in given.items():
        if key not in (*TEXTS, EXPIRES):
            expected = ", ".join((*TEXTS, EXPIRES))
            raise KnownError(f"{place}: expected keys of {expected}; found {key!r}")
        # A date with a time is a date for Python.
        if key == EXPIRES and type(value) is not date:
            raise KnownError(f"{place}: {key}: expected a date such as 2030-12-31, found {value!r}")
        if key != EXPIRES and (not isinstance(value, str) or not value.strip()):
            raise KnownError(f"{place}: {key}: expected a text that is not empty, found {value!r}")
    for needed in ("reason", "repro"):
        if needed not in given:
            raise KnownError(f"{place}: expected a {needed}")
    if not given.keys() & {"case", "signature"}:
        raise KnownError(f"{place}: expected a case or a signature")
    if "case" in given:
        try:
            CaseId.parse(given["case"])
        except UopError as error:
            raise KnownError(f"{place}: case: {error}") from None
    entry = KnownLine(**{"case": "", "signature": "", **given, "line": line})
    _check_repro(path.parent / entry.repro, place)
    return entry


def _check_repro(path: Path, place: str) -> None:
    """KnownError where no program could decide at the end of a run, before it begins."""
    if not path.is_file():
        raise KnownError(f"{place}: repro: no file {path}")
    try:
        parse_file(path.read_text("utf-8-sig"), str(path))
    except OSError as error:
        raise KnownError(f"{place}: repro: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KnownError(f"{place}: repro: {path}: expected text in UTF-8") from None
    except UopError as error:
        raise KnownError(f"{place}: repro: {error}") from None


@dataclass(slots=True, eq=False)
class Settled:
    """What became of the entries in a run: the cases that each of them covered."""

    file: KnownFile = field(default_factory=KnownFile)
    today: date = field(default_factory=date.today)
    covered: dict[str, list[str]] = field(default_factory=dict)

    def covers(self, key: str, ids: Iterable[str]) -> bool:
        """Whether failures of a case id or a signature are known; then of these cases.

        An entry that has expired was met too: its program is run, and the report says so.
        """
        is_known = self.file.accepts(key, self.today)
        if any(entry.key == key for entry in self.file.entries):
            self.covered.setdefault(key, []).extend(ids if is_known else ())
        return is_known

    def asked(self, ids: Collection[str] | None) -> list[KnownLine]:
        """The entries whose programs decide: all, or in a run narrowed to `ids` those it met."""
        entries = self.file.entries
        return [e for e in entries if ids is None or e.key in self.covered or e.case in ids]

    def results(
        self, asked: Iterable[KnownLine], now: Mapping[Path, Conclusion]
    ) -> list[KnownFailure]:
        """Each entry with what its program shows now, where it was run."""
        return [self._result(e, now.get(self.file.repro_of(e))) for e in asked]

    def _result(self, entry: KnownLine, now: Conclusion | None) -> KnownFailure:
        place, state, stale = f"{self.file.path}:{entry.line}", "known", ""
        ids = self.covered.get(entry.key, [])
        if now is Conclusion.CONFORMS:
            state, stale = "fixed", f"{place}: {entry.key} passes now: remove this line"
        elif entry.has_expired(self.today):
            state, stale = "expired", f"{place}: {entry.key} was accepted until {entry.expires}"
        elif now is Conclusion.INCONCLUSIVE and (entry.backend or ids):
            state, stale = "undecided", f"{place}: nothing follows from its program {entry.repro}"
        note = "" if ids or stale else f"{place}: {entry.key} matches no case of this run"
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
