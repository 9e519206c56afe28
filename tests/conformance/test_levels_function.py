"""Graphs computed by functions: they nest, share bodies, and mean what they do written out."""

from __future__ import annotations

from collections import Counter

import pytest

from uop.conformance.suite import generate
from uop.conformance.suite.case import Case
from uop.interpreter.evaluate import FullOutput, evaluate_full
from uop.interpreter.inputs import Inputs
from uop.interpreter.values import Value
from uop.spec.graph import inlined, outside, outside_bodies, slots_of, toposort
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [c for c in generate.cases(["function"]) if isinstance(c, Case)]


def functions(root: UOp) -> list[UOp]:
    return [u for u in root.toposort() if u.op is Op.FUNCTION]


def values(output: FullOutput) -> tuple[Value, ...]:
    if isinstance(output, dict):
        return tuple(output.values())
    return output if isinstance(output, tuple) else (output,)


def on_what_it_uses(root: UOp, inputs: Inputs) -> FullOutput:
    """An argument that no body reads is no input of what is written out."""
    used = slots_of(root)
    return evaluate_full(root, {slot: a for slot, a in inputs.items() if slot in used})


def test_functions_mean_what_they_do_written_out(cases: list[Case]) -> None:
    for case in cases[::2]:
        written_out = inlined(case.root)
        assert not functions(written_out)
        for batch in case.batches[:1]:
            called, plain = (on_what_it_uses(r, batch.inputs) for r in (case.root, written_out))
            for a, b in zip(values(called), values(plain), strict=True):
                assert a.data.tobytes() == b.data.tobytes(), case.id


def test_bodies_nest_and_functions_take_what_others_return(cases: list[Case]) -> None:
    inside = [c for c in cases if any(functions(f.src[0]) for f in functions(c.root))]
    chained = [
        c
        for c in cases
        if any(
            u.op is Op.FUNCTION
            for f in functions(c.root)
            for u in toposort(f.src[1:], outside_bodies)
        )
    ]
    assert len(inside) > len(cases) / 4
    assert len(chained) > len(cases) / 4


def test_shared_bodies_are_called_twice_with_other_arguments(cases: list[Case]) -> None:
    shared = [c for c in cases if c.group == "shared"]
    twice = 0
    for case in shared:
        calls = Counter(u.src[0] for u in outside(case.root) if u.op is Op.FUNCTION)
        twice += max(calls.values()) > 1
    assert twice > 0.9 * len(shared)


def test_functions_return_several_results_and_take_an_argument_twice(cases: list[Case]) -> None:
    calls = [f for c in cases for f in functions(c.root)]
    assert sum(len(f.src[0].src) > 1 for f in calls) > len(calls) / 3
    assert sum(len(set(f.src[1:])) < len(f.src) - 1 for f in calls) > len(calls) / 20
