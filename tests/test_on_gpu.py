"""`benchmarks/on_gpu.sh` from a checkout, where neither this project nor most of its tools are
installed; cupy is a stand-in.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "on_gpu.sh"
THERE = ("numpy", "ml-dtypes", "hypothesis", "pytest", "rich", "click", "psutil")
"""What such a machine has."""
STEPS = ("machine", "tests", "smoke", "figures", "kernels", "default")
STAND_IN = "import sys\nimport cupy_stand_in\nsys.modules[__name__] = cupy_stand_in.MODULES[{!r}]\n"

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("bash") is None, reason="no g++, or no bash"
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A Python with these packages, links to the installed ones, and the stand-in."""
    folder = tmp_path_factory.mktemp("machine")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in closure(*THERE):
        for file in distribution(name).files or ():
            link = site / file.parts[0]
            if file.parts[0] not in ("..", "__pycache__") and not link.exists():
                link.symlink_to(Path(str(distribution(name).locate_file(file.parts[0]))).resolve())
    (site / "cupy_stand_in.py").symlink_to(ROOT / "tests" / "cupy_stand_in.py")
    for module in ("cupy", "cupy_backends.cuda.libs.nvrtc"):
        path = site.joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STAND_IN.format(module))
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}


def closure(*names: str) -> set[str]:
    """Distributions and all that they need."""
    found: set[str] = set()
    wanted = set(names)
    while wanted:
        name = wanted.pop()
        found.add(name)
        needed = map(Requirement, distribution(name).requires or ())
        here = {r.name for r in needed if not r.marker or r.marker.evaluate({"extra": ""})}
        wanted |= here - found
    return found


def summary(folder: Path) -> str:
    (path,) = folder.glob("*-cuda.md")
    return path.read_text()


@pytest.mark.parametrize("module", ["uop", "flint", "pyopencl", "jsonschema", "xdist"])
def test_what_is_not_there(module: str, environment: dict[str, str]) -> None:
    script = f"import importlib.util as u; assert u.find_spec({module!r}) is None"
    subprocess.run(["python3", "-P", "-c", script], env=environment, check=True)


def test_the_suite_runs_in_the_root(environment: dict[str, str], tmp_path: Path) -> None:
    """The processes that it starts find what it found in the folder where it was started."""
    words = ["-m", "uop", "conform", "interpreter", "--op", "ADD", "--level", "op", "-n", "1"]
    words += ["--effort", "smoke", "--output", str(tmp_path)]
    done = subprocess.run(
        ["python3", *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_every_step_passes(environment: dict[str, str], tmp_path: Path) -> None:
    words = ["bash", str(SCRIPT), "--quick", "--output", str(tmp_path)]
    done = subprocess.run(words, cwd="/", env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr + summary(tmp_path)
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        f"{step}: passed" for step in STEPS
    ]
    written = summary(tmp_path)
    for said in ("| GPU | Stand-in |", "| cupy | 14.2.0 |", "GB/s", "GFLOP/s", "verdict: cuda"):
        assert said in written
    for effort in ("smoke", "default"):
        (report,) = tmp_path.glob(f"*-{effort}.json")
        judged = json.loads(report.read_text())
        assert judged["summary"]["programs"] > 20
        assert not judged["summary"]["failed"]


@pytest.mark.slow
def test_a_step_that_fails_stops_no_other(environment: dict[str, str], tmp_path: Path) -> None:
    """Where cupy is missing: the machine has no GPU that this project can use."""
    without = {**environment, "PYTHONPATH": str(tmp_path / "first")}
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "cupy.py").write_text("raise ImportError('libcuda.so is not there')\n")
    words = ["bash", str(SCRIPT), "--quick", "--output", str(tmp_path)]
    done = subprocess.run(words, env=without, capture_output=True, text=True)
    assert done.returncode == 1
    outcomes = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert tuple(outcomes) == STEPS
    assert {name: said.split(",")[0] for name, said in outcomes.items()} == {
        "machine": "exit code 1",
        "tests": "passed",
        "smoke": "exit code 3",
        "figures": "exit code 1",
        "kernels": "exit code 1",
        "default": "exit code 3",
    }
    assert "libcuda.so is not there" in summary(tmp_path)
    assert "| Python | 3." in summary(tmp_path)


def test_what_is_known_is_kept_where_it_is_cut_off(
    environment: dict[str, str], tmp_path: Path
) -> None:
    words = ["bash", str(SCRIPT), "--quick", "--output", str(tmp_path)]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("machine: passed")
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 130
    process.stdout.close()
    written = summary(tmp_path)
    assert "| machine | passed |" in written
    assert "| tests | cut off |" in written
    assert "| GPU | Stand-in |" in written
