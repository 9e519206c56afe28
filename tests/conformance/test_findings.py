"""The findings: each script gives the verdict that it claims, each program is right by the spec."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from ctypes.util import find_library
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from imported import imported

from uop.compiler.runtime.cuda import open_cuda
from uop.compiler.runtime.drivers import DEFAULTS, Driver, embedded, listed
from uop.compiler.runtime.trials import choose, trial_of
from uop.conformance.backends.tinygrad_library import TARGETS
from uop.conformance.finding_runs import (
    FindingScript,
    ScriptRun,
    read,
    runs,
    scripts,
    table,
)
from uop.conformance.finding_systems import FOLDER, GROUPS
from uop.conformance.judging.verdict import Status
from uop.conformance.run.replay import replay
from uop.spec.errors import UnsupportedError

ENVIRONMENTS = {"PYTHON": "PYTHON", "CL": "CL", "CPU": "CPU", "CPU:X86": "X86"}
"""The device for each value of DEV that a script names."""
SCRIPTS = scripts()
NAMES = [f.name for f in SCRIPTS]
DRIVERS = sorted((FOLDER / "opencl").glob("[!_]*.py"))
COMPILERS = sorted((FOLDER / "cuda").glob("[!_]*.py"))
NEEDS = {
    "PYTHON": lambda: find_spec("tinygrad"),
    "CL": lambda: find_spec("tinygrad") and find_spec("pyopencl"),
    "CPU": lambda: find_spec("tinygrad") and shutil.which("clang"),
    "X86": lambda: find_spec("tinygrad") and shutil.which("clang"),
}
BY_COMPILER = {"product_contracted", "sine_contracted", "signed_sum_in_c", "divisions_merged"}
"""Wrong where the compiler or the processor lets it be, as the README says."""
OF_POCL = {
    "half_large_values",
    "half_small_values",
    "half_sums_unrounded",
    "half_fold_in_steps",
    "lowest_modulo_minus_one",
}
"""Wrong on CL where that is PoCL, as the README says; other drivers may be right."""


def test_there_are_enough_and_most_need_ordinary_values_only() -> None:
    ordinary = [f for f in SCRIPTS if f.values == "ordinary values"]
    assert len(SCRIPTS) >= 8
    assert len(ordinary) > len(SCRIPTS) / 2


@pytest.mark.parametrize("f", SCRIPTS, ids=NAMES)
def test_a_script_is_short_and_needs_tinygrad_alone(f: FindingScript) -> None:
    text = (FOLDER / f"{f.name}.py").read_text()
    assert len(text.splitlines()) <= 20
    assert "tinygrad 0.14.0" in text
    assert "By hand: " in text
    assert imported(text) <= {*sys.stdlib_module_names, "tinygrad"}
    assert set(f.devices) <= set(TARGETS)
    assert ENVIRONMENTS[f.environment] in f.devices


@pytest.mark.slow
@pytest.mark.parametrize("environment", sorted({f.environment for f in SCRIPTS}))
def test_a_script_ends_with_1_in_the_environment_that_it_names(environment: str) -> None:
    if not NEEDS[ENVIRONMENTS[environment]]():
        pytest.skip(f"needs tinygrad and what runs {environment} here")
    if environment == "CL" and not find_library("OpenCL"):
        pytest.skip("a script alone needs the OpenCL loader of the system")
    first = next(f for f in SCRIPTS if f.environment == environment)
    run = subprocess.run(
        [sys.executable, FOLDER / f"{first.name}.py"],
        env={**os.environ, "DEV": environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    assert "Error" not in run.stderr


@pytest.mark.parametrize("path", [*DRIVERS, *COMPILERS], ids=lambda path: path.stem)
def test_a_script_on_a_driver_is_short_and_needs_one_library(path: Path) -> None:
    text, folder = path.read_text(), path.parent.name
    assert len(text.splitlines()) <= 20
    assert "By hand: " in text
    assert imported(text) <= {
        *sys.stdlib_module_names,
        {"opencl": "pyopencl", "cuda": "cupy"}[folder],
    }
    assert f"{folder}/{path.name}" in (FOLDER / "README.md").read_text()


@pytest.mark.cuda
@pytest.mark.parametrize("path", COMPILERS, ids=lambda path: path.stem)
def test_a_script_finds_the_compiler_wrong_that_is(path: Path) -> None:
    try:
        about = open_cuda().version
    except UnsupportedError as error:
        pytest.skip(str(error))
    if "NVRTC 13.0" not in about:
        pytest.skip(f"seen with NVRTC 13.0, found {about}")
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    assert "Error" not in run.stderr


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", DRIVERS, ids=lambda path: path.stem)
def test_a_script_finds_the_driver_wrong_that_is(path: Path) -> None:
    drivers = wrong_here(path.read_text())
    if not drivers:
        pytest.skip("the driver that it finds wrong is not here")
    run = run_on(drivers[0], path)
    if run.returncode == 0:
        pytest.skip("the driver is right on this processor")
    assert run.returncode == 1, run.stderr
    assert "Error" not in run.stderr


def test_a_loop_is_built_where_work_items_are_computed_one_by_one() -> None:
    path = FOLDER / "opencl" / "choice_in_a_loop.py"
    drivers = wrong_here(path.read_text())
    if not drivers:
        pytest.skip("the driver that it finds wrong is not here")
    run = run_on(drivers[0], path, **DEFAULTS)
    assert run.returncode == 0, run.stderr


def wrong_here(text: str) -> list[Driver]:
    """The drivers that a script finds wrong, and that build kernels on this machine."""
    if "Intel's CPU runtime 2026.2" in text:
        return [
            driver
            for driver in embedded()
            if driver.variant == "intel" and version(driver.source).startswith("2026.2.")
        ]
    (wrong,) = set(re.findall(r"PoCL \d\.\d", text))
    return [
        trial.driver
        for trial in map(trial_of, (*listed(), *embedded()))
        if any(wrong in seen.version and not seen.refusal for seen in trial.devices)
    ]


def run_on(driver: Driver, path: Path, **defaults: str) -> subprocess.CompletedProcess[str]:
    """A script on the first platform that the loader finds, which is that of the driver."""
    given = {name: v for name, v in os.environ.items() if name not in DEFAULTS}
    return subprocess.run(
        [sys.executable, path],
        env={**given, **driver.variables(), **defaults},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_script_without_facts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("# A title.\n# nothing else\n")
    with pytest.raises(ValueError, match="do not give title"):
        read(path)


def test_each_finding_has_a_program_that_says_how_it_was_scripts() -> None:
    programs = {path.stem: path.read_text() for path in FOLDER.glob("*.uop")}
    assert sorted(programs) == NAMES
    firsts = [text.splitlines()[0] for text in programs.values()]
    assert all(line.startswith("; Found by ") for line in firsts)
    assert sum("the suite as " in line for line in firsts) >= 8


def test_the_interpreter_is_right_on_each_program() -> None:
    replayed = replay([FOLDER], "interpreter")
    assert [r.case for r in replayed] == NAMES
    assert {r.case for r in replayed if r.verdict.status is not Status.PASSED} == set()


@pytest.mark.slow
@pytest.mark.skipif(not NEEDS["PYTHON"](), reason="needs the extra tinygrad")
def test_the_suite_finds_each_by_its_program() -> None:
    failed = {
        r.case for r in replay([FOLDER], "tinygrad:PYTHON") if r.verdict.status is Status.FAILED
    }
    assert failed == {f.name for f in SCRIPTS if "PYTHON" in f.devices}


@pytest.mark.slow
@pytest.mark.parametrize("device", TARGETS)
def test_the_scripts_say_what_the_readme_says(device: str) -> None:
    if not NEEDS[device]():
        pytest.skip(f"needs the extra tinygrad, and for {device} what it builds with")
    # What is wrong everywhere is the same rule everywhere: one device is enough.
    chosen = [f for f in SCRIPTS if device == "PYTHON" or len(f.devices) < len(TARGETS)]
    names = [f.name for f in chosen]
    results = runs(device, [f.path for f in chosen])
    assert list(results) == names
    claimed = {f.name: device in f.devices for f in SCRIPTS}
    of_driver = OF_POCL if device == "CL" and choose().seen.variant != "pocl" else set()
    free = BY_COMPILER | of_driver
    exact = [name for name in names if device in ("PYTHON", "X86") or name not in free]
    assert {name: results[name].wrong for name in exact} == {name: claimed[name] for name in exact}
    shown = rows()
    for name in exact:
        cell = shown[name][list(TARGETS).index(device)]
        assert cell.startswith("**") is results[name].wrong, name


def test_the_table_of_the_readme_names_each() -> None:
    assert sorted(rows()) == NAMES


def test_a_table_shows_what_is_wrong_in_bold() -> None:
    results = {"X": {f.name: ScriptRun(f.kind == "A", "a|b") for f in SCRIPTS}}
    lines = table(results).splitlines()
    heads = [line.removeprefix("### ") for line in lines if line.startswith("#")]
    assert heads == list(GROUPS.values())
    assert lines[2] == "| finding | class | values | X |"
    found = [line for line in lines if line.startswith("| [")]
    assert len(found) == len(SCRIPTS)
    assert all(line.endswith("| **a\\|b** |") for line in found)


def rows() -> dict[str, list[str]]:
    """The cells of the devices in the README, by finding."""
    lines = (FOLDER / "README.md").read_text().splitlines()
    found_rows: dict[str, list[str]] = {}
    for line in lines:
        link = re.search(r"\((\w+)\.py\) \|", line)
        if link and line.startswith("| ["):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            found_rows[link[1]] = [cell.strip() for cell in cells[3:]]
    return found_rows
