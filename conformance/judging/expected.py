"""Computes the accepted sets of a case, from its program or from the graph it was lowered from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np

from uop.conformance.suite.case import Batch, Case
from uop.interpreter.accept import TRUNCATED, accept, reference
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.values import Value
from uop.spec.args import ConstArg
from uop.spec.errors import UndefinedError
from uop.spec.graph import rebuild, slot_of, written
from uop.spec.latitude import Profile
from uop.spec.ops.names import FLOOR_DIVISIONS, Op
from uop.spec.uop import UOp

Results = tuple[Accepted, ...]
"""The accepted results of each output of a program on one batch."""


def accepted_on(case: Case, batch: int, profile: Profile) -> Results:
    """Compute the accepted set of each output of a case on one batch.

    A lowered case has the sets of its source: the source leaves orders of reductions and some
    values open, which its kernels fix. Buffers that the source does not write may hold anything.
    Raises UndefinedError for a program or source without meaning, UnsupportedError where the
    spec does not define the accepted sets.
    """
    return _as_outputs(case, batch, lambda root, inputs: _accepted(root, inputs, profile))


def reference_on(case: Case, batch: int) -> Results:
    """The reference of each output alone, without the sets around it, which take longer.

    The strict profile accepts it. Raises UndefinedError for a program or source without meaning.
    """
    return _as_outputs(case, batch, _referenced)


def _as_outputs(case: Case, batch: int, results: Callable[[UOp, Batch], Results]) -> Results:
    """The results of a case, or of its source for the buffers of the case."""
    if case.source is None:
        return results(case.root, case.batches[batch])
    source = case.source
    sets = results(source.root, source.batches[batch])
    if source.root.op is not Op.SINK:
        return sets
    by_slot = dict(zip(written_buffers(source.root), sets, strict=True))
    return tuple(
        by_slot[slot] if slot in by_slot else Accepted(u.dtype, unwritten(u))
        for slot, u in written_buffers(case.root).items()
    )


def may_end(root: UOp, batches: Sequence[Mapping[int, Array]], profile: Profile) -> bool:
    """Whether a profile lets a program trap, because it divides by zero."""
    if not profile.int_div_traps:
        return False
    root = _as_divided(root, profile)
    divisors = {u.src[1] for u in root.toposort() if u.declaration.is_division}
    if not divisors:
        return False
    zeros: list[UOp] = [d for d in divisors if isinstance(d.arg, ConstArg) and not d.arg.value]

    def note(u: UOp, value: Value) -> None:
        if u in divisors and not value.data.all():
            zeros.append(u)

    # A program that is undefined for another reason is not judged anyway.
    with suppress(UndefinedError):
        for inputs in batches:
            evaluate_full(root, inputs, note)
    return bool(zeros)


def _as_divided(root: UOp, profile: Profile) -> UOp:
    """The program with the divisions of the profile: truncation may make another divisor zero."""
    truncating = {floors: truncates for truncates, floors in TRUNCATED.items()}

    def divided(u: UOp, src: list[UOp]) -> UOp:
        op = truncating.get(u.op, u.op) if profile.truncates(u.dtype) else u.op
        return UOp(op, *src, arg=u.arg, tag=u.tag)

    return rebuild(root, divided)


def truncates(root: UOp, profile: Profile) -> bool:
    """Whether a program has a division that the profile truncates."""
    if profile.int_div == "floor":
        return False
    floored = (u.dtype for u in root.toposort() if u.op in FLOOR_DIVISIONS)
    return any(map(profile.truncates, floored))


@lru_cache(maxsize=4)
def _accepted(root: UOp, batch: Batch, profile: Profile) -> Results:
    """Cached because the twins of a case share its batches and follow it directly."""
    return accept(root, batch.inputs, profile)


@lru_cache(maxsize=4)
def _referenced(root: UOp, batch: Batch) -> Results:
    known = batch.evaluated
    if known is None or known.root is not root:
        return reference(root, evaluate_full(root, batch.inputs))
    return reference(root, known.result)


def written_buffers(root: UOp) -> dict[int, UOp]:
    """The buffers that a program writes, by slot."""
    return {slot_of(u): u for u in sorted(written(root), key=slot_of)}


def unwritten(buffer: UOp) -> Value:
    """What memory holds that nothing stores to: it may be anything."""
    zeros = np.zeros(buffer.shape, np_dtype(buffer.dtype))
    return Value(zeros, None, np.ones(buffer.shape, np.bool_))
