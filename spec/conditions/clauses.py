"""Clauses: labelled conditions on the run of a program, and the errors for a broken one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import uop.spec.ops.declared  # noqa: F401 - enters the declarations
from uop.spec.errors import LackingError, UndefinedError, users_line
from uop.spec.registry import DECLARATIONS, Clause
from uop.spec.uop import described

if TYPE_CHECKING:
    from uop.spec.uop import UOp

OF_ALL_OPS = (
    Clause("VALUE.u1", "an element of dtype index is a number of 64 bits"),
    Clause("VALUE.n1", "the values that a program needs at once fit in memory"),
)
"""The clauses that any op can break."""


@cache
def clauses() -> dict[str, Clause]:
    """Every clause by label."""
    of_ops = [c for d in DECLARATIONS.values() for c in d.clauses]
    return {c.label: c for c in (*of_ops, *OF_ALL_OPS)}


def undefined_labels() -> frozenset[str]:
    """The labels of the clauses whose violation leaves a program without meaning (`OP.u1`)."""
    return frozenset(label for label in clauses() if label.rpartition(".")[2][0] == "u")


def undefined(label: str, found: str, *nodes: UOp) -> UndefinedError:
    """The error for a broken clause `OP.u1`, at the line that asked for the value.

    `nodes` are the node that breaks it and others that take part. A rule that does not know its
    node passes none; the evaluator adds the node with `located`.
    """
    node = described(nodes[0]) if nodes else ""
    return UndefinedError(label, clauses()[label].title, node, found, users_line(), nodes)


def lacking(label: str, found: str, *nodes: UOp) -> LackingError:
    """The error for a broken clause `OP.n1`; arguments as for `undefined`."""
    node = described(nodes[0]) if nodes else ""
    return LackingError(label, clauses()[label].title, node, found, users_line(), nodes)


def located(
    error: UndefinedError | LackingError | MemoryError, u: UOp
) -> UndefinedError | LackingError:
    """Add to an error the node whose evaluation raised it, unless the error names one."""
    if isinstance(error, MemoryError):
        return lacking("VALUE.n1", str(error) or "no memory is left", u)
    if not error.subjects:
        error.node, error.subjects = described(u), (u,)
    return error
