"""The process of a backend under test: `python -m uop.conformance.serve NAME`."""

from __future__ import annotations

import math
import os
import signal
import sys
from pathlib import Path

from uop.conformance import wire
from uop.conformance.backends import load
from uop.conformance.protocol import Backend
from uop.spec.errors import UopError

STATM = Path("/proc/self/statm")
GRACE = 10


def main(name: str) -> None:
    """Say hello, then answer programs until the other side closes."""
    # What a backend or its driver prints must not land between the frames.
    out = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # For a backend written as module:Class; at the end, where it hides nothing that is installed.
    sys.path.append(str(Path.cwd()))
    try:
        backend = load(name)
        hello = backend.hello()
    except UopError as error:
        wire.write(out, wire.Packer().frame({"refused": str(error)}))
        return
    greeting = {"hello": wire.hello_to_json(hello), "resident": resident()}
    wire.write(out, wire.Packer().frame(greeting))
    answer(backend, 0, out)


def answer(backend: Backend, requests: int, replies: int) -> None:
    """Run what comes in; ends when the other side has gone."""
    try:
        while True:
            header, body = wire.read(requests)
            # An orphan that hangs ends itself.
            signal.alarm(math.ceil(header["limit"]) + GRACE)
            outcomes = list(backend.run(wire.unpack_programs(header, body)))
            signal.alarm(0)
            wire.write(replies, wire.pack_outcomes(outcomes, resident()))
    except wire.ClosedError:
        return


def resident() -> int:
    """Bytes of memory this process holds; 0 where the system does not say."""
    if not STATM.exists():
        return 0
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(sys.argv[1])
