"""Writes the file of known failures anew: what failed joins it, what is fixed leaves it."""

from __future__ import annotations

import json
from pathlib import Path

from uop.conformance.case import LEVELS
from uop.conformance.known import EXPIRES, TEXTS, Entry, KnownFile, read_known
from uop.conformance.report import Report
from uop.conformance.report.files import write_file

UNEXPLAINED = "not explained yet: "
HEAD = """\
# Known failures, one line for each: a case id or a signature, the reason, and the program that
# shows it. A link and the last day on which it is accepted (expires = 2030-12-31) may follow.
# A line whose program passes fails the run, and has to be removed.
known = [
"""


def write_known(path: Path, report: Report, backend: str) -> list[str]:
    """Put the failures of a run into the file, and leave out what is fixed.

    Other lines stay as they are, expired ones too. What could not be written, in words.
    """
    old = read_known(path) if path.is_file() else KnownFile(path)
    fixed = {known.key for known in report.known if known.state == "fixed"}
    kept = [e for e in old.entries if e.key not in fixed or e.backend not in ("", backend)]
    keys = {e.key for e in kept if e.backend in ("", backend)}
    problems: list[str] = []
    for failure in report.failures:
        if failure.level in LEVELS and failure.signature not in keys:
            name = f"{path.stem}/{Path(failure.repro).name}"
            problems.append(write_file(path.parent / name, failure.text))
            why = UNEXPLAINED + " ".join(failure.message.split())
            kept.append(Entry(failure.id, failure.signature, why, name, backend=backend))
    lines = "".join(f"  {{ {_fields(entry)} }},\n" for entry in kept)
    return [p for p in (*problems, write_file(path, f"{HEAD}{lines}]\n")) if p]


def _fields(entry: Entry) -> str:
    texts = [(name, getattr(entry, name)) for name in TEXTS]
    pairs = [f"{name} = {_quoted(text)}" for name, text in texts if text]
    return ", ".join([*pairs, *([f"{EXPIRES} = {entry.expires}"] if entry.expires else [])])


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON but for two kinds of characters."""
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")
