"""What a backend may say of itself, in a process of ours or as lines of JSON.

A backend is greeted while its judge is loaded: nothing of the compiler is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from uop.conformance.processes import printable
from uop.conformance.protocol import FORMS, OFFERS, Hello
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.editions import EDITIONS
from uop.spec.errors import UopError
from uop.spec.ops.names import Op
from uop.spec.profile_text import parse_profile

CORE = "core"
SHOWN = 60
NAMES_OF_DTYPES = tuple(name for name in DTYPES if name != dtypes.void.name)
LONGEST = 200
"""Characters of a name of a backend."""
NAMED = {
    "ops": tuple(Op.__members__),
    "dtypes": NAMES_OF_DTYPES,
    "forms": FORMS,
    "offers": OFFERS,
    "editions": (CORE, *EDITIONS),
}
"""What a hello lists, and the names that each list may have."""


class DeviationError(UopError):
    """A reply that the protocol does not allow: where, what was expected, what was found."""

    def __init__(self, place: str, expected: str, found: object) -> None:
        super().__init__(f"{place}: expected {expected}, found {shown(found)}")


def shown(found: object) -> str:
    """The beginning of what was found in a reply, printable."""
    text = found if isinstance(found, str) else json.dumps(found, default=str)
    return printable(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")


def check_hello(hello: Hello) -> None:
    """DeviationError for what no backend can be, in a process of ours or as lines of JSON."""
    for name in ("name", "version", "device"):
        text = getattr(hello, name)
        if not isinstance(text, str) or not text.isprintable() or not 0 < len(text) <= LONGEST:
            raise DeviationError(f"hello: {name}", f"1 to {LONGEST} printable characters", text)
    for name, known in NAMED.items():
        given = getattr(hello, name)
        if name != "offers" and not given:
            raise DeviationError(f"hello: {name}", "at least one", "none")
        for unknown in sorted(set(given) - {*known, dtypes.void.name}):
            raise DeviationError(f"hello: {name}", _one_of(known), unknown)
    try:
        parse_profile(hello.profile or "strict")
    except UopError as error:
        raise DeviationError("hello: profile", f"known knobs ({error})", hello.profile) from None


def _one_of(known: Sequence[str]) -> str:
    if len(known) > len(NAMES_OF_DTYPES):
        return "names that `uop explain` knows"
    return f"some of {', '.join(known)}"
