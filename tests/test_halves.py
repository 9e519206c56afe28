"""The fast and the slow half of the tests: which tests are of which, and parts of one."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from conftest import is_of, part

ROOT = Path(__file__).parents[1]
IN_EXTRA = {"uvicorn": "serve"}
"""The extra of a module that has another name."""
OF_A_MODULE = re.compile(r'^(\w+ = )?pytest\.importorskip\("(?P<name>[\w.]+)', re.MULTILINE)


def extras(environment: str) -> set[str]:
    """The extras of an environment of tox."""
    section = (ROOT / "tox.ini").read_text("utf-8").partition(f"[testenv:{environment}]")[2]
    line = next(row for row in section.splitlines() if row.startswith("extras = "))
    return set(line.removeprefix("extras = ").split(", "))


def test_a_module_that_needs_a_large_extra_is_slow() -> None:
    """Where the extra is missing it would be skipped in the fast half, and chosen in neither."""
    for path in Path(__file__).parent.rglob("test_*.py"):
        text = path.read_text("utf-8")
        found = OF_A_MODULE.search(text)
        name = found["name"].partition(".")[0] if found else ""
        if found and IN_EXTRA.get(name, name) not in extras("fast"):
            assert "\npytestmark = pytest.mark.slow\n" in text, path


def test_the_slow_half_has_every_extra_that_installs_beside_the_others() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    apart = {"iree", "openvino", "tvm"}
    assert extras("slow") == project["optional-dependencies"].keys() - apart
    assert extras("fast") < extras("slow")


def test_each_test_is_of_one_part() -> None:
    names = [f"tests/test_{k}.py::test_it[{k}]" for k in range(2000)]
    parts = [[name for name in names if is_of(name, k, 8)] for k in range(1, 9)]
    assert sorted(chain.from_iterable(parts)) == sorted(names)
    assert min(map(len, parts)) > 200


@pytest.mark.parametrize("text", ["0/8", "9/8", "1", "1/0", "a/b", "-1/8"])
def test_another_part_is_an_error(text: str) -> None:
    assert part("8/8") == (8, 8)
    with pytest.raises(pytest.UsageError, match="expected K/N"):
        part(text)
