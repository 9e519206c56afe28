"""Reads DECISIONS.md: how this project reads each open point of the spec, by number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PATH = Path(__file__).parents[1] / "DECISIONS.md"
_ENTRY = re.compile(r"^### (D-\d{3}) (.+?)\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
_PROBLEM = re.compile(r"^\*\*Problem\.\*\* (.*?)(?=^\*\*|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: its number, its title, and its Markdown text."""

    number: str
    title: str
    text: str

    @property
    def problem(self) -> str:
        """The paragraph `Problem`, on one line; empty if there is none."""
        match = _PROBLEM.search(self.text)
        return " ".join(match[1].split()) if match else ""


@cache
def decisions() -> dict[str, Decision]:
    """Every decision by its number, in order."""
    return {
        number: Decision(number, title, text.strip())
        for number, title, text in _ENTRY.findall(PATH.read_text("utf-8"))
    }
