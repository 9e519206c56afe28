"""Updates the file of known failures: adds what failed, removes what is fixed, renames others."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

from uop.conformance.judging.self_test import require_fit
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.native import check_native
from uop.conformance.protocol.untrusted import in_one_line
from uop.conformance.report.files import write_file
from uop.conformance.report.model import BackendInfo, Conclusion, Report, conclusion_of
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
from uop.conformance.run.replay import judge_files
from uop.conformance.shrink.signature import SIGNATURES, number_in
from uop.conformance.shrink.writing import signature_now
from uop.conformance.suite.case import ALL_LEVELS, MIXED, CaseId, NoSuchCaseError
from uop.conformance.suite.own_cases import read_cases, suite_case
from uop.conformance.workers.sessions import known, started
from uop.spec.case import FileCase
from uop.spec.errors import UopError
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
ANY = CaseId("op", MIXED, MIXED, "migrate", 0)
"""The signature of a program that runs does not depend on its case."""


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
