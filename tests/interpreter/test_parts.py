"""Large arrays are computed in parts: the results are those of one part, the memory is bounded."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id
from uop.interpreter.accept import accept
from uop.interpreter.accepted.rules import folds
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric import storage
from uop.spec.dtype import dtypes
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import slots_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

COUNT = 1 << 19
X, Y = (param(slot, (COUNT,), dtypes.float32) for slot in range(2))


@given(st.lists(st.integers(0, 9), max_size=4), st.integers(1, 40))
def test_parts_hold_each_element_once_in_order(shape: list[int], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "PART", most)
        numbers = np.arange(prod(shape)).reshape(shape)
        cuts = [numbers[cut].ravel() for cut in storage.parts(shape)]
    assert all(0 < len(cut) <= most for cut in cuts)
    if numbers.size > most:
        assert np.concatenate(cuts).tolist() == list(range(numbers.size))
    else:
        assert cuts == []


@pytest.mark.parametrize(
    "id",
    [
        "op/DIV/float16/edges/0",
        "op/POW/float32/edges/0",
        "op/WHERE/float32/edges/0",
        "op/REDUCE/float16/ADD-axes/0",
        "op/CAST/float32/to-int8/0",
        "graph/MIXED/float32/nested/0",
        "graph/MIXED/float32/rewrites/7",
    ],
)
def test_sets_in_parts_are_the_sets(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_by_id(f"{id}@2")
    assert isinstance(case, Case)
    whole = accept(case.root, case.batches[0].inputs)
    monkeypatch.setattr(storage, "PART", 3)
    monkeypatch.setattr(folds, "PART", 3)
    for one, other in zip(whole, accept(case.root, case.batches[0].inputs), strict=True):
        if one.sets is None or other.sets is None:
            assert one.sets is other.sets
            continue
        for end in ("lo", "hi"):
            bits = [storage.to_bits(getattr(sets, end)) for sets in (one.sets, other.sets)]
            np.testing.assert_array_equal(*bits)
        for mask, same in zip(one.sets.masks, other.sets.masks, strict=True):
            assert (mask is None or not mask.any()) == (same is None or not same.any())
            if mask is not None and same is not None:
                np.testing.assert_array_equal(mask, same)


@pytest.mark.parametrize(
    ("root", "compute"),
    [
        pytest.param(root, compute, id=f"{name}-{compute.__name__}")
        for name, root in (
            ("EXP2", UOp(Op.EXP2, X)),
            ("DIV", UOp(Op.DIV, X, Y)),
            ("SIN", UOp(Op.SIN, X)),
            ("sum", Tensor(param(0, (COUNT >> 8, 1 << 8), dtypes.float32)).sum(1).uop),
        )
        for compute in (accept, evaluate)
    ],
)
def test_what_is_computed_on_the_way_is_small(root: UOp, compute: Callable[..., object]) -> None:
    """The inputs are not counted; the result of `accept` has 8 bytes an element and its masks."""
    random = np.random.default_rng(0).random
    inputs = {
        slot: random(tuple(map(int, u.shape)), dtype=np.float32) + 1
        for slot, u in slots_of(root).items()
    }
    tracemalloc.start()
    try:
        compute(root, inputs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= (40 if compute is accept else 12) * COUNT
