"""Runs a command as a user would, in a child with little memory and time, and measures it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-P", "-m", "uop")
SECONDS = 60.0
"""The most seconds of a command: a hang takes longer than any busy machine."""
GIB = 1 << 30
MOST = 6 * GIB
"""The most address space of a process. Libraries of numbers reserve some GiB and use little."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, its streams, and the most bytes that it held."""

    code: int
    out: str
    err: str
    peak: int


def uop(
    *words: object,
    folder: Path,
    seconds: float = SECONDS,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> Ended:
    """Run `uop WORDS` in a folder. subprocess.TimeoutExpired where it takes longer."""
    command = [*COMMAND, *map(str, words)]
    return run(command, folder=folder, seconds=seconds, environment=environment, stdin=stdin)


def run(
    command: Sequence[str],
    *,
    folder: Path,
    seconds: float = SECONDS,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> Ended:
    """Run a command. subprocess.TimeoutExpired where it takes longer."""
    with (folder / "peak").open("w+") as peak:
        done = subprocess.run(
            [sys.executable, "-I", "-S", __file__, str(peak.fileno()), *command],
            cwd=folder,
            input=stdin,
            capture_output=True,
            timeout=seconds,
            check=False,
            pass_fds=[peak.fileno()],
            env={**os.environ, **(environment or {})},
        )
        peak.seek(0)
        held = int(peak.read() or 0)
    out, err = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
    return Ended(done.returncode, out, err, held)


def main(peak: int, command: Sequence[str]) -> int:
    """Run a command with limits, and write the most bytes that it or a child of it held."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
    code = subprocess.run(command, check=False).returncode
    held = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    # macOS counts bytes, Linux KiB.
    os.write(peak, str(held * (1 if sys.platform == "darwin" else 1024)).encode())
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
