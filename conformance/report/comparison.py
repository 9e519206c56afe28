"""What a report says of other backends: votes, a backend compared with, repros of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from uop.conformance.judging.verdict import Status


class VoteOutcome(StrEnum):
    """The result of the votes on a case."""

    SUSPECT = "interpreter suspect"
    ODD = "odd one out"
    NONE = "no majority"


@dataclass(frozen=True, slots=True)
class VotedCase:
    """A case that some backend failed: the answer of each backend, and those in the minority."""

    id: str
    says: Mapping[str, str]
    verdict: VoteOutcome
    odd: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vote:
    """The cases that failed on one of several backends; `missing` are those that did not start."""

    backends: tuple[str, ...]
    missing: tuple[str, ...]
    cases: tuple[VotedCase, ...]


@dataclass(frozen=True, slots=True)
class Flaky:
    """A failure that does not repeat: what came in the run, and in a new process."""

    signature: str
    then: str
    now: str

    @property
    def text(self) -> str:
        """Both results, in a line."""
        return f"in the run: {self.then}; in the new process: {self.now}"


@dataclass(frozen=True, slots=True)
class Against:
    """The backend that a fuzz run compares with: failing programs that do not count.

    `shared` fail on it too, `skipped` it does not take; `flaky` did not repeat.
    """

    backend: str
    shared: int
    skipped: int
    flaky: tuple[Flaky, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of the repro of a cause that another backend has shown.

    `gives` is what stands at its first wrong element, or else a message.
    """

    program: str
    """The digest of its text."""
    status: Status
    gives: str


def digest_of(text: str) -> str:
    """The digest of the text of a repro."""
    return sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]
