"""What others do: C and numpy are asked, what is cited is there."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

from uop.conformance.reference.glossary import FINDINGS, Fact, facts
from uop.spec.ops.names import Op

ROOT = Path(__file__).parents[2]
ALL = [fact for found in facts().values() for fact in found]


def asked(who: str) -> list[Fact]:
    found = [fact for fact in ALL if fact.who == who and fact.ask]
    assert found
    return found


def test_every_fact_is_about_an_op_and_says_something() -> None:
    assert facts().keys() <= Op.__members__.keys()
    assert all(fact.text and bool(fact.ask) == bool(fact.gives) for fact in ALL)


def test_what_is_not_asked_has_a_source() -> None:
    assert {fact.text for fact in ALL if not (fact.ask or fact.source)} == set()
    assert {fact.who for fact in ALL if fact.ask} == {"C", "numpy"}


@pytest.mark.parametrize("fact", asked("numpy"), ids=lambda fact: fact.ask)
def test_numpy_gives_it(fact: Fact) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert str(eval(fact.ask, {"np": np})) == fact.gives


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_c_gives_it(level: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is not installed, so C is not asked")
    lines = [f'  printf("%.9g\\n", (double)({fact.ask}));' for fact in asked("C")]
    body = "\n".join(lines)
    source = tmp_path / "asked.c"
    source.write_text(f"#include <math.h>\n#include <stdio.h>\nint main(void) {{\n{body}\n}}\n")
    program = tmp_path / "asked"
    words = [compiler, level, "-std=c17", "-w", str(source), "-lm", "-o", str(program)]
    subprocess.run(words, check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [fact.gives for fact in asked("C")]


def test_findings_are_there() -> None:
    cited = [fact.source for fact in ALL if fact.source.startswith(FINDINGS)]
    assert cited
    assert all((ROOT / path).is_file() for path in cited)
