"""Cleans up behind a process that is killed: `python guard.py FOLDER MARK`, with a pipe as stdin.

Once the other end of the pipe is closed, it kills every process that has the mark in its
environment, where the system shows that, and removes the folder. It starts without site-packages,
in a few milliseconds.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def main(folder: str, mark: str) -> None:
    sys.stdin.buffer.read()
    for place in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (place / "environ").read_bytes().split(b"\0"):
                os.kill(int(place.name), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
