"""Runs the scripts of `findings/` on each device of tinygrad, and writes the table of their README.

The process of a device loads tinygrad once; each script has a child of it, so that a crash is seen.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from uop.conformance.backends.tinygrad import TARGETS, load
from uop.spec.errors import UnsupportedError

FOLDER = Path(__file__).parent / "findings"
TITLE = re.compile(r"# (?P<title>.+)\.")
FACTS = re.compile(r"# Class (?P<kind>[AB]), (?P<how>[^;]+); (?P<values>.+)\. Wrong on (?P<on>.+)$")
NAMED = re.compile(r"# of tinygrad [0-9.]+ \(.+\)\. DEV=(?P<environment>\S+) ends with 1[.;].*")
ENVIRONMENTS = {"PYTHON": "PYTHON", "CL": "CL", "CPU": "CPU", "CPU:X86": "X86"}
"""The devices by what a script names them, the value of DEV."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the first lines of a script say."""

    name: str
    title: str
    kind: str
    how: str
    values: str
    devices: tuple[str, ...]
    environment: str
    """The value of DEV under which it is said to be wrong."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a script ended on a device: None where something was raised; and its last line."""

    wrong: bool | None
    said: str


def found() -> list[Found]:
    """Every finding, by name. ValueError where the first lines of a script say less."""
    paths = sorted(path for path in FOLDER.glob("*.py") if path.stem != "__init__")
    return [read(path) for path in paths]


def read(path: Path) -> Found:
    """One finding by its script."""
    first, second, third, *_ = [*path.read_text("utf-8").splitlines(), "", "", ""]
    title, facts, named = TITLE.fullmatch(first), FACTS.fullmatch(second), NAMED.fullmatch(third)
    if title is None or facts is None or named is None:
        raise ValueError(f"{path}: the first lines are no title, no facts and no environment")
    devices = tuple(facts["on"].split(", "))
    kind, how, values = facts["kind"], facts["how"], facts["values"]
    return Found(path.stem, title["title"], kind, how, values, devices, named["environment"])


def runs(device: str, names: Iterable[str]) -> dict[str, Run]:
    """These scripts on a device. UnsupportedError where the device cannot be used here."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "uop.conformance.finding_runs", device, *names],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise UnsupportedError(f"tinygrad on {device}: {done.stderr.strip()[-300:]}")
    return {name: Run(*run) for name, run in json.loads(done.stdout.splitlines()[-1]).items()}


def run_here(paths: Iterable[Path]) -> dict[str, Run]:
    """Each script in a child of this process, which has tinygrad loaded and no device open."""
    return {path.stem: _in_child(path) for path in paths}


def _in_child(path: Path) -> Run:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(_run(path)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return Run(*json.loads(told)) if told else Run(None, "the process ended")


def _run(path: Path) -> tuple[bool | None, str]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        lines = said.getvalue().strip().splitlines()
        return bool(end.code), lines[-1] if lines else ""
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what the script did
        return None, f"{type(error).__name__}: {error}"
    return None, "no verdict"


def table(results: Mapping[str, Mapping[str, Run]]) -> str:
    """The rows of the README: what each device gave, in bold where it is wrong."""
    lines = [
        f"| finding | class | values | {' | '.join(results)} |",
        f"|---|---|---|{'---|' * len(results)}",
    ]
    for f in found():
        cells = " | ".join(_cell(results[device][f.name]) for device in results)
        name = f"[{f.title}]({f.name}.py)"
        lines.append(f"| {name} | {f.kind}, {f.how} | {f.values} | {cells} |")
    return "\n".join(lines)


def _cell(run: Run) -> str:
    said = run.said.replace("|", "\\|")
    return f"**{said}**" if run.wrong else said if run.wrong is False else f"({said})"


MARK = "<!-- written by uop.conformance.finding_runs -->"


def main(arguments: list[str]) -> None:
    if arguments:
        device, *names = arguments
        load(device)
        ended = run_here(FOLDER / f"{name}.py" for name in names)
        print(json.dumps({name: [run.wrong, run.said] for name, run in ended.items()}))
        return
    readme = FOLDER / "README.md"
    before, _, _ = readme.read_text("utf-8").partition(MARK)
    results = {device: runs(device, [f.name for f in found()]) for device in TARGETS}
    readme.write_text(f"{before}{MARK}\n\n{table(results)}\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
