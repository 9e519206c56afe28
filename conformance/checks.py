"""What every command checks before it starts: names, durations, files that it can write."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from uop.conformance.backends import COMMAND
from uop.spec.errors import UopError
from uop.spec.nearest import did_you_mean

STRICT = "strict"
OBSERVED = "observed"
"""Stands for the profile that a backend shows; taken where neither it nor the run names one."""
PROFILE_SUFFIX = ".toml"
"""What the name of a profile's file ends with."""
KNOWN_FILE = Path("uop-known.toml")
"""Where known failures stand unless a run names another file."""
DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>s|m|h|)")
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
YEAR = 365 * 24 * 3600


class OptionError(UopError):
    """An option asks for what does not exist: says which, what it may be, what was found."""


def cores() -> int:
    """The processes of a run unless it is told otherwise: one per core."""
    return os.cpu_count() or 1


def parse_duration(text: str, option: str = "--time") -> float:
    """Seconds: 30, 30s, 5m or 1h. OptionError for anything else, or more than a system waits."""
    found = DURATION.fullmatch(text)
    if found is None or not float(found["number"]):
        raise OptionError(f"{option}: expected a duration such as 30, 30s or 5m, found {text!r}")
    seconds = float(found["number"]) * UNITS[found["unit"]]
    if seconds > YEAR:
        raise OptionError(f"{option}: expected at most a year, {YEAR // 3600}h, found {text!r}")
    return seconds


def one_of(option: str, given: Collection[str], known: Collection[str]) -> None:
    """OptionError for a name that is not known, with those that are near."""
    for name in given:
        if name not in known:
            expected = f"expected one of {', '.join(known)}; found {name!r}"
            raise OptionError(f"{option}: {expected}{did_you_mean(name, known)}")


def require_files(*paths: Path | None) -> None:
    """OptionError unless each file of a report that is named can be written, and no two are one."""
    named: dict[str, Path] = {}
    for path in filter(None, paths):
        writable(path)
        other = named.setdefault(os.path.realpath(path), path)
        if other is not path:
            raise OptionError(f"cannot write two forms of a report to {other} and {path}: one file")


def require_lines(log: Path | None, backend: str) -> None:
    """OptionError for a log of lines of a backend that speaks none."""
    if log is not None and not backend.startswith(COMMAND):
        raise OptionError(f"--log-protocol: expected {COMMAND}PROGRAM, found {backend!r}")


def writable(path: Path) -> None:
    """OptionError unless the file can be written, its missing folders created."""
    if str(path) == "-":
        raise OptionError("expected the name of a file, found -: on stdout stands the run")
    try:
        obstacle = _obstacle(path)
    except OSError as error:
        obstacle = str(error.strerror)
    if obstacle:
        raise OptionError(f"cannot write {path}: {obstacle}")


def _obstacle(path: Path) -> str:
    """What keeps a file from being written, or nothing."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        return f"{folder} is no folder that this user may write to"
    return "it is read-only" if path.exists() and not os.access(path, os.W_OK) else ""
