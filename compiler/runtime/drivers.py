"""Finds the OpenCL drivers of this machine: those of the system and those in wheels.

A loader opens every driver that it finds, and a driver that crashes ends the process. So a process
opens a single driver, and only after `trials.py` has tried it in a separate process.
"""

from __future__ import annotations

import csv
import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

VENDORS = "OCL_ICD_VENDORS"
"""The variable with the user's list of drivers, which replaces that of the system."""
FILENAMES = "OCL_ICD_FILENAMES"
"""The variable that names libraries, for loaders that take only folders in OCL_ICD_VENDORS."""
FOLDERS = tuple(
    Path(root, "etc/OpenCL/vendors") for root in ("/", "/opt/homebrew", "/usr/local")
)  # fmt: skip
"""The folders in which systems list drivers; Homebrew has its own root."""
DEFAULTS = {
    # pyopencl would write a cache on import, in a home that may be read-only.
    "PYOPENCL_NO_CACHE": "1",
    # Workaround vectorizer-crash: Intel's driver computes work items one by one.
    "CL_CONFIG_CPU_VECTORIZER_MODE": "1",
}
"""Defaults of environment variables that pyopencl and drivers read."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A library that an OpenCL loader opens."""

    library: str
    """A path, or a name that the system finds."""
    source: str
    """Its origin: an .icd file, a variable, or the distribution that contains it."""
    variant: str = ""
    """The name of its devices in `opencl:NAME`, if it is known before the driver is opened."""

    def variables(self) -> dict[str, str]:
        """The environment in which a loader opens only this driver."""
        return {VENDORS: self.library, FILENAMES: self.library}


@dataclass(frozen=True, slots=True)
class Wheel:
    """A distribution that contains a driver."""

    name: str
    variant: str
    library: str
    """A pattern for the name of its library."""
    windows: str = ""


WHEELS = (
    Wheel("intel-opencl-rt", "intel", "libintelocl.so", windows="intelocl64.dll"),
    Wheel("pocl-binary-distribution", "pocl", "libpocl*.so*"),
)
"""The supported distributions in order of preference: the one that builds kernels fastest is first.
"""


def listed() -> list[Driver]:
    """The drivers that OCL_ICD_VENDORS names by a folder of .icd files, an .icd file or a library.

    If it is unset or empty, those of the system.
    """
    if not (named := os.environ.get(VENDORS, "")):
        return [driver for folder in FOLDERS for driver in _in_folder(folder)]
    if Path(named).is_dir():
        return list(_in_folder(Path(named)))
    if named.endswith(".icd"):
        return list(_in_file(Path(named)))
    return [Driver(named, f"{VENDORS}={named}")]


def embedded() -> list[Driver]:
    """The drivers in installed wheels."""
    return [driver for wheel in WHEELS for driver in _of_wheel(wheel)]


@contextmanager
def alone(driver: Driver) -> Iterator[None]:
    """Let the loader find only this driver inside the block. It searches once per process."""
    variables = driver.variables()
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def open_loader() -> None:
    """Open the loader before pyopencl does, with the defaults of the environment.

    Otherwise it would also list the drivers in its folder, by names that only work inside pyopencl.
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    found = loader()
    if found is not None and "pyopencl" not in sys.modules:
        ctypes.CDLL(str(found))


def loader() -> Path | None:
    """The loader inside the wheel of pyopencl; None if pyopencl uses the loader of the system."""
    spec = find_spec("pyopencl")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob(".libs/libOpenCL*"))), None)


def _in_folder(folder: Path) -> Iterator[Driver]:
    for path in sorted(folder.glob("*.icd")):
        yield from _in_file(path)


def _in_file(path: Path) -> Iterator[Driver]:
    """The library in the first line of an .icd file."""
    try:
        library = path.read_text("utf-8", "replace").partition("\n")[0].strip()
    except OSError as error:
        # The unreadable file stays in the list, so that error messages name it.
        library = f"{path}: {error.strerror}"
    if library:
        yield Driver(library, str(path))


def _of_wheel(wheel: Wheel) -> Iterator[Driver]:
    pattern = wheel.windows if sys.platform == "win32" else wheel.library
    try:
        installed = distribution(wheel.name)
    except PackageNotFoundError:
        return
    # `files` leaves out what is recorded and missing, from Python 3.12 on.
    rows = csv.reader((installed.read_text("RECORD") or "").splitlines())
    found = [row[0] for row in rows if row and pattern and PurePosixPath(row[0]).match(pattern)]
    for file in found[:1]:
        located = Path(os.path.normpath(str(installed.locate_file(file))))
        elsewhere = Path(sys.prefix, "lib", located.name)
        library = elsewhere if elsewhere.exists() and not located.exists() else located
        yield Driver(str(library), wheel.name, wheel.variant)
