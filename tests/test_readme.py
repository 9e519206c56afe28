"""What the README shows is what happens."""

import re
import shlex
from pathlib import Path

import pytest

from uop.__main__ import main
from uop.cli import COMMANDS
from uop.conformance.exits import Exit

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


@pytest.mark.parametrize("block", [b for b in blocks("console") if "conform" not in b])
def test_a_command_prints_what_is_shown(
    block: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, _, shown = block.partition("\n")
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command.removeprefix("$ uop "))) == Exit.OK
    assert capsys.readouterr().out == shown


@pytest.mark.usefixtures("opencl")
def test_the_python_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for code, shown in zip(blocks("python"), blocks("text"), strict=True):
        exec(compile(code, "README.md", "exec"), {})
        assert capsys.readouterr().out == shown


def test_every_command_has_its_row() -> None:
    assert {name for name in COMMANDS if f"| `uop {name}" not in README} == set()


def test_every_exit_code_is_named() -> None:
    (line,) = [line for line in README.splitlines() if line.startswith("Exit codes: ")]
    assert [int(n) for n in re.findall(r"\d+", line)] == [code.value for code in Exit]


def test_both_commands_are_one_line_each() -> None:
    assert [block.count("\n") for block in blocks("sh")] == [1, 1]
