"""Defines the types of backends: hello, programs, outputs, problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, runtime_checkable

from uop.conformance.protocol.untrusted import sanitized
from uop.interpreter.numeric.storage import Array

FORMS = ("tensor", "kernel", "linear", "mixed")
"""The forms of programs: graphs of values, kernels as graphs, kernels as lists of instructions,
and graphs of values with CALLs of kernels.
"""

BLAMED = "to blame: "
"""Begins the line of an explanation that names what is to blame, as `stage/rule`."""
OFFERS = ("check", "props", "stages", "source")
"""The optional checks that a backend may support."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a backend; None means no limit."""

    programs: int = 64
    """The most programs in one call of `run`."""
    elements: int | None = None
    """The most elements of a value."""
    devices: int | None = None
    """The most devices of a program."""
    inline_bytes: int | None = None
    """The most bytes of an array in a JSON line; a larger one comes as a file."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The name of a backend, and what it supports; cases about anything else are skipped."""

    name: str
    version: str
    device: str
    ops: frozenset[str]
    dtypes: frozenset[str]
    limits: Limits = Limits()
    forms: frozenset[str] = frozenset(FORMS)
    """A program in another form is lowered to one of these, where the compiler can."""
    offers: frozenset[str] = frozenset()
    """Some of OFFERS. Without `check` it gets no programs to reject."""
    editions: tuple[str, ...] = ("core",)
    """The editions that it reads; programs are written in the first that can express them."""
    profile: str = ""
    """The liberties that it declares, as knobs; empty where it declares none."""
    variant: str = ""
    """A word for one of several variants, the same for all versions and processors: `X86`."""
    supports: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By op the dtypes on which alone it is supported; an op that is not here is on all dtypes."""
    composed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By op the ops of which the adapter composes it, because the backend has no op for it."""
    tested: tuple[str, ...] = ()
    """The versions of a library that its adapter was tested with: `0.14` is every 0.14.x. Empty
    where the backend is no adapter of a library.
    """
    quick: str = ""
    """How it builds where the first of several programs is quick, as `-cl-opt-disable`; empty: as
    everywhere.
    """

    def takes(self, op: str, dtype: str) -> bool:
        """Whether the backend lists the cell of an op and a dtype."""
        return op in self.ops and dtype in self.supports.get(op, self.dtypes)

    def composition(self, op: str) -> str:
        """The sentence that an op is composed of others; empty if it is not."""
        parts = ", ".join(self.composed.get(op, ()))
        return f"{op} is composed of {parts} by the adapter" if parts else ""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A program as text: compiled once, run on each batch of inputs by slot."""

    text: str
    batches: tuple[Mapping[int, Array], ...] = ()
    quick: bool = False
    """Whether a call of `run` that begins with it may build without optimization: others do not."""


class ProblemKind(Enum):
    """Why a program has no outputs. The suite detects the last six.

    ADAPTER: an adapter has raised by itself, not the library that is judged.
    OURS: the compiler or the interpreter of this project cannot run it, whatever the device.
    KILLED: the system has killed the process through no fault of the backend.
    """

    UNSUPPORTED = "unsupported"
    INVALID = "invalid"
    TRAP = "trap"
    COMPILE = "compile"
    INTERNAL = "internal"
    ADAPTER = "adapter"
    OURS = "ours"
    PROTOCOL = "protocol"
    PROPERTY = "property"
    KILLED = "killed"
    CRASH = "crash"
    HANG = "hang"
    LEAK = "leak"


LOST = frozenset({ProblemKind.CRASH, ProblemKind.HANG, ProblemKind.LEAK})
"""The problems that end the process of the backend."""
EXCUSED = frozenset({ProblemKind.ADAPTER, ProblemKind.OURS, ProblemKind.KILLED})
"""The problems through no fault of the backend."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a program has no outputs. `label` names the violated rule, if the backend knows it."""

    kind: ProblemKind
    message: str
    label: str = ""

    def __post_init__(self) -> None:
        """Sanitize both texts: reports print them."""
        for name in ("message", "label"):
            object.__setattr__(self, name, sanitized(getattr(self, name)))


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """The outputs per batch: a value, the members of a TUPLE, or the written buffers by slot."""

    batches: tuple[tuple[Array, ...], ...]


Outcome = Outputs | Problem
IsRight = Callable[[Outcome], bool]
"""Says whether an outcome of a program is accepted."""


@dataclass(frozen=True, slots=True)
class StageText:
    """What a stage of a compiler leaves: a program as text, and the slots of its outputs.

    Without slots its outputs are those of the program, in order.
    """

    name: str
    text: str
    outputs: tuple[int, ...] = ()


class Backend(Protocol):
    """An adapter; it imports what it needs in `hello`."""

    def hello(self) -> Hello:
        """Start up. UnsupportedError where something is missing, with how to install it."""

    def run(self, programs: Sequence[Program]) -> Sequence[Outcome]:
        """One outcome per program, in order."""


class StagedBackend(Backend, Protocol):
    """An adapter whose hello offers `stages`."""

    def stages(self, program: Program) -> Sequence[StageText]:
        """What its stages make of a program, in order; none where it does not compile."""


@runtime_checkable
class LocatingBackend(Backend, Protocol):
    """An adapter of a compiler that names the rule or the source line that is to blame."""

    def locate(self, program: Program) -> str:
        """What is to blame for the failure of a program, as lines; empty where nothing is found."""


@runtime_checkable
class CountingBackend(Backend, Protocol):
    """An adapter of a compiler that counts the rules that fire."""

    def fired(self) -> Mapping[str, int]:
        """For each rule the number of programs it fired in since the last call, also where 0."""
