"""What README.md and docs/ show is what happens."""

from __future__ import annotations

import json
import re
import shutil
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from pages import BLOCK, PAGES, ROOT, RUN, bash, blocks, prepare, run_page

from uop.cli import COMMANDS
from uop.conformance.run.exits import Exit
from uop.spec.latitude import KNOBS
from uop.spec.text.json_form import from_json
from uop.spec.text.profile_text import knob_values

DOCS = ROOT / "docs"
COMMAND_LINE = (DOCS / "command-line.md").read_text("utf-8")
NEEDS = {"python.md": "opencl"}
"""The fixture of what a page needs to run."""


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_a_page_shows_what_its_blocks_print(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if page.name in NEEDS:
        request.getfixturevalue(NEEDS[page.name])
    prepare(tmp_path)
    for shown in run_page(page, tmp_path):
        assert shown.holds, f"`python tests/pages.py` writes it anew: {shown}"


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_every_json_block_is_a_program_or_a_message(page: Path) -> None:
    resource = files("uop.conformance.protocol").joinpath("uop-worker-protocol-1.schema.json")
    schema = jsonschema.Draft202012Validator(json.loads(resource.read_text("utf-8")))
    for block in blocks(page, "json"):
        found = json.loads(block.text)
        if "format" in found:
            from_json(found)
        else:
            schema.validate(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    prose = BLOCK.sub("", page.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        assert (page.parent / target).exists(), target


def test_every_command_has_its_row() -> None:
    assert {name for name in COMMANDS if f"| `uop {name}" not in COMMAND_LINE} == set()


def test_every_exit_code_is_named() -> None:
    (line,) = [line for line in COMMAND_LINE.splitlines() if line.startswith("Exit codes: ")]
    assert [int(n) for n in re.findall(r"\d+", line)] == [code.value for code in Exit]


def test_every_knob_has_its_row() -> None:
    page = (DOCS / "profiles.md").read_text("utf-8")
    for name, says in KNOBS.items():
        assert f"| `{name}` | {says} | {knob_values(name)} |" in page


def test_both_commands_are_one_line_each() -> None:
    assert [block.text.count("\n") for block in blocks(ROOT / "README.md", "sh")] == [1, 1]


GH = """#!/bin/sh
# What the workflow asks of GitHub: the last run on main, and its artifact.
case "$2" in list) echo 7 ;; download) mkdir main; cp on-main.json main/report.json ;; esac
"""


def test_the_steps_of_the_workflow_run(tmp_path: Path) -> None:
    workflow, nightly = blocks(DOCS / "ci.md", "yaml")
    install, judge, compare = steps(workflow.text)
    again, replay, fuzz = steps(nightly.text)
    assert install == again
    assert install.startswith("pip install")
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    shutil.copy(ROOT / "examples" / "workers" / "worker.py", tmp_path)
    (tmp_path / "worker").write_text('#!/bin/sh\nexec python3 "$(dirname "$0")/worker.py"\n')
    (tmp_path / "worker").chmod(0o755)
    given = {
        "BACKEND": "command:./worker",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "PATH": str(tmp_path),
    }
    judged = bash(f"set -eo pipefail\n{judge}", tmp_path, **given)
    assert judged.returncode == Exit.OK, judged.stdout
    assert "conforms" in (tmp_path / "summary.md").read_text("utf-8")
    assert (tmp_path / "report.html").is_file()
    shutil.copy(tmp_path / "report.json", tmp_path / "on-main.json")
    compared = bash(f"set -eo pipefail\n{compare}", tmp_path, **given)
    assert compared.returncode == Exit.OK, compared.stdout
    for step in (replay, fuzz):
        done = bash(f"set -eo pipefail\n{step}", tmp_path, TIME="30s", **given)
        assert done.returncode == Exit.OK, done.stdout
    assert (tmp_path / "fuzz.json").is_file()
    assert "has shown no failure" in (tmp_path / "summary.md").read_text("utf-8")


def steps(workflow: str) -> list[str]:
    """The scripts of a workflow, on one line or under `run: |`."""
    found = re.findall(r"^( *)(?:- )?run: (.+)\n((?:\1  +.*\n)*)", workflow, re.MULTILINE)
    return [below if text == "|" else text for _, text, below in found if text[0] != "{"]
