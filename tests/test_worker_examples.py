"""The examples of backends are built, judged and right; the page of the protocol says what is."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from uop.__main__ import main
from uop.conformance.report.model import Conclusion
from uop.conformance.run import Exit
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options

ROOT = Path(__file__).parents[1]
WORKERS = ROOT / "examples" / "workers"
BUILD = {
    "worker.c": ("cc", "-O1", "{source}", "-lm", "-o", "{target}"),
    "worker.rs": ("rustc", "-O", "{source}", "-o", "{target}"),
}
LANGUAGES = ("worker.py", *(pytest.param(name, marks=pytest.mark.slow) for name in BUILD))


@pytest.fixture(params=LANGUAGES, scope="module")
def worker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command of an example, which is built first where it must be."""
    name, source = request.param, WORKERS / request.param
    if name not in BUILD:
        return shlex.join([sys.executable, "-I", "-S", str(source)])
    if shutil.which(BUILD[name][0]) is None:
        pytest.skip(f"{BUILD[name][0]} is not installed, so {name} is not built")
    target = tmp_path_factory.mktemp("worker") / "worker"
    words = [word.format(source=source, target=target) for word in BUILD[name]]
    built = subprocess.run(words, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return str(target)


def test_an_example_does_not_deviate(worker: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "check", "--timeout", "30s", "--", *shlex.split(worker)]) == Exit.OK
    assert "no deviation" in capsys.readouterr().out


def test_an_example_conforms(worker: str, tmp_path: Path) -> None:
    chosen = ("ADD", "MUL", "NEG", "CMPLT", "WHERE", "IDIV", "PAD", "REDUCE")
    options = Options(
        f"command:{worker}",
        levels=("op",),
        ops=chosen,
        dtypes=("float32", "int32", "bool"),
        effort="smoke",
        workers=1,
        output=tmp_path,
    )
    report = conform(options)
    assert report.failures == ()
    assert report.conclusion is Conclusion.CONFORMS
    judged = {cell.op for cell in report.cells if cell.programs}
    assert judged >= {"ADD", "MUL", "NEG"}
    # The worker for instructions is judged on all of them, the others on what they list.
    assert judged == {*chosen} or "PAD" not in judged


def test_the_python_worker_is_short_and_stands_alone() -> None:
    text = (WORKERS / "worker.py").read_text()
    assert len(text.splitlines()) <= 40
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)) <= sys.stdlib_module_names


def test_the_toy_has_15_lines_and_gets_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ROOT / "examples" / "backends"
    assert len((folder / "toy.py").read_text().splitlines()) <= 15
    monkeypatch.chdir(folder)
    options = Options(
        "toy:Toy", levels=("op", "graph"), ops=("ADD",), workers=1, output=tmp_path / "failures"
    )
    report = conform(options)
    assert report.conclusion is Conclusion.CONFORMS
    cells = {cell.place: cell for cell in report.cells}
    assert cells["op", "ADD", "float32"].programs >= 3
    # What it does not list has no row.
    assert ("op", "ADD", "int8") not in cells


def test_every_message_on_the_page_has_the_schema() -> None:
    page = (ROOT / "docs" / "worker-protocol.md").read_text()
    resource = files("uop.conformance.protocol").joinpath("uop-worker-protocol-1.schema.json")
    schema = jsonschema.Draft202012Validator(json.loads(resource.read_text()))
    found = 0
    for block in re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        rest = block.strip()
        while rest:
            message, end = json.JSONDecoder().raw_decode(rest)
            schema.validate(message)
            rest, found = rest[end:].strip(), found + 1
    assert found == 5


def test_every_key_of_hello_is_on_the_page() -> None:
    page = (ROOT / "docs" / "worker-protocol.md").read_text()
    resource = files("uop.conformance.protocol").joinpath("uop-worker-protocol-1.schema.json")
    definitions = json.loads(resource.read_text())["$defs"]
    for key in definitions["helloReply"]["properties"]:
        assert f"`{key}`" in page or f'"{key}":' in page, key
    for name in definitions["errorReply"]["properties"]["error"]["properties"]["class"]["enum"]:
        assert f"`{name}`" in page
