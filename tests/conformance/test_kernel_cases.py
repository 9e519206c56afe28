"""The hand-written kernel programs: what the reference makes of each, and that all ops have one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import uop.conformance
from uop.conformance.judging import storage
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import to_bits
from uop.spec.case import FileCase
from uop.spec.errors import UndefinedError
from uop.spec.graph import calls
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.program import parse, print_program
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp

FOLDER = Path(uop.conformance.__path__[0]) / "suite" / "cases" / "kernel"
CASES = [
    pytest.param(path.stem, case, id=f"{path.stem}-{case.id}")
    for path in sorted(FOLDER.glob("*.uop"))
    for case in read_file(path).cases
]
NOT_RUN = {Op.PROGRAM, Op.SOURCE}
"""What render makes of a kernel; `tests/interpreter/test_machine_ops.py` runs one."""


@pytest.mark.parametrize(("name", "case"), CASES)
def test_the_reference_gives_what_is_expected(name: str, case: FileCase) -> None:
    root = case.root
    assert root is not None
    assert calls(root)
    assert any(u.op.name == name for u in root.toposort())
    assert parse(print_program(root)) is root
    inputs = {slot: storage.from_literal(a) for slot, a in case.inputs.items()}
    if case.undefined:
        with pytest.raises(UndefinedError) as caught:
            evaluate_full(root, inputs)
        assert caught.value.label == case.undefined_label
        return
    result = evaluate_full(root, inputs)
    if not isinstance(result, dict):
        result = {0: result}
    assert set(result) == set(case.expect)
    for slot, array in case.expect.items():
        want, found = storage.from_literal(array), result[slot]
        nan = want != want
        assert found.unspecified is None
        assert ((found.data != found.data) == nan).all()
        np.testing.assert_array_equal(to_bits(found.data)[~nan], to_bits(want)[~nan])


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_list_of_instructions_has_sources_before_their_uses(name: str, case: FileCase) -> None:
    """Else no compiler takes it, and what it is about is checked nowhere."""
    assert case.root is not None
    for u in case.root.toposort():
        if u.op is Op.LINEAR:
            listed: set[UOp] = set()
            for instruction in u.src:
                assert listed.issuperset(instruction.src), instruction
                listed.add(instruction)


def test_every_op_of_kernels_stands_in_a_case() -> None:
    used = {u.op for p in CASES for u in p.values[1].root.toposort()}  # type: ignore[union-attr]
    expected = {op for op, d in DECLARATIONS.items() if d.section == "codegen"} - NOT_RUN
    assert expected <= used
