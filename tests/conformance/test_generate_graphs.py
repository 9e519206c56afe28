"""Random graphs are large, distinct, alive, and mean the same however they are made."""

from __future__ import annotations

import functools
import operator
from collections import Counter

import numpy as np
import pytest

from uop.conformance.suite import generate
from uop.conformance.suite.case import Batch, Case
from uop.conformance.suite.choices import CountedChoices
from uop.conformance.suite.levels.graph import random_graph as graph
from uop.conformance.suite.levels.graph.memory import buffers
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.numeric.storage import Mask
from uop.interpreter.tensor.evaluation import FullOutput
from uop.interpreter.values import Value
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

NOT_COUNTED = (Op.PARAM, Op.BUFFER, Op.CONST, Op.TUPLE, Op.SINK)


LISTED = (
    *("pairs", "rewrites", "compositions", "aliased", "constants-alone", "three"),
    *("overlaps", "in-place-alone", "changed-after", "partly-over"),
    *("ends", "under-views", "wraps", "clamped", "last-reads"),
    *("affine", "shifts", "filled", "view-chains", "folded-constants", "bits-between"),
    *("casts-in-folds", "idioms", "selections", "adjusted"),
    *("view-pairs", "left-out", "called-on-views", "centred", "powers", "divided", "narrowed"),
    *("twice-divided", "unchanged", "long-folds", "two-axes", "rounded", "widened-pairs"),
    *("of-constants", "mixed-products", "narrow-indices", "structures", "siblings"),
    *("read-around", "dtypes-alone", "widened-apart", "tests-folded", "returned"),
    *("whole-again", "values-shared", "crossing"),
    *(*buffers.EFFECTS, "lent", "stored-siblings"),
    *("streamed", "stepped", "run-again", "stored-otherwise", "left-alone", "beside"),
    *("computed-reads", "rearranged", "windows", "picks", "alike", "alike-views"),
    *("quantised", "bit-tricks", "float-bits", "normalised", "factors", "losses"),
    *("converted", "composed", "divisions", "hashes", "packed", "accumulated", "compared"),
    *("moving-offsets", "bound-sizes", "free-sizes", "other-ranks", "same-bits"),
    *("proportions", "attended", "norms", "recurrent", "layers", "pooled", "layouts", "fused"),
    *("scattered", "requantised", "sized-calls"),
)
"""Groups whose programs are listed, or are a few steps on memory."""


@pytest.fixture(scope="module")
def graphs() -> list[Case]:
    """Every second grown graph of the default effort."""
    grown = [group for group in generate.groups("graph") if group.name not in LISTED]
    drawn = [(group, index) for group in grown for index in range(group.count("default"))]
    cases = [group.case(index, 0) for group, index in drawn[::2]]
    return [case for case in cases if isinstance(case, Case)]


def counted(root: UOp) -> list[UOp]:
    """The nodes of a program that are neither sources nor shapes."""
    return [
        u
        for u in root.toposort()
        if u.op not in NOT_COUNTED and not (u.op is Op.STACK and u.dtype is dtypes.index)
    ]


@pytest.mark.slow
def test_graphs_are_distinct_and_have_at_least_eight_nodes(graphs: list[Case]) -> None:
    assert len({case.root for case in graphs}) == len(graphs)
    assert min(len(counted(case.root)) for case in graphs) >= 8
    assert np.mean([len(counted(case.root)) for case in graphs]) > 15


def test_graphs_use_most_ops_and_dtypes(graphs: list[Case]) -> None:
    nodes = [u for case in graphs for u in counted(case.root)]
    ops, seen = Counter(u.op for u in nodes), {u.dtype for u in nodes}
    for op in (Op.PAD, Op.REDUCE, Op.BITCAST, Op.CAST, Op.LOAD, Op.FUNCTION, Op.INDEX, Op.AFTER):
        assert ops[op] >= 10, op
    assert len(ops) > 45
    assert len(seen) >= 15
    assert {Op.TUPLE, Op.SINK} <= {case.root.op for case in graphs}


def test_graphs_share_subgraphs(graphs: list[Case]) -> None:
    def shared(root: UOp) -> int:
        uses = Counter(s for u in root.toposort() for s in set(u.src))
        return sum(uses[u] > 1 for u in counted(root))

    assert np.mean([shared(case.root) for case in graphs]) > 1


def outputs(case: Case) -> list[Value]:
    return listed(evaluate_full(case.root, case.batches[0].inputs))


def listed(full: FullOutput) -> list[Value]:
    if isinstance(full, Value):
        return [full]
    return list(full.values()) if isinstance(full, dict) else list(full)


def test_almost_all_outputs_are_alive_and_specified(graphs: list[Case]) -> None:
    constant = total = gone = elements = 0
    for case in graphs:
        for value in outputs(case):
            bits = value.data.reshape(-1).view(f"u{value.data.dtype.itemsize}")
            total += 1
            constant += value.data.size > 1 and bool((bits == bits[0]).all())
            elements += value.data.size
            gone += sum(
                int(np.count_nonzero(mask))
                for mask in (value.invalid, value.unspecified)
                if mask is not None
            )
    assert constant <= total / 100
    assert gone <= elements / 100


def test_what_was_evaluated_while_growing_is_the_result(graphs: list[Case]) -> None:
    known = [
        (batch, batch.evaluated)
        for case in graphs
        for batch in case.batches
        if batch.evaluated is not None
    ]
    for batch, evaluated in known:
        assert same(evaluated.result, evaluate_full(evaluated.root, batch.inputs))
    assert len(known) > len(graphs) / 2


def same(result: FullOutput, other: FullOutput) -> bool:
    """Whether two results have the same elements, by their bits, and absent and open ones."""
    one, two = listed(result), listed(other)
    return len(one) == len(two) and all(
        (a.data.shape, a.data.dtype) == (b.data.shape, b.data.dtype)
        and a.data[~gone(a)].tobytes() == b.data[~gone(b)].tobytes()
        and np.array_equal(gone(a), gone(b))
        for a, b in zip(one, two, strict=True)
    )


def gone(value: Value) -> Mask:
    """The elements without a value."""
    none = np.zeros(value.data.shape, np.bool_)
    masks = (m for m in (value.invalid, value.unspecified) if m is not None)
    return functools.reduce(operator.or_, masks, none)


@pytest.mark.parametrize(("is_padded", "most"), [(False, 1 / 25), (True, 1 / 4)])
def test_a_changed_input_changes_the_result(
    graphs: list[Case], is_padded: bool, most: float
) -> None:
    """Of the inputs that a graph kept, hardly one is dead, but where absent elements hide some."""
    dead = total = 0
    for case in graphs:
        if len(case.batches) < 2 or is_padded != (case.group in ("pads", "absent")):
            continue
        before = [v.data.tobytes() for v in outputs(case)]
        inputs = case.batches[0].inputs
        for slot, array in inputs.items():
            if array.size == 1 or array.dtype == np.bool_:
                continue
            changed = {**inputs, slot: case.batches[1].inputs[slot]}
            other = Case(case.id, case.root, (Batch(changed),))
            total += 1
            dead += [v.data.tobytes() for v in outputs(other)] == before
    assert dead <= total * most


def test_growing_is_determined_by_the_stream() -> None:
    flavour = graph.FLAVOURS["integers"]
    roots = {graph.build(dtypes.int32, flavour, CountedChoices(3, "x"), 0).root for _ in range(3)}
    assert len(roots) == 1


def test_a_fuzz_run_may_ask_for_any_index() -> None:
    one_dtype_each = {group.name: group for group in generate.groups("graph")}
    for group in one_dtype_each.values():
        for index in (10**6 + 1, group.most - 1):
            assert group.case(index, 0).id.index == index
