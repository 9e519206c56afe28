"""Describes single result elements, and computes the error histogram."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uop.conformance.judging.compare import element_text, place_of
from uop.conformance.judging.storage import spelled
from uop.conformance.suite.case import Batch, Case
from uop.interpreter.accepted import order
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.storage import STORED, Array, Mask
from uop.spec.args import ConstArg, ParamArg
from uop.spec.graph import slot_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

PARTS = 8
"""A histogram divides the allowance into this many equal parts."""
BINS = PARTS + 2
"""One bin for results equal to the reference, one per part, one for results outside."""
MOST_VALUES = 4
"""A failure describes at most this many wrong elements."""
PLACE = re.compile(r"output (?P<output>\d+)\[(?P<place>[\d,]*)\]")
Outputs = Sequence[Array]
Sets = Sequence[Accepted]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a result: its place, its value, and the accepted values.

    `inputs` are the elements that it is computed from, by operand or slot; empty if it depends
    on several elements of one input.
    """

    place: str
    inputs: tuple[str, ...]
    got: str
    accepted: str

    @property
    def at(self) -> tuple[int, tuple[int, ...]] | None:
        """The number of its output, and its indices; None for another text, as a file may have."""
        found = PLACE.fullmatch(self.place)
        if found is None:
            return None
        return int(found["output"]), tuple(int(i) for i in found["place"].split(",") if i)

    def value_in(self, outputs: Outputs) -> str:
        """What stands at its place in other outputs of the same program; empty without one."""
        position, indices = self.at or (len(outputs), ())
        if position >= len(outputs):
            return ""
        output = outputs[position]
        if len(indices) != output.ndim or not all(map(int.__lt__, indices, output.shape)):
            return ""
        flat = int(np.ravel_multi_index(indices, output.shape)) if indices else 0
        return element_text(STORED[output.dtype], output, flat)


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of float results; the largest is `ulp` representable values.

    `histogram` counts the results that may differ from the reference: those equal to it, those
    in each of eight equal parts of the allowance, those outside.
    """

    histogram: tuple[int, ...] = (0,) * BINS
    ulp: float = 0.0
    largest: Element | None = None


def wrong_elements(case: Case, batch: int, accepted: Sets, outputs: Outputs) -> tuple[Element, ...]:
    """The first elements of a batch outside their sets; empty for outputs of a wrong shape."""
    elements: list[Element] = []
    for position, (sets, output) in enumerate(zip(accepted, outputs, strict=False)):
        if not _fits(sets, output):
            return ()
        outside = np.flatnonzero(~sets.contains(output).reshape(-1))
        for flat in outside[: MOST_VALUES - len(elements)].tolist():
            elements.append(element_at(case, batch, position, sets, output, flat))
    return tuple(elements)


def _fits(sets: Accepted, output: Array) -> bool:
    data = sets.value.data
    return bool(data.dtype == output.dtype and data.shape == output.shape)


@np.errstate(all="ignore")
def errors_of(case: Case, accepted: Sequence[Sets], outputs: Sequence[Outputs]) -> Errors | None:
    """The errors of a case over all batches; None if there are none, and where a batch has another
    number of outputs, or one of another dtype or shape.
    """
    for expected, found in zip(accepted, outputs, strict=True):
        if len(expected) != len(found) or not all(map(_fits, expected, found)):
            return None
    counts, farthest, largest = np.zeros(BINS, np.int64), 0.0, None
    for batch, pairs in enumerate(zip(accepted, outputs, strict=True)):
        for position, (sets, output) in enumerate(zip(*pairs, strict=True)):
            if order.same_bits(sets.value.data, output).all():
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
    """Describe the element of an output at a row-major position."""
    return Element(
        f"output {position}[{place_of(output, flat)}]",
        inputs_at(case.root, case.batches[batch], flat),
        element_text(sets.dtype, output, flat),
        sets.describe(flat),
    )


def inputs_at(root: UOp, batch: Batch, flat: int) -> tuple[str, ...]:
    """The inputs of one element: the operands of a single op, else the inputs by slot.

    Empty if the graph moves or folds elements.
    """
    if not all(_is_in_place(u) for u in root.toposort()):
        return ()
    inputs = {
        slot: element_text(
            STORED[a.dtype], np.ascontiguousarray(np.broadcast_to(a, root.shape)), flat
        )
        for slot, a in sorted(batch.inputs.items())
    }
    is_op = bool(root.src) and root.op is not Op.STACK
    if is_op and all(isinstance(u.arg, ConstArg | ParamArg) for u in root.src):
        return tuple(
            spelled(u.arg.bits, u.dtype) if isinstance(u.arg, ConstArg) else inputs[slot_of(u)]
            for u in root.src
        )
    return tuple(inputs.values())


def _is_in_place(u: UOp) -> bool:
    """Whether each element of a node depends on the same element of its operands."""
    if u.op is Op.BITCAST and u.shape != u.src[0].shape:
        return False
    is_constant = u.op is Op.STACK and all(s.op is Op.CONST for s in u.src)
    is_given = u.op in (Op.PARAM, Op.CONST, Op.BITCAST)
    return is_constant or is_given or u.declaration.is_elementwise


def _histogram(accepted: Accepted, output: Array, distance: Array) -> Array:
    """The histogram of one output; all 0 if only the reference is accepted."""
    s, reference, counted = accepted.sets, accepted.value.data, _has_room(accepted)
    if s is None or not counted.any():
        return np.zeros(BINS, np.int64)
    is_above = order.keys(output) > order.keys(reference)
    allowed = np.where(is_above, order.distance(reference, s.hi), order.distance(s.lo, reference))
    part = np.ceil(PARTS * distance / np.maximum(allowed, 1))
    part = np.where(accepted.contains(output), part, BINS - 1)
    return np.bincount(part[counted & np.isfinite(distance)].astype(np.int64), minlength=BINS)


def _has_room(accepted: Accepted) -> Mask:
    """A mask of the sets that are one range of several values around the reference."""
    s = accepted.sets
    if s is None or not accepted.dtype.is_float:
        return np.zeros(accepted.value.data.shape, np.bool_)
    key, lo, hi = (order.keys(a) for a in (accepted.value.data, s.lo, s.hi))
    closed = accepted.any | order.is_nan(accepted.value.data)
    for gap in s.gaps:
        closed = closed | (order.keys(gap.below) < order.keys(gap.above))
    return np.asarray((lo <= key) & (key <= hi) & (lo < hi) & ~closed)
