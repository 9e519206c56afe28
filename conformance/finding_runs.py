"""Runs the scripts of `findings/`, and writes the tables of their README.

One process per device of tinygrad or per other system loads the library; each script runs in a
child of it, so a crash is a result.
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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from uop.conformance.backends.tinygrad_library import TARGETS, load
from uop.conformance.finding_systems import (
    FOLDER,
    GROUPS,
    SYSTEMS,
    SystemScript,
    counts,
    system_scripts,
    system_tables,
)
from uop.conformance.workers.children import Child, EndedError
from uop.spec.distribution import importable
from uop.spec.errors import UnsupportedError

TITLE = re.compile(r"# (?P<title>.+)\.")
FACTS = re.compile(
    r"# Class (?P<kind>[AB]), (?P<how>[^;]+); (?P<values>[^;]+)"
    r"(; (?P<apart>algebra|crash))?\. Wrong on (?P<on>.+)$"
)
NAMED = re.compile(r"# of tinygrad [0-9.]+ \(.+\)\. DEV=(?P<environment>\S+) ends with 1[.;].*")
ORDINARY = "ordinary values"


@dataclass(frozen=True, slots=True)
class FindingScript:
    """A script, as its first lines describe it."""

    name: str
    title: str
    kind: str
    how: str
    values: str
    group: str
    """A key of GROUPS."""
    devices: tuple[str, ...]
    environment: str
    """The value of DEV under which the script ends with 1."""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.py"


@dataclass(frozen=True, slots=True)
class Script:
    """The task of a child: run this script."""

    path: str


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """The result of a script: whether its device is wrong, None where it crashed; its last line."""

    wrong: bool | None
    output: str


def scripts() -> list[FindingScript]:
    """Every script, by name. ValueError where its first lines lack something."""
    paths = sorted(path for path in FOLDER.glob("*.py") if path.stem != "__init__")
    return [read(path) for path in paths]


def read(path: Path) -> FindingScript:
    """Read the first lines of a script."""
    first, second, third, *_ = [*path.read_text("utf-8").splitlines(), "", "", ""]
    title, facts, named = TITLE.fullmatch(first), FACTS.fullmatch(second), NAMED.fullmatch(third)
    if title is None or facts is None or named is None:
        raise ValueError(f"{path}: the first lines do not give title, facts and environment")
    devices = tuple(facts["on"].split(", "))
    kind, how, values = facts["kind"], facts["how"], facts["values"]
    group = facts["apart"] or ("ordinary" if values == ORDINARY else "special")
    return FindingScript(
        path.stem, title["title"], kind, how, values, group, devices, named["environment"]
    )


def runs(place: str, paths: Iterable[Path]) -> dict[str, ScriptRun]:
    """Run scripts on a device of tinygrad or in a system, by name.

    UnsupportedError where that cannot be used here.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-m", "uop.conformance.finding_runs", place, *map(str, paths)],
        env={**importable(os.environ), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise UnsupportedError(f"{place}: {done.stderr.strip()[-300:]}")
    return {
        name: ScriptRun(**run) for name, run in json.loads(done.stdout.splitlines()[-1]).items()
    }


def run_here(paths: Iterable[Path]) -> dict[str, ScriptRun]:
    """Run each script in a child of this process, which has its library loaded, no device open."""
    child = Child(_run, Script, tasks=1)
    results = {}
    for path in paths:
        try:
            results[path.stem] = child.ask(Script(str(path)), ScriptRun)
        except EndedError as error:
            results[path.stem] = ScriptRun(None, str(error))
    child.close()
    return results


def _run(script: Script) -> ScriptRun:
    stdout = io.StringIO()
    try:
        with contextlib.redirect_stdout(stdout):
            runpy.run_path(script.path, run_name="__main__")
    except SystemExit as end:
        lines = stdout.getvalue().strip().splitlines()
        return ScriptRun(bool(end.code), lines[-1] if lines else "")
    except BaseException as error:  # noqa: BLE001 - any error is the result of the script
        return ScriptRun(None, f"{type(error).__name__}: {error}")
    return ScriptRun(None, "no exit code")


def table(results: Mapping[str, Mapping[str, ScriptRun]]) -> str:
    """The tables of the README, one for each group: what each device gave, in bold if wrong.

    In a group findings on more devices come first.
    """
    found = sorted(scripts(), key=lambda f: (-len(f.devices), f.name))
    parts = [
        f"### {title}\n\n{_rows([f for f in found if f.group == group], results)}"
        for group, title in GROUPS.items()
    ]
    return "\n\n".join(parts)


def _rows(group: Iterable[FindingScript], results: Mapping[str, Mapping[str, ScriptRun]]) -> str:
    lines = [
        f"| finding | class | values | {' | '.join(results)} |",
        f"|---|---|---|{'---|' * len(results)}",
    ]
    for f in group:
        cells = " | ".join(_cell(results[device][f.name]) for device in results)
        name = f"[{f.title}]({f.name}.py)"
        lines.append(f"| {name} | {f.kind}, {f.how} | {f.values} | {cells} |")
    return "\n".join(lines)


def _cell(run: ScriptRun) -> str:
    shown = run.output.replace("|", "\\|")
    return f"**{shown}**" if run.wrong else shown if run.wrong is False else f"({shown})"


def skipped(script: SystemScript) -> str:
    """Why a script cannot run here; empty where it can."""
    try:
        found = version(script.library)
    except PackageNotFoundError:
        return f"needs {script.library} {script.version}"
    return "" if found == script.version else f"{script.library} is {found}"


def shown(scripts: Sequence[SystemScript]) -> list[str]:
    """Run scripts of one system: a line for each, with its result or why it was skipped."""
    reasons = {s.path.stem: skipped(s) for s in scripts}
    here = [s.path for s in scripts if not reasons[s.path.stem]]
    results = runs(scripts[0].system, here) if here else {}
    words = {True: "wrong", False: "right", None: "crashed"}
    lines = []
    for s in scripts:
        run = results.get(s.path.stem)
        said = f"{words[run.wrong]}: {run.output}" if run else f"skipped: {reasons[s.path.stem]}"
        lines.append(f"{s.system}/{s.path.name} in {s.library} {s.version}: {said}")
    return lines


COUNTS = "<!-- counts, written by uop.conformance.finding_runs -->"
SYSTEMS_MARK = "<!-- systems, written by uop.conformance.finding_runs -->"
MARK = "<!-- written by uop.conformance.finding_runs -->"
END = "<!-- end -->"


def with_tables(text: str) -> str:
    """The README with the tables that follow from the first lines of the scripts."""
    others = system_scripts()
    groups = [("tinygrad", s.group) for s in scripts()]
    groups += [(SYSTEMS[s.system].title, s.group) for s in others]
    for mark, table in ((COUNTS, counts(groups)), (SYSTEMS_MARK, system_tables(others))):
        before, _, after = text.partition(mark)
        text = f"{before}{mark}\n\n{table}\n\n{END}{after.partition(END)[2]}"
    return text


def main(arguments: list[str]) -> None:
    if arguments:
        place, *paths = arguments
        if place in SYSTEMS:
            for package in SYSTEMS[place].packages:
                import_module(package)
        else:
            load(place)
        ended = run_here(map(Path, paths))
        print(json.dumps({name: asdict(run) for name, run in ended.items()}))
        return
    readme = FOLDER / "README.md"
    text = with_tables(readme.read_text("utf-8"))
    readme.write_text(text, "utf-8")
    for system in SYSTEMS:
        if of := [s for s in system_scripts() if s.system == system]:
            print(*shown(of), sep="\n")
    before, _, _ = text.partition(MARK)
    found = [f.path for f in scripts()]
    results = {device: runs(device, found) for device in TARGETS}
    readme.write_text(f"{before}{MARK}\n\n{table(results)}\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
