"""Editions: reads other published forms of the language into core nodes, and prints them.

text = print_program(u, "2026-05")
    assert parse(text, "2026-05") is u      # where the edition can say everything

Nothing outside this package knows an edition.
"""

from __future__ import annotations

from uop.spec.editions.bestiary import BESTIARY
from uop.spec.editions.edition import Edition, edition_of
from uop.spec.editions.july_2026 import JULY_2026
from uop.spec.editions.published import JUNE_2026, MAY_2026
from uop.spec.editions.tree import print_tree as trees_of
from uop.spec.errors import UnsupportedError
from uop.spec.uop import UOp

EDITIONS = {edition.name: edition for edition in (MAY_2026, JUNE_2026, JULY_2026, BESTIARY)}

__all__ = ["EDITIONS", "Edition", "parse", "print_program", "print_tree"]


def parse(text: str, edition: str = "", path: str = "") -> UOp:
    """Read a program of an edition, by default the one that the first line names.

    MalformedError for other text, InvalidError for a node that breaks a constraint,
    UnsupportedError for an op that the edition does not have.
    """
    return _named(edition or edition_of(text, path)).parse(text, path)


def print_program(root: UOp, edition: str) -> str:
    """Print a program in an edition; UnsupportedError for an op that it cannot express."""
    return _named(edition).print(root)


def print_tree(root: UOp) -> str:
    """Print a program as the trees of the bestiary; the errors are those of `print_program`."""
    return trees_of(BESTIARY, root)


def _named(name: str) -> Edition:
    if name not in EDITIONS:
        raise UnsupportedError(f"no edition {name!r}: expected {' or '.join(EDITIONS)}")
    return EDITIONS[name]
