"""Recognises integer promotion: integers of 8 and 16 bits that are computed in 32 bits, as in C.

A backend that writes C and does not narrow each result has one fault that shows in many programs.
Their wrong values are those of the same programs with 32 bits between the ops, so the interpreter
finds them, and no program runs on the backend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from uop.conformance.backends.interpreter import in_order
from uop.conformance.judging.elements import Outputs
from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.shrink.reduce import Candidate, decomposed
from uop.conformance.suite.levels.nodes import cast
from uop.interpreter.accepted.order import same_bits
from uop.interpreter.evaluate import evaluate
from uop.interpreter.footprint import SMALL, at_most
from uop.spec.dtype import INTS, dtypes
from uop.spec.errors import UopError
from uop.spec.graph import inlined, kind_of
from uop.spec.ops.names import CONVERSIONS, Op
from uop.spec.uop import UOp

NARROW = frozenset(d for d in INTS if d.itemsize < dtypes.int32.itemsize)


def unpromoted(start: Candidate, failure: CaseFailure) -> tuple[int, ...] | None:
    """The wrong outputs that integer promotion does not explain; None if it explains no output.

    It explains an output if it gives the wrong values that the failure describes, or, where the
    failure describes none of that output, some value that differs from the right one.
    """
    wrong = failure.wrong or tuple(dict.fromkeys(e.at[0] for e in failure.values if e.at))
    if not failure.values or NARROW.isdisjoint(u.dtype for u in start.root.toposort()):
        return None
    with suppress(UopError), at_most(SMALL):
        right, *promoted = (
            in_order(evaluate(root, start.inputs)) for root in _with_promotions(start.root)
        )
        left = tuple(k for k in wrong if not _gives(k, failure, right, promoted))
        return left if len(left) < len(wrong) else None
    return None


def _gives(k: int, failure: CaseFailure, right: Outputs, promoted: Sequence[Outputs]) -> bool:
    """Whether one of the promotions gives each value of an output that the failure describes."""
    described = [e for e in failure.values if e.at and e.at[0] == k]
    if not described:
        return not all(same_bits(one[k], right[k]).all() for one in promoted)
    return all(any(e.value_in(one) == e.got for one in promoted) for e in described)


def _with_promotions(root: UOp) -> Iterator[UOp]:
    """The program in primitive ops; with all of it in 32 bits; with those values that one op reads.

    A value that two ops read may be in a variable of its dtype.
    """
    whole = root if kind_of(root).calls_kernels else decomposed(inlined(root))
    yield whole
    order = whole.toposort()
    uses = Counter(s for u in order for s in u.src)
    for once in (False, True):
        yield _promoted(order, {u for u in order if not once or uses[u] == 1})


def _promoted(order: list[UOp], kept: set[UOp]) -> UOp:
    """The last node, with the results of `kept` in 32 bits where an op reads them."""
    narrow: dict[UOp, UOp] = {}
    wide: dict[UOp, UOp] = {}

    def read(s: UOp) -> UOp:
        if s.dtype not in NARROW:
            return narrow[s]
        return wide[s] if s in wide and s in kept else cast(narrow[s], dtypes.int32)

    for u in order:
        computes = u.declaration.is_elementwise and u.op not in CONVERSIONS
        # A loop reads a view by its indices, in the expression of what it moves.
        if u.dtype in NARROW and (computes or (u.declaration.is_view and u.src[0] in wide)):
            wide[u] = u.with_src([read(s) for s in u.src])
            narrow[u] = cast(wide[u], u.dtype)
        else:
            reads = computes or u.op is Op.CAST
            narrow[u] = u.with_src([read(s) if reads else narrow[s] for s in u.src])
    return narrow[order[-1]]
