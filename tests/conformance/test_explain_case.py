"""An element of a case depends on no element that its explanation leaves out."""

from collections.abc import Iterator

import numpy as np
import pytest

from uop.conformance.checks import OptionError
from uop.conformance.reference.answers.derivation import Query, as_walked, derive, needed_of
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.suite.generate import groups
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.inputs import bind_inputs
from uop.interpreter.numeric.storage import Array, to_bits
from uop.interpreter.values import Value
from uop.spec.args import ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.errors import UndefinedError
from uop.spec.graph import slots_of
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.program import parse
from uop.spec.uop import UOp, const, param


def some_cases() -> Iterator[Case]:
    """Programs with one value, of every op that moves, and random graphs."""
    chosen = [g for g in groups("op") if g.dtype in ("int32", "float32") and g.counts[1]]
    chosen += [g for g in groups("graph") if g.counts[1]][::9]
    for group in chosen:
        case = group.case(0, 0)
        if isinstance(case, Case) and case.source is None and case.root.dtype is not dtypes.void:
            yield case


def values_of(root: UOp, inputs: dict[int, Array]) -> dict[UOp, Value]:
    found: dict[UOp, Value] = {}
    evaluate_full(root, inputs, found.__setitem__)
    return found


def as_shown(case: Case) -> UOp:
    return as_walked(case.root, case.batches[0].inputs, STRICT)[0]


def changed(a: Array, kept: Array, by: int) -> Array:
    """The array, all elements but those that are kept turned along."""
    return np.where(kept, a, np.roll(a, by).astype(a.dtype))


@pytest.mark.parametrize("case", list(some_cases()), ids=lambda case: str(case.id))
def test_what_is_not_needed_may_change(case: Case) -> None:
    root = as_shown(case)
    inputs = {s: a for s, a in case.batches[0].inputs.items() if s in slots_of(root)}
    if 0 in root.shape or any(u.addrspace is not None for u in root.toposort()):
        pytest.skip("no element, or memory, of which all is shown")
    values = values_of(root, inputs)
    result = values[root]
    flat = result.data.size // 2
    mask = np.zeros(result.data.shape, np.bool_)
    mask.reshape(-1)[flat] = True
    needed = needed_of(root, mask, values)
    params = {u: u.arg.slot for u in bind_inputs(root, inputs) if u.op is Op.PARAM}
    for by in (1, 2):
        other = dict(inputs)
        for u, slot in params.items():
            kept = needed.get(u, np.zeros(values[u].data.shape, np.bool_)) if u in values else True
            other[slot] = changed(inputs[slot], np.asarray(kept), by)
        try:
            again = values_of(root, other)[root]
        except UndefinedError:
            # What another element needs has no meaning any more.
            continue
        one, two = (to_bits(v.data.reshape(-1)[flat : flat + 1]) for v in (result, again))
        assert one.tobytes() == two.tobytes()


def test_a_fold_needs_a_row_and_a_transpose_the_other_index() -> None:
    x = param(0, (2, 3), dtypes.int32)
    row = UOp(Op.REDUCE, x, arg=ReduceArg(Op.ADD, (1,)))
    values = values_of(row, {0: np.arange(6, dtype=np.int32).reshape(2, 3)})
    needed = needed_of(row, np.array([[False], [True]]), values)
    assert needed[x].tolist() == [[False] * 3, [True] * 3]
    turned = parse("%0 = PARAM [2,3] {slot=0, dtype=int32}\n%1 = PERMUTE %0 {order=(1,0)}")
    values = values_of(turned, {0: np.arange(6, dtype=np.int32).reshape(2, 3)})
    mask = np.zeros((3, 2), np.bool_)
    mask[2, 0] = True
    assert needed_of(turned, mask, values)[turned.src[0]].tolist() == [
        [False, False, True],
        [False, False, False],
    ]


def case_of(root: UOp, *inputs: Array) -> Case:
    id = CaseId("op", "MIXED", "MIXED", "test", 0)
    return Case(id, root, (Batch(dict(enumerate(inputs))),))


def test_a_contraction_is_told_by_its_knob() -> None:
    a, b, c = (param(k, (1,), dtypes.float32) for k in range(3))
    root = UOp(Op.ADD, UOp(Op.MUL, a, b), c)
    # 1 + 2^-12 squared is 1 + 2^-11 + 2^-24, of which one rounding drops the last bit.
    x, less = np.float32([1 + 2**-12]), np.float32([-1 - 2**-11])
    found = derive(case_of(root, x, x, less), Query())
    assert found.demanded == "0.0"
    assert "contract=ADD" in dict(found.knobs)
    ops = [step.line.split()[2] for step in found.steps]
    assert ops == ["PARAM", "PARAM", "MUL", "PARAM", "ADD"]


def test_what_no_knob_changes_has_none() -> None:
    root = UOp(Op.ADD, param(0, (), dtypes.int8), const(1, dtypes.int8))
    found = derive(case_of(root, np.array(127, np.int8)), Query())
    assert (found.demanded, found.knobs) == ("-128", ())


def test_an_output_without_elements_has_none() -> None:
    root = UOp(Op.NEG, param(0, (0, 2), dtypes.int8))
    with pytest.raises(OptionError, match=r"--element: the output has none, its shape is \[0, 2\]"):
        derive(case_of(root, np.zeros((0, 2), np.int8)), Query())


@pytest.mark.slow
@pytest.mark.parametrize("level", ["function", "property", "twin", "kernel", "schedule", "device"])
def test_cases_of_every_level_are_explained(level: str) -> None:
    chosen = [g for g in groups(level) if g.counts[1]][::15]
    assert chosen
    for group in chosen:
        case = group.case(0, 0)
        assert isinstance(case, Case)
        found = derive(case, Query())
        assert found.demanded
        assert found.steps or any("kernels" in note for note in found.notes)
