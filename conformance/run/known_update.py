"""Updates the file of known failures: adds what failed, removes what is fixed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

from uop.conformance.protocol.untrusted import in_one_line
from uop.conformance.report.files import write_file
from uop.conformance.report.model import Conclusion, Report, conclusion_of
from uop.conformance.run.known import (
    EXPIRES,
    MOST_KNOWN,
    TEXTS,
    VERSION,
    KnownError,
    KnownFile,
    KnownLine,
    known_in,
    old_line,
    read_known,
)
from uop.conformance.shrink.signature import SIGNATURES
from uop.conformance.suite.case import ALL_LEVELS
from uop.spec.text.reading import read_bytes

UNEXPLAINED = "not explained yet: "
EMPTY = f"""\
# Known failures, one line for each: a case id or a signature, the reason, and the program that
# shows it. A link and the last day on which it is accepted (expires = 2030-12-31) may follow.
# A line whose program passes fails the run, and has to be removed.
{VERSION} = {SIGNATURES}
known = [
]
"""
OPENING = re.compile(r"\s*known\s*=\s*\[\s*(#.*)?$")
NO_ENTRY = re.compile(r"^([ \t]*known[ \t]*=[ \t]*\[)[ \t]*\](.*)$", re.MULTILINE)
TABLE = "[[known]]"
NAMED = re.compile(r"""(\bsignature[ \t]*=[ \t]*)(?:"(?:[^"\\]|\\.)*"|'[^']*')""")
VERSIONED = re.compile(rf"^({VERSION}[ \t]*=[ \t]*)\d+", re.MULTILINE)
NOT_OF_AN_ENTRY = ("#", "]")
"""Lines that begin with these are comments, or end the list."""
NOT_EDITABLE = "expected a line `known = [` and each entry on a line below it"


@dataclass(frozen=True, slots=True)
class Update:
    """The result of an update: the keys added and removed, or the problems."""

    joined: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def require_editable(path: Path) -> None:
    """KnownError unless entries can be added to the file and removed from it."""
    text, old = _text_and_entries(path)
    if old.is_old:
        raise KnownError(old_line(old, "BACKEND"))
    sample = KnownLine("", "a signature", "a reason", "a program")
    try:
        longer = tomllib.loads(_edited(text, old, (), [sample])).get("known", [])
        shorter = tomllib.loads(_edited(text, old, old.entries, ())).get("known", [])
    except tomllib.TOMLDecodeError:
        raise KnownError(f"{path}: {NOT_EDITABLE}") from None
    if shorter or len(longer) != len(old.entries) + 1:
        raise KnownError(f"{path}: {NOT_EDITABLE}")


def write_known(path: Path, report: Report, backend: str) -> Update:
    """Add the failures of a run to the file, and remove what is fixed, with its program.

    All other lines stay, comments and expired entries too. Where something cannot be written,
    nothing is removed.
    """
    text, old = _text_and_entries(path)
    fixed_keys = {known.key for known in report.known if known.state == "fixed"}
    own = old.of(report.backend, backend).entries
    fixed = {e for e in own if e.key in fixed_keys}
    rest = [e for e in old.entries if e not in fixed]
    new: list[KnownLine] = []
    taken = {e.repro for e in old.entries}
    problems: list[str] = []
    for failure in report.failures:
        keys = {e.key for e in own if e not in fixed}
        if failure.level in ALL_LEVELS and failure.signature not in keys:
            name = _free_name(path.stem, Path(failure.repro), taken)
            taken.add(name)
            problems.append(write_file(path.parent / name, failure.text))
            why = UNEXPLAINED + in_one_line(failure.message)
            who = report.backend.identity
            new.append(KnownLine(failure.id, failure.signature, why, name, backend=who))
    problems += [] if any(problems) else [_write(path, _edited(text, old, fixed, new), rest + new)]
    if any(problems):
        return Update(problems=tuple(filter(None, problems)))
    _remove_programs(path, {e.repro for e in fixed} - {e.repro for e in (*rest, *new)})
    return Update(tuple(e.key for e in new), tuple(e.key for e in old.entries if e in fixed))


def rename(path: Path, new: Mapping[KnownLine, str], version: int) -> str:
    """Give entries of the file other signatures, and the file a version; all else stays.

    Returns the problem, empty if none. A file in which nothing changes is not written.
    """
    text, old = _text_and_entries(path)
    renamed = _renamed(text, old, new)
    if version != old.signatures:
        renamed, found = VERSIONED.subn(rf"\g<1>{version}", renamed, count=1)
        renamed = renamed if found else f"{VERSION} = {version}\n{renamed}"
    entries = [replace(e, signature=new.get(e, e.signature)) for e in old.entries]
    return _write(path, renamed, entries) if new or version != old.signatures else ""


def by_updated(report: Report) -> Conclusion:
    """The verdict on a run by the updated file, in which its failures are known.

    Cases that a removed entry covered are not: its program passes, but they failed.
    """
    stay = tuple(known for known in report.known if known.state != "fixed")
    bare = sum(len(known.cases) for known in report.known if known not in stay)
    wrong = bare or any(known.stale for known in stay)
    wrong = wrong or any(f.level not in ALL_LEVELS for f in report.failures)
    return conclusion_of(wrong, report.summary.missing, report.summary.programs - bare)


def _text_and_entries(path: Path) -> tuple[str, KnownFile]:
    """The text of a file, its line ends unchanged, and its entries; EMPTY where there is none."""
    if not path.is_file():
        return EMPTY, KnownFile(path)
    old = read_known(path)
    return read_bytes(path, MOST_KNOWN).decode("utf-8-sig"), old


def _free_name(folder: str, repro: Path, taken: Collection[str]) -> str:
    """A path of a program that no entry has: two signatures may give the same file name."""
    numbers = chain([""], (f"-{n}" for n in count(2)))
    names = (f"{folder}/{repro.stem}{number}{repro.suffix}" for number in numbers)
    return next(name for name in names if name not in taken)


def _write(path: Path, text: str, entries: Sequence[KnownLine]) -> str:
    """Write the text if it holds these entries; returns the problem, empty if none."""
    with suppress(KnownError):
        if sorted(map(_pairs, known_in(text, path).entries)) == sorted(map(_pairs, entries)):
            return write_file(path, text)
    return f"cannot write {path}: {NOT_EDITABLE}"


def _edited(
    text: str, old: KnownFile, fixed: Collection[KnownLine], new: Sequence[KnownLine]
) -> str:
    """The text without the lines of the entries `fixed`, and with lines for the entries `new`."""
    lines = NO_ENTRY.sub(r"\1\2\n]", text).splitlines(keepends=True)
    end = len(lines)
    for entry in reversed(old.entries):
        start = entry.line - 1
        if entry in fixed and entry.line:
            del lines[start : 1 + max(_written(lines, start, end))]
        end = start
    if any(line.lstrip().startswith(TABLE) for line in lines):
        return "".join([*lines, *("\n".join(["", TABLE, *_pairs(e), ""]) for e in new)])
    if not any(map(OPENING.match, lines)):
        lines += EMPTY.splitlines(keepends=True)[-2:]
    top = 1 + next(n for n, line in enumerate(lines) if OPENING.match(line))
    lines[top:top] = [f"  {{ {', '.join(_pairs(e))} }},\n" for e in new]
    return "".join(lines)


def _renamed(text: str, old: KnownFile, new: Mapping[KnownLine, str]) -> str:
    """The text with other signatures in the lines of some entries."""
    lines = text.splitlines(keepends=True)
    ends = [entry.line - 1 for entry in old.entries[1:]] + [len(lines)]
    for entry, end in zip(old.entries, ends, strict=True):
        for n in _written(lines, entry.line - 1, end) if entry in new and entry.line else ():
            before, lines[n] = lines[n], _named(lines[n], new[entry])
            if lines[n] != before:
                break
    return "".join(lines)


def _named(line: str, signature: str) -> str:
    """The line with another value of the key `signature`, where it has that key."""
    return NAMED.sub(lambda key: key[1] + _quoted(signature), line, count=1)


def _written(lines: Sequence[str], start: int, end: int) -> Iterator[int]:
    """The lines of an entry: its first one, and all but comments up to the next entry."""
    yield start
    for n in range(start + 1, end):
        if lines[n].strip() and not lines[n].lstrip().startswith(NOT_OF_AN_ENTRY):
            yield n


def _remove_programs(path: Path, repros: Collection[str]) -> None:
    """Remove programs that `write_known` wrote; others belong to the user."""
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
    """A basic string of TOML: one of JSON, except for surrogates and DEL."""
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")
