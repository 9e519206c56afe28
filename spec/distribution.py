"""The version of this distribution, its entry points, and the place it is imported from.

In a clone, installed or not, they come from its `pyproject.toml`; elsewhere from the installed
metadata.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import import_module, metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from uop.spec.errors import UnsupportedError

NAME = "uop"
PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
"""The file of a clone; a wheel has none at this place."""
ADDITIONS = "uop.additions"
"""The entry points by which other packages register ops, dtypes, stages or targets."""


def own_version() -> str:
    """The version of this project."""
    project = _project()
    return str(project["version"]) if project else metadata.version(NAME)


def entry_points(group: str) -> list[EntryPoint]:
    """The entry points of a group: those of a clone, then those of all installed packages."""
    own: dict[str, str] = _project().get("entry-points", {}).get(group, {})
    installed = metadata.entry_points(group=group)
    return [*(EntryPoint(name, value, group) for name, value in own.items()), *installed]


def importable(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a new Python process imports the same code as this one."""
    if not PROJECT.exists():
        return dict(variables)
    folders = [str(PROJECT.parent), *filter(None, [variables.get("PYTHONPATH")])]
    return {**variables, "PYTHONPATH": os.pathsep.join(folders)}


@cache
def _project() -> dict[str, Any]:
    """The table `project` of a clone; empty elsewhere."""
    if not PROJECT.exists():
        return {}
    return dict(tomllib.loads(PROJECT.read_text("utf-8"))["project"])


@cache
def load_additions() -> None:
    """Import the entry points of the group; before anything else that lists ops or dtypes."""
    for entry in sorted(entry_points(ADDITIONS), key=lambda entry: entry.name):
        # The ops of this package come first.
        import_module("uop.spec.ops.declared")
        try:
            entry.load()
        except (ImportError, AttributeError) as error:
            raise UnsupportedError(
                f"addition {entry.name!r} cannot be imported: {error}"
            ) from error
