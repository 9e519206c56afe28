"""Every stage against the meaning of the program: what it leaves, interpreted, agrees."""

from __future__ import annotations

from graphs import SLOW, Inputs, demanded, graphs, stores
from hypothesis import given

from uop.compiler.pipeline import compile
from uop.conformance.judging.compare import compare
from uop.interpreter.evaluate import evaluate
from uop.spec.graph import slots_of
from uop.spec.uop import UOp


@SLOW
@given(graphs())
def test_each_stage_agrees_on_graphs(program: tuple[UOp, Inputs]) -> None:
    agree_at_every_stage(*program)


@SLOW
@given(stores())
def test_each_stage_agrees_on_stores(program: tuple[UOp, Inputs]) -> None:
    agree_at_every_stage(*program)


def agree_at_every_stage(root: UOp, inputs: Inputs) -> None:
    accepted = demanded(root, inputs)
    compiled = compile(root)
    for name, stage in compiled.stages.items():
        given = {slot: a for slot, a in inputs.items() if slot in slots_of(stage)}
        contents = evaluate(stage, given)
        assert isinstance(contents, dict)
        outputs = [contents[slot] for slot in compiled.executable.results]
        mismatch = compare(accepted, outputs).mismatch
        assert mismatch is None, f"{name}: {mismatch.message}"
