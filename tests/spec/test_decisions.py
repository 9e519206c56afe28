"""Every decision is complete, numbered without gaps, pinned by tests that exist; citations hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "spec" / "DECISIONS.md").read_text()
ENTRIES = re.findall(r"^### (D-\d{3}) (.+?)\n(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL)
PINNED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PARTS = ("> ", "**Problem.** ", "**Reading.** ", "**Rejected.** ", "**Pinned by**")
CITING = ("*.py", "*.md", "*.uop", "*.toml")


def test_numbers_count_from_one_without_gaps() -> None:
    numbers = [number for number, _, _ in ENTRIES]
    assert numbers == [f"D-{i + 1:03d}" for i in range(len(numbers))]
    assert len(numbers) == TEXT.count("\n### ")
    titles = [title for _, title, _ in ENTRIES]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(("number", "title", "body"), ENTRIES, ids=[e[0] for e in ENTRIES])
def test_an_entry_is_complete_and_in_order(number: str, title: str, body: str) -> None:
    places = [body.find(part) for part in PARTS]
    assert -1 not in places, (title, PARTS[places.index(-1)])
    assert places == sorted(places)
    assert PINNED.search(body)


def test_tests_that_are_named_exist() -> None:
    missing = []
    for path, name in sorted(set(PINNED.findall(TEXT))):
        file = ROOT / path
        source = file.read_text() if file.exists() else ""
        if not re.search(rf"^def {name}\(", source, re.MULTILINE):
            missing.append(f"{path}::{name}")
    assert missing == []


def test_decisions_that_are_cited_exist() -> None:
    known = {number for number, _, _ in ENTRIES}
    folders = ("spec", "interpreter", "compiler", "conformance", "uop", "tests", "docs", "examples")
    cited: dict[str, str] = {}
    for folder in folders:
        for pattern in CITING:
            for file in (ROOT / folder).rglob(pattern):
                for number in re.findall(r"\bD-\d{3}\b", file.read_text()):
                    cited[number] = str(file)
    assert {n: file for n, file in cited.items() if n not in known} == {}
    assert cited.keys() >= known, "the list itself was not read"
