"""The words of the rules of derived properties: each rule says itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from uop.spec.registry import Node

T = TypeVar("T")


def says(words: str) -> Callable[[Callable[[Node], T]], Callable[[Node], T]]:
    """Give a rule its words; `{src[0]}` in them is the name of an op's first operand."""

    def spoken(rule: Callable[[Node], T]) -> Callable[[Node], T]:
        rule.says = words  # type: ignore[attr-defined]
        return rule

    return spoken


def words_of(rule: Callable[[Any], Any], src: Sequence[str]) -> str:
    """What a rule says of an op with these operands; one without words says its first sentence."""
    words: str | None = getattr(rule, "says", None)
    if words is not None:
        return words.format(src=[name.rstrip("?*") for name in src])
    name = rule.__name__.replace("_", " ")
    return (rule.__doc__ or name).strip().splitlines()[0]
