"""In the root of a clone: what is imported there, and that a test session tests what it should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in the root, which comes first on its import path."""
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONSAFEPATH"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("flags", [(), ("-S",)], ids=["installed", "not installed"])
def test_the_packages_beside_the_front_door_are_found(flags: tuple[str, ...]) -> None:
    done = python(*flags, "-c", "from uop import UOp; import uop.spec; print(uop.spec.__file__)")
    assert done.stdout.strip() == str(ROOT / "spec" / "__init__.py"), done.stderr


def test_an_installed_front_door_looks_nowhere_else() -> None:
    done = python("-P", "-c", "import uop; print(*uop.__path__, sep='\\n')")
    (first, *others) = done.stdout.splitlines()
    assert others in ([], [str(ROOT)])
    assert bool(others) == (Path(first) == ROOT / "uop"), done.stderr


def test_the_command_line_runs_there() -> None:
    done = python("-m", "uop", "eval", "u8(200) + u8(100)")
    assert done.returncode == 0, done.stderr
    assert "44" in done.stdout


def test_a_session_that_would_test_another_uop_fails(tmp_path: Path) -> None:
    here = (str(ROOT / "tests" / "spec" / "test_dtype.py"), "--collect-only", "-q")
    other = python("-P", "-m", "pytest", *here, "--uop", str(tmp_path))
    assert other.returncode == pytest.ExitCode.USAGE_ERROR, other.stdout
    assert f"these tests are for {tmp_path}, and import " in other.stderr
    assert python("-P", "-m", "pytest", *here).returncode == pytest.ExitCode.OK


def test_without_an_installation_it_says_so() -> None:
    script = (
        "import importlib.metadata as m, sys; from uop.__main__ import main; "
        "m.Distribution.discover = classmethod(lambda *_, **__: iter(())); "
        "sys.exit(main(['--version']))"
    )
    done = python("-c", script)
    assert done.returncode == 2, done.stderr
    assert "No package metadata was found for uop; install it with: pip install" in done.stderr
