"""Reads the glossary: the words of this project, and the legend of the figures under a verdict."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

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
def chapters() -> Mapping[str, tuple[Term, ...]]:
    """The words by chapter, in the order of the file."""
    return {
        title: tuple(
            Term(word, **{**fields, "see": tuple(fields.get("see", ()))})
            for word, fields in words.items()
        )
        for title, words in _file().items()
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
    return Legend(tuple(terms()[word] for word in _file()["legend"]))


@cache
def _file() -> dict[str, Any]:
    text = files("uop.conformance.reference").joinpath("glossary.toml").read_text("utf-8")
    return tomllib.loads(text)
