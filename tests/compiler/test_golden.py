"""Golden programs: what a stage leaves of one, as text. Both are run too: wrong ones fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from uop.compiler.rewriting.rewrite import unobserved
from uop.compiler.stages.callify.stage import callify
from uop.compiler.stages.expand import expand
from uop.compiler.stages.linearize import linearize
from uop.compiler.stages.optimize.stage import optimize
from uop.compiler.stages.order import TEMPORARY
from uop.compiler.stages.plan import plan
from uop.compiler.stages.rangeify.stage import rangeify
from uop.compiler.stages.select.stage import select
from uop.compiler.targets.opencl import OPENCL
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import np_dtype
from uop.spec.graph import slots_of
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp

GOLDEN = Path(__file__).parent.parent / "golden"
STAGES = {
    "callify": callify,
    "rangeify": rangeify,
    "optimize": optimize,
    "expand": expand,
    "select": lambda root: select(root, OPENCL, unobserved),
    "linearize": linearize,
    "plan": plan,
}
FILES = sorted(GOLDEN.glob("*/*.uop"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_stage_leaves_what_its_golden_says(path: Path) -> None:
    before, after = (parse(text) for text in path.read_text().split("---\n"))
    found = STAGES[path.parent.name](before)
    assert print_program(found) == print_program(after)
    assert found is after
    wanted, got = contents(before), contents(after)
    assert wanted.keys() == got.keys()
    for slot, array in wanted.items():
        np.testing.assert_array_equal(got[slot], array)


def test_every_stage_has_a_golden() -> None:
    assert {path.parent.name for path in FILES} == set(STAGES)


def contents(program: UOp) -> dict[int, np.ndarray]:
    """What the results hold. All elements of an input differ, so a wrong address cannot pass."""
    slots = slots_of(program)
    given = {
        slot: (np.arange(1, 1 + np.prod(u.shape, dtype=int)) * (slot + 3) - 7)
        .reshape(u.shape)
        .astype(np_dtype(u.dtype))
        for slot, u in slots.items()
        if u.tag is None
    }
    result = evaluate(program, given)
    assert isinstance(result, dict)
    return {slot: a for slot, a in result.items() if slots[slot].tag != TEMPORARY}
