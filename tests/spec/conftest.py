"""Shared by the tests of the spec: one program for each op."""

from pathlib import Path

import pytest

from uop.conformance.suite.levels.op.elementwise import operand_dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp, param

EVERY_OP = Path(__file__).parent / "every_op.uop"


@pytest.fixture(scope="session")
def examples() -> dict[Op, UOp]:
    """A program for each op, which is its last node; one on values alone needs none in the file."""
    cases = read_file(EVERY_OP).cases
    found = {Op[case.id]: case.root for case in cases if case.root is not None}
    for op, declaration in DECLARATIONS.items():
        if op not in found and declaration.takes_values:
            taken = operand_dtypes(declaration, declaration.dtypes[-1])
            found[op] = UOp(op, *(param(k, (2, 3), dtype) for k, dtype in enumerate(taken)))
    return found
