"""Finds backends by name: entry points of the group `uop.backends`, or `module:Class`.

The backend gets the text behind the name: `opencl:1` is the second device of `opencl`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import EntryPoint

from uop.conformance.protocol.types import Backend
from uop.spec.distribution import entry_points
from uop.spec.errors import UnsupportedError, UopError
from uop.spec.nearest import did_you_mean

GROUP = "uop.backends"
OWN = f"{__name__}."
"""The entry points of this project name something in this package."""
INTERPRETER = "interpreter"
"""The name of the interpreter as a backend."""
MUTANT = "mutant:"
"""The prefix of the name of a mutant."""


class NoSuchBackendError(UopError):
    """No installed package registers a backend of this name."""


def names() -> list[str]:
    """Every registered backend, usable here or not."""
    return sorted(_registered())


def load(name: str) -> Backend:
    """The adapter of that name, not started. NoSuchBackendError; UnsupportedError where it cannot
    be imported.
    """
    entry, argument = find(name)
    try:
        backend: Callable[..., Backend] = entry.load()
    except (ImportError, AttributeError) as error:
        near = did_you_mean(entry.name.partition(":")[0], names())
        message = f"backend {entry.name!r} cannot be imported: {error}{near}"
        raise UnsupportedError(message) from error
    if not callable(backend):
        raise UnsupportedError(f"backend {entry.name!r}: {entry.value} is not a class")
    if not argument:
        return backend()
    if not inspect.signature(backend).parameters:
        raise NoSuchBackendError(f"backend {entry.name!r} takes no argument behind its name")
    return backend(argument)


def find(name: str) -> tuple[EntryPoint, str]:
    """The entry point or `module:Class` of a name, and the argument behind it.

    NoSuchBackendError for any other name.
    """
    first, _, rest = name.partition(":")
    if entry := _registered().get(first):
        return entry, rest
    attribute, _, argument = rest.partition(":")
    reference = f"{first}:{attribute}"
    if EntryPoint.pattern.match(reference):
        return EntryPoint(reference, reference, GROUP), argument
    known = ", ".join(names())
    near = did_you_mean(first, names())
    raise NoSuchBackendError(
        f"no backend {name!r}; known: {known}, module:Class, or command:PROGRAM{near}"
    )


def _registered() -> dict[str, EntryPoint]:
    """The entry points by name: this project's before others, then the first registered."""
    entries = reversed(entry_points(GROUP))
    return {e.name: e for e in sorted(entries, key=lambda e: e.value.startswith(OWN))}
