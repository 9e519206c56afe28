"""Every workaround is named where it is applied, and has a test."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = files("uop.compiler.targets").joinpath("workarounds.toml").read_text("utf-8")
WORKAROUNDS: list[dict[str, str]] = tomllib.loads(LISTED)["workaround"]


@pytest.mark.parametrize("workaround", WORKAROUNDS, ids=lambda w: w["name"])
def test_it_is_applied_where_it_says_and_tested(workaround: dict[str, str]) -> None:
    assert f"Workaround {workaround['name']}" in (ROOT / workaround["where"]).read_text()
    file, _, test = workaround["test"].partition("::")
    assert f"def {test}(" in (ROOT / file).read_text()


def test_names_are_distinct() -> None:
    assert len({w["name"] for w in WORKAROUNDS}) == len(WORKAROUNDS)
