"""The interpreter runs whatever the compiler takes: else nothing could judge the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from uop.compiler.pipeline import TARGETS, compile
from uop.conformance.judging.storage import from_literal
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import cases
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp

EXAMPLES = Path(__file__).parents[2] / "examples"
EFFORTS = {
    "op": "smoke", "property": "smoke", "function": "smoke", "graph": "smoke", "twin": "default",
    "kernel": "default", "schedule": "smoke", "device": "smoke",
}  # fmt: skip


def is_run(root: UOp, inputs: Mapping[int, Array]) -> bool:
    """Whether the interpreter runs a program; that it has no meaning is a result too."""
    try:
        evaluate(root, dict(inputs))
    except UnsupportedError:
        return False
    except UndefinedError:
        return True
    return True


def targets_of(root: UOp) -> list[str]:
    """The targets for which the compiler takes a program."""
    found = []
    for target in TARGETS:
        try:
            compile(root, target)
        except UnsupportedError:
            continue
        found.append(target)
    return found


def taken_alone(
    programs: Iterable[tuple[str, UOp, Mapping[int, Array]]],
) -> dict[str, list[str]]:
    """The programs that the interpreter does not run, each with the targets that take it."""
    return {name: targets_of(root) for name, root, given in programs if not is_run(root, given)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", EFFORTS)
def test_the_interpreter_runs_what_the_compiler_takes(level: str) -> None:
    found = [c for c in cases([level], effort=EFFORTS[level]) if isinstance(c, Case)]
    programs = [program for case in found for program in case.programs]
    assert len(programs) > 9
    refused = taken_alone((str(p.id), p.root, p.batches[0].inputs) for p in programs)
    assert not any(refused.values()), refused


def test_the_interpreter_runs_every_example() -> None:
    files = [f for path in sorted(EXAMPLES.rglob("*.uop")) for f in read_file(path).cases]
    programs = [
        (case.id, case.root, {slot: from_literal(a) for slot, a in case.inputs.items()})
        for case in files
        if case.root is not None
    ]
    assert len(programs) > 47
    assert not taken_alone(programs)
