"""The suite judges the project's own OpenCL backend, in short, as a user would ask for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from uop.conformance.run.exits import Exit

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("opencl")
def test_a_smoke_run_conforms(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "uop", "conform", "opencl", "--effort", "smoke"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == Exit.OK, ran.stdout + ran.stderr
