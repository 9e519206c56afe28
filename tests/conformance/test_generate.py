"""The cases are the same for the same seed, reach every op and dtype, and have a meaning."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from uop.conformance.judging.expected import may_end
from uop.conformance.suite import generate
from uop.conformance.suite.case import Case, CaseId, InvalidCase, NoSuchCaseError
from uop.conformance.suite.levels.graph.memory import buffers
from uop.conformance.suite.levels.op.elementwise import decomposed
from uop.conformance.suite.values import specials
from uop.interpreter.evaluate import evaluate
from uop.spec.dtype import DTYPES, FLOATS, DType, dtypes
from uop.spec.errors import InvalidError
from uop.spec.latitude import Profile
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, labels
from uop.spec.text.profile_text import parse_profile
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, param

OF_KERNELS = {op for op, d in DECLARATIONS.items() if d.section == "codegen"} | {
    Op.RANGE, Op.END, Op.LINEAR, Op.CALL,
}  # fmt: skip
"""Ops of which no tensor program is made."""


def smoke(level: str) -> list[Case]:
    return [c for c in generate.cases([level], effort="smoke") if isinstance(c, Case)]


def content(case: Case | InvalidCase) -> object:
    """All that a case is, as plain data."""
    if isinstance(case, InvalidCase):
        return case.label, case.text
    arrays = [
        [(slot, a.dtype, a.shape, a.tobytes()) for slot, a in batch.inputs.items()]
        for batch in case.batches
    ]
    return print_program(case.root), arrays


@pytest.mark.parametrize("level", generate.LEVELS)
def test_a_case_is_found_by_its_id_and_is_the_same(level: str) -> None:
    for case in list(generate.cases([level], seed=5, effort="smoke"))[::17]:
        again = generate.case_by_id(str(case.id), seed=5)
        assert again.id == case.id
        assert content(again) == content(case)


def test_selection_does_not_change_a_case() -> None:
    everything = {
        str(c.id): content(c) for c in generate.cases(["op"], effort="default", ops=["MAX", "PAD"])
    }
    some = {
        str(c.id): content(c) for c in generate.cases(["op"], effort="default", dtypes=["int8"])
    }
    shared = everything.keys() & some.keys()
    assert len(shared) > 4
    assert all(everything[id] == some[id] for id in shared)


def test_another_seed_gives_other_graphs() -> None:
    one, two = (list(generate.cases(["graph"], seed, "smoke")) for seed in (0, 1))
    assert not {repr(content(c)) for c in one} & {repr(content(c)) for c in two}
    grown = [{_text(c) for c in each if c.group not in LISTED} for each in (one, two)]
    assert not grown[0] & grown[1]


LISTED = (
    *("pairs", "rewrites", "compositions", "aliased", "constants-alone"),
    *("overlaps", "in-place-alone", "changed-after", "partly-over"),
    *("under-views", "clamped", "idioms", "wraps"),
    *("view-pairs", "left-out", "called-on-views", "powers", "unchanged", "rounded"),
    *("mixed-products", "narrow-indices", "structures", "read-around"),
    *("siblings", "dtypes-alone", "widened-apart", "returned"),
    *("whole-again", "crossing", "lent", "stored-siblings"),
    *("streamed", "stepped", "run-again", "stored-otherwise", "left-alone", "beside"),
    *buffers.EFFECTS,
    *("computed-reads", "rearranged", "windows", "picks", "alike", "alike-views"),
    *("quantised", "bit-tricks", "float-bits", "normalised", "factors", "losses"),
    *("converted", "composed", "divisions", "hashes", "packed", "accumulated", "compared"),
    *("moving-offsets", "bound-sizes", "free-sizes", "other-ranks", "same-bits"),
    *("proportions", "attended", "norms", "recurrent", "layers", "pooled", "layouts", "fused"),
    *("scattered", "requantised", "sized-calls"),
)
"""Groups whose programs are listed; of these the seed chooses the data."""


def _text(case: Case | InvalidCase) -> str:
    assert isinstance(case, Case)
    return print_program(case.root)


@pytest.mark.parametrize("level", generate.LEVELS)
def test_ids_are_distinct_and_read_back(level: str) -> None:
    ids = [g.id(i) for g in generate.groups(level) for i in range(g.count("full"))]
    assert len(set(map(str, ids))) == len(ids)
    assert all(CaseId.parse(str(id)) == id for id in ids[::101])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "op/MAX",
        "op/MAX/int8/edges/x",
        "op/MAX/int8/none/0",
        "op/MAX/int8/edges/999999",
        "no/MAX/int8/edges/0",
    ],
)
def test_an_id_that_names_no_case_is_refused(text: str) -> None:
    with pytest.raises(NoSuchCaseError):
        generate.case_by_id(text)


def test_efforts_grow() -> None:
    for level in generate.LEVELS:
        for group in generate.groups(level):
            assert list(group.counts) == sorted(group.counts), group


def test_the_default_effort_is_as_large_as_promised() -> None:
    ids = [
        g.id(i)
        for level in generate.LEVELS
        for g in generate.groups(level)
        for i in range(g.count("default"))
    ]
    assert sum(id.group != "exhaustive" for id in ids) >= 2000
    assert sum(id.level == "graph" for id in ids) >= 1000


def test_every_tensor_op_and_each_of_its_dtypes_has_programs() -> None:
    cells = {(g.op, g.dtype) for g in generate.groups("op") if g.count("smoke")}
    for op, declaration in DECLARATIONS.items():
        if declaration.section == "extension":
            # Written with core ops before it means anything: the dtypes are those of its parts.
            assert any(name == op.name for name, _ in cells), op
        elif op not in OF_KERNELS:
            expected = [d.name for d in declaration.dtypes] or ["int32"]
            missing = [name for name in expected if (op.name, name) not in cells]
            assert not missing, (op, missing)


def test_every_pair_of_dtypes_is_cast_and_bitcast() -> None:
    names = {(g.op, g.dtype, g.name) for g in generate.groups("op")}
    values = [d for d in DTYPES.values() if d is not dtypes.void]
    for source in values:
        for target in values:
            if not (source.is_float and target is dtypes.index):
                assert ("CAST", source.name, f"to-{target.name}") in names
            if dtypes.index not in (source, target):
                assert ("BITCAST", source.name, f"to-{target.name}") in names


@pytest.mark.parametrize(
    ("id", "elements"),
    [
        ("op/EXP2/bfloat16/exhaustive/0", 1 << 16),
        ("op/ADD/fp8e4m3/exhaustive/0", 1 << 16),
        ("op/MOD/int8/exhaustive/0", 255 << 8),
        ("op/SHL/uint8/exhaustive/0", 8 << 8),
        ("op/NEG/int8/exhaustive/0", 1 << 8),
    ],
)
def test_exhaustive_programs_hold_every_combination(id: str, elements: int) -> None:
    case = generate.case_by_id(id)
    assert isinstance(case, Case)
    assert case.is_exhaustive
    (batch,) = case.batches
    columns = [a.view(f"u{a.dtype.itemsize}") for a in batch.inputs.values()]
    assert len(set(zip(*(c.tolist() for c in columns), strict=True))) == elements


DIVIDING = [
    (op.name, dtype)
    for op in (Op.IDIV, Op.MOD, Op.CDIV, Op.CMOD)
    for dtype in DECLARATIONS[op].dtypes
]


@pytest.mark.parametrize(("op", "dtype"), DIVIDING, ids=[f"{o}-{d.name}" for o, d in DIVIDING])
def test_zero_divisors_have_programs_of_their_own(op: str, dtype: DType) -> None:
    traps = parse_profile("int_div_traps=true")
    every = [g for level in ("op", "twin") for g in generate.groups(level)]
    named = ("edges", "shapes", "constants", "exhaustive", "twin", "decomposed", "zero-divisors")
    for group in every:
        if (group.op, group.dtype) != (op, dtype.name) or group.name not in named:
            continue
        for index in range(group.count("full")):
            case = group.case(index, 0)
            assert isinstance(case, Case)
            inputs = [batch.inputs for batch in case.batches]
            assert may_end(case.root, inputs, traps) == (group.name == "zero-divisors"), case.id


def test_a_divisor_may_be_zero_by_truncation() -> None:
    """1 // -2 is -1 where it floors and 0 where it does not."""
    a, b, c = (param(slot, (1,), dtypes.int32) for slot in range(3))
    root = UOp(Op.IDIV, a, UOp(Op.IDIV, b, c))
    inputs = [{k: np.array([n], np.int32) for k, n in enumerate((5, 1, -2))}]
    assert not may_end(root, inputs, Profile(int_div_traps=True))
    assert may_end(root, inputs, Profile(int_div_traps=True, int_div="trunc"))


@pytest.mark.parametrize("dtype", DECLARATIONS[Op.IDIV].dtypes, ids=lambda d: d.name)
def test_every_pair_of_special_values_is_divided(dtype: DType) -> None:
    found: set[tuple[int, int]] = set()
    for id in ("edges/1", "zero-divisors/0"):
        case = generate.case_by_id(f"op/IDIV/{dtype.name}/{id}")
        assert isinstance(case, Case)
        found.update(zip(*(a.tolist() for a in case.batches[0].inputs.values()), strict=True))
    special = specials(dtype).tolist()
    assert set(product(special, special)) <= found


def test_a_float_edge_case_meets_each_special_value_with_each() -> None:
    case = generate.case_by_id("op/MAX/float32/edges/0")
    assert isinstance(case, Case)
    a, b = case.batches[0].inputs.values()
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    bits = set(zip(a.view(np.uint32).tolist(), b.view(np.uint32).tolist(), strict=True))
    assert (0x80000000, 0x00000000) in bits
    assert (0x7F800001, 0x3F800000) in bits
    assert (np.inf, -np.inf) in pairs
    assert (2.0**-149, -(2.0**-149)) in pairs


def test_a_full_run_meets_every_triple_of_special_values() -> None:
    case = generate.case_by_id("op/MULACC/float16/edges/1")
    assert isinstance(case, Case)
    columns = [a.view(np.uint16).tolist() for a in case.batches[0].inputs.values()]
    bits = specials(dtypes.float16).view(np.uint16).tolist()
    assert set(zip(*columns, strict=True)) == set(product(bits, repeat=3))


def test_shapes_reach_rank_0_no_elements_large_and_broadcast() -> None:
    shapes = set()
    for index in range(9):
        case = generate.case_by_id(f"op/ADD/int32/shapes/{index}")
        assert isinstance(case, Case)
        shapes.add(case.root.shape)
    sizes = {int(np.prod(s)) for s in shapes}
    assert () in shapes
    assert 0 in sizes
    assert max(sizes) > 1024
    assert any(n % 2 and n > 1 for n in sizes)


def test_constants_stand_in_for_inputs() -> None:
    case = generate.case_by_id("op/MUL/float32/constants/0")
    assert isinstance(case, Case)
    folded = [u for u in case.root.src if all(s.op is Op.CONST for s in u.src)]
    mixed = [u for u in case.root.src if {s.op for s in u.src} == {Op.CONST, Op.PARAM}]
    assert folded
    assert mixed


def test_a_twin_holds_no_decomposed_op() -> None:
    x, y = (param(k, (3,), dtypes.float32) for k in range(2))
    for op in (Op.POW, Op.SUB, Op.CMPLE, Op.DIV):
        twin = decomposed(UOp(op, x, y))
        assert all(u.declaration.decomposition is None for u in twin.toposort())
    assert [u.op for u in decomposed(UOp(Op.SUB, x, y)).toposort()].count(Op.MUL) == 1


@pytest.mark.parametrize("level", ["op", "property", "graph"])
def test_programs_have_a_meaning_and_keep_their_properties(level: str) -> None:
    """`evaluate` checks every value against its derived dtype, shape and min_max."""
    for case in smoke(level):
        for batch in case.batches:
            evaluate(case.root, batch.inputs)


def test_property_programs_have_intervals_that_say_something() -> None:
    narrow = total = 0
    for case in smoke("property"):
        for u in case.root.toposort():
            if u.min_max is None or u.op in (Op.CONST, Op.STACK):
                continue
            total += 1
            whole = (u.dtype.min, u.dtype.max)
            narrow += (u.min_max.min, u.min_max.max) != whole and u.min_max.min != u.min_max.max
    assert narrow > total / 3


def test_every_label_has_a_program_that_is_rejected_for_it() -> None:
    seen: Counter[str] = Counter()
    for case in generate.cases(["invalid"]):
        assert isinstance(case, InvalidCase)
        with pytest.raises(InvalidError) as caught:
            parse(case.text)
        assert caught.value.label == case.label, case.id
        seen[case.label] += 1
    no_wrong_text = {f"{op.name}.arg" for op, d in DECLARATIONS.items() if d.default_arg}
    open_arity = {
        f"{op.name}.arity" for op, d in DECLARATIONS.items() if d.most is None and not d.least
    }
    assert not set(labels()) - set(seen) - open_arity - no_wrong_text


def test_float_cells_see_every_class_of_special_values() -> None:
    for dtype in FLOATS:
        case = generate.case_by_id(f"op/CMPLT/{dtype.name}/edges/0")
        assert isinstance(case, Case)
        with np.errstate(invalid="ignore"):
            column = case.batches[0].inputs[0].astype(np.float64)
        assert np.isnan(column).any()
        assert (column == 0).any()
        assert np.isinf(column).any() == dtype.format.has_inf
