"""Backends in Python whose texts try to forge a line of a log."""

import sys
from collections.abc import Sequence

from hostile_worker import EVIL, OWNED

from uop.conformance.protocol.types import Hello, Outcome, Problem, ProblemKind, Program
from uop.spec.errors import UnsupportedError

TAKEN = frozenset({"PARAM", "CONST", "ADD"}), frozenset({"float32"})


class Answering:
    def hello(self) -> Hello:
        return Hello(OWNED, OWNED, OWNED, *TAKEN)

    def run(self, programs: Sequence[Program]) -> Sequence[Outcome]:
        return [Problem(ProblemKind.INTERNAL, EVIL, EVIL) for _ in programs]


class Named(Answering):
    def hello(self) -> Hello:
        return Hello(EVIL, EVIL, EVIL, *TAKEN)


class Raising(Answering):
    def hello(self) -> Hello:
        raise UnsupportedError(EVIL)


class Leaving(Answering):
    def hello(self) -> Hello:
        sys.exit(EVIL)
