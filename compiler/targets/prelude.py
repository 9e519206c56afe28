"""The prelude of a rendered source: the C helper functions that it calls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from uop.compiler.targets import prelude_float, prelude_int


@dataclass(frozen=True, slots=True)
class Helper:
    """A C function of the prelude, and the names of the helpers it calls."""

    name: str
    text: str
    calls: tuple[str, ...]


def used_helpers(body: str, own: str = "") -> list[Helper]:
    """The helpers that a C text calls, directly or through others, each after those it calls; `own`
    are those that only its dialect has.
    """
    helpers = all_helpers(own)
    wanted = set(_called(body, helpers))
    for helper in reversed(helpers.values()):
        if helper.name in wanted:
            wanted.update(helper.calls)
    return [helper for helper in helpers.values() if helper.name in wanted]


@cache
def all_helpers(own: str = "") -> dict[str, Helper]:
    """The helpers of every dialect and of one, by name, each after those that it calls."""
    helpers: dict[str, Helper] = {}
    text = f"{prelude_int.TEXT}\n\n{prelude_float.TEXT}\n\n{own}"
    for block in filter(None, map(str.strip, text.split("\n\n"))):
        match = re.search(r"^(?:FN|APART) [^(]*?(\w+)\(", block, re.MULTILINE)
        if match is None:
            raise ValueError(f"a prelude block without a function:\n{block}")
        helpers[match[1]] = Helper(match[1], block, tuple(_called(block, helpers)))
    return helpers


def _called(text: str, among: Iterable[str]) -> list[str]:
    names = set(re.findall(r"[A-Za-z_]\w*+(?=\()", text))
    return [name for name in among if name in names]
