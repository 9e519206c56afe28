"""Editions: other forms of the language, read into core nodes and written with their own words.

    text = print_program(u, "2026-05")
    assert parse(text, "2026-05") is u      # where the edition can say everything

Nothing outside this package knows an edition.
"""

from __future__ import annotations

from uop.spec.editions.bestiary import BESTIARY
from uop.spec.editions.edition import Edition, edition_of
from uop.spec.editions.july_2026 import JULY_2026
from uop.spec.editions.may_2026 import MAY_2026
from uop.spec.errors import UnsupportedError
from uop.spec.uop import UOp

EDITIONS = {edition.name: edition for edition in (MAY_2026, JULY_2026, BESTIARY)}

__all__ = ["EDITIONS", "Edition", "parse", "print_program"]


def parse(text: str, edition: str = "", path: str = "") -> UOp:
    """The core node of a text of an edition; by default the one that its first line names.

    MalformedError for text that is none, InvalidError for a node that breaks a constraint,
    UnsupportedError for an op that the edition does not have.
    """
    return _named(edition or edition_of(text, path)).parse(text, path)


def print_program(root: UOp, edition: str) -> str:
    """The program under a root in the words of an edition; UnsupportedError where it has none."""
    return _named(edition).print(root)


def _named(name: str) -> Edition:
    if name not in EDITIONS:
        raise UnsupportedError(f"no edition {name!r}: expected {' or '.join(EDITIONS)}")
    return EDITIONS[name]
