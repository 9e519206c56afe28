"""Tensor programs for the tests of StableHLO, and what judges their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from graphs import contents

from uop.conformance.adapters.backend import Inputs
from uop.conformance.judging.compare import compare
from uop.interpreter.accept import accept
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.graph import slots_of
from uop.spec.uop import UOp

pytest.importorskip("jaxlib", reason="the tests of StableHLO need the extra xla")


def distinct(root: UOp, seed: int = 0) -> Inputs:
    """Inputs with special values."""
    slots = slots_of(root).items()
    return {slot: contents(u.dtype, u.shape, seed + slot) for slot, u in slots}


def fault(root: UOp, inputs: Inputs, results: Sequence[Array]) -> str | None:
    """What the spec does not accept of the results of a program."""
    mismatch = compare(accept(root, inputs), results).mismatch
    return None if mismatch is None else mismatch.message


def fault_if_defined(root: UOp, inputs: Inputs, results: Sequence[Array]) -> str | None:
    """The fault of a random program; None if the spec gives it no meaning on the inputs."""
    try:
        return fault(root, inputs, results)
    except (UndefinedError, UnsupportedError):
        return None


def by_place(inputs: Mapping[int, Array], slots: Sequence[int]) -> dict[int, Array]:
    """Inputs of a module by the places of its arguments."""
    return {place: inputs[slot] for place, slot in enumerate(slots)}
