"""The prelude of a rendered source: the C helper functions that it calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from uop.compiler.targets import prelude_cuda, prelude_float, prelude_int, prelude_vectors


@dataclass(frozen=True, slots=True)
class Helper:
    """A C function of the prelude, and the names of the helpers it calls."""

    name: str
    text: str
    calls: tuple[str, ...]


def used_helpers(body: str) -> list[Helper]:
    """The helpers that a C text calls, directly or through others, each after those it calls."""
    wanted = set(_called(body))
    for helper in reversed(HELPERS.values()):
        if helper.name in wanted:
            wanted.update(helper.calls)
    return [helper for helper in HELPERS.values() if helper.name in wanted]


def _called(text: str, among: Iterable[str] | None = None) -> list[str]:
    names = set(re.findall(r"[A-Za-z_]\w*+(?=\()", text))
    return [name for name in (HELPERS if among is None else among) if name in names]


def _split(text: str, known: Mapping[str, Helper] = MappingProxyType({})) -> dict[str, Helper]:
    """Split a text into functions, at its blank lines, and list them after those that are known.
    Callees come first.
    """
    helpers = dict(known)
    for block in filter(None, map(str.strip, text.split("\n\n"))):
        match = re.search(r"^(?:FN|APART) [^(]*?(\w+)\(", block, re.MULTILINE)
        if match is None:
            raise ValueError(f"a prelude block without a function:\n{block}")
        helpers[match[1]] = Helper(match[1], block, tuple(_called(block, helpers)))
    return helpers


SCALAR_HELPERS: dict[str, Helper] = _split(f"{prelude_int.TEXT}\n\n{prelude_float.TEXT}")
"""The helpers of every dialect."""
HELPERS: dict[str, Helper] = _split(
    f"{prelude_vectors.TEXT}\n\n{prelude_cuda.TEXT}", SCALAR_HELPERS
)
"""All helpers by name, each after those that it calls. Helpers for vectors are in OpenCL C, those
for matrices and copies in CUDA C++.
"""
