"""Reads the tables here: the glossary, the legend of the figures under a verdict, facts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from uop.conformance.finding_systems import SYSTEMS

FINDINGS = "conformance/findings"
LOOK = "what these words mean: uop explain figures"
"""The line under a verdict that names its legend."""
LEGEND = "figures"
"""The name of the legend for `uop explain`."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word: its meaning in one sentence, then more, and its figure under a verdict."""

    word: str
    says: str
    more: str = ""
    see: tuple[str, ...] = ()
    figure: str = ""
    counts: str = ""


@dataclass(frozen=True, slots=True)
class Legend:
    """The figures under a verdict, in their order there."""

    terms: tuple[Term, ...]

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """A figure as it is printed, and what it counts."""
        return tuple((term.figure, term.counts or term.says) for term in self.terms)


@cache
def table_of(name: str) -> dict[str, Any]:
    """The table NAME.toml."""
    text = files("uop.conformance.reference").joinpath(f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def chapters() -> Mapping[str, tuple[Term, ...]]:
    """The words by chapter, in the order of the file."""
    return {
        title: tuple(
            Term(word, **{**fields, "see": tuple(fields.get("see", ()))})
            for word, fields in words.items()
        )
        for title, words in table_of("glossary").items()
        if title != "legend"
    }


@cache
def terms() -> Mapping[str, Term]:
    """Every word in lower case, in the singular and in the plural."""
    known = {t.word.casefold(): t for words in chapters().values() for t in words}
    return {f"{word.removesuffix('s')}s": t for word, t in known.items()} | known


@cache
def legend() -> Legend:
    """The figures under a verdict."""
    return Legend(tuple(terms()[word] for word in table_of("glossary")["legend"]))


@dataclass(frozen=True, slots=True)
class Fact:
    """What another implementation does: an expression and what it prints, or a sentence."""

    who: str
    ask: str = ""
    gives: str = ""
    says: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """``-7 / 2` is -3: rounds toward zero`."""
        example = f"`{self.ask}` is {self.gives}" if self.ask else ""
        return ": ".join(filter(None, (example, self.says)))


@cache
def facts() -> Mapping[str, tuple[Fact, ...]]:
    """What other implementations do, by the name of the op."""
    return {
        op: tuple(
            _finding(row["finding"])
            if "finding" in row
            else Fact(row["in"], **{key: value for key, value in row.items() if key != "in"})
            for row in rows_of_op
        )
        for op, rows_of_op in table_of("elsewhere").items()
    }


def _finding(name: str) -> Fact:
    """A program that a system gets wrong, tinygrad without a folder; its first line says how."""
    script = files("uop.conformance").joinpath("findings", f"{name}.py").read_text("utf-8")
    title = script.partition("\n")[0].removeprefix("# ").rstrip(".")
    folder, _, _ = name.rpartition("/")
    who = SYSTEMS[folder].title if folder else "tinygrad 0.14"
    return Fact(who, says=title, source=f"{FINDINGS}/{name}.py")
