"""A part of a page, whoever prints it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: a table with its header, or code, or a paragraph."""

    title: str
    header: tuple[str, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    code: str = ""
    text: str = ""
