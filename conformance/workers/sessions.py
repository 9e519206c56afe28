"""Starts a backend by its name: an adapter of this project's kind, or any executable.

What a judging process needs later is not imported here: the backend starts meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from uop.conformance.backends import COMMAND, MUTANT, NoSuchBackendError, find
from uop.conformance.mutants.catalogue import find_mutant
from uop.conformance.workers.transport import SERVE, Allowance, Session, Worker

RUN = "uop.conformance.mutants.run"


def known(name: str) -> None:
    """An error for a name that can be no backend."""
    _check_text(name)
    if name.startswith(COMMAND):
        from uop.conformance.workers.command import command_of  # what writes its lines is large

        command_of(name)
    elif name.startswith(MUTANT):
        find_mutant(name.removeprefix(MUTANT))
    else:
        find(name)


def _check_text(name: str) -> None:
    """What stands in a report may be no argument of a process, as all names of a command are."""
    try:
        is_argument = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        is_argument = False
    if not is_argument:
        raise NoSuchBackendError(f"no backend {name!r}: expected no NUL and no half a character")


@contextmanager
def started(name: str, log: Path | None = None) -> Iterator[Session]:
    """The backend of this name, which ends with the block. BackendError where it does not start."""
    with (
        TemporaryDirectory(prefix="uop-", ignore_cleanup_errors=True) as folder,
        closing(start(name, Path(folder), log=log)) as session,
    ):
        yield session


def start(
    name: str, folder: Path, allowance: Allowance | None = None, log: Path | None = None
) -> Session:
    """The backend of this name in a process of its own. BackendError where it does not start.

    The lines of a command are appended to `log`.
    """
    if name.startswith(COMMAND):
        from uop.conformance.protocol.log import ProtocolLog
        from uop.conformance.workers.command import Command  # what writes its lines is large

        return Command(name, folder, allowance, None if log is None else ProtocolLog(log))
    if name.startswith(MUTANT):
        mutant = find_mutant(name.removeprefix(MUTANT))
        return Worker(mutant.backend, folder, allowance, (RUN, mutant.name, SERVE))
    return Worker(name, folder, allowance)
