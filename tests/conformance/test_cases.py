"""The cases written by hand: the interpreter gives what they expect."""

from __future__ import annotations

import numpy as np
import pytest

from uop.conformance.judging import storage
from uop.conformance.suite.levels.written import by_file
from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import to_bits
from uop.interpreter.values import Value
from uop.spec.case import ElementSet, FileCase, outputs
from uop.spec.dtype import DType
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS

ALL = [
    pytest.param(case, id=f"{op}-{case.id}")
    for op, cases in by_file("op").items()
    for case in cases
]

OF_CODEGEN = {op for op, d in DECLARATIONS.items() if d.section == "codegen"}
OF_KERNELS = OF_CODEGEN - {Op.GETADDR} | {Op.RANGE, Op.END, Op.LINEAR, Op.CALL}


def test_every_tensor_op_has_a_file_whose_programs_use_it() -> None:
    assert set(by_file("op")) == {op.name for op in DECLARATIONS if op not in OF_KERNELS}
    for op, cases in by_file("op").items():
        for case in cases:
            assert case.root is not None
            assert any(u.op.name == op for u in case.root.toposort()), (op, case.id)
            assert case.expect or case.accept or case.undefined, (op, case.id)


def results(case: FileCase) -> dict[int, Value]:
    assert case.root is not None
    full = evaluate_full(case.root, {k: storage.from_literal(a) for k, a in case.inputs.items()})
    if isinstance(full, Value):
        return {0: full}
    return dict(full) if isinstance(full, dict) else dict(enumerate(full))


@pytest.mark.parametrize("case", ALL)
def test_the_reference_gives_what_is_expected(case: FileCase) -> None:
    if case.undefined:
        with pytest.raises(UndefinedError) as caught:
            results(case)
        assert caught.value.label == case.undefined_label
        return
    assert case.root is not None
    given = results(case)
    nodes = outputs(case.root)
    for k, array in case.expect.items():
        want = storage.from_literal(array)
        nan = want != want
        assert ((given[k].data != given[k].data) == nan).all()
        np.testing.assert_array_equal(to_bits(given[k].data)[~nan], to_bits(want)[~nan])
        assert given[k].invalid is None
        assert given[k].unspecified is None
    for k, sets in case.accept.items():
        dtype = nodes[k].dtype
        patterns = to_bits(given[k].data).reshape(-1).tolist()
        each = sets * len(patterns) if len(sets) == 1 else sets
        gone = _gone(given[k])
        for position, (bits, allowed) in enumerate(zip(patterns, each, strict=True)):
            assert gone[position] <= allowed.any, position
            assert holds(allowed, bits, dtype), (position, hex(bits))


def _gone(value: Value) -> list[bool]:
    none = np.zeros(value.data.shape, np.bool_)
    masks = [none if m is None else m for m in (value.invalid, value.unspecified)]
    return [bool(x) for x in (masks[0] | masks[1]).reshape(-1)]


def holds(allowed: ElementSet, bits: int, dtype: DType) -> bool:
    """Whether a set has a bit pattern, by the order of the values."""
    if allowed.any or bits in allowed.nan_bits:
        return True
    if dtype.is_float and dtype.format.is_nan(bits):
        return allowed.nan
    found = rank(bits, dtype)
    return any(rank(low, dtype) <= found <= rank(high, dtype) for low, high in allowed.intervals)


def rank(bits: int, dtype: DType) -> int:
    """The place of a value in the order in which -0 is below +0."""
    if not dtype.is_float:
        return int(dtype.decode(bits))
    sign = dtype.format.sign_bit
    return -(bits - sign) - 1 if bits & sign else bits


@pytest.mark.parametrize("case", [p for p in ALL if not p.values[0].undefined])  # type: ignore[union-attr]
def test_the_accepted_sets_are_those_written_down(case: FileCase) -> None:
    """Where a case says what is accepted, the ends are accepted and their neighbours are not."""
    assert case.root is not None
    inputs = {k: storage.from_literal(a) for k, a in case.inputs.items()}
    sets = dict(zip(sorted(outputs(case.root)), accept(case.root, inputs), strict=False))
    for k, wanted in case.accept.items():
        single = sets[k].single.reshape(-1)
        for position, allowed in enumerate(wanted):
            ends = {end for interval in allowed.intervals for end in interval}
            nan = allowed.nan or bool(allowed.nan_bits)
            assert bool(single[position]) == (len(ends) + nan == 1 and not allowed.any), position
