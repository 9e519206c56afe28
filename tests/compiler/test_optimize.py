"""optimize: the axis types of ranges, and optimizations that change no result."""

from __future__ import annotations

from itertools import product
from typing import cast

import numpy as np
import pytest

from uop.compiler.loops import DEPTH, axes
from uop.compiler.pipeline import compile, lower
from uop.compiler.stages.expand import expand
from uop.compiler.stages.optimize.apply import apply
from uop.compiler.stages.optimize.stage import optimize
from uop.interpreter.evaluate import evaluate
from uop.spec.args import AxisType, DTypeArg, RangeArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.editions.bestiary_args import BestiaryAxisType
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.graph import calls
from uop.spec.kernel.optimization import CONDITIONS, parse_optimizations
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, index_const, param

X = param(0, (2, 3, 4), dtypes.int32)
ROWS = param(0, (6, 8), dtypes.int32)
SUM = UOp(Op.REDUCE, UOp(Op.MUL, ROWS, ROWS), arg=ReduceArg(Op.ADD, (1,)))
DATA = np.arange(48, dtype=np.int32).reshape(6, 8) - 20
TOTALS = (DATA * DATA).sum(axis=1).tolist()


def axis_types(program: UOp) -> list[AxisType]:
    ranges = [cast(RangeArg, u.arg) for u in program.toposort() if u.op is Op.RANGE]
    return [arg.axis_type for arg in sorted(ranges, key=lambda arg: arg.id)]


def letters(text: str, root: UOp = SUM) -> list[str]:
    """The axes of the first kernel behind a sequence, each as its letter and bound."""
    program = lower(root, "optimize", optimizations=[parse_optimizations(text)])
    found = axes(calls(program)[0].src[0])
    return [f"{cast(RangeArg, r.arg).axis_type.value}{r.min_max.max + 1}" for r in found]  # type: ignore[union-attr]


def totals(program: UOp) -> list[int]:
    result = evaluate(program, {0: DATA})
    assert isinstance(result, dict)
    (found,) = result.values()
    return cast("list[int]", found.reshape(-1).tolist())


def test_outputs_are_parallel_and_folds_are_serial() -> None:
    stages = compile(UOp(Op.REDUCE, X, arg=ReduceArg(Op.ADD, (1,)))).stages
    assert axis_types(stages["rangeify"]) == [AxisType.LOOP, AxisType.LOOP, AxisType.REDUCE]
    assert axis_types(stages["optimize"]) == [AxisType.GLOBAL, AxisType.GLOBAL, AxisType.REDUCE]


def test_it_is_done_once_and_only_that_changes() -> None:
    stages = compile(UOp(Op.NEG, X)).stages
    assert optimize(stages["optimize"]) is stages["optimize"]
    before, after = (stages[name].toposort() for name in ("rangeify", "optimize"))
    assert [u.op for u in before] == [u.op for u in after]


SEQUENCES = {
    "": ["g6", "R8"],
    "SPLIT(0, 3, LOCAL, INNER)": ["g2", "l3", "R8"],
    "SPLIT(0, 2, THREAD, OUTER)": ["t2", "g3", "R8"],
    "SPLIT(0, 3, UPCAST, INNER)": ["g2", "u3", "R8"],
    "SPLIT(0, 6, LOCAL, INNER); SPLIT(1, 2, UPCAST, INNER)": ["g1", "l3", "u2", "R8"],
    "SPLIT(1, 2, UNROLL, INNER)": ["g6", "R4", "r2"],
    "SPLIT(1, 4, GROUP_REDUCE, INNER)": ["g6", "R2", "G4"],
    "SPLIT(1, 4, GROUP_REDUCE, OUTER)": ["g6", "G4", "R2"],
    "SPLIT(1, 4, GROUP_REDUCE, OUTER); SPLIT(1, 2, UNROLL, INNER)": ["g6", "G2", "r2", "R2"],
    "PADTO(0, 4)": ["g8", "R8"],
    "PADTO(0, 3)": ["g6", "R8"],
    "PADTO(1, 5)": ["g6", "R10"],
    "PADTO(1, 3); SPLIT(1, 3, UNROLL, INNER); PADTO(0, 4)": ["g8", "R3", "r3"],
    "SPLIT(0, 2, THREAD, OUTER); SWAP(0, 1)": ["g3", "t2", "R8"],
    "SPLIT(1, 2, GROUP_REDUCE, INNER); SWAP(2, 1)": ["g6", "G2", "R4"],
    "NOLOCALS(); SPLIT(0, 3, UPCAST, INNER)": ["g2", "u3", "R8"],
}


@pytest.mark.parametrize("text", SEQUENCES)
def test_each_has_its_axes_and_no_other_result(text: str) -> None:
    assert letters(text) == SEQUENCES[text]
    for stage in ("optimize", "expand", "select", "linearize"):
        program = lower(SUM, stage, optimizations=[parse_optimizations(text)])
        assert totals(program) == TOTALS, stage


@pytest.mark.parametrize("text", [t for t in SEQUENCES if "PADTO" not in t and "SWAP" not in t])
def test_the_axes_of_a_split_count_in_their_order(text: str) -> None:
    """Along the axes, the first one outermost, the elements are read in their order in memory."""
    program = lower(SUM, "optimize", optimizations=[parse_optimizations(text)])
    body = calls(program)[0].src[0]
    (place,) = {u.src[0] for u in body.toposort() if u.op is Op.LOAD}
    counters = axes(body)
    bounds = [range(cast(int, evaluate(r.src[0]))) for r in counters]
    found = []
    for position in product(*bounds):
        at = dict(zip(counters, map(index_const, position), strict=True))
        found.append(int(np.asarray(evaluate(place.src[1].substitute(at)))))
    assert found == list(range(48))


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("SPLIT.c1", "SPLIT(2, 2, UNROLL, INNER)"),
        ("SPLIT.c2", "SPLIT(0, 4, LOCAL, INNER)"),
        ("SPLIT.c2", "SPLIT(0, 0, LOCAL, INNER)"),
        ("SPLIT.c2", f"SPLIT(0, {6 << 70}, LOCAL, INNER)"),
        ("SPLIT.c3", "SPLIT(1, 2, LOCAL, INNER)"),
        ("SPLIT.c3", "SPLIT(0, 2, LOCAL, OUTER)"),
        ("SPLIT.c3", "SPLIT(0, 2, THREAD, INNER)"),
        ("SPLIT.c3", "SPLIT(0, 2, UNROLL, INNER)"),
        ("SPLIT.c3", "SPLIT(0, 2, WARP, INNER)"),
        ("SPLIT.c3", "SPLIT(0, 2, GLOBAL, INNER)"),
        ("SPLIT.c3", "SPLIT(0, 3, UPCAST, INNER); SPLIT(1, 3, LOCAL, INNER)"),
        ("SPLIT.c4", "NOLOCALS(); SPLIT(0, 3, LOCAL, INNER)"),
        ("SPLIT.c4", "NOLOCALS(); SPLIT(1, 2, GROUP_REDUCE, INNER)"),
        ("PADTO.c1", "PADTO(2, 4)"),
        ("PADTO.c2", "PADTO(0, 0)"),
        ("PADTO.c2", f"PADTO(0, {1 << 63})"),
        ("SWAP.c1", "SWAP(0, 2)"),
        ("SWAP.c2", "SWAP(0, 1)"),
        ("NOLOCALS.c1", "SPLIT(0, 3, LOCAL, INNER); NOLOCALS()"),
        ("NOLOCALS.c1", "SPLIT(1, 2, GROUP_REDUCE, INNER); NOLOCALS()"),
        ("TC.c1", "PADTO(0, 4); TC(1, m16n8k16)"),
        ("TC.c1", "NOLOCALS(); TC(1, m16n8k16)"),
    ],
)
def test_what_is_illegal_is_refused_by_its_label(label: str, text: str) -> None:
    with pytest.raises(InvalidError) as error:
        lower(SUM, "optimize", optimizations=[parse_optimizations(text)])
    assert error.value.label == label
    assert error.value.title == CONDITIONS[label].title


ORIGINS = {
    "L": ("rangeify", "", 0),
    "g": ("optimize", "", 0),
    "R": ("optimize", "", 1),
    "l": ("optimize", "SPLIT(0, 6, LOCAL, INNER); ", 1),
    "t": ("optimize", "SPLIT(0, 6, THREAD, OUTER); ", 0),
    "u": ("optimize", "SPLIT(0, 6, UPCAST, INNER); ", 1),
    "G": ("optimize", "SPLIT(1, 8, GROUP_REDUCE, INNER); ", 2),
    "r": ("optimize", "SPLIT(1, 8, UNROLL, INNER); ", 2),
}
"""By letter a stage, what makes an axis of that type, and its number."""
SPLITS = {
    ("LOCAL", "INNER"): "gL",
    ("THREAD", "OUTER"): "g",
    ("GROUP_REDUCE", "INNER"): "R",
    ("GROUP_REDUCE", "OUTER"): "R",
    ("UPCAST", "INNER"): "glL",
    ("UNROLL", "INNER"): "RG",
}
"""The table of the documents: the letters that an axis type splits from, by side."""


@pytest.mark.parametrize("side", ["INNER", "OUTER"])
@pytest.mark.parametrize("target", [t.name for t in AxisType])
def test_an_axis_splits_from_the_types_and_on_the_sides_of_the_documents(
    target: str, side: str
) -> None:
    for letter, (stage, before, axis) in ORIGINS.items():
        body = calls(lower(SUM, stage))[0].src[0]
        sequence = parse_optimizations(f"{before}SPLIT({axis}, 2, {target}, {side})")
        if letter in SPLITS.get((target, side), ""):
            assert len(axes(apply(body, sequence))) == len(sequence) + 2
            continue
        with pytest.raises(InvalidError) as error:
            apply(body, sequence)
        assert error.value.label == "SPLIT.c3", letter


def test_a_fold_inside_a_fold_is_not_shared() -> None:
    """Made by hand: the compiler gives each fold a kernel of its own."""
    program = lower(SUM, "rangeify")
    (body,) = (call.src[0] for call in calls(program))
    (fold,) = (u for u in body.toposort() if u.op is Op.REDUCE)
    around = UOp(Op.RANGE, index_const(2), arg=RangeArg(7, AxisType.REDUCE))
    step = UOp(Op.CAST, around, arg=DTypeArg(dtypes.int32))
    inner = fold.with_src([UOp(Op.MUL, fold.src[0], step), *fold.src[1:]])
    twice = UOp(Op.REDUCE, inner, around, arg=ReduceArg(Op.ADD))
    nested = program.substitute({body: body.substitute({fold: twice})})
    for text in ("SPLIT(1, 2, UNROLL, INNER)", "SPLIT(2, 2, UNROLL, INNER); PADTO(1, 3)"):
        after = optimize(nested, sequences=[parse_optimizations(text)])
        assert totals(after) == totals(expand(after)) == TOTALS
    with pytest.raises(InvalidError) as error:
        optimize(nested, sequences=[parse_optimizations("SPLIT(1, 2, GROUP_REDUCE, INNER)")])
    assert error.value.label == "SPLIT.c5"


def test_a_sequence_without_a_kernel_is_refused() -> None:
    with pytest.raises(InvalidError, match="2 sequences for 1 kernels") as error:
        compile(SUM, optimizations=[(), ()])
    assert error.value.label == "OPTIMIZE.c1"
    selected = lower(SUM, "select")
    with pytest.raises(UnsupportedError, match="at select"):
        compile(selected, optimizations=[()])


def test_padding_a_fold_changes_no_sum_of_negative_zeros() -> None:
    root = UOp(Op.REDUCE, param(0, (3,), dtypes.float32), arg=ReduceArg(Op.ADD, (0,)))
    program = lower(root, "optimize", optimizations=[parse_optimizations("PADTO(0, 4)")])
    (found,) = cast(
        "dict[int, np.ndarray]", evaluate(program, {0: np.full(3, -0.0, np.float32)})
    ).values()
    assert np.signbit(found).all()


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (1, 1)])
def test_kernels_of_nothing_and_of_one(shape: tuple[int, int]) -> None:
    root = UOp(Op.REDUCE, param(0, shape, dtypes.int32), arg=ReduceArg(Op.ADD, (1,)))
    data = np.ones(shape, np.int32)
    plain = lower(root, "optimize")
    count = len(axes(calls(plain)[0].src[0]))
    texts = ["NOLOCALS()", *(f"PADTO({k}, 2)" for k in range(count))]
    texts += ["SPLIT(0, 1, LOCAL, INNER); SPLIT(1, 1, UPCAST, INNER)"] if count else []
    for text in texts:
        program = compile(root, optimizations=[parse_optimizations(text)])
        for stage in ("optimize", "expand", "select", "linearize"):
            found = evaluate(program.stages[stage], {0: data} if 0 not in shape else {})
            assert isinstance(found, dict)
            for held in found.values():
                assert held.reshape(-1).tolist() == data.sum(axis=1).tolist(), (text, stage)


def test_kernels_of_the_caller_are_optimized() -> None:
    program = lower(SUM, "rangeify")
    text = "SPLIT(0, 3, LOCAL, INNER); SPLIT(2, 4, GROUP_REDUCE, OUTER)"
    compiled = compile(program, optimizations=[parse_optimizations(text)])
    assert next(iter(compiled.stages)) == "optimize"
    assert totals(compiled.stages["linearize"]) == TOTALS


def test_each_firing_is_observed_by_its_text() -> None:
    seen: list[str] = []
    compile(
        SUM,
        observe=lambda stage, rule, before, after: (
            seen.append(rule) if stage == "optimize" else None
        ),
        optimizations=[parse_optimizations("PADTO(0, 4); SPLIT(0, 4, LOCAL, INNER)")],
    )
    assert "PADTO(0, 4)" in seen
    assert "SPLIT(0, 4, LOCAL, INNER)" in seen


def test_loops_nest_by_the_published_priorities() -> None:
    published = {t: BestiaryAxisType[t.name].priority for t in AxisType}
    for a in AxisType:
        for b in AxisType:
            assert (DEPTH[a] < DEPTH[b]) == (published[a] < published[b]), (a, b)
