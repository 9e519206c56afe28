"""What README.md and docs/ show is what happens."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib.resources import files
from itertools import islice
from pathlib import Path

import jsonschema
import pytest
from pages import BLOCK, PAGES, ROOT, RUN, bash, blocks, prepare, run_page

from uop.cli import COMMANDS
from uop.conformance.run import Exit
from uop.spec.latitude import KNOBS
from uop.spec.text.json_form import from_json
from uop.spec.text.profile_text import knob_values

DOCS = ROOT / "docs"
COMMAND_LINE = (DOCS / "command-line.md").read_text("utf-8")
NEEDS = {"onnx.md": "opencl", "python.md": "opencl", "stablehlo.md": "jaxlib"}
"""The fixture of what a page needs to run."""
EXTRAS = {"opencl": "opencl", "jaxlib": "xla"}
"""The extra that installs what a fixture needs."""
NEEDING = {"opencl": "compile(", "jaxlib": "from_stablehlo("}
"""What needs it first on a page."""
OF_EXTRAS = (
    "cupy", "distributed", "flint", "fsspec", "hypothesis", "iree", "jax", "jaxlib", "jsonschema",
    "onnx", "onnxruntime", "openvino", "pyopencl", "pytest", "sphinx", "tinygrad", "tvm",
)  # fmt: skip
"""The modules that a plain `pip install .` does not bring."""
SLOW = {
    "README.md",
    "accepted-sets.md",
    "ci.md",
    "compare.md",
    "eight-steps.md",
    "find-a-miscompile.md",
    "judge-your-backend.md",
    "onnx.md",
    "optimizations.md",
    "profiles.md",
    "stablehlo.md",
    "to-onnx.md",
    "verdict.md",
    "who-disagrees.md",
}
"""Pages that take long, or need a large extra."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.slow] * (p.name in SLOW), id=p.name) for p in RUN],
)
def test_a_page_shows_what_its_blocks_print(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if page.name in NEEDS:
        request.getfixturevalue(NEEDS[page.name])
    prepare(tmp_path)
    for shown in run_page(page, tmp_path):
        assert shown.holds, f"`python tests/pages.py` writes it anew: {shown}"


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_first_block_needs_no_extra_or_installs_it(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if any("pip install '.[" in block.text for block in blocks(page)[:1]):
        return
    prepare(tmp_path)
    (tmp_path / "absent").mkdir()
    # A module that is None cannot be imported, in any process that starts with this path.
    missing = f"import sys\nsys.modules.update(dict.fromkeys({OF_EXTRAS}))\n"
    (tmp_path / "absent" / "sitecustomize.py").write_text(missing)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "absent"), prepend=os.pathsep)
    for shown in islice(run_page(page, tmp_path), 1):
        assert shown.holds, shown


@pytest.mark.parametrize("name", NEEDS)
def test_a_page_says_first_what_to_install(name: str) -> None:
    said, _, _ = (DOCS / name).read_text("utf-8").partition(NEEDING[NEEDS[name]])
    assert re.search(rf"pip install '\.\[[\w,]*\b{EXTRAS[NEEDS[name]]}\b", said)


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


def test_every_command_has_its_heading() -> None:
    assert {
        name for name in COMMANDS if f"\n### uop {name}\n\n`uop {name}" not in COMMAND_LINE
    } == set()


def test_every_exit_code_is_named() -> None:
    _, _, table = COMMAND_LINE.partition("| exit code | means |\n")
    codes = re.findall(r"^\| (\d+) \|", table, re.MULTILINE)
    assert [int(code) for code in codes] == [code.value for code in Exit]


def test_every_knob_has_its_section() -> None:
    page = (DOCS / "profiles.md").read_text("utf-8")
    for name, says in KNOBS.items():
        assert f"### {name}\n\n{says}\n\nValues: {knob_values(name)}." in page


def test_both_commands_are_one_line_each() -> None:
    assert [block.text.count("\n") for block in blocks(ROOT / "README.md", "sh")] == [1, 1]


JUDGING, FUZZING = "2m", "30s"
"""The times of jobs. One that judges all of a worker of one op ends before."""
WORKER = '#!/bin/sh\nexec python3 "$(dirname "$0")/worker.py"\n'
WRONG = """%0 = PARAM [1] {slot=0, dtype=float32}
%1 = NEG %0
input 0 = [1.0]
expect 0 = [1.0]
"""
GH = """#!/bin/sh
# What the workflow asks of GitHub: the last run on main, and its artifact.
case "$2" in list) echo 7 ;; download) mkdir main; cp on-main.json main/report.json ;; esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The folder of a job: a worker of one op, whose runs take little."""
    text = (ROOT / "examples" / "workers" / "worker.py").read_text("utf-8")
    fewer = re.sub("^MEANING = .*", 'MEANING = {"NEG": operator.neg}', text, flags=re.MULTILINE)
    assert fewer != text
    (tmp_path / "worker.py").write_text(fewer)
    for name, script in (("worker", WORKER), ("gh", GH)):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.mark.slow
def test_the_steps_of_the_workflow_run(checkout: Path) -> None:
    workflow, nightly = blocks(DOCS / "ci.md", "yaml")
    install, judge, compare = steps(workflow.text)
    again, replay, fuzz = steps(nightly.text)
    assert install == again
    assert install.startswith("pip install")
    given = {
        "BACKEND": "command:./worker",
        "GITHUB_STEP_SUMMARY": str(checkout / "summary.md"),
        "PATH": str(checkout),
        "TIME": JUDGING,
        "UOP_CACHE": cached(workflow.text),
    }
    judged = bash(f"set -eo pipefail\n{judge}", checkout, **given)
    assert judged.returncode == Exit.OK, judged.stdout
    assert "conforms" in (checkout / "summary.md").read_text("utf-8")
    assert (checkout / "report.html").is_file()
    shutil.copy(checkout / "report.json", checkout / "on-main.json")
    compared = bash(f"set -eo pipefail\n{compare}", checkout, **given)
    assert compared.returncode == Exit.OK, compared.stdout
    for step in (replay, fuzz):
        done = bash(f"set -eo pipefail\n{step}", checkout, **(given | {"TIME": FUZZING}))
        assert done.returncode == Exit.OK, done.stdout
    assert (checkout / "fuzz.json").is_file()
    assert "has shown no failure" in (checkout / "summary.md").read_text("utf-8")
    assert (checkout / cached(nightly.text)).is_dir()


def cached(workflow: str) -> str:
    """The cache folder of a workflow, which each of its steps about a cache names."""
    (folder,) = re.findall(r"^  UOP_CACHE: (\S+)", workflow, re.MULTILINE)
    uses = re.findall(r"uses: actions/cache\S*\n((?:        .*\n)*)", workflow)
    assert uses
    assert all(folder in said for said in uses)
    return str(folder)


@pytest.mark.slow
def test_the_script_for_other_systems_runs(checkout: Path) -> None:
    (script,) = blocks(DOCS / "ci.md", "sh")
    (checkout / script.name).write_text(script.text)

    def job(words: str, time: str = JUDGING) -> subprocess.CompletedProcess[str]:
        return bash(f"sh {script.name} {words}", checkout, TIME=time, KEPT="kept", FOUND="found")

    assert job("weekly").returncode == Exit.USAGE
    judged = job("pull-request")
    assert judged.returncode == Exit.OK, judged.stdout
    assert "conforms" in judged.stdout
    (checkout / "regressions").mkdir()
    (checkout / "regressions" / "wrong.uop").write_text(WRONG)
    fuzzed = job("nightly", FUZZING)
    assert "has shown no failure" in fuzzed.stdout
    assert fuzzed.returncode == Exit.FAILED, "a step that fails decides, whatever the others say"
    assert list((checkout / "kept" / "corpus").glob("*.uop"))
    assert (checkout / "kept" / "cache").is_dir()
    assert {path.name for path in (checkout / "found").iterdir()} == {"report.json", "report.xml"}


def steps(workflow: str) -> list[str]:
    """The scripts of a workflow, on one line or under `run: |`."""
    found = re.findall(r"^( *)(?:- )?run: (.+)\n((?:\1  +.*\n)*)", workflow, re.MULTILINE)
    return [below if text == "|" else text for _, text, below in found if text[0] != "{"]
