"""The OpenCL drivers of this machine: those that the system lists, and those that wheels bring.

A loader opens every driver that it finds, and one that crashes there ends the process. So a process
opens one driver, and `trials.py` has opened that one in a process of its own before.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path

VENDORS = "OCL_ICD_VENDORS"
"""The user's list of drivers, in place of the system's."""
FILENAMES = "OCL_ICD_FILENAMES"
"""Names libraries to those loaders that take folders alone from OCL_ICD_VENDORS."""
FOLDERS = tuple(
    Path(root, "etc/OpenCL/vendors") for root in ("/", "/opt/homebrew", "/usr/local")
)  # fmt: skip
"""Where systems list drivers; Homebrew has a root of its own."""
DEFAULTS = {
    # Its own cache has to be written where it is imported, in a home that may be read-only.
    "PYOPENCL_NO_CACHE": "1",
    # Workaround vectorizer-crash: Intel's computes work items one by one.
    "CL_CONFIG_CPU_VECTORIZER_MODE": "1",
}
"""What pyopencl and drivers read, where the user does not say otherwise."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A library that an OpenCL loader opens."""

    library: str
    """A path, or a name that the system finds."""
    source: str
    """What names it: an .icd file, a variable, or the distribution that brings it."""
    variant: str = ""
    """What its devices are called in `opencl:NAME`, where that is known before it is opened."""

    def variables(self) -> dict[str, str]:
        """The environment in which a loader opens this driver alone."""
        return {VENDORS: self.library, FILENAMES: self.library}


@dataclass(frozen=True, slots=True)
class Wheel:
    """A distribution that brings a driver."""

    name: str
    variant: str
    library: str
    """A pattern for the name of its library."""
    windows: str = ""


WHEELS = (
    Wheel("pocl-binary-distribution", "pocl", "libpocl*.so*"),
    Wheel("intel-opencl-rt", "intel", "libintelocl.so", windows="intelocl64.dll"),
)
"""In the order in which they are preferred."""


def listed() -> list[Driver]:
    """The drivers that OCL_ICD_VENDORS names: a folder of .icd files, one of them, or a library.

    Without it, or where it is empty, those of the system.
    """
    if not (named := os.environ.get(VENDORS, "")):
        return [driver for folder in FOLDERS for driver in _in_folder(folder)]
    if Path(named).is_dir():
        return list(_in_folder(Path(named)))
    return (
        list(_in_file(Path(named)))
        if named.endswith(".icd")
        else [Driver(named, f"{VENDORS}={named}")]
    )


def embedded() -> list[Driver]:
    """The drivers that came along in wheels, wherever these are installed."""
    return [driver for wheel in WHEELS for driver in _of_wheel(wheel)]


@contextmanager
def alone(driver: Driver) -> Iterator[None]:
    """Within it the loader, which looks for drivers once in a process, finds this one."""
    variables = driver.variables()
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            _set(name, value)


def open_loader() -> None:
    """Open it before pyopencl does, with the defaults of the environment.

    It also lists the drivers beside it, by names that are found only where pyopencl has opened it.
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    found = loader()
    if found is not None and "pyopencl" not in sys.modules:
        ctypes.CDLL(str(found))


def loader() -> Path | None:
    """The loader inside the wheel of pyopencl; None where it uses that of the system."""
    spec = find_spec("pyopencl")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob(".libs/libOpenCL*"))), None)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _in_folder(folder: Path) -> Iterator[Driver]:
    for path in sorted(folder.glob("*.icd")):
        yield from _in_file(path)


def _in_file(path: Path) -> Iterator[Driver]:
    """The library that an .icd file names in its first line."""
    try:
        library = path.read_text("utf-8", "replace").partition("\n")[0].strip()
    except OSError as error:
        # Kept, so that its name appears among the reasons.
        library = f"{path}: {error.strerror}"
    if library:
        yield Driver(library, str(path))


def _of_wheel(wheel: Wheel) -> Iterator[Driver]:
    pattern = wheel.windows if sys.platform == "win32" else wheel.library
    try:
        found = [file for file in files(wheel.name) or () if pattern and file.match(pattern)]
    except PackageNotFoundError:
        return
    for file in found[:1]:
        located = Path(os.path.normpath(file.locate()))
        elsewhere = Path(sys.prefix, "lib", file.name)
        library = elsewhere if elsewhere.exists() and not located.exists() else located
        yield Driver(str(library), wheel.name, wheel.variant)
