"""The OpenCL drivers: which there are, each tried in a process of its own, which one is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from uop.compiler.runtime import cache, drivers, trials
from uop.compiler.runtime.drivers import VENDORS, Driver, alone, embedded, listed, loader
from uop.compiler.runtime.opencl import open_opencl
from uop.compiler.runtime.trials import Trial, TriedDevice, by_number, choose, trial_of, try_anew
from uop.spec.errors import UnsupportedError

ROOT = Path(__file__).parents[2]
WHEELS = embedded()
needs_a_wheel = pytest.mark.skipif(not WHEELS, reason="no driver comes as a wheel for this machine")
SAYS_WHICH = """
import sys
import numpy as np
from uop import compile, parse
from uop.compiler.runtime.opencl import open_opencl
root = parse("%0 = PARAM [3] {slot=0, dtype=int8}\\n%1 = NEG %0\\n")
assert compile(root).run({0: np.array([1, 2, -128], np.int8)}).tolist() == [-1, -2, -128]
print(open_opencl(*sys.argv[1:]).variant)
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("UOP_CACHE", raising=False)
    monkeypatch.delenv(VENDORS, raising=False)
    monkeypatch.delenv(trials.PLATFORM_VARIABLE, raising=False)


def which(**variables: str) -> subprocess.CompletedProcess[str]:
    """A program run in a process of its own, and the driver that it ran on."""
    return subprocess.run(
        [sys.executable, "-P", "-c", SAYS_WHICH],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def seen(variant: str = "pocl", number: int = 0, device: int = 0, refusal: str = "") -> TriedDevice:
    return TriedDevice(
        variant.upper(), "1.0", variant, number, device, f"{variant} {device}", refusal
    )


@pytest.fixture
def cut_off(tmp_path: Path) -> Path:
    """A library without its second half: the process that opens it is ended by a signal."""
    whole = loader()
    if whole is None:
        pytest.skip("pyopencl brings no loader to cut off")
    data = whole.read_bytes()
    path = tmp_path / "libcut.so"
    path.write_bytes(data[: len(data) // 2])
    return path


# Which there are.


def test_the_list_of_the_user_replaces_that_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b.icd").write_text("libb.so\n")
    (tmp_path / "a.icd").write_text("/opt/liba.so")
    (tmp_path / "empty.icd").write_text("\n")
    (tmp_path / "other.txt").write_text("libc.so\n")
    monkeypatch.setattr(drivers, "FOLDERS", (tmp_path / "absent", tmp_path))
    both = [
        Driver("/opt/liba.so", str(tmp_path / "a.icd")),
        Driver("libb.so", str(tmp_path / "b.icd")),
    ]
    assert listed() == both
    monkeypatch.setenv(VENDORS, str(tmp_path / "b.icd"))
    assert listed() == both[1:]
    monkeypatch.setenv(VENDORS, "libb.so")
    assert listed() == [Driver("libb.so", f"{VENDORS}=libb.so")]
    (tmp_path / "none").mkdir()
    monkeypatch.setenv(VENDORS, str(tmp_path / "none"))
    assert listed() == []
    monkeypatch.setenv(VENDORS, "")
    assert listed() == both


def test_an_icd_file_that_cannot_be_read_is_among_the_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VENDORS, str(tmp_path / "absent.icd"))
    (driver,) = listed()
    assert driver.source == str(tmp_path / "absent.icd")
    assert "No such file" in driver.library


def test_the_environment_is_as_before_when_a_driver_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VENDORS, "mine")
    monkeypatch.delenv(drivers.FILENAMES, raising=False)
    with alone(Driver("libb.so", "test")):
        assert os.environ[VENDORS] == os.environ[drivers.FILENAMES] == "libb.so"
    assert os.environ[VENDORS] == "mine"
    assert drivers.FILENAMES not in os.environ


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Install a distribution of Intel's name, of which one file is known, in a folder."""
    site = tmp_path / "there" / "lib" / "python3" / "site-packages"

    def installed(record: str) -> Path:
        info = site / "intel_opencl_rt-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: intel-opencl-rt\nVersion: 1\n")
        (info / "RECORD").write_text(f"{record},,\n")
        monkeypatch.setattr(sys, "path", [str(site), *sys.path])
        monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(drivers, "WHEELS", drivers.WHEELS[:1])
        return site

    return installed


def test_a_driver_is_found_where_its_wheel_is_installed(
    install: Callable[[str], Path], tmp_path: Path
) -> None:
    """As in a virtual environment, and with `--user`."""
    install("../../libintelocl.so")
    library = tmp_path / "there" / "lib" / "libintelocl.so"
    library.write_bytes(b"")
    assert embedded() == [Driver(str(library), "intel-opencl-rt", "intel")]


def test_a_driver_is_found_below_the_prefix(install: Callable[[str], Path], tmp_path: Path) -> None:
    """Where what is recorded is not there, as with `--target`."""
    install("../../libintelocl.so")
    library = tmp_path / "prefix" / "lib" / "libintelocl.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    assert embedded() == [Driver(str(library), "intel-opencl-rt", "intel")]


def test_half_an_installation_says_which_file_is_missing(install: Callable[[str], Path]) -> None:
    """Also in Python 3.12 and later, and with its `importlib_metadata`: they list no such file."""
    with suppress(ModuleNotFoundError):
        import_module("importlib_metadata")
    install("../../libintelocl.so")
    (driver,) = embedded()
    trial = trial_of(driver)
    assert not trial.devices
    assert "libintelocl.so: cannot open shared object file" in trial.failure


@pytest.mark.parametrize(
    ("system", "machine", "brought"),
    [
        ("linux", "x86_64", {"pocl-binary-distribution", "intel-opencl-rt", "intel-cmplr-lib-rt"}),
        ("win32", "AMD64", {"intel-opencl-rt", "intel-cmplr-lib-rt"}),
        ("linux", "aarch64", set()),
        ("darwin", "arm64", set()),
        ("darwin", "x86_64", set()),
    ],
)
def test_the_extra_brings_drivers_where_there_are_wheels_of_them(
    system: str, machine: str, brought: set[str]
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    here = {"sys_platform": system, "platform_machine": machine}
    found = [Requirement(line) for line in project["optional-dependencies"]["opencl"]]
    names = [r.name for r in found if r.marker is None or r.marker.evaluate(here)]
    assert sorted(names) == sorted({"pyopencl", *brought})


# Each tried in a process of its own.


def test_a_driver_that_crashes_is_passed_over_by_name(cut_off: Path, tmp_path: Path) -> None:
    folder = tmp_path / "vendors"
    folder.mkdir()
    (folder / "cut.icd").write_text(f"{cut_off}\n")
    trial = try_anew(Driver(str(cut_off), str(folder / "cut.icd")))
    assert trial.failure.startswith("ends the process that opens it: SIG")
    if WHEELS:
        done = which(**{VENDORS: str(folder)})
        assert done.stdout.strip() in {driver.variant for driver in WHEELS}, done.stderr


def test_a_driver_that_crashes_is_among_the_reasons(
    cut_off: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VENDORS, str(cut_off))
    monkeypatch.setattr(trials, "embedded", list)
    with pytest.raises(UnsupportedError, match=r"libcut.so: ends the process that opens it: SIG"):
        choose()


def test_a_driver_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SECONDS", 0.001)
    assert "builds no kernel within" in try_anew(Driver("libany.so", "test")).failure


@needs_a_wheel
def test_what_came_out_is_kept_until_the_driver_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libpart.so"
    library.write_bytes(b"")
    driver = Driver(str(library), "test")
    first = trial_of(driver)
    tries: list[Driver] = []

    def tried(driver: Driver, folder: str) -> Trial:
        tries.append(driver)
        return first

    monkeypatch.setattr(trials, "_tried", tried)
    assert trial_of(driver) == first
    assert not tries
    library.write_bytes(b"more")
    trial_of(driver)
    monkeypatch.setenv("POCL_MAX_PTHREAD_COUNT", "1")
    trial_of(driver)
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))
    trial_of(driver)
    assert tries == [driver] * 2


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kept", ["", "{", "[]", '{"content": 1}', "\0", '{"content": "?"}'])
def test_what_is_kept_and_damaged_is_tried_anew(
    kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver("libabsent.so", "test")
    first = trial_of(driver)
    (path,) = (tmp_path / "cache" / "uop" / "drivers").iterdir()
    path.write_text(kept)
    assert trial_of(driver) == first
    assert json.loads(path.read_text())["found"]["failure"] == first.failure


def test_what_is_kept_and_cut_off_is_tried_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it ends; and it is read where no file can be written."""
    driver = Driver("libabsent.so", "test")
    first = trial_of(driver)
    (path,) = (tmp_path / "cache" / "uop" / "drivers").iterdir()
    whole = path.read_text()
    tries: list[Driver] = []

    def tried(driver: Driver, folder: str) -> Trial:
        tries.append(driver)
        return first

    monkeypatch.setattr(trials, "_tried", tried)
    for length in range(0, len(whole), 7):
        path.write_text(whole[:length])
        assert trial_of(driver) == first
        assert len(tries) == length // 7 + 1
        assert path.read_text() == whole
    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", os.rmdir)
        assert trial_of(driver) == first
    os.utime(path, (1000, 1000))
    tries.clear()
    assert trial_of(driver) == first
    assert not tries
    assert path.stat().st_mtime > 1000, "it was used now"


def test_without_room_for_a_trial_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "refusal_of", lambda folder: "No space left on device")
    trial = trial_of(Driver("libany.so", "test"))
    assert trial.failure.endswith(": No space left on device")
    assert not (tmp_path / "cache").exists()


# Which one is used.


@pytest.mark.slow
@needs_a_wheel
@pytest.mark.parametrize("driver", WHEELS, ids=lambda driver: driver.variant)
def test_each_driver_of_a_wheel_runs_by_its_name(driver: Driver) -> None:
    trial = trial_of(driver)
    refusals = [trial.failure, *(each.refusal for each in trial.devices)]
    if any(refusals):
        pytest.skip(f"{driver.source} cannot be used here: {'; '.join(filter(None, refusals))}")
    done = which(UOP_OPENCL_PLATFORM=driver.variant)
    assert done.stdout.strip() == driver.variant, done.stderr


def trials_of(monkeypatch: pytest.MonkeyPatch, *system: Trial, wheels: tuple[Trial, ...]) -> None:
    """Let these be the drivers of the machine."""
    known = {trial.driver: trial for trial in (*system, *wheels)}
    monkeypatch.setattr(trials, "listed", lambda: [trial.driver for trial in system])
    monkeypatch.setattr(trials, "embedded", lambda: [trial.driver for trial in wheels])
    monkeypatch.setattr(trials, "trial_of", lambda driver: known[driver])
    monkeypatch.setattr(trials, "why_it_keeps_nothing", str)


GPU = Trial(Driver("libgpu.so", "gpu.icd"), (seen("gpu"), seen("gpu", 0, 1), seen("gpu2", 1, 0)))
OTHER_POCL = Trial(Driver("libpocl.so.2", "pocl.icd"), (seen("pocl"),))
POCL = Trial(Driver("/w/libpocl.so", "pocl-binary-distribution", "pocl"), (seen("pocl"),))
REFUSES = Trial(POCL.driver, (seen("pocl", refusal="error: unknown target CPU 'generic'"),))
INTEL = Trial(Driver("/w/libintelocl.so", "intel-opencl-rt", "intel"), (seen("intel"),))
HALF = Trial(INTEL.driver, (), "libsvml.so: cannot open shared object file")


@pytest.mark.parametrize(
    ("system", "first"), [((GPU, OTHER_POCL), OTHER_POCL), ((GPU,), GPU), ((), INTEL)]
)
def test_the_systems_come_before_those_of_wheels(
    system: tuple[Trial, ...], first: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials_of(monkeypatch, *system, wheels=(INTEL, POCL))
    assert choose().driver == first.driver


def test_a_device_is_chosen_by_name_and_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    trials_of(monkeypatch, GPU, OTHER_POCL, wheels=(INTEL, POCL))
    assert choose("pocl").driver == OTHER_POCL.driver
    assert choose("intel").driver == INTEL.driver
    assert choose("gpu2").seen.number == 1
    assert list(by_number([GPU, OTHER_POCL, INTEL, POCL])) == [
        "0:0", "0:1", "1:0", "2:0", "3:0", "4:0",
    ]  # fmt: skip
    assert choose("4:0").driver == POCL.driver


def test_a_driver_that_builds_nothing_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """As PoCL does on a processor that its LLVM does not know."""
    trials_of(monkeypatch, wheels=(REFUSES, INTEL))
    assert choose().driver == INTEL.driver
    with pytest.raises(UnsupportedError, match="0:0 cannot be used: error: unknown target CPU"):
        choose("0:0")
    with pytest.raises(UnsupportedError, match=r"'pocl' can be used: pocl of pocl-binary.*generic"):
        choose("pocl")
    with pytest.raises(UnsupportedError, match="expected one of: 0:0 pocl 0, 1:0 intel 0"):
        choose("9:9")


def test_where_none_is_left_each_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    trials_of(monkeypatch, wheels=(REFUSES, HALF))
    with pytest.raises(UnsupportedError, match=r"unknown target.*libsvml.*pip install") as caught:
        choose()
    assert "no OpenCL device can be used" in str(caught.value)


def test_a_driver_of_a_wheel_is_not_tried_before_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trials_of(monkeypatch, wheels=(INTEL, POCL))
    monkeypatch.setattr(trials, "trial_of", {INTEL.driver: INTEL}.__getitem__)
    assert choose().driver == INTEL.driver


@pytest.mark.usefixtures("opencl")
def test_a_process_opens_one_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    trials_of(monkeypatch, wheels=(INTEL,))
    with pytest.raises(UnsupportedError, match=r"one OpenCL driver, .* not INTEL"):
        open_opencl()


# Where PoCL keeps its kernels.


def test_pocl_is_passed_over_where_the_folder_of_the_user_takes_no_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    full.write_text("no folder")
    monkeypatch.setenv(cache.POCL_VARIABLE, str(full))
    room = trials.why_it_keeps_nothing
    trials_of(monkeypatch, wheels=(POCL, INTEL))
    monkeypatch.setattr(trials, "why_it_keeps_nothing", room)
    assert choose().driver == INTEL.driver
    with pytest.raises(UnsupportedError, match=r"POCL_CACHE_DIR=.*full: "):
        choose("pocl")


@pytest.mark.slow
@needs_a_wheel
def test_in_a_home_that_cannot_be_written_kernels_are_built(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    home = str(tmp_path / "home")
    done = which(HOME=home, XDG_CACHE_HOME="", POCL_CACHE_DIR="")
    assert done.stdout.strip() in {driver.variant for driver in WHEELS}, done.stderr
