"""What a backend is: it says hello, then takes programs as text and gives outputs or problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from uop.conformance.protocol.untrusted import sanitized
from uop.interpreter.numeric.storage import Array

FORMS = ("tensor", "kernel", "linear")
"""The forms of programs: graphs of values, kernels as graphs, kernels as lists of instructions."""

OFFERS = ("check", "props", "stages", "source")
"""What a backend may do beside running programs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a backend asks of the suite; None means no limit."""

    programs: int = 64
    """Programs it wants in one call of `run`, at most."""
    elements: int | None = None
    """Elements of its largest value."""
    devices: int | None = None
    """Devices that a program may name."""
    inline_bytes: int | None = None
    """Bytes of an array in a line; a larger one comes as a file. Only over JSON lines."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Who a backend is, and what it takes: the rest is never sent to it, and skipped."""

    name: str
    version: str
    device: str
    ops: frozenset[str]
    dtypes: frozenset[str]
    limits: Limits = Limits()
    forms: frozenset[str] = frozenset(FORMS)
    """A program in another form is lowered to one of these, where the compiler can."""
    offers: frozenset[str] = frozenset()
    """Some of OFFERS; without `check` it is sent no program that it would have to reject."""
    editions: tuple[str, ...] = ("core",)
    """The words that it reads; programs are written in the first."""
    profile: str = ""
    """The liberties it declares, as knobs; none for those that the run allows."""
    variant: str = ""
    """Which of several it is, in a word that no version and no processor changes: `X86`."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A program as text, to be compiled once and run on each batch of inputs by slot."""

    text: str
    batches: tuple[Mapping[int, Array], ...] = ()


class ProblemKind(Enum):
    """Why a program has no outputs; the last five are found from outside."""

    UNSUPPORTED = "unsupported"
    INVALID = "invalid"
    TRAP = "trap"
    COMPILE = "compile"
    INTERNAL = "internal"
    PROTOCOL = "protocol"
    PROPERTY = "property"
    CRASH = "crash"
    HANG = "hang"
    LEAK = "leak"


LOST = frozenset({ProblemKind.CRASH, ProblemKind.HANG, ProblemKind.LEAK})
"""The problems that cost the process of the backend."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A program without outputs. `label` names what was broken, if the backend knows it."""

    kind: ProblemKind
    message: str
    label: str = ""

    def __post_init__(self) -> None:
        """Both texts are shown and written."""
        for name in ("message", "label"):
            object.__setattr__(self, name, sanitized(getattr(self, name)))


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
