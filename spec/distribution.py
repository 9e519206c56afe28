"""What this distribution says of itself: its version, its entry points, where it is imported from.

In a clone, installed or not, its `pyproject.toml` says it; elsewhere the installed metadata.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

NAME = "uop"
PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
"""The file of a clone; a wheel has none at this place."""


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
