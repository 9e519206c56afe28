"""The backends that can be judged: entry points of the group `uop.backends`, or `module:Class`.

What stands behind the name of an entry point is for the backend: `opencl:1` is its second device.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from uop.conformance.protocol.types import Backend
from uop.spec.errors import UnsupportedError, UopError
from uop.spec.nearest import did_you_mean

GROUP = "uop.backends"
OWN = f"{__name__}."
"""What the entry points of this project name something in."""
COMMAND = "command:"
"""The prefix of a backend's name that is a program which answers lines."""
MUTANT = "mutant:"
"""The prefix of a backend's name that is a mutant of one of ours."""


class NoSuchBackendError(UopError):
    """A name that no installed package registers as a backend."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a name stands for: the entry point, and what the backend is told when it is made."""

    entry: EntryPoint
    argument: str = ""

    def make(self) -> Backend:
        """The adapter, not started. UnsupportedError where its package lacks something."""
        name = self.entry.name
        try:
            made: Callable[..., Backend] = self.entry.load()
        except (ImportError, AttributeError) as error:
            said = f"backend {name!r} cannot be imported: {error}"
            near = did_you_mean(name.partition(":")[0], names())
            raise UnsupportedError(f"{said}{near}") from error
        if not callable(made):
            raise UnsupportedError(f"backend {name!r}: {self.entry.value} is no class")
        if not self.argument:
            return made()
        if not inspect.signature(made).parameters:
            raise NoSuchBackendError(f"backend {name!r} takes nothing behind its name")
        return made(self.argument)


def names() -> list[str]:
    """Every registered backend, usable here or not."""
    return sorted(_registered())


def load(name: str) -> Backend:
    """The adapter of that name, not started. NoSuchBackendError, UnsupportedError."""
    return find(name).make()


def find(name: str) -> Named:
    """The backend of that name, by its entry point or as `module:Class`, and what stands behind.

    NoSuchBackendError for any other name.
    """
    first, _, rest = name.partition(":")
    if entry := _registered().get(first):
        return Named(entry, rest)
    attribute, _, argument = rest.partition(":")
    written = f"{first}:{attribute}"
    if EntryPoint.pattern.match(written):
        return Named(EntryPoint(written, written, GROUP), argument)
    known = ", ".join(names()) or "none, as uop is not installed"
    near = did_you_mean(first, names())
    raise NoSuchBackendError(f"no backend {name!r}; known: {known}, or module:Class{near}")


def _registered() -> dict[str, EntryPoint]:
    """The entry points by name. No package takes a name of this project, nor one of another."""
    entries = reversed(tuple(entry_points(group=GROUP)))
    return {e.name: e for e in sorted(entries, key=lambda e: e.value.startswith(OWN))}
