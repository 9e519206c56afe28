"""Tensor programs for the tests of StableHLO, and what judges their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from graphs import contents

from uop.conformance.adapters.backend import Inputs
from uop.conformance.judging.compare import compare
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
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
    return mismatch(accept(root, inputs), results)


def fault_if_defined(root: UOp, inputs: Inputs, run: Callable[[], Sequence[Array]]) -> str | None:
    """The fault of a random program; one without meaning on the inputs is not run."""
    try:
        accepted = accept(root, inputs)
    except (UndefinedError, UnsupportedError):
        return None
    return mismatch(accepted, run())


def mismatch(accepted: Sequence[Accepted], results: Sequence[Array]) -> str | None:
    found = compare(accepted, results).mismatch
    return None if found is None else found.message


def by_place(inputs: Mapping[int, Array], slots: Sequence[int]) -> dict[int, Array]:
    """Inputs of a module by the places of its arguments."""
    return {place: inputs[slot] for place, slot in enumerate(slots)}
