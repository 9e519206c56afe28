"""Checks that each dtype has a storage, and each op rules, accepted sets and test cases."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from uop.conformance.coverage.points import OF_VALUES, unspoken
from uop.conformance.suite.levels import invalid
from uop.conformance.suite.levels.written import by_file
from uop.interpreter.accepted.rules.table import ACCEPTED_SET, FLOAT_RULES
from uop.interpreter.numeric.storage import np_dtype
from uop.interpreter.rules.table import MEANING, RULES
from uop.spec.dtype import VALUES
from uop.spec.errors import IncompleteError
from uop.spec.latitude import Exact
from uop.spec.registry import DECLARATIONS, OpDef

CASES = "cases with its special values: a file NAME.uop in conformance/suite/cases/op/"
REJECTED = "a program that is rejected for {}: a case in conformance/suite/cases/invalid/"


def check_complete(ops: Collection[str] | None = None) -> None:
    """Raise IncompleteError for the first incomplete dtype or op, with all missing parts.

    `ops` limits the check to these ops.
    """
    for dtype in VALUES:
        np_dtype(dtype)
    for op, declaration in DECLARATIONS.items():
        if ops is None or op.name in ops:
            parts = tuple(_lacking(declaration))
            if parts:
                raise IncompleteError(op.name, *parts)


def _lacking(declaration: OpDef) -> Iterator[str]:
    op = declaration.op
    if declaration.dtypes and op not in RULES:
        yield MEANING
    # The accepted set of an extension op is that of its decomposition.
    has_choice = declaration.is_elementwise and not isinstance(declaration.latitude, Exact)
    if has_choice and op not in FLOAT_RULES and any(d.is_float for d in declaration.dtypes):
        yield ACCEPTED_SET
    if declaration.section in OF_VALUES and op.name not in by_file("op"):
        yield CASES.replace("NAME", op.name)
    known = invalid.programs().keys() | unspoken()
    yield from (REJECTED.format(c.label) for c in declaration.constraints if c.label not in known)
