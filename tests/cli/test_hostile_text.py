"""No text of a backend forges a line of ours, steers a terminal or gives a CI runner an order."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from hostile_worker import EVIL, OWNED

from uop.__main__ import main
from uop.cli.suite.backends import probe

HERE = Path(__file__).resolve().parents[1]
CASE = "op/ADD/float32/edges/0"
STARTS = ("stderr of one that does not start", "error for hello", *(
    f"hello {key}"
    for key in ("name", "version", "device", "ops", "dtypes", "forms", "profile", "protocol")
))  # fmt: skip
RUNS = (
    "outputs", "error", "unsupported", "class", "dtype", "stdout", "stderr of a crash", "stages",
    "stage that does not run",
)  # fmt: skip
PROGRAM = """\
case sum
%0 = PARAM [2] {slot=0, dtype=float32}
%1 = ADD %0, %0
input 0 = [1.0, 2.0]
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    Path("sum.uop").write_text(PROGRAM)


def worker(place: str) -> str:
    return "command:" + shlex.join([sys.executable, "-P", str(HERE / "hostile_worker.py"), place])


def harmless(text: str) -> bool:
    """Whether no line of a text is what a backend would have a CI runner take for ours."""
    lines = re.split("[\n\r\v\f\x85\u2028\u2029]", text)
    forged = [line for line in lines if line.lstrip().startswith(OWNED)]
    return not forged and "##[" not in text and "##vso[" not in text and "\x1b" not in text


def test_what_the_worker_says_would_be_obeyed() -> None:
    assert not harmless(EVIL)
    assert not harmless(OWNED)
    assert not harmless("deviates: ##[error]owned")


def told(capfd: Captured, *words: str) -> str:
    """All that a command prints, and the processes that it starts."""
    main(list(words))
    captured = capfd.readouterr()
    text = captured.out + captured.err
    assert "owned" in text
    assert "Traceback" not in text
    return text


@pytest.mark.slow
@pytest.mark.parametrize("place", [*STARTS[:3], *RUNS])
def test_a_run_and_its_files(place: str, capfd: Captured) -> None:
    files = ("--json", "r.json", "--junit", "r.xml", "--html", "r.html")
    select = ("--case", CASE, "-n", "1", "--timeout", "5s")
    assert harmless(told(capfd, "conform", worker(place), *select, *files, "--format", "github"))
    written = [path for path in Path().rglob("*") if path.is_file() and path.suffix != ".json"]
    assert {path.suffix for path in written} >= ({".uop"} if place in STARTS else {".xml", ".md"})
    for path in written:
        assert harmless(path.read_text()), path


@pytest.mark.slow
@pytest.mark.parametrize("place", [*STARTS, *RUNS])
def test_a_check_of_a_worker(place: str, capfd: Captured) -> None:
    words = shlex.split(worker(place).removeprefix("command:"))
    assert harmless(told(capfd, "worker", "check", "--timeout", "5s", "--", *words))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("place", ["stderr of one that does not start", "error"])
@pytest.mark.parametrize(
    "command",
    [
        ("replay", "sum.uop", "BACKEND"),
        ("run", "sum.uop", "--backend", "BACKEND"),
        ("profile", "show", "BACKEND"),
        ("profile", "init", "BACKEND"),
        ("conform", "BACKEND", "interpreter", "--case", CASE, "-n", "1"),
    ],
    ids=" ".join,
)
def test_other_commands(command: tuple[str, ...], place: str, capfd: Captured) -> None:
    words = [worker(place) if word == "BACKEND" else word for word in command]
    assert harmless(told(capfd, *words))


@pytest.mark.slow
def test_two_reports(capfd: Captured) -> None:
    assert main(["conform", "interpreter", "--case", CASE, "-n", "1", "--json", "a.json"]) == 0
    told(capfd, "conform", worker("error"), "--case", CASE, "-n", "1", "--json", "b.json")
    assert harmless(told(capfd, "diff", "a.json", "b.json"))
    assert main(["replay", "b.json", worker("class")]) == 0
    assert harmless(capfd.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Raising", "Leaving", "Named", "Answering"])
def test_an_adapter_in_python(kind: str, capfd: Captured) -> None:
    name = f"hostile_adapter:{kind}"
    usable, said = probe(name)
    assert usable == (kind == "Answering")
    # The list of backends indents the lines behind the first.
    assert harmless("\n".join(line.strip() for line in f"name {said}".splitlines()))
    assert harmless(told(capfd, "conform", name, "--case", CASE, "-n", "1"))
