"""The origin of a report: date, host, commit and command line."""

from __future__ import annotations

import platform
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

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
