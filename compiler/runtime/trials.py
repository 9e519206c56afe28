"""Tries each OpenCL driver in a separate process, and chooses a device.

A trial takes longer than opening the device, so results are cached until the driver, the processor
or the environment variables of drivers change. If the cache folder cannot be written, every process
tries again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from uop.compiler.runtime.cache import (
    DRIVERS,
    POCL_VARIABLE,
    cache_folder,
    keep,
    refusal_of,
    why_it_keeps_nothing,
)
from uop.compiler.runtime.drivers import DEFAULTS, WHEELS, Driver, embedded, listed, loader
from uop.spec.distribution import importable, own_version
from uop.spec.errors import UnsupportedError

MODULE = "uop.compiler.runtime.opencl"
"""The module that tries a library; it prints the result."""
SECONDS = 120
"""The time limit of a trial."""
PLATFORM_VARIABLE = "UOP_OPENCL_PLATFORM"
NUMBERS = re.compile(r"\d+:\d+")
READ_BY_DRIVERS = ("POCL_", "CL_CONFIG_", "LD_")
PROCESSOR = Path("/proc/cpuinfo")
IDENTITY = ("vendor_id", "cpu family", "model", "stepping", "flags")
SHOWN = 300
INSTALL = 'install one with: pip install "uop[opencl]"; `uop backends` lists other ways'


@dataclass(frozen=True, slots=True)
class TriedDevice:
    """A device in the result of a trial."""

    platform: str
    version: str
    """The version of the platform."""
    variant: str
    """The short name of the platform, as in `opencl:NAME`."""
    number: int
    """The number of the platform among those of the driver."""
    device: int
    """The number of the device on the platform."""
    name: str
    refusal: str
    """The reason why it cannot be used; empty if it builds a kernel and has float64."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of trying a driver: its devices, or the reason why there are none."""

    driver: Driver
    devices: tuple[TriedDevice, ...]
    failure: str = ""

    @property
    def variant(self) -> str:
        """The short name of the platform of its first device."""
        return next((seen.variant for seen in self.devices), self.driver.variant)


@dataclass(frozen=True, slots=True)
class ChosenDevice:
    """A device and its driver."""

    driver: Driver
    seen: TriedDevice


def choose(place: str = "") -> ChosenDevice:
    """The first usable device of a name or number; UnsupportedError if there is none.

    `place` defaults to UOP_OPENCL_PLATFORM, and then to any device.
    """
    place = place or os.environ.get(PLATFORM_VARIABLE, "")
    if NUMBERS.fullmatch(place):
        return _choose_by_number(place)
    refusals: list[str] = []
    for trial in _preferred(place):
        refusals += [f"{trial.driver.source}: {trial.failure}"] if trial.failure else []
        for seen in trial.devices:
            if place not in ("", seen.variant):
                continue
            if not (refusal := _refusal(seen)):
                return ChosenDevice(trial.driver, seen)
            refusals.append(f"{seen.variant} of {trial.driver.source}: {refusal}")
    what = f"OpenCL device {place!r}" if place else "OpenCL device"
    raise UnsupportedError(f"no {what} can be used: " + "; ".join([*refusals, INSTALL]))


def by_number(trials: Iterable[Trial]) -> dict[str, ChosenDevice]:
    """The devices of all drivers by platform number and device number, as 0:1."""
    found: dict[str, ChosenDevice] = {}
    first = 0
    for trial in trials:
        for seen in trial.devices:
            found[f"{first + seen.number}:{seen.device}"] = ChosenDevice(trial.driver, seen)
        first += max((seen.number + 1 for seen in trial.devices), default=0)
    return found


def trial_of(driver: Driver) -> Trial:
    """The cached trial of a driver in its present state; without one the driver is tried."""
    with suppress(OSError, ValueError, TypeError, LookupError):
        path = _place(driver)
        cached = json.loads(path.read_text("utf-8"))
        if cached["content"] == _content(driver):
            trial = _read(driver, cached["found"])
            with suppress(OSError):
                # What was used longest ago goes first.
                os.utime(path)
            return trial
    return try_anew(driver)


def try_anew(driver: Driver) -> Trial:
    """Try a driver and cache the result."""
    with TemporaryDirectory(prefix="uop-trial-", ignore_cleanup_errors=True) as folder:
        if refusal := refusal_of(Path(folder)):
            # This is no fault of the driver, so it is not cached.
            return Trial(driver, (), f"cannot be tried in {folder}: {refusal}")
        trial = _tried(driver, folder)
    found = {"devices": [asdict(seen) for seen in trial.devices], "failure": trial.failure}
    keep(_place(driver), json.dumps({"content": _content(driver), "found": found}))
    return trial


def processor() -> list[str]:
    """The identity of this processor, which drivers build for."""
    try:
        first, _, _ = PROCESSOR.read_text("utf-8", "replace").partition("\n\n")
    except OSError:
        return [platform.machine()]
    return [line for line in first.splitlines() if line.partition("\t")[0] in IDENTITY]


def _preferred(name: str) -> Iterator[Trial]:
    """The system's, those that have wheels too first; then those of wheels. Trials are lazy."""
    ranks = {wheel.variant: rank for rank, wheel in enumerate(WHEELS)}
    system = [trial_of(driver) for driver in listed()]
    yield from sorted(system, key=lambda trial: ranks.get(trial.variant, len(ranks)))
    yield from (trial_of(d) for d in embedded() if name in ("", d.variant))


def _choose_by_number(place: str) -> ChosenDevice:
    found = by_number(trial_of(driver) for driver in (*listed(), *embedded()))
    if place not in found:
        there = ", ".join(f"{number} {each.seen.name}" for number, each in found.items())
        raise UnsupportedError(f"no OpenCL device {place!r}, expected one of: {there or INSTALL}")
    if refusal := _refusal(found[place].seen):
        raise UnsupportedError(f"OpenCL device {place} cannot be used: {refusal}")
    return found[place]


def _refusal(seen: TriedDevice) -> str:
    return seen.refusal or (why_it_keeps_nothing() if seen.variant == "pocl" else "")


def _tried(driver: Driver, folder: str) -> Trial:
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", MODULE, driver.library],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=importable({**os.environ, POCL_VARIABLE: folder}),
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Trial(driver, (), f"builds no kernel within {SECONDS} s")
    if done.returncode:
        return Trial(driver, (), f"ends the process that opens it: {_ending(done)}")
    return _read(driver, json.loads(done.stdout))


def _read(driver: Driver, found: Mapping[str, Any]) -> Trial:
    return Trial(driver, tuple(TriedDevice(**seen) for seen in found["devices"]), found["failure"])


def _ending(done: subprocess.CompletedProcess[str]) -> str:
    """How a failed trial ended: exit code or signal, and the last line of stderr."""
    code, said = done.returncode, done.stderr.strip()
    how = f"exit code {code}" if code > 0 else signal.Signals(-code).name
    return f"{how}: {said.splitlines()[-1][:SHOWN]}" if said else how


def _place(driver: Driver) -> Path:
    """The cache file of a driver."""
    name = hashlib.sha256(repr(driver).encode()).hexdigest()[:16]
    return cache_folder() / DRIVERS / f"{name}.json"


def _content(driver: Driver) -> str:
    """A hash of everything that a trial depends on; a cached trial is valid for the same hash."""
    paths = [driver.library, driver.source, str(loader()), *_other_files(driver)]
    environment = {**DEFAULTS, **os.environ}.items()
    variables = [item for item in environment if item[0].startswith(READ_BY_DRIVERS)]
    about = [
        [_state(path) for path in paths],
        sorted(item for item in variables if item[0] != POCL_VARIABLE),
        processor(),
        [sys.version, own_version()],
    ]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _other_files(driver: Driver) -> list[str]:
    """The other files of the distribution of a driver."""
    try:
        return [str(file.locate()) for file in files(driver.source) or ()]
    except (PackageNotFoundError, ValueError):
        return []


def _state(path: str) -> tuple[str, int, int] | None:
    """Size and time of a file, which change with it; None for a missing file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return path, found.st_size, found.st_mtime_ns
