"""A process that hunts the mutants it is told by name."""

from __future__ import annotations

import os
import signal
from dataclasses import asdict
from functools import partial

from uop.conformance.mutants.catalogue import find_mutant
from uop.conformance.mutants.hunt import hunt
from uop.conformance.protocol import wire
from uop.conformance.workers.processes import when_alone
from uop.spec.errors import UopError


def main() -> None:
    """Answer tasks until the other side closes."""
    out = os.dup(1)
    os.dup2(2, 1)
    when_alone(partial(os.kill, os.getpid(), signal.SIGTERM))
    try:
        while True:
            task, _ = wire.read(0)
            wire.write(out, wire.Packer().frame(_answer(task["mutant"])))
    except wire.ClosedError:
        return


def _answer(name: str) -> wire.Json:
    try:
        return {"hunted": asdict(hunt(find_mutant(name)))}
    except UopError as error:
        return {"lost": f"{name}: {error}"}


if __name__ == "__main__":
    main()
