"""A process of the pool: generates cases by id and judges them with its own worker."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

from uop.conformance.protocol import wire
from uop.conformance.workers.processes import Workplace, begin, ends_already
from uop.conformance.workers.sessions import start
from uop.conformance.workers.transport import Allowance
from uop.interpreter.footprint import SMALL, at_most
from uop.spec.distribution import load_additions
from uop.spec.errors import UopError

JUDGING = "uop.conformance.judging.judging"
"""The module that answers tasks. Loading it takes as long as starting a backend."""


def main(
    backend: str,
    profile: str,
    seed: str,
    timeout: str = "",
    log: str = "",
    folder: str = "",
    edition: str = "",
) -> None:
    """Send the hello of the backend, then answer tasks until the run closes the pipe."""
    out = begin()
    allowance = Allowance.within(float(timeout) if timeout else None)
    with (
        suppress(wire.ClosedError),
        at_most(SMALL),
        tempfile.TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as scratch,
        ThreadPoolExecutor(1) as meanwhile,
        ExitStack() as last,
    ):
        # The main thread starts the backend: SIGTERM raises SystemExit there, which ends it.
        loading = meanwhile.submit(_judging)
        last.callback(ends_already)
        try:
            place = Workplace(Path(scratch))
            worker = start(backend, place, allowance, Path(log) if log else None)
        except UopError as error:
            wire.write(out, wire.refusal(error))
            return
        last.callback(worker.close)
        last.callback(ends_already)
        loading.result().answer(worker, backend, profile, int(seed), out, folder, edition)


def _judging() -> ModuleType:
    load_additions()
    return import_module(JUDGING)


if __name__ == "__main__":
    main(*sys.argv[1:])
