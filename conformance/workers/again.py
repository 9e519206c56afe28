"""Sends programs again: alone, one after the other, with their data in reverse order.

A backend may be right on what it gets first, or on many programs together, and wrong on what users
do: run one program, and run it again with other data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from uop.conformance.protocol.types import IsRight, Outcome, Outputs, Program
from uop.conformance.workers.transport import Session


class Again:
    """A session whose programs run alone, with their batches in reverse order."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.hello = replace(session.hello, limits=replace(session.hello.limits, programs=1))

    @property
    def peak(self) -> int:
        return self.session.peak

    @property
    def fired(self) -> Mapping[str, int]:
        return self.session.fired

    def submit(self, programs: Sequence[Program]) -> None:
        self.session.submit([replace(p, batches=p.batches[::-1]) for p in programs])

    def collect(self) -> list[Outcome]:
        return [
            Outputs(outcome.batches[::-1]) if isinstance(outcome, Outputs) else outcome
            for outcome in self.session.collect()
        ]

    def explain(self, program: Program, is_right: IsRight) -> str:
        return self.session.explain(program, is_right)

    def expecting_losses(self) -> AbstractContextManager[None]:
        return self.session.expecting_losses()

    def close(self) -> None:
        self.session.close()
