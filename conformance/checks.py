"""Checks of command-line options: names, durations, output files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from uop.spec.errors import UopError
from uop.spec.nearest import did_you_mean

COMMAND = "command:"
"""The prefix of the name of a worker process that answers lines."""
STRICT = "strict"
OBSERVED = "observed"
"""Names the profile observed on the backend: the default where no profile is declared."""
PROFILE_SUFFIX = ".toml"
"""The extension of profile files."""
KNOWN_FILE = Path("uop-known.toml")
"""The default file of known failures."""
DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>s|m|h|)")
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
YEAR = 365 * 24 * 3600


class OptionError(UopError):
    """An option has an invalid value. The message names the option, what it expects, the value."""


def cores() -> int:
    """The default number of processes of a run: one per core."""
    return os.cpu_count() or 1


def parse_duration(text: str, option: str = "--time") -> float:
    """Parse 30, 30s, 5m or 1h to seconds. Raises OptionError for other text and over a year."""
    parsed = DURATION.fullmatch(text)
    if parsed is None or not float(parsed["number"]):
        raise OptionError(f"{option}: expected a duration such as 30, 30s or 5m, found {text!r}")
    seconds = float(parsed["number"]) * UNITS[parsed["unit"]]
    if seconds > YEAR:
        raise OptionError(f"{option}: expected at most a year, {YEAR // 3600}h, found {text!r}")
    return seconds


def one_of(option: str, names: Collection[str], known: Collection[str]) -> None:
    """Raise OptionError for an unknown name, and suggest similar names."""
    for name in names:
        if name not in known:
            expected = f"expected one of {', '.join(known)}; found {name!r}"
            raise OptionError(f"{option}: {expected}{did_you_mean(name, known)}")


def require_files(*paths: Path | None) -> None:
    """Raise OptionError unless all report files are writable and distinct."""
    by_real_path: dict[str, Path] = {}
    for path in filter(None, paths):
        writable(path)
        other = by_real_path.setdefault(os.path.realpath(path), path)
        if other is not path:
            raise OptionError(f"cannot write two forms of a report to {other} and {path}: one file")


def require_lines(log: Path | None, backend: str) -> None:
    """Raise OptionError for a protocol log of a backend that does not use the protocol."""
    if log is not None and not backend.startswith(COMMAND):
        raise OptionError(f"--log-protocol: expected {COMMAND}PROGRAM, found {backend!r}")


def writable(path: Path) -> None:
    """Raise OptionError unless the file is writable; missing folders are allowed."""
    if str(path) == "-":
        raise OptionError("expected the name of a file, found -: on stdout stands the run")
    try:
        obstacle = _obstacle(path)
    except OSError as error:
        obstacle = str(error.strerror)
    if obstacle:
        raise OptionError(f"cannot write {path}: {obstacle}")


def _obstacle(path: Path) -> str:
    """Why a file cannot be written; empty if it can."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        return f"{folder} is no folder that this user may write to"
    return "it is read-only" if path.exists() and not os.access(path, os.W_OK) else ""
