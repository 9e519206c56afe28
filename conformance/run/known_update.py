"""Edits the file of known failures: what failed joins it, what is fixed leaves it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from uop.conformance.protocol.untrusted import in_one_line
from uop.conformance.report.files import write_file
from uop.conformance.report.model import Conclusion, Report, conclusion_of
from uop.conformance.run.known import (
    EXPIRES,
    TEXTS,
    KnownError,
    KnownFile,
    KnownLine,
    known_in,
    read_known,
)
from uop.conformance.suite.case import ALL_LEVELS

UNEXPLAINED = "not explained yet: "
EMPTY = """\
# Known failures, one line for each: a case id or a signature, the reason, and the program that
# shows it. A link and the last day on which it is accepted (expires = 2030-12-31) may follow.
# A line whose program passes fails the run, and has to be removed.
known = [
]
"""
OPENING = re.compile(r"\s*known\s*=\s*\[\s*(#.*)?$")
NO_ENTRY = re.compile(r"^([ \t]*known[ \t]*=[ \t]*\[)[ \t]*\](.*)$", re.MULTILINE)
TABLE = "[[known]]"
NOT_OF_AN_ENTRY = ("#", "]")
"""What lines begin with that are comments, or end the list."""
NOT_EDITABLE = "expected a line `known = [` and each entry on a line below it"


@dataclass(frozen=True, slots=True)
class Update:
    """What became of a file: the keys that joined it and that left it, or what went wrong."""

    joined: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def require_editable(path: Path) -> None:
    """KnownError where a file is not written so that entries can join it and leave it."""
    text, old = _text_and_entries(path)
    sample = KnownLine("", "a signature", "a reason", "a program")
    try:
        longer = tomllib.loads(_edited(text, old, (), [sample])).get("known", [])
        shorter = tomllib.loads(_edited(text, old, old.entries, ())).get("known", [])
    except tomllib.TOMLDecodeError:
        raise KnownError(f"{path}: {NOT_EDITABLE}") from None
    if shorter or len(longer) != len(old.entries) + 1:
        raise KnownError(f"{path}: {NOT_EDITABLE}")


def write_known(path: Path, report: Report, backend: str) -> Update:
    """Put the failures of a run into the file, and take out what is fixed, with its program.

    All other lines stay as they are, comments and expired ones too. Where something cannot be
    written, the file and the programs of its lines stay.
    """
    text, old = _text_and_entries(path)
    fixed = {known.key for known in report.known if known.state == "fixed"}
    own = old.of(report.backend, backend).entries
    gone = {e for e in own if e.key in fixed}
    kept = [e for e in old.entries if e not in gone]
    new: list[KnownLine] = []
    taken = {e.repro for e in old.entries}
    problems: list[str] = []
    for failure in report.failures:
        keys = {e.key for e in own if e not in gone}
        if failure.level in ALL_LEVELS and failure.signature not in keys:
            name = _free_name(path.stem, Path(failure.repro), taken)
            taken.add(name)
            problems.append(write_file(path.parent / name, failure.text))
            why = UNEXPLAINED + in_one_line(failure.message)
            who = report.backend.identity
            new.append(KnownLine(failure.id, failure.signature, why, name, backend=who))
    problems += [] if any(problems) else [_write(path, _edited(text, old, gone, new), kept + new)]
    if any(problems):
        return Update(problems=tuple(filter(None, problems)))
    _remove_programs(path, {e.repro for e in gone} - {e.repro for e in (*kept, *new)})
    return Update(tuple(e.key for e in new), tuple(e.key for e in old.entries if e in gone))


def by_updated(report: Report) -> Conclusion:
    """The verdict by the file that was made of a report: its failures are known there.

    Not so what lines that left it covered, where their programs pass and other cases do not.
    """
    stay = tuple(known for known in report.known if known.state != "fixed")
    bare = sum(len(known.cases) for known in report.known if known not in stay)
    wrong = bare or any(known.stale for known in stay)
    wrong = wrong or any(f.level not in ALL_LEVELS for f in report.failures)
    return conclusion_of(wrong, report.summary.missing, report.summary.programs - bare)


def _text_and_entries(path: Path) -> tuple[str, KnownFile]:
    """The text of a file with its own ends of lines, and what it says; of no file an empty one."""
    if not path.is_file():
        return EMPTY, KnownFile(path)
    old = read_known(path)
    return path.read_bytes().decode("utf-8-sig"), old


def _free_name(folder: str, repro: Path, taken: Collection[str]) -> str:
    """A path of a program that no other line has: signatures may be alike in names of files."""
    numbers = chain([""], (f"-{n}" for n in count(2)))
    names = (f"{folder}/{repro.stem}{number}{repro.suffix}" for number in numbers)
    return next(name for name in names if name not in taken)


def _write(path: Path, text: str, entries: Sequence[KnownLine]) -> str:
    """Write the text if it holds these entries; what went wrong, or nothing."""
    with suppress(KnownError):
        if sorted(map(_pairs, known_in(text, path).entries)) == sorted(map(_pairs, entries)):
            return write_file(path, text)
    return f"cannot write {path}: {NOT_EDITABLE}"


def _edited(
    text: str, old: KnownFile, gone: Collection[KnownLine], new: Sequence[KnownLine]
) -> str:
    """The text without the lines of some entries, and with lines for others."""
    lines = NO_ENTRY.sub(r"\1\2\n]", text).splitlines(keepends=True)
    end = len(lines)
    for entry in reversed(old.entries):
        start = entry.line - 1
        if entry in gone and entry.line:
            del lines[start : 1 + max(_written(lines, start, end))]
        end = start
    if any(line.lstrip().startswith(TABLE) for line in lines):
        return "".join([*lines, *("\n".join(["", TABLE, *_pairs(e), ""]) for e in new)])
    if not any(map(OPENING.match, lines)):
        lines += EMPTY.splitlines(keepends=True)[-2:]
    top = 1 + next(n for n, line in enumerate(lines) if OPENING.match(line))
    lines[top:top] = [f"  {{ {', '.join(_pairs(e))} }},\n" for e in new]
    return "".join(lines)


def _written(lines: Sequence[str], start: int, end: int) -> Iterator[int]:
    """The first line of an entry, and those up to the next entry that may be of this one."""
    yield start
    for n in range(start + 1, end):
        if lines[n].strip() and not lines[n].lstrip().startswith(NOT_OF_AN_ENTRY):
            yield n


def _remove_programs(path: Path, repros: Collection[str]) -> None:
    """Remove programs that were written beside the file; those of others are theirs."""
    for repro in repros:
        program = path.parent / repro
        if program.parent == path.parent / path.stem:
            with suppress(OSError):
                program.unlink()


def _pairs(entry: KnownLine) -> list[str]:
    texts = [(name, getattr(entry, name)) for name in TEXTS]
    pairs = [f"{name} = {_quoted(text)}" for name, text in texts if text]
    return [*pairs, *([f"{EXPIRES} = {entry.expires}"] if entry.expires else [])]


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON but for two kinds of characters."""
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")
