"""Where a report comes from: when, on which host, of which commit, by which command line."""

from __future__ import annotations

import platform
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

COMMIT = ("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40")
SECONDS = 10
"""How long git may take to look at a checkout."""


@dataclass(frozen=True, slots=True)
class Origin:
    """When and where a run began; `commit` is that of the checkout it is in, empty outside of one.

    Two reports that differ in this alone say the same.
    """

    date: str = ""
    host: str = ""
    commit: str = ""
    command: str = ""

    @classmethod
    def now(cls, command: Sequence[str]) -> Origin:
        """That of a run which begins here and now; without words it was called from Python."""
        date = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(date, platform.node(), _commit(), shlex.join(command))


def _commit() -> str:
    """The commit of the working folder, `-dirty` where a file of it has changed since."""
    try:
        done = subprocess.run(COMMIT, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("ascii", "replace").strip() if done.returncode == 0 else ""
