"""A process that judges: makes the cases it is told by id, and has a worker of its own."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType

from uop.conformance.protocol import wire
from uop.conformance.workers.processes import own_stdout, when_alone
from uop.conformance.workers.sessions import start
from uop.conformance.workers.transport import Allowance
from uop.spec.additions import load_additions
from uop.spec.errors import UopError

JUDGING = "uop.conformance.judging.judging"
"""The module that answers tasks: it takes as long to load as a backend to start."""


def main(
    backend: str, profile: str, seed: str, timeout: str = "", log: str = "", folder: str = ""
) -> None:
    """Say who is judged, then answer tasks until the other side closes."""
    out = own_stdout()
    signal.signal(signal.SIGTERM, _leave)
    when_alone(partial(os.kill, os.getpid(), signal.SIGTERM))
    allowance = Allowance.within(float(timeout) if timeout else None)
    with (
        suppress(wire.ClosedError),
        tempfile.TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as scratch,
        ThreadPoolExecutor(1) as meanwhile,
        ExitStack() as last,
    ):
        # What is told to end while it starts must end what it starts: that is for this thread.
        loading = meanwhile.submit(_judging)
        last.callback(_ignore)
        try:
            worker = start(backend, Path(scratch), allowance, Path(log) if log else None)
        except UopError as error:
            wire.write(out, wire.Refused(str(error)))
            return
        last.callback(worker.close)
        last.callback(_ignore)
        loading.result().answer(worker, profile, int(seed), out, folder)


def _judging() -> ModuleType:
    load_additions()
    return import_module(JUDGING)


def _leave(signal_number: int, frame: FrameType | None) -> None:
    _ignore()
    sys.exit(128 + signal_number)


def _ignore() -> None:
    """Told to end while it ends: nothing is left to do."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


if __name__ == "__main__":
    main(*sys.argv[1:])
