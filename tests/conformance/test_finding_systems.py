"""The findings by system: each script says what it must, and finds its library wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from imported import imported

from uop.conformance.finding_runs import ScriptRun, runs, scripts, shown, skipped, with_tables
from uop.conformance.finding_systems import (
    FOLDER,
    GROUPS,
    SYSTEMS,
    SystemScript,
    counts,
    read_system_script,
    system_scripts,
)

SCRIPTS = system_scripts()
NAMES = [f"{s.system}/{s.path.stem}" for s in SCRIPTS]
USED = [name for name in SYSTEMS if name in {s.system for s in SCRIPTS}]


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_is_short_and_needs_its_library_alone(script: SystemScript) -> None:
    text = script.path.read_text("utf-8")
    assert len(text.splitlines()) <= 20
    assert "# By hand: " in text
    assert "raise SystemExit(" in text
    assert imported(text) <= {*sys.stdlib_module_names, *SYSTEMS[script.system].packages}


@pytest.mark.slow
@pytest.mark.parametrize("system", USED)
def test_the_scripts_of_a_system_find_it_wrong(system: str) -> None:
    here = [s for s in SCRIPTS if s.system == system and not skipped(s)]
    if not here:
        pytest.skip(next(skipped(s) for s in SCRIPTS if s.system == system))
    results = runs(system, [s.path for s in here])
    assert {name: run.output for name, run in results.items() if run.wrong is not True} == {}
    assert sorted(results) == sorted(s.path.stem for s in here)


def test_the_readme_has_the_tables_that_the_scripts_give() -> None:
    text = (FOLDER / "README.md").read_text("utf-8")
    assert with_tables(text) == text
    assert all(f"({s.system}/{s.path.name})" in text for s in SCRIPTS)


def test_there_are_enough_and_many_need_ordinary_values_only() -> None:
    assert len(SCRIPTS) + len(scripts()) >= 100
    assert sum(s.is_ordinary for s in SCRIPTS) >= 40


def test_counts_are_by_system_and_group() -> None:
    lines = counts([("X", "ordinary"), ("X", "crash"), ("Y", "special")]).splitlines()
    assert lines[2:] == [
        "| X | 1 | 0 | 0 | 1 | 2 |",
        "| Y | 0 | 1 | 0 | 0 | 1 |",
        "| all | 1 | 1 | 0 | 1 | 3 |",
    ]
    assert lines[0].count("|") == len(GROUPS) + 3


def write(folder: Path, library: str, code: str) -> SystemScript:
    """A script of a system that has this library."""
    path = folder / "numpy" / "a.py"
    path.parent.mkdir(exist_ok=True)
    head = "# It is wrong.\n# Class A, one against two; ordinary values; crash.\n"
    path.write_text(f"{head}# Wrong in {library} (2026-01-02). By hand: 1.\n{code}\n")
    return read_system_script(path)


def test_the_first_comment_is_read(tmp_path: Path) -> None:
    script = write(tmp_path, "numpy 0.1", "pass")
    assert (script.title, script.how, script.group) == (
        "It is wrong",
        "A, one against two",
        "crash",
    )
    assert (script.library, script.version, script.date) == ("numpy", "0.1", "2026-01-02")
    script.path.write_text("# Only a title.\n")
    with pytest.raises(ValueError, match="does not give title"):
        read_system_script(script.path)


def test_a_script_is_skipped_without_its_library_in_its_version(tmp_path: Path) -> None:
    other, missing = write(tmp_path, "numpy 0.1", ""), write(tmp_path, "no-such-library 1", "")
    assert skipped(other).startswith("numpy is ")
    assert skipped(missing) == "needs no-such-library 1"
    (line,) = shown([missing])
    assert line.endswith("skipped: needs no-such-library 1")


@pytest.mark.parametrize(
    ("code", "wrong", "output"),
    [
        ("print(7)\nraise SystemExit(1)", True, "7"),
        ("raise SystemExit(0)", False, ""),
        ("import os\nos.abort()", None, "the process"),
    ],
)
def test_a_script_is_wrong_right_or_crashes(
    tmp_path: Path, code: str, wrong: bool | None, output: str
) -> None:
    run: ScriptRun = runs("numpy", [write(tmp_path, "numpy 0.1", code).path])["a"]
    assert run.wrong is wrong
    assert run.output.startswith(output)
