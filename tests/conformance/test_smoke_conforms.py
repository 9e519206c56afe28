"""Smoke runs that must conform, as a user would type them: of the project's own OpenCL backend, and
of the adversary, which takes every freedom that the spec leaves.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from uop.conformance.run import Exit

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("opencl")
def test_opencl_conforms(tmp_path: Path) -> None:
    conforms(tmp_path, "opencl")


@pytest.mark.parametrize("seed", range(3))
def test_the_adversary_is_never_accused(tmp_path: Path, seed: int) -> None:
    conforms(tmp_path, "adversary", "--seed", str(seed))


def conforms(tmp_path: Path, *words: str) -> None:
    command = [sys.executable, "-P", "-m", "uop", "conform", *words, "--effort", "smoke"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == Exit.OK, ran.stdout + ran.stderr
