"""In the root of a clone: what is imported there, and that a test session tests what it should."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
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


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("--version", "uop "),
        ("backends", "interpreter     installed"),
        ("explain NEG 5 --dtype int8 --backend interpreter", "interpreter"),
    ],
)
def test_nothing_has_to_be_installed(command: str, said: str) -> None:
    """No metadata is found; what processes are started finds none in the clone either."""
    script = (
        "import importlib.metadata as m, sys; from uop.__main__ import main; "
        "m.Distribution.discover = classmethod(lambda *_, **__: iter(())); "
        f"sys.exit(main({command.split()!r}))"
    )
    done = python("-c", script)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_what_the_clone_says_of_itself() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    script = (
        "from uop.spec.distribution import entry_points, own_version; print(own_version(), "
        "*(f'{e.name}={e.value}' for e in entry_points('uop.backends')))"
    )
    (version, *entries) = python("-c", script).stdout.split()
    assert version == project["version"]
    backends = project["entry-points"]["uop.backends"]
    assert set(entries) == {f"{name}={value}" for name, value in backends.items()}
