"""A process that hunts the mutants it is told by name."""

from __future__ import annotations

import os
import signal
from functools import partial

from uop.conformance.mutants.catalogue import find_mutant
from uop.conformance.mutants.hunt import Hunt, Hunted, hunt
from uop.conformance.protocol import wire
from uop.conformance.workers.processes import own_stdout, when_alone
from uop.spec.errors import UopError


def main() -> None:
    """Answer tasks until the other side closes."""
    out = own_stdout()
    when_alone(partial(os.kill, os.getpid(), signal.SIGTERM))
    try:
        while True:
            wire.write(out, _answer(wire.read(0, Hunt).mutant))
    except wire.ClosedError:
        return


def _answer(name: str) -> Hunted | wire.Refused:
    try:
        return hunt(find_mutant(name))
    except UopError as error:
        return wire.Refused(f"{name}: {error}")


if __name__ == "__main__":
    main()
