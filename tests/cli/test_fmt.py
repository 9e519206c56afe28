"""`uop fmt`: which files it writes, what it prints, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BARE = "%0 = PARAM [2]{slot=0,dtype=int8} ; in\r\n%1=NEG %0"
GOOD = """\
%0 = PARAM [2] {slot=0, dtype=int8} : int8[2]  ; in
%1 = NEG %0 : int8[2]
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "bare.uop"
    path.write_bytes(BARE.encode())
    return path


def test_a_file_is_written_once(uop: Any, bare: Path) -> None:
    first, second = uop("fmt", str(bare)), uop("fmt", str(bare))
    assert (first.code, first.out) == (0, f"{bare}\n")
    assert (second.code, second.out) == (0, "")
    assert bare.read_text("utf-8") == GOOD
    assert [path.name for path in bare.parent.iterdir()] == ["bare.uop"]


def test_check_writes_nothing(uop: Any, bare: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.uop"
    good.write_text(GOOD, "utf-8")
    outcome = uop("fmt", "--check", str(good), str(bare))
    assert (outcome.code, outcome.out) == (1, f"{bare} is not formatted\n")
    assert bare.read_bytes() == BARE.encode()
    assert uop("fmt", "--check", str(good)).code == 0


@pytest.mark.parametrize("text", [b"", b"%0 = FOO", b"\xff", b"%0 = NEG 1.5"])
def test_a_file_with_an_error_is_not_touched(uop: Any, tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "x.uop"
    path.write_bytes(text)
    outcome = uop("fmt", str(path))
    assert outcome.code == 2
    assert f"{path}:1:" in outcome.err
    assert path.read_bytes() == text


def test_a_link_stays_one_and_a_missing_file_is_named(uop: Any, bare: Path) -> None:
    link = bare.with_name("link.uop")
    link.symlink_to(bare)
    assert uop("fmt", str(link)).code == 0
    assert link.is_symlink()
    assert bare.read_text("utf-8") == GOOD
    assert "missing.uop" in uop("fmt", "missing.uop").err
    assert uop("fmt").code == 2


def test_stdin_goes_to_stdout() -> None:
    words = [sys.executable, "-m", "uop", "fmt", "-"]
    ended = subprocess.run(words, input=BARE.encode(), capture_output=True, check=True)
    assert ended.stdout.decode() == GOOD
    checked = subprocess.run([*words, "--check"], input=BARE.encode(), check=False)
    assert checked.returncode == 1
