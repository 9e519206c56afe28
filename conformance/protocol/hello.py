"""Checks the hello of a backend, an adapter or a worker of JSON lines.

Imports nothing of the compiler: a backend starts while the judge is loaded.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict

from uop.conformance.protocol.types import FORMS, OFFERS, Hello, Limits
from uop.conformance.protocol.untrusted import sanitized
from uop.interpreter.numeric.storage import STORAGE
from uop.spec.dtype import dtypes
from uop.spec.editions import EDITIONS
from uop.spec.errors import UopError
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import parse_profile

CORE = "core"
SHOWN = 60
LONGEST = 200
"""The most characters of the name, version and device of a backend."""
VARIANT = re.compile(r"[A-Za-z0-9._+-]{0,60}")
NAMED: Mapping[str, Collection[str]] = {
    "ops": Op.__members__,
    "dtypes": STORAGE,
    "forms": FORMS,
    "offers": OFFERS,
    "editions": (CORE, *EDITIONS),
}
"""The lists of a hello, with the names that each may contain."""


class DeviationError(UopError):
    """A reply violates the protocol: says where, what was expected and what was found."""

    def __init__(self, place: str, expected: str, found: object) -> None:
        super().__init__(sanitized(f"{place}: expected {expected}, found {shown(found)}"))


def shown(found: object) -> str:
    """The first characters of a value in a reply."""
    is_plain = isinstance(found, str) and found != "" and found.isprintable()
    text = str(found) if is_plain else json.dumps(found, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def checked(hello: object) -> Hello:
    """Check a hello and return it. DeviationError where a field is wrong."""
    if not isinstance(hello, Hello):
        raise DeviationError("hello", "a Hello", type(hello).__name__)
    for name in ("name", "version", "device"):
        text = getattr(hello, name)
        if not isinstance(text, str) or not _is_a_name(text):
            raise DeviationError(f"hello: {name}", f"1 to {LONGEST} printable characters", text)
    if not isinstance(hello.variant, str) or not VARIANT.fullmatch(hello.variant):
        raise DeviationError("hello: variant", "letters, digits and any of . _ + -", hello.variant)
    for name, known in NAMED.items():
        listed = getattr(hello, name)
        if not _are_names(listed):
            raise DeviationError(f"hello: {name}", "a list of names", listed)
        if name != "offers" and not listed:
            raise DeviationError(f"hello: {name}", "at least one", "none")
        for unknown in sorted(set(listed) - {*known, dtypes.void.name}):
            raise DeviationError(f"hello: {name}", _one_of(known), unknown)
    if not isinstance(hello.tested, tuple) or not all(
        isinstance(version, str) and _is_a_name(version) for version in hello.tested
    ):
        raise DeviationError("hello: tested", "a tuple of versions", hello.tested)
    if not isinstance(hello.quick, str) or (hello.quick and not _is_a_name(hello.quick)):
        raise DeviationError("hello: quick", f"at most {LONGEST} printable characters", hello.quick)
    _check_lists(hello, "supports", "dtypes", hello.dtypes, "dtypes that `dtypes` lists")
    _check_lists(hello, "composed", "ops", Op.__members__, _one_of(NAMED["ops"]))
    _check_limits(hello.limits)
    if not isinstance(hello.profile, str):
        raise DeviationError("hello: profile", "a string", hello.profile)
    try:
        parse_profile(hello.profile or "strict")
    except UopError as error:
        raise DeviationError("hello: profile", f"known knobs ({error})", hello.profile) from None
    return hello


def _is_a_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST and text.isprintable() and sanitized(text) == text


def _are_names(listed: object) -> bool:
    if isinstance(listed, str) or not isinstance(listed, Collection):
        return False
    return all(isinstance(name, str) for name in listed)


def _check_lists(hello: Hello, name: str, what: str, known: Collection[str], expected: str) -> None:
    """Raise DeviationError unless a field maps listed ops to lists of known names."""
    by_op = getattr(hello, name)
    if not isinstance(by_op, Mapping) or not _are_names([*by_op]):
        raise DeviationError(f"hello: {name}", f"lists of {what} by op", by_op)
    for unlisted in sorted(by_op.keys() - set(hello.ops)):
        raise DeviationError(f"hello: {name}", "ops that `ops` lists", unlisted)
    for op, listed in by_op.items():
        if not _are_names(listed) or not listed:
            raise DeviationError(f"hello: {name}: {op}", f"a list of {what}", listed)
        for unknown in sorted(set(listed) - set(known)):
            raise DeviationError(f"hello: {name}: {op}", expected, unknown)


def _check_limits(limits: object) -> None:
    if not isinstance(limits, Limits):
        raise DeviationError("hello: limits", "Limits", type(limits).__name__)
    for name, limit in asdict(limits).items():
        least = 1 if name == "programs" else 0
        is_none = limit is None and not least
        if not is_none and (type(limit) is not int or not least <= limit <= sys.maxsize):
            expected = f"a number from {least} to {sys.maxsize}"
            raise DeviationError(f"hello: limits: {name}", expected, limit)


def _one_of(known: Collection[str]) -> str:
    if len(known) > len(STORAGE):
        return "names that `uop explain` knows"
    return f"some of {', '.join(known)}"
