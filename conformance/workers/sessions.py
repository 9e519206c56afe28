"""Starts a backend by its name: an adapter in Python, a mutant, or any executable.

Imports little: the backend starts while a judging process loads the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from uop.conformance.backends import MUTANT, NoSuchBackendError, find
from uop.conformance.checks import COMMAND
from uop.conformance.mutants.catalogue import find_mutants
from uop.conformance.workers.forked import SERVE
from uop.conformance.workers.processes import Workplace, workplace
from uop.conformance.workers.transport import Allowance, Session, Worker

RUN = "uop.conformance.mutants.run"


def known(name: str) -> None:
    """Check the name of a backend. NoSuchBackendError, NoSuchMutantError."""
    _check_text(name)
    if name.startswith(COMMAND):
        from uop.conformance.workers.command import command_of  # slow to import

        command_of(name)
    elif name.startswith(MUTANT):
        find_mutants(name.removeprefix(MUTANT))
    else:
        find(name)


def _check_text(name: str) -> None:
    """NoSuchBackendError for a name that cannot be an argument of a process."""
    try:
        is_argument = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        is_argument = False
    if not is_argument:
        raise NoSuchBackendError(f"no backend {name!r}: expected no NUL and no half a character")


@contextmanager
def started(
    name: str, log: Path | None = None, allowance: Allowance | None = None
) -> Iterator[Session]:
    """Start a backend, and end it with the block. BackendError where it does not start."""
    with workplace() as place, closing(start(name, place, allowance, log)) as session:
        yield session


def start(
    name: str, place: Workplace, allowance: Allowance | None = None, log: Path | None = None
) -> Session:
    """Start a backend in its own process. BackendError where it does not start.

    `log` gets the lines to and from a command.
    """
    if name.startswith(COMMAND):
        from uop.conformance.protocol.log import ProtocolLog
        from uop.conformance.workers.command import Command  # slow to import

        return Command(name, place, allowance, None if log is None else ProtocolLog(log))
    if name.startswith(MUTANT):
        names = name.removeprefix(MUTANT)
        backend = find_mutants(names)[0].backend
        return Worker(backend, place, allowance, (RUN, names, SERVE))
    return Worker(name, place, allowance)
