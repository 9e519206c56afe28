"""`pytest --pyargs uop.conformance`: judges a backend, and shows what Hypothesis shrank."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from uop.conformance.run import Exit

TESTS = Path(__file__).parent
EXAMPLE = f"command:{sys.executable} {TESTS.parents[1] / 'examples' / 'workers' / 'worker.py'}"


def suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of the suite's tests in an empty folder, as an adopter starts it."""
    before = os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{before}"}
    command = [sys.executable, "-P", "-m", "pytest", "--pyargs", "uop.conformance", "-q", "-rs"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_backend_that_conforms(tmp_path: Path) -> None:
    done = suite(tmp_path, "--programs", "2", "-k", "op-ADD or op-PERMUTE or kernel-MIXED")
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


@pytest.mark.slow
def test_a_fault_fails_the_tests_of_its_op_with_the_program(tmp_path: Path) -> None:
    mutant = "mutant:quotients-of-unlike-signs"
    done = suite(tmp_path, "--backend", mutant, "-k", "op-IDIV or op-MOD")
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "IDIV %0, %1" in done.stdout
    assert re.search(r"^%2 = IDIV .*\n(input .*\n)*accept 0 = ", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_what_a_backend_lacks_is_skipped_with_the_reason(tmp_path: Path) -> None:
    done = suite(tmp_path, "--backend", "backends_for_tests:Poor", "-k", "op-ADD or op-MUL")
    assert done.returncode == 0, done.stdout
    assert "poor does not support MUL" in done.stdout


@pytest.mark.slow
def test_a_backend_of_one_dtype_is_judged_on_it(tmp_path: Path) -> None:
    done = suite(tmp_path, "--backend", EXAMPLE, "-k", "op-ADD or op-XOR", "--programs", "2")
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 skipped" in done.stdout


def test_a_run_without_a_judged_program_is_not_green(tmp_path: Path) -> None:
    done = suite(tmp_path, "--backend", EXAMPLE, "-k", "op-XOR")
    assert done.returncode == Exit.INCONCLUSIVE, done.stdout
    assert "inconclusive, no program was judged" in done.stdout


@pytest.mark.slow
def test_a_crash_is_told(tmp_path: Path) -> None:
    done = suite(tmp_path, "--backend", "backends_for_tests:Exiting", "-k", "op-SIN")
    assert done.returncode == 1, done.stdout
    assert "crash: the process ended with exit code 7" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "2"])
def test_an_unknown_backend_is_named_and_ends_the_run(tmp_path: Path, processes: str) -> None:
    done = suite(tmp_path, "--backend", "nonsense", "-n", processes, "-k", "op")
    assert done.returncode == 2
    assert "Interrupted: no backend 'nonsense'" in done.stdout
    assert "passed" not in done.stdout
