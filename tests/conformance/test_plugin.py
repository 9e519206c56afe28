"""`pytest --pyargs uop.conformance`: judges a backend, and shows what Hypothesis shrank."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of the suite's tests in an empty folder, as an adopter starts it."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
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


def test_a_fault_fails_the_tests_of_its_op_with_the_program(tmp_path: Path) -> None:
    mutant = "mutant:quotients-of-unlike-signs"
    done = suite(tmp_path, "--backend", mutant, "-k", "op-IDIV or op-MOD")
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "IDIV %0, %1" in done.stdout


def test_what_a_backend_lacks_is_skipped_with_the_reason(tmp_path: Path) -> None:
    done = suite(tmp_path, "--backend", "backends_for_tests:Poor", "-k", "op-ADD or op-MUL")
    assert done.returncode == 0, done.stdout
    assert "poor does not support MUL" in done.stdout


def test_an_unknown_backend_is_named(tmp_path: Path) -> None:
    done = suite(tmp_path, "--backend", "nonsense", "-k", "op-ADD")
    assert done.returncode != 0
    assert "no backend 'nonsense'" in done.stdout + done.stderr
