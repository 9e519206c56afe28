"""The backends that can be judged: entry points of the group `uop.backends`, or `module:Class`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from uop.conformance.protocol import Backend
from uop.spec.errors import UnsupportedError, UopError

GROUP = "uop.backends"


class NoSuchBackendError(UopError):
    """A name that no installed package registers as a backend."""


def names() -> list[str]:
    """Every registered backend, usable here or not."""
    return sorted(entry.name for entry in entry_points(group=GROUP))


def load(name: str) -> Backend:
    """The adapter of that name, not started. UnsupportedError where its package lacks something."""
    try:
        made: Backend = find(name).load()()
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(f"backend {name!r} cannot be imported: {error}") from error
    return made


def find(name: str) -> EntryPoint:
    """The entry point of that name, or written out as `module:Class`. NoSuchBackendError else."""
    for entry in entry_points(group=GROUP, name=name):
        return entry
    if ":" in name:
        return EntryPoint(name, name, GROUP)
    raise NoSuchBackendError(f"no backend {name!r}; known: {', '.join(names())}, or module:Class")
