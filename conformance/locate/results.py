"""Runs programs of any form in the interpreter: what they give, and what may be given instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from uop.conformance.judging.compare import place_of
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.show import accepted_words, word
from uop.interpreter.values import Value, either
from uop.spec.graph import returns_memory, slots_of
from uop.spec.uop import UOp

Inputs = Mapping[int, Array]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outside:
    """An element of a result that is not accepted: its place, and both values as text."""

    output: int
    place: str
    found: str
    accepted: str

    def __str__(self) -> str:
        place = f"output {self.output}[{self.place}]"
        return f"{place} is {self.found}, accepted {self.accepted}"


def values_of(root: UOp, inputs: Inputs, slots: Sequence[int]) -> list[Value]:
    """The results of a program in order; where it returns memory, the contents of these slots."""
    given = _known(root, inputs)
    result = evaluate_full(root, given)
    if not isinstance(result, dict):
        return [*result] if isinstance(result, tuple) else [result]
    leaves = slots_of(root)
    return [
        result[slot] if slot in result else _initial(leaves[slot], given.get(slot))
        for slot in slots
    ]


def accepted_of(root: UOp, inputs: Inputs, slots: Sequence[int]) -> list[Accepted]:
    """What is accepted for the results that `values_of` gives."""
    given = _known(root, inputs)
    sets = accept(root, given)
    if not returns_memory(root):
        return [*sets]
    # Only memory that is stored to has sets.
    stored = evaluate_full(root, given)
    assert isinstance(stored, dict)
    by_slot = dict(zip(sorted(stored), sets, strict=True))
    leaves = slots_of(root)
    return [
        by_slot[slot]
        if slot in by_slot
        else Accepted(leaves[slot].dtype, _initial(leaves[slot], given.get(slot)))
        for slot in slots
    ]


def first_outside(accepted: Sequence[Accepted], values: Sequence[Value]) -> Outside | None:
    """The first element of the results that is not accepted."""
    for output, (sets, value) in enumerate(zip(accepted, values, strict=True)):
        element = wrong_element(sets, value)
        if element is not None:
            return Outside(output, place_of(value.data, element), *as_words(sets, value, element))
    return None


def wrong_element(sets: Accepted, value: Value) -> int | None:
    """The first element that is outside of its set, or has no value where one is asked for."""
    with np.errstate(all="ignore"):
        inside = sets.contains(value.data)
    absent = either(value.invalid, value.unspecified)
    if absent is not None:
        inside = inside & (~absent | sets.any)
    wrong = np.flatnonzero(~inside.reshape(-1))
    return int(wrong[0]) if wrong.size else None


def as_words(sets: Accepted, value: Value, element: int) -> tuple[str, str]:
    """The element of a value, and what is accepted for it."""
    return word(value.map(lambda a: a.reshape(-1)), element), accepted_words(sets, element)


def _known(root: UOp, inputs: Mapping[int, T]) -> dict[int, T]:
    """The inputs of a program: a stage may drop one that no result depends on."""
    slots = slots_of(root)
    return {slot: a for slot, a in inputs.items() if slot in slots}


def _initial(leaf: UOp, contents: Array | None) -> Value:
    """Memory that no kernel stores to."""
    if contents is not None:
        return Value(contents)
    zeros = np.zeros(leaf.shape, np_dtype(leaf.dtype))
    return Value(zeros, None, np.ones(leaf.shape, np.bool_))
