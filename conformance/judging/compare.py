"""Compares outputs with accepted sets: the first mismatch, counts, errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from uop.conformance.judging.storage import spelled
from uop.interpreter.accepted import order
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.accepted.sets import intervals
from uop.interpreter.numeric.storage import Array, Mask, to_bits
from uop.interpreter.values import either
from uop.spec.dtype import DType

NEAR = 64
"""A result at most this many representable values outside its set is inaccurate, else wrong."""


class Symptom(StrEnum):
    """How a case failed, the most severe first."""

    VALUE = "value"
    CRASH = "crash"
    HANG = "hang"
    LEAK = "leak"
    REFUSED = "refused"
    NOT_REJECTED = "not-rejected"
    UNSTEADY = "unsteady"
    SPECIAL = "special"
    ULP = "ulp"

    @property
    def kind(self) -> str:
        """The symptom, or `result` for any wrong result."""
        is_result = self in (Symptom.VALUE, Symptom.SPECIAL, Symptom.ULP)
        return "result" if is_result else self.value


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first element outside its set; `element` is None if the whole output is wrong."""

    symptom: Symptom
    message: str
    output: int = 0
    element: int | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What was compared: `measured` are the elements whose accepted sets were computed, of which
    `single` and `constrained` are; `max_ulp` is the largest distance from the reference.
    """

    elements: int = 0
    measured: int = 0
    single: int = 0
    constrained: int = 0
    max_ulp: float = 0.0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.elements + other.elements,
            self.measured + other.measured,
            self.single + other.single,
            self.constrained + other.constrained,
            max(self.max_ulp, other.max_ulp),
        )


NOTHING = Counts()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The counts of one batch, and its first mismatch."""

    counts: Counts = NOTHING
    mismatch: Mismatch | None = None
    wrong: tuple[int, ...] = ()
    """The outputs that have a mismatch."""


# Comparing a signalling NaN raises a flag, which is irrelevant here.
@np.errstate(all="ignore")
def compare(accepted: Sequence[Accepted], outputs: Sequence[Array]) -> Comparison:
    """Compare the outputs of a program on one batch."""
    if len(outputs) != len(accepted):
        message = f"expected {len(accepted)} outputs, got {len(outputs)}"
        return Comparison(mismatch=Mismatch(Symptom.VALUE, message))
    parts = [_compare_one(k, *pair) for k, pair in enumerate(zip(accepted, outputs, strict=True))]
    return Comparison(
        sum((part.counts for part in parts), NOTHING),
        next((part.mismatch for part in parts if part.mismatch is not None), None),
        tuple(k for k, part in enumerate(parts) if part.mismatch is not None),
    )


@np.errstate(all="ignore")
def opened(accepted: Accepted, other: Accepted, output: Array) -> Accepted:
    """Widen the accepted sets to any value where only `other` contains the output."""
    spread = accepted.spread
    only_other = other.contains(output) & ~accepted.contains(output)
    sets = replace(spread, any=either(spread.any, only_other))
    return Accepted(accepted.dtype, accepted.value, sets)


def unsteady(
    accepted: Sequence[Accepted], before: Sequence[Array], after: Sequence[Array]
) -> Mismatch | None:
    """Find the first element in which two runs of a program on the same data differ.

    Elements for which the spec gives no value may differ.
    """
    for position, (sets, one, two) in enumerate(zip(accepted, before, after, strict=True)):
        differ = ~(order.same_bits(one, two) | sets.any)
        if differ.any():
            element = int(np.flatnonzero(differ.reshape(-1))[0])
            values = [element_text(sets.dtype, run, element) for run in (one, two)]
            place = place_of(one, element)
            message = f"two equal runs: output {position}[{place}] is {values[0]}, then {values[1]}"
            return Mismatch(Symptom.UNSTEADY, message, position, element)
    return None


def element_text(dtype: DType, output: Array, element: int) -> str:
    """One element, at a row-major position, as a literal."""
    bits = to_bits(output.reshape(-1)[element : element + 1])
    return spelled(int(bits[0]), dtype)


def place_of(output: Array, element: int) -> str:
    """The index of the element at a row-major position, as `1,0`."""
    return ",".join(map(str, np.unravel_index(element, output.shape)))


def _compare_one(position: int, accepted: Accepted, output: Array) -> Comparison:
    reference = accepted.value.data
    if (reference.dtype, reference.shape) != (output.dtype, output.shape):
        expected, actual = (f"{a.dtype}{list(a.shape)}" for a in (reference, output))
        message = f"output {position}: expected {expected}, got {actual}"
        return Comparison(mismatch=Mismatch(Symptom.VALUE, message, position))
    if _is_reference(accepted, output):
        return Comparison(Counts(*[output.size] * 4))
    distance = accepted.distance(output)
    counts = Counts(
        elements=output.size,
        measured=output.size,
        single=int(accepted.single.sum()),
        constrained=int(accepted.constrained.sum()),
        max_ulp=float(distance[np.isfinite(distance)].max(initial=0.0)),
    )
    outside = _first_outside(position, accepted, output, accepted.contains(output))
    return Comparison(counts, outside)


def _is_reference(accepted: Accepted, output: Array) -> bool:
    """Whether the output equals the reference and only that is accepted: the common case."""
    value = accepted.value
    if accepted.sets is not None or value.invalid is not None or value.unspecified is not None:
        return False
    return bool(order.same_bits(value.data, output).all())


def _first_outside(
    position: int, accepted: Accepted, output: Array, inside: Mask
) -> Mismatch | None:
    if inside.all():
        return None
    outside = np.flatnonzero(~inside.reshape(-1))
    element = int(outside[0])
    actual, place = element_text(accepted.dtype, output, element), place_of(output, element)
    message = f"output {position}[{place}] is {actual}, accepted {accepted.describe(element)}"
    if len(outside) > 1:
        message += f" ({len(outside)} of {output.size} elements are outside)"
    return Mismatch(_symptom(accepted, output, element), message, position, element)


def _symptom(accepted: Accepted, output: Array, element: int) -> Symptom:
    """Classify a wrong element: wrong value, wrong at a special value, or inaccurate."""
    if not accepted.dtype.is_float:
        return Symptom.VALUE
    arrays = [output, *(end for s in intervals(accepted.spread) for end in (s.lo, s.hi))]
    actual, *ends = (a.reshape(-1)[element : element + 1] for a in arrays)
    if not all(np.isfinite(a.astype(np.float64)).all() and a.all() for a in (*ends, actual)):
        return Symptom.SPECIAL
    ordered = ((order.lower(a, actual), order.upper(a, actual)) for a in ends)
    outside = min(order.distance(*pair)[0] for pair in ordered)
    return Symptom.ULP if outside <= NEAR else Symptom.VALUE
