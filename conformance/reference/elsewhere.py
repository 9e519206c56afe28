"""What C, CUDA, OpenCL C, numpy and tinygrad do at the points where an op says something."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FINDINGS = "conformance/findings"


@dataclass(frozen=True, slots=True)
class Fact:
    """What somebody does: an expression and what it prints, or a sentence, and where it stands."""

    who: str
    ask: str
    gives: str
    says: str
    source: str

    @property
    def text(self) -> str:
        """``-7 / 2` is -3: rounds toward zero`."""
        asked = f"`{self.ask}` is {self.gives}" if self.ask else ""
        return ": ".join(filter(None, (asked, self.says)))


@cache
def facts() -> Mapping[str, tuple[Fact, ...]]:
    """The facts by the name of the op."""
    text = files("uop.conformance.reference").joinpath("elsewhere.toml").read_text("utf-8")
    return {
        op: tuple(_finding(row["finding"]) if "finding" in row else _fact(row) for row in rows)
        for op, rows in tomllib.loads(text).items()
    }


def _fact(row: Mapping[str, str]) -> Fact:
    return Fact(row["in"], *(row.get(key, "") for key in ("ask", "gives", "says", "source")))


def _finding(name: str) -> Fact:
    """A program that tinygrad gets wrong; its first line says what happens."""
    script = files("uop.conformance").joinpath("findings", f"{name}.py").read_text("utf-8")
    title = script.partition("\n")[0].removeprefix("# ").rstrip(".")
    return Fact("tinygrad 0.14", "", "", title, f"{FINDINGS}/{name}.py")
