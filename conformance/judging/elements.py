"""Single elements of results in words, and how much of its allowance a result uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uop.conformance.judging import storage
from uop.conformance.judging.compare import element_text, place_of
from uop.conformance.suite.case import Batch, Case
from uop.interpreter.accepted import order
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.storage import Array, Mask
from uop.interpreter.show import dtype_of
from uop.spec.args import ConstArg, ParamArg
from uop.spec.graph import slot_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

PARTS = 8
"""Equal parts of an allowance in a histogram."""
BINS = PARTS + 2
"""Of a histogram: the reference itself, each part of the allowance, outside of it."""
MOST_VALUES = 4
"""Elements of a wrong result that are told."""
IN_PLACE = frozenset({Op.PARAM, Op.CONST, Op.BITCAST})
Outputs = Sequence[Array]
Sets = Sequence[Accepted]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a result: its place, its value, and what that might be.

    `inputs` are the elements it is computed from, by operand or slot; empty where a result
    takes several of an input.
    """

    place: str
    inputs: tuple[str, ...]
    got: str
    accepted: str


@dataclass(frozen=True, slots=True)
class Errors:
    """How far results lie from the reference, and the one that lies farthest, `ulp` values off.

    `histogram` counts float results that may differ from the reference: those equal to it, those
    in each of eight equal parts of the allowance, those outside.
    """

    histogram: tuple[int, ...] = (0,) * BINS
    ulp: float = 0.0
    largest: Element | None = None


def wrong_elements(case: Case, batch: int, accepted: Sets, outputs: Outputs) -> tuple[Element, ...]:
    """The first elements of a batch outside their sets; none where the outputs do not fit them."""
    found: list[Element] = []
    for position, (sets, output) in enumerate(zip(accepted, outputs, strict=False)):
        if (sets.value.data.dtype, sets.value.data.shape) != (output.dtype, output.shape):
            return ()
        outside = np.flatnonzero(~sets.contains(output).reshape(-1))
        for flat in outside[: MOST_VALUES - len(found)].tolist():
            found.append(element_at(case, batch, position, sets, output, flat))
    return tuple(found)


def errors_of(case: Case, accepted: Sequence[Sets], outputs: Sequence[Outputs]) -> Errors | None:
    """The errors of a case over all batches, whose outputs fit their sets; None without any."""
    with np.errstate(all="ignore"):
        return _errors_of(case, accepted, outputs)


def _errors_of(case: Case, accepted: Sequence[Sets], outputs: Sequence[Outputs]) -> Errors | None:
    counts, farthest, largest = np.zeros(BINS, np.int64), 0.0, None
    for batch, pairs in enumerate(zip(accepted, outputs, strict=True)):
        for position, (sets, output) in enumerate(zip(*pairs, strict=True)):
            if order.same_bits(sets.value.data, output).all():
                # The common case: nothing is measured.
                counts[0] += np.count_nonzero(_has_room(sets))
                continue
            distance = sets.distance(output)
            counts += _histogram(sets, output, distance)
            finite = np.where(np.isfinite(distance), distance, 0).reshape(-1)
            if finite.size and finite.max() > farthest:
                flat = int(finite.argmax())
                farthest, largest = float(finite[flat]), (batch, position, sets, output, flat)
    if largest is None and not counts.any():
        return None
    return Errors(tuple(counts.tolist()), farthest, largest and element_at(case, *largest))


def element_at(
    case: Case, batch: int, position: int, sets: Accepted, output: Array, flat: int
) -> Element:
    """One element of an output, counted row-major."""
    return Element(
        f"output {position}[{place_of(output, flat)}]",
        inputs_at(case.root, case.batches[batch], flat),
        element_text(sets.dtype, output, flat),
        sets.describe(flat),
    )


def inputs_at(root: UOp, batch: Batch, flat: int) -> tuple[str, ...]:
    """What one element is computed from: the operands of one op, else the inputs by slot.

    Nothing where the graph moves or folds elements.
    """
    if not all(_is_in_place(u) for u in root.toposort()):
        return ()
    inputs = {
        slot: element_text(dtype_of(a), np.ascontiguousarray(np.broadcast_to(a, root.shape)), flat)
        for slot, a in sorted(batch.inputs.items())
    }
    is_op = bool(root.src) and root.op is not Op.STACK
    if is_op and all(isinstance(u.arg, ConstArg | ParamArg) for u in root.src):
        return tuple(
            storage.spelled(u.arg.bits, u.dtype)
            if isinstance(u.arg, ConstArg)
            else inputs[slot_of(u)]
            for u in root.src
        )
    return tuple(inputs.values())


def element_from_json(found: Mapping[str, Any]) -> Element:
    """The inverse of dataclasses.asdict, after JSON."""
    return Element(**{**found, "inputs": tuple(found["inputs"])})


def errors_from_json(found: Mapping[str, Any]) -> Errors:
    """The inverse of dataclasses.asdict, after JSON."""
    largest = found["largest"]
    return Errors(tuple(found["histogram"]), found["ulp"], largest and element_from_json(largest))


def _is_in_place(u: UOp) -> bool:
    """Whether each element of a node depends on the same element of its operands."""
    if u.op is Op.BITCAST and u.shape != u.src[0].shape:
        return False
    is_constant = u.op is Op.STACK and all(s.op is Op.CONST for s in u.src)
    return is_constant or u.op in IN_PLACE or u.declaration.is_elementwise


def _histogram(accepted: Accepted, output: Array, distance: Array) -> Array:
    """The counts of one output, all 0 where only the reference is accepted."""
    s, reference, counted = accepted.sets, accepted.value.data, _has_room(accepted)
    if s is None or not counted.any():
        return np.zeros(BINS, np.int64)
    is_above = order.keys(output) > order.keys(reference)
    allowed = np.where(is_above, order.distance(reference, s.hi), order.distance(s.lo, reference))
    part = np.ceil(PARTS * distance / np.maximum(allowed, 1))
    part = np.where(accepted.contains(output), part, BINS - 1)
    return np.bincount(part[counted & np.isfinite(distance)].astype(np.int64), minlength=BINS)


def _has_room(accepted: Accepted) -> Mask:
    """The elements of which more ordinary values than the reference are accepted, but not any."""
    s = accepted.sets
    if s is None or not accepted.dtype.is_float:
        return np.zeros(accepted.value.data.shape, np.bool_)
    key, lo, hi = (order.keys(a) for a in (accepted.value.data, s.lo, s.hi))
    return np.asarray((lo <= key) & (key <= hi) & (lo < hi) & ~accepted.any)
