"""The version of the library that is imported, and whether its adapter was written for it."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from uop.spec.errors import UnfitError, UnsupportedError

MOVED = (AttributeError, ImportError, LookupError, NameError, TypeError)
"""The errors of code that expects something else of a library than it has."""


def version_of(name: str) -> str:
    """The version of a distribution. Sources that are imported in its place say their own."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        installed = None
    if installed is not None and (file is None or _holds(installed, Path(file))):
        return installed.version
    if file is None:
        raise UnsupportedError(f"no package {name} is installed")
    version = getattr(module, "__version__", None) or _stated_beside(Path(file).parent)
    return f"{version} (sources)"


def is_tested(version: str, tested: Sequence[str]) -> bool:
    """Whether a version is one of these: `0.14` is every 0.14.x."""
    return any(re.match(rf"{re.escape(known)}(?!\d)", version) for known in tested)


def unfit(library: str, version: str, tested: Sequence[str], why: str) -> str:
    """The sentence that an adapter does not fit its library."""
    return f"the adapter, tested with {', '.join(tested)}, does not fit {library} {version}: {why}"


@contextmanager
def fitting(name: str, tested: Sequence[str]) -> Iterator[None]:
    """Turn errors inside of it to an UnfitError, if the adapter states what it was tested with."""
    try:
        yield
    except MOVED as error:
        if not tested:
            raise
        why = f"it does not start: {type(error).__name__}: {error}"
        raise UnfitError(unfit(name, version_of(name), tested, why)) from error


def _stated_beside(package: Path) -> str:
    """The version in the pyproject.toml of a checkout."""
    project = package.parent / "pyproject.toml"
    text = project.read_text("utf-8") if project.exists() else ""
    return str(tomllib.loads(text).get("project", {}).get("version", "unknown"))


def _holds(installed: Distribution, file: Path) -> bool:
    """Whether a file is one of a distribution; of an editable one the files are elsewhere."""
    is_editable = '"editable": true' in (installed.read_text("direct_url.json") or "")
    return is_editable or file.is_relative_to(str(installed.locate_file("")))
