"""Descriptions of the rules of derived properties, for the generated documentation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from uop.spec.registry import Node

T = TypeVar("T")


def says(words: str) -> Callable[[Callable[[Node], T]], Callable[[Node], T]]:
    """Attach a description to a rule; `{src[0]}` stands for the name of the first operand."""

    def spoken(rule: Callable[[Node], T]) -> Callable[[Node], T]:
        rule.says = words  # type: ignore[attr-defined]
        return rule

    return spoken


def words_of(rule: Callable[[Any], Any], src: Sequence[str]) -> str:
    """The description of a rule for an op with these operands; by default from its docstring."""
    words: str | None = getattr(rule, "says", None)
    if words is not None:
        return words.format(src=[name.rstrip("?*") for name in src])
    name = rule.__name__.replace("_", " ")
    return (rule.__doc__ or name).strip().splitlines()[0]
