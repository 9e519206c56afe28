"""What other packages add to the language: modules that register ops, dtypes, stages or targets."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from uop.spec.distribution import entry_points
from uop.spec.errors import UnsupportedError

GROUP = "uop.additions"


@cache
def load_additions() -> None:
    """Import the entry points of the group; before anything else that lists ops or dtypes."""
    for entry in sorted(entry_points(GROUP), key=lambda entry: entry.name):
        # The ops of this package come first.
        import_module("uop.spec.ops.declared")
        try:
            entry.load()
        except (ImportError, AttributeError) as error:
            raise UnsupportedError(
                f"addition {entry.name!r} cannot be imported: {error}"
            ) from error
