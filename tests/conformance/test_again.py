"""Backends that are right on what they get first: programs that are judged again show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import c_uint8
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.protocol.types import Hello, Outcome, Outputs, Program
from uop.conformance.report.model import PASSES_ANEW, Conclusion, Report
from uop.conformance.report.text import failure_lines
from uop.conformance.run.options import Options
from uop.conformance.run.order import AGAIN, to_send_again
from uop.conformance.run.run import conform
from uop.conformance.suite.case import CaseId
from uop.interpreter.numeric.storage import Array


def wrong(outcome: Outcome) -> Outcome:
    """An outcome whose first element differs in its first bit."""
    assert isinstance(outcome, Outputs)
    return Outputs(tuple(tuple(map(_wrong, outputs)) for outputs in outcome.batches))


def _wrong(array: Array) -> Array:
    data = array.copy()
    data.reshape(-1).view(np.uint8)[:1] ^= 1
    return data


class Small(InterpreterBackend):
    def hello(self) -> Hello:
        return replace(super().hello(), ops=frozenset({"PARAM", "CONST", "ADD", "MUL", "NEG"}))


class WrongAlone(Small):
    """A fault of the path of one program."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        return outcomes if len(programs) > 1 else list(map(wrong, outcomes))


class Remembering(Small):
    """A cache by program, which forgets that inputs differ."""

    def __init__(self) -> None:
        self.seen: dict[str, Outcome] = {}

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        return [self.seen.setdefault(p.text, o) for p, o in zip(programs, outcomes, strict=True)]


class RightOnce(Small):
    """A result that is wrong whenever its program was run before."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        for k, program in enumerate(programs):
            outcomes[k] = wrong(outcomes[k]) if program.text in self.seen else outcomes[k]
            self.seen.add(program.text)
        return outcomes


class InPlace(Small):
    """A backend that computes in the memory of its inputs."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        for program in programs:
            for batch in program.batches:
                for array in batch.values():
                    array.reshape(-1).view(np.uint8)[:1] ^= 1
        return outcomes


class Beyond(Small):
    """A backend whose result depends on the byte behind an input."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        outcomes = super().run(programs)
        return [
            wrong(o) if any(map(is_odd_behind, p.batches)) else o
            for p, o in zip(programs, outcomes, strict=True)
        ]


def is_odd_behind(batch: Mapping[int, Array]) -> bool:
    behind = (c_uint8.from_address(a.ctypes.data + a.nbytes) for a in batch.values() if a.size)
    return any(byte.value & 1 for byte in behind)


@pytest.mark.parametrize("cheat", [WrongAlone, Remembering, RightOnce, InPlace, Beyond])
def test_a_cheat_does_not_conform(cheat: type[Small], tmp_path: Path) -> None:
    report = judged(cheat.__name__, tmp_path)
    assert report.conclusion is Conclusion.DOES_NOT
    assert report.failures


def judged(name: str, folder: Path) -> Report:
    return conform(
        Options(
            f"test_again:{name}",
            profile="strict",
            dtypes=("int32",),
            levels=("op",),
            effort="smoke",
            workers=1,
            output=folder,
        )
    )


def test_what_no_new_process_repeats_is_told(tmp_path: Path) -> None:
    report = judged("RightOnce", tmp_path)
    assert report.summary.again > 0
    assert not any(failure.repeats for failure in report.failures)
    assert any(PASSES_ANEW in line for line in failure_lines(report))
    report = judged("WrongAlone", tmp_path)
    assert all(failure.repeats for failure in report.failures)


def test_the_seed_selects_what_is_judged_again() -> None:
    ids = [CaseId("op", op, "int32", "edges", k) for op in ("ADD", "MUL", "NEG") for k in range(30)]
    ids.append(CaseId("op", "ADD", "int32", "launches", 0))
    first = to_send_again(ids, "smoke", 0)
    assert first[0].group == "launches"
    assert len(to_send_again(ids, "full", 0)) == 4 <= AGAIN["smoke"]
    assert first != to_send_again(ids, "smoke", 1)
