"""Parts of a program alone: a kernel on its arguments, and what it computes as a tensor program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial

import numpy as np

from uop.conformance.shrink.reduce import Candidate, is_computing, value_of
from uop.conformance.shrink.search import Step
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array
from uop.interpreter.values import Value
from uop.spec.args import BufferArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError, UopError
from uop.spec.graph import calls, kernel_calls, replaced
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param
from uop.spec.walk import toposort

MOST_ELEMENTS = 1 << 14
"""A computation over more work items and iterations stays in its kernel."""


def calls_alone(candidate: Candidate) -> Iterator[Step]:
    """Each kernel among ops on whole tensors as a program of its own, the last one first."""
    for call in reversed(kernel_calls(candidate.root)):
        yield partial(_call_alone, candidate, call)


def _call_alone(candidate: Candidate, call: UOp) -> Candidate:
    body, *arguments = call.src
    inputs: dict[int, Array] = {}
    for slot, a in enumerate(arguments):
        # Memory that only the kernel writes has no contents before.
        with suppress(UndefinedError):
            inputs[slot] = value_of(a, candidate.inputs)
    memory = (
        UOp(Op.BUFFER, dims(a.shape), arg=BufferArg(slot, a.dtype))
        for slot, a in enumerate(arguments)
    )
    return Candidate(UOp(Op.SINK, UOp(Op.CALL, body, *memory, arg=call.arg)), inputs)


def values_alone(candidate: Candidate) -> Iterator[Step]:
    """Each value that a kernel stores or folds, as a tensor program."""
    values: dict[UOp, Array] = {}

    def keep(u: UOp, value: Value) -> None:
        if u.shape == () and value.invalid is None and value.unspecified is None:
            values[u] = value.data

    with suppress(UopError):
        evaluate_full(candidate.root, candidate.inputs, keep)
    nodes = [u for call in calls(candidate.root) for u in call.src[0].toposort()]
    used = (
        u.src[u.op is not Op.REDUCE] for u in nodes if u.declaration.is_write or u.op is Op.REDUCE
    )
    for computed in dict.fromkeys(used):
        if is_computing(computed) and not _is_input(computed):
            yield partial(_alone, computed, values)


def _alone(computed: UOp, values: Mapping[UOp, Array]) -> Candidate | None:
    order = toposort([computed], lambda u: () if _is_input(u) else u.src)
    read = [u for u in order if _is_input(u)]
    if any(u not in values for u in read):
        return None
    try:
        shape = np.broadcast_shapes(*(values[u].shape for u in read))
    except ValueError:
        # Two kernels hold one of the nodes, and the value is from the other one.
        return None
    count = int(np.prod(shape))
    if count > MOST_ELEMENTS:
        return None
    # One element needs no axis.
    flat = (count,) if count > 1 else ()
    inputs = {k: np.broadcast_to(values[u], shape).reshape(flat) for k, u in enumerate(read)}
    new = {u: param(k, flat, u.dtype) for k, u in enumerate(read)}
    return Candidate(replaced(computed, new), inputs)


def _is_input(u: UOp) -> bool:
    """Whether the value of a node becomes an input: it is read, folded, or made of indices."""
    if u.op is Op.CONST:
        return False
    return not u.declaration.is_elementwise or any(s.dtype is dtypes.index for s in u.src)
