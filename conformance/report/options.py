"""What a report says of its run: options, and the origin: date, host, commit, command line."""

from __future__ import annotations

import platform
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from uop.conformance.suite.case import LEVELS


@dataclass(frozen=True, slots=True)
class ReportedOptions:
    """The options of a run in its report; `exported` and `outputs` are options of `uop judge`.

    None selects all; `examples` is per level, op, dtype and group.
    """

    backend: str
    seed: int = 0
    levels: tuple[str, ...] = LEVELS
    ops: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    cases: tuple[str, ...] = ()
    examples: int | None = None
    effort: str = "default"
    seconds: float | None = None
    timeout: float | None = None
    """Seconds until a start, a program of a command or a batch of an adapter counts as a hang."""
    profile: str = ""
    """Knobs, `strict` or `observed`. By default the profile that the backend declares, else
    `observed`."""
    folder: Path | None = None
    """The folder of the user's own cases."""
    known: Path | None = None
    """The file of known failures."""
    exported: Path | None = None
    outputs: Path | None = None
    skip_ops: tuple[str, ...] = ()
    skip_dtypes: tuple[str, ...] = ()
    with_ops: tuple[str, ...] | None = None
    """Only the cases whose programs hold one of these ops, of all that the backend lists."""
    skip_causes: tuple[str, ...] = ()
    """The signatures of failures that do not fail the run."""
    shard: str = ""
    """The part of the cases that a run judges: `3/8` is the third of eight, empty means all. Of a
    fuzz run each part has a stream of its own; over a cluster `3` is the one of this number."""
    edition: str = ""
    """The edition of the user's own cases; empty where they name it, or are in the core."""


def in_words(value: object) -> str:
    """The value of an option as it is on the command line."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


COMMIT = ("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40")
SECONDS = 10
"""The timeout of git."""


@dataclass(frozen=True, slots=True)
class Origin:
    """When and where a run started; `commit` is empty outside of a checkout.

    Reports that differ only in this have the same results.
    """

    date: str = ""
    host: str = ""
    commit: str = ""
    command: str = ""

    @classmethod
    def now(cls, command: Sequence[str]) -> Origin:
        """The origin of a run that starts now; `command` is empty if it was called from Python."""
        date = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(date, platform.node(), _commit(), shlex.join(command))


def _commit() -> str:
    """The commit of the working folder, with `-dirty` if files have changed."""
    try:
        done = subprocess.run(COMMIT, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("ascii", "replace").strip() if done.returncode == 0 else ""
