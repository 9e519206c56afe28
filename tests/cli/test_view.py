"""`uop view`: where the page is written, and bad usage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

PROGRAM = """\
%0 = PARAM [3] {slot=0, dtype=int32} : int32[3]
%1 = ADD %0, %0 : int32[3]
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.uop"
    path.write_text(PROGRAM)
    return path


def test_the_page_is_beside_the_file_or_where_it_is_asked_for(uop: Any, program: Path) -> None:
    outcome = uop("view", program)
    assert outcome.code == 0
    assert "input 0 was drawn: the file has none" in outcome.out
    written = program.with_suffix(".html")
    assert written.read_text().startswith("<!doctype html>")
    other = program.parent / "other.html"
    assert uop("view", program, "-o", other, "--target", "cuda").code == 0
    assert "__global__" in other.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "nowhere/page.html"], "cannot write nowhere/page.html"),
        (["--target", "metal"], "metal"),
        (["--opt", "SPLIT"], "--opt: expected"),
        (["--case", "other"], "holds no case"),
    ],
)
def test_bad_usage(uop: Any, program: Path, options: list[str], said: str) -> None:
    outcome = uop("view", program, *options)
    assert outcome.code == 2
    assert said in outcome.err


def test_a_program_that_is_none(uop: Any, tmp_path: Path) -> None:
    path = tmp_path / "program.uop"
    path.write_text("%0 = ADD 1\n")
    outcome = uop("view", path)
    assert outcome.code == 2
    assert "program.uop" in outcome.err
