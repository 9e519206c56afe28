"""Shared by the tests of the spec: one program for each op."""

from pathlib import Path

import pytest

from uop.spec.ops.names import Op
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp

EVERY_OP = Path(__file__).parent / "every_op.uop"


@pytest.fixture(scope="session")
def examples() -> dict[Op, UOp]:
    """A program for each op, which is its last node."""
    cases = read_file(EVERY_OP).cases
    return {Op[case.id]: case.root for case in cases if case.root is not None}
