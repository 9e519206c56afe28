"""What a backend is: it says hello, then takes programs as text and gives outputs or problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from uop.interpreter.values import Array


@dataclass(frozen=True, slots=True)
class Limits:
    """What a backend asks of the suite; None means no limit."""

    programs: int = 64
    """Programs it wants in one call of `run`, at most."""
    elements: int | None = None
    """Elements of its largest value."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Who a backend is, and which ops and dtypes it supports: the rest is skipped, not failed."""

    name: str
    version: str
    device: str
    ops: frozenset[str]
    dtypes: frozenset[str]
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A program as text, to be compiled once and run on each batch of inputs by slot."""

    text: str
    batches: tuple[Mapping[int, Array], ...] = ()


class ProblemKind(Enum):
    """Why a program has no outputs; the last three are found from outside."""

    UNSUPPORTED = "unsupported"
    INVALID = "invalid"
    TRAP = "trap"
    COMPILE = "compile"
    INTERNAL = "internal"
    CRASH = "crash"
    HANG = "hang"
    LEAK = "leak"


LOST = frozenset({ProblemKind.CRASH, ProblemKind.HANG, ProblemKind.LEAK})
"""The problems that cost the process of the backend."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A program without outputs. `label` names a broken constraint, if the backend knows it."""

    kind: ProblemKind
    message: str
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """The outputs per batch: a value, the members of a TUPLE, or what a SINK wrote by slot."""

    batches: tuple[tuple[Array, ...], ...]


Outcome = Outputs | Problem


class Backend(Protocol):
    """An adapter, made without arguments; it imports what it needs in `hello`."""

    def hello(self) -> Hello:
        """Start up. UnsupportedError where something is missing, saying how to get it."""

    def run(self, programs: Sequence[Program]) -> Sequence[Outcome]:
        """One outcome per program, in order."""
