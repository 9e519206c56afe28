"""Rules of a compiler that fire in a run: each program counts once, and silent rules show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from uop.compiler.pipeline import rules_of
from uop.conformance.backends.compiled import CompiledBackend, OpenCLBackend
from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.protocol.types import Outcome, Outputs, Program
from uop.conformance.report.model import Report
from uop.conformance.run.conform import conform
from uop.conformance.run.options import Options
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp, param


class Counting(InterpreterBackend):
    """Fires one rule in each program, one in those with a NEG, one never."""

    def __init__(self) -> None:
        self.counts = Counter({"a/each": 0, "a/neg": 0, "b/never": 0})

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        self.counts["a/each"] += len(programs)
        self.counts["a/neg"] += sum("NEG" in program.text for program in programs)
        return super().run(programs)

    def fired(self) -> Mapping[str, int]:
        counts, self.counts = self.counts, Counter(dict.fromkeys(self.counts, 0))
        return counts


class Wrong(Counting):
    """Every program runs again: it fails."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [
            Outputs(tuple(tuple(a + 1 for a in b) for b in outcome.batches))
            if isinstance(outcome, Outputs)
            else outcome
            for outcome in super().run(programs)
        ]


def judged(name: str, folder: Path) -> Report:
    options = Options(
        f"test_fired:{name}",
        levels=("op",),
        ops=("ADD", "NEG"),
        dtypes=("int32",),
        effort="smoke",
        examples=3,
        workers=1,
        output=folder,
    )
    return conform(options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Counting", "Wrong"])
def test_a_run_counts_each_judged_program_once(name: str, tmp_path: Path) -> None:
    report = judged(name, tmp_path)
    negs = sum(cell.programs for cell in report.cells if cell.op == "NEG")
    assert negs > 0
    assert report.rules == {"a/each": report.summary.programs, "a/neg": negs, "b/never": 0}


@pytest.mark.usefixtures("opencl")
def test_our_compiler_tells_all_its_rules_and_those_that_fire() -> None:
    backend: CompiledBackend = OpenCLBackend()
    backend.hello()
    sums = [UOp(Op.ADD, x, x) for x in (param(0, (3,), d) for d in (dtypes.float16, dtypes.int32))]
    data = np.zeros(3, np.float16), np.zeros(3, np.int32)
    programs = [Program(print_program(u), ({0: a},)) for u, a in zip(sums, data, strict=True)]
    backend.run(programs)
    counts = backend.fired()
    assert list(counts) == rules_of("opencl")
    assert counts["select/emulate"] == 1
    assert counts["optimize/run_outputs_in_parallel"] == 2
    assert counts["expand/range_into_axis"] == 0
    # What is asked about a failure counts no program.
    backend.stages(programs[0])
    assert set(backend.fired().values()) == {0}
