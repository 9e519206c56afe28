"""Makes signatures: the names of causes, by which a file of known failures lists them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uop.conformance.judging.compare import Symptom

SIGNATURES = 1
"""The version of signatures: another one where a failure gets another signature than before."""
NUMBER = re.compile(r" #\d+$")
VARYING = re.compile(r"[\d'\"%<(\[].*", re.DOTALL)
"""What differs between the messages of one exception: what follows the first number or node."""


def signature_of(symptom: Symptom, label: str, ops: Sequence[str], dtypes: Sequence[str]) -> str:
    """The signature of a failure, which failures of one cause should share."""
    broken = "" if label == symptom else label
    return " ".join(filter(None, (symptom.kind, broken, "+".join(ops), "+".join(dtypes))))


def numbered(signature: str, taken: Collection[str]) -> str:
    """A signature of its own: two causes may show in the same ops, dtypes and symptom."""
    candidates = (f"{signature} #{number}" for number in count(2))
    return next(one for one in chain([signature], candidates) if one not in taken)


def number_in(signature: str) -> str:
    """What `numbered` has added to a signature; empty if nothing."""
    found = NUMBER.search(signature)
    return found[0] if found else ""


def constant_part(message: str) -> str:
    """What all messages of one exception share."""
    return VARYING.sub("", message.partition("\n")[0])
