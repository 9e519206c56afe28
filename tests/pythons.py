"""Installs the wheel on each Python that is here, with the newest and the oldest dependencies, and
tries it: `tox -e pythons [-- newest|oldest] [--others]`.

An environment has the wheel alone first, then the extras `opencl` and `suite`. It is removed when
it has been tried.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
OLDEST = ROOT / "tests" / "oldest.txt"
DEPENDENCIES: dict[str, Sequence[str]] = {
    "newest": (),
    "oldest": ("--only-binary", ":all:", "--constraint", str(OLDEST)),
}
"""The options of pip for each choice of dependencies."""
PROBE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
OPS = "ADD,EXP2,REDUCE,LOAD"
"""Ops that a smoke run has programs of at every level."""
EXAMPLE = str(ROOT / "examples" / "softmax.uop")
NO_BACKEND = 3
"""The exit code of `uop conform` where no device builds kernels."""


@dataclass(frozen=True, slots=True)
class Check:
    """A command that must end with 0, and a text that it prints."""

    words: Sequence[str]
    prints: str = ""


ALONE = (
    Check(("-c", "import uop; print(uop.__name__)"), "uop"),
    Check(("-m", "uop", "eval", "u8(200) + u8(100)"), "44 : uint8"),
    Check(("-m", "uop", "run", EXAMPLE), "0.058012214"),
    Check(("-m", "uop", "compile", EXAMPLE), "kernel void"),
)
JUDGED = tuple(
    Check(("-m", "uop", "conform", backend, "--effort", "smoke", "--op", OPS), "conforms")
    for backend in ("interpreter", "opencl")
)


class FailedError(Exception):
    """A command has failed: what it was and what it printed."""


def main() -> int:
    """1 where a check fails, 0 where all pass; a Python that is not here is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dependencies", nargs="*", help="newest, oldest; both without a word")
    parser.add_argument("--others", action="store_true", help="leave out the Python that runs this")
    options = parser.parse_args()
    chosen = options.dependencies or [*DEPENDENCIES]
    if unknown := {*chosen} - {*DEPENDENCIES}:
        parser.error(f"expected newest or oldest, found {', '.join(sorted(unknown))}")
    (wheel,) = os.environ["TOX_PACKAGE"].split(os.pathsep)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = [v for v in SUPPORTED if not (options.others and v == here)]
    found = {version: python for version in wanted if (python := python_of(version))}
    results = [
        result(version, python, dependencies, wheel)
        for version, python in found.items()
        for dependencies in chosen
    ]
    results += [f"Python {version}: not found here" for version in wanted if version not in found]
    if not found:
        results.append("no other Python was found: nothing was tried on one")
    print("\n".join(results))
    return int(any("FAILED" in line for line in results))


def result(version: str, python: Path, dependencies: str, wheel: str) -> str:
    """Try one environment; the line that says how it went."""
    name = f"Python {version} ({python}), {dependencies} dependencies"
    print(f"trying {name}", flush=True)
    begun = time.monotonic()
    try:
        with TemporaryDirectory(prefix="pythons-", ignore_cleanup_errors=True) as folder:
            about = tried(python, Path(folder), DEPENDENCIES[dependencies], wheel)
    except FailedError as error:
        return f"{name}: FAILED: {error}"
    return f"{name}: passed in {time.monotonic() - begun:.0f} s; {about}"


def tried(python: Path, folder: Path, options: Sequence[str], wheel: str) -> str:
    """Install the wheel in an environment, alone and with extras; run the checks of each.

    Returns the version of numpy, and the seconds of the checks. FailedError where one fails.
    """
    run([str(python), "-m", "venv", str(folder / "venv")], folder)
    inside = str(folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    install = [inside, "-m", "pip", "install", "-q", *options]
    seconds = 0.0
    for extras, checks in (("", ALONE), ("[opencl,suite]", JUDGED)):
        run([*install, f"{wheel}{extras}"], folder)
        for check in checks:
            begun = time.monotonic()
            passed(check, inside, folder)
            seconds += time.monotonic() - begun
    version = run([inside, "-c", "import numpy; print(numpy.__version__)"], folder).stdout.strip()
    return f"numpy {version}; the checks took {seconds:.0f} s"


def passed(check: Check, inside: str, folder: Path) -> None:
    """Run a check. FailedError where it fails; one without a device is passed over by name."""
    done = run([inside, "-P", *check.words], folder, allowed=(0, NO_BACKEND))
    if done.returncode == NO_BACKEND:
        print(f"skipped: {' '.join(check.words)}: {done.stderr.strip()}", flush=True)
    elif check.prints not in done.stdout:
        raise FailedError(f"{' '.join(check.words)}: expected {check.prints!r} in:\n{done.stdout}")


def run(
    words: Sequence[str], folder: Path, allowed: Sequence[int] = (0,)
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder of its own. FailedError for an exit code that is not allowed."""
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode not in allowed:
        printed = f"{done.stdout}\n{done.stderr}".strip()
        raise FailedError(f"{' '.join(words)}: exit code {done.returncode}\n{printed}")
    return done


def python_of(version: str) -> Path | None:
    """A Python of this version that can make environments: on PATH, of pyenv, of the system."""
    return next((path for path in candidates(version) if runs(path, version)), None)


def candidates(version: str) -> Iterator[Path]:
    """Where a Python of this version may be, the newest of pyenv first."""
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield Path(on_path)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = root.glob(f"versions/{version}.*/bin/python")
    yield from sorted(found, key=lambda path: path.parts[-3].split("."), reverse=True)
    yield Path("/usr/bin") / f"python{version}"


def runs(python: Path, version: str) -> bool:
    """Whether a path is a Python of this version with `venv`: a shim of pyenv may be none."""
    try:
        done = subprocess.run(
            [python, "-c", PROBE], capture_output=True, encoding="utf-8", check=False
        )
    except OSError:
        return False
    return done.stdout.strip() == version


if __name__ == "__main__":
    sys.exit(main())
