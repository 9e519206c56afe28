"""Rules of any derived property, and descriptions of rules for the generated documentation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
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


def of_src(position: int, name: str) -> Callable[[Node], Any]:
    """The rule that a property is that of an operand."""
    known = attrgetter(name)
    return says(f"that of {{src[{position}]}}")(lambda u: known(u.src[position]))


def from_arg(name: str) -> Callable[[Node], Any]:
    """The rule that the arg has a property as a field."""
    return says("that of the arg")(lambda u: getattr(u.arg, name))


def words_of(rule: Callable[[Any], Any], src: Sequence[str]) -> str:
    """The description of a rule for an op with these operands; by default from its docstring."""
    words: str | None = getattr(rule, "says", None)
    if words is not None:
        return words.format(src=[name.rstrip("?*") for name in src])
    name = rule.__name__.replace("_", " ")
    return (rule.__doc__ or name).strip().splitlines()[0]
