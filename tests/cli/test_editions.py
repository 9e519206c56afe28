"""`--edition NAME`: a file without its first line is read in the words of that edition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

BARE = "%0 = BUFFER {size=2, dtype=int32}\n%1 = NEG %0\ninput 0 = [1, -2]\n"
"""In the core a BUFFER has its shape as an operand."""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "own" / "bare.uop"
    path.parent.mkdir()
    path.write_text(BARE)
    return path


@pytest.mark.parametrize(
    ("before", "behind", "said"),
    [
        (["run"], [], "0 : int32[2] = [-1, 2]"),
        (["compile"], [], "kernel void"),
        (["compile", "--stage", "callify"], [], "%"),
        (["replay"], ["interpreter"], "1 passed"),
    ],
)
def test_a_file_is_read_in_the_edition(
    uop: Any, bare: Path, before: list[str], behind: list[str], said: str
) -> None:
    assert uop(*before, bare, *behind).code == 2
    outcome = uop(*before, bare, *behind, "--edition", "2026-05")
    assert outcome.code == 0
    assert said in outcome.out
    bare.write_text(f"edition bestiary\n{BARE}")
    outcome = uop(*before, bare, *behind, "--edition", "2026-05")
    assert outcome.code == 2
    assert f"{bare}:1:1: expected edition 2026-05, which was asked for, found bestiary" in (
        outcome.err
    )


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--in-process"]])
def test_own_cases_are_judged_and_explained_in_the_edition(
    uop: Any, bare: Path, more: list[str]
) -> None:
    id = "cases/bare.uop/case"
    own = ["--cases", bare.parent, "--edition", "2026-05"]
    judged = uop("conform", "interpreter", "--profile", "strict", "--case", id, *own, *more)
    assert judged.code == 0
    assert "--edition 2026-05" in judged.out
    assert uop("explain", id, "--element", "1", *own).code == 0
    assert uop("explain", id, "--element", "1", *own[:2]).code == 2
    alone = uop("conform", "interpreter", *own[2:])
    assert (alone.code, alone.err) == (2, "error: --edition 2026-05: expected --cases DIR\n")


def test_an_expression_has_the_ops_of_the_edition(uop: Any) -> None:
    pad = "pad([7, 9], [1], [4])"
    assert uop("eval", pad).out.startswith("[invalid, 7, 9, invalid] : int32[4]")
    assert uop("eval", "--edition", "2026-05", pad).out.startswith("[0, 7, 9, 0] : int32[4]")
    by_name = uop("eval", "--edition", "bestiary", "reduce_axis([[1, 2], [3, 4]], min, axes=[1])")
    assert by_name.out.startswith("[1, 3] : int32[2]")
    assert uop("eval", "reduce_axis([1], min, axes=[0])").code == 2


@pytest.mark.parametrize("command", ["run", "compile", "replay", "eval"])
def test_an_edition_that_is_none_is_named(uop: Any, bare: Path, command: str) -> None:
    outcome = uop(command, *(["1"] if command == "eval" else [bare]), "--edition", "2026-5")
    assert outcome.code == 2
    assert "no edition 2026-5: expected one of 2026-05" in outcome.err


def test_a_report_has_no_programs_to_read_in_an_edition(uop: Any) -> None:
    outcome = uop("replay", "report.json", "--edition", "2026-05")
    assert outcome.code == 2
    assert "--edition is for programs" in outcome.err
