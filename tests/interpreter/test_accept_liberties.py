"""Accepted sets by what a profile declares: whatever a knob allows is inside, computed otherwise.

The oracles are fractions, numpy in wider dtypes, and every order of a few terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.judging.lowering import submission_of
from uop.conformance.profile.points import knob_points
from uop.conformance.profile.probe import Probe, Witness, bits_of, data
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.numeric.conversions import round_to
from uop.interpreter.numeric.storage import Array
from uop.spec.args import DTypeArg, FlipArg, GetTupleArg, ReduceArg
from uop.spec.dtype import dtypes
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import parse_profile, profile_of
from uop.spec.uop import UOp, const, param

F16, F32 = dtypes.float16, dtypes.float32
N = 400
X, Y, Z = (param(slot, (N,), F32) for slot in range(3))
LEAST = np.float32(2.0**-126)
CONTRACT, TREES, ALGEBRA = (
    parse_profile(f"{knob}=all") for knob in ("contract", "reassociate", "algebra")
)
FLUSH = Profile(ftz=frozenset({F32}))
EXCESS = Profile(excess_precision=frozenset({F16}))


def given(seed: int, spread: int = 3, dtype: type = np.float32) -> Array:
    """Numbers of both signs around one, and a few zeros."""
    random = np.random.default_rng(seed)
    found = random.normal(size=N) * 2.0 ** random.integers(-spread, spread + 1, N)
    found[:5] = 0.0
    return found.astype(dtype)


def only(root: UOp, inputs: dict[int, Array], profile: Profile) -> Accepted:
    (accepted,) = accept(root, inputs, profile)
    return accepted


def inside(root: UOp, inputs: dict[int, Array], profile: Profile, actual: Array) -> bool:
    return bool(only(root, inputs, profile).contains(actual).all())


# What the card asks is what is judged.


def answered(point: Probe) -> Iterator[tuple[Witness, str]]:
    """The witnesses of a point with each word that answers all their elements."""
    for witness in point.witnesses:
        for word in point.declares:
            if all(word in answers for answers in witness.answers):
                yield witness, word


def allows(point: Probe, text: str, witness: Witness, word: str) -> list[bool]:
    """Which elements may be what a word stands for, with this text for the knob."""
    root = witness.root
    (accepted,) = accept(root, witness.inputs, profile_of({point.knob: text} if text else {}))
    output = accepted.value.data.reshape(-1).copy()
    count = len(witness.answers)
    output[:count] = data(root.dtype, [answers[word] for answers in witness.answers])
    return [bool(b) for b in accepted.contains(output.reshape(root.shape)).reshape(-1)[:count]]


ASKED = [point for point in knob_points() if point.knob != "int_div_traps"]


@pytest.mark.parametrize("point", ASKED, ids=lambda point: point.name)
def test_a_declared_answer_is_accepted(point: Probe) -> None:
    for witness, word in answered(point):
        assert all(allows(point, point.declares[word], witness, word)), witness.expression(0)
        if point.mixed:
            assert all(allows(point, point.mixed, witness, word)), witness.expression(0)


@pytest.mark.parametrize("point", ASKED, ids=lambda point: point.name)
def test_an_answer_that_is_not_declared_is_not_accepted(point: Probe) -> None:
    strict = next(iter(point.declares))
    for witness, word in answered(point):
        if word == strict:
            continue
        dtype = witness.root.dtype
        expected = [bits_of(a[strict], dtype) != bits_of(a[word], dtype) for a in witness.answers]
        refused = [not ok for ok in allows(point, point.declares[strict], witness, word)]
        assert refused == expected, witness.expression(0)


# contract


def fused(a: Array, b: Array, c: Array) -> Array:
    """The product and the sum, rounded once."""
    found = []
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        found.append(exact or x * y + z)
    return data(F32, found)


@pytest.mark.parametrize(
    ("root", "signs"),
    [
        (UOp(Op.ADD, UOp(Op.MUL, X, Y), Z), (1, 1)),
        (UOp(Op.ADD, Z, UOp(Op.MUL, X, Y)), (1, 1)),
        (UOp(Op.SUB, UOp(Op.MUL, X, Y), Z), (1, -1)),
        (UOp(Op.SUB, Z, UOp(Op.MUL, X, Y)), (-1, 1)),
        (UOp(Op.ADD, UOp(Op.NEG, UOp(Op.MUL, X, Y)), Z), (-1, 1)),
        (UOp(Op.MULACC, X, Y, Z), (1, 1)),
    ],
)
def test_a_product_may_stay_unrounded(root: UOp, signs: tuple[int, int]) -> None:
    a, b = given(1), given(2)
    # The addend cancels most of the product, so that its last bits count.
    c = (-a * b * signs[0] * signs[1] * (1 + given(3, 0) * 2.0**-22)).astype(np.float32)
    actual = fused(signs[0] * a, b, signs[1] * c)
    inputs = {0: a, 1: b, 2: c}
    assert inside(root, inputs, CONTRACT, actual)
    assert not inside(root, inputs, STRICT, actual)


def test_a_product_behind_a_movement_or_a_function_may_stay_unrounded() -> None:
    a, b, c = given(1), given(2), given(3)
    turned = UOp(Op.FLIP, UOp(Op.MUL, X, Y), arg=FlipArg((True,)))
    moved = UOp(Op.ADD, UOp(Op.FLIP, turned, arg=FlipArg((True,))), Z)
    call = UOp(Op.FUNCTION, UOp(Op.TUPLE, UOp(Op.MUL, X, Y)), X, Y)
    called = UOp(Op.ADD, UOp(Op.GETTUPLE, call, arg=GetTupleArg(0)), Z)
    for root in (moved, called):
        assert inside(root, {0: a, 1: b, 2: c}, CONTRACT, fused(a, b, c))


def test_an_argument_that_no_body_reads_is_an_input_too() -> None:
    a, b = given(1), given(2)
    call = UOp(Op.FUNCTION, UOp(Op.TUPLE, X), X, Y)
    root = UOp(Op.GETTUPLE, call, arg=GetTupleArg(0))
    for profile in (CONTRACT, TREES, ALGEBRA, EXCESS, Profile(wmma=True)):
        assert inside(root, {0: a, 1: b}, profile, a)


# ftz


def flush(a: Array) -> Array:
    return np.where(np.abs(a) < LEAST, np.copysign(np.float32(0), a), a).astype(np.float32)


ELEMENTWISE: list[tuple[UOp, Callable[..., Array]]] = [
    (UOp(Op.ADD, X, Y), lambda x, y: x + y),
    (UOp(Op.SUB, X, Y), lambda x, y: x - y),
    (UOp(Op.MUL, X, Y), lambda x, y: x * y),
    (UOp(Op.MAX, X, Y), np.maximum),
    (UOp(Op.CMPLT, X, Y), lambda x, y: x < y),
    (UOp(Op.CMPNE, X, Y), lambda x, y: x != y),
    (UOp(Op.NEG, X), lambda x: -x),
    (UOp(Op.SQRT, X), np.sqrt),
    (UOp(Op.RECIP, X), lambda x: 1 / x),
    (UOp(Op.DIV, X, Y), lambda x, y: x * flush(1 / y)),
    (UOp(Op.CAST, X, arg=DTypeArg(dtypes.bool)), lambda x: x != 0),
    (UOp(Op.MULACC, X, X, Y), lambda x, y: flush(x * x) + y),
]


@pytest.mark.parametrize(("root", "meant"), ELEMENTWISE, ids=lambda x: getattr(x, "op", ""))
def test_subnormals_may_be_read_and_written_as_zeros(
    root: UOp, meant: Callable[..., Array]
) -> None:
    random = np.random.default_rng(4)
    near = random.normal(size=(2, N)) * 2.0 ** random.integers(-149, -120, (2, N))
    tiny = near.astype(np.float32)
    tiny[:, ::7] = 2.0**126 * np.sign(tiny[:, ::7])
    operands = {u.arg.slot: tiny[u.arg.slot] for u in root.toposort() if u.op is Op.PARAM}
    with np.errstate(all="ignore"):
        for reads in product((flush, np.asarray), repeat=len(operands)):
            result = meant(*(r(a) for r, a in zip(reads, operands.values(), strict=True)))
            for actual in (result, flush(result) if root.dtype is F32 else result):
                assert inside(root, operands, FLUSH, actual)


def test_bit_copies_flush_nothing() -> None:
    tiny = np.full(N, 2.0**-140, np.float32)
    condition = UOp(Op.CMPLT, Y, Z)
    inputs = {0: tiny, 1: given(1), 2: given(2)}
    chosen = UOp(Op.WHERE, condition, X, X)
    assert not inside(chosen, inputs, FLUSH, np.zeros(N, np.float32))
    assert inside(chosen, inputs, FLUSH, tiny)


@pytest.mark.parametrize("op", [Op.ADD, Op.MUL])
def test_a_fold_may_flush_its_parts(op: Op) -> None:
    random = np.random.default_rng(5)
    rows = 200
    terms = random.normal(size=(rows, 4)) * 2.0 ** random.integers(-70, -55, (rows, 4))
    terms *= 2.0**-65 if op is Op.ADD else 1.0
    terms[::3, 3] = 2.0**80 if op is Op.MUL else 2.0**-125
    x = terms.astype(np.float32)
    root = UOp(Op.REDUCE, param(0, x.shape, F32), arg=ReduceArg(op, (1,)))
    combine = np.add if op is Op.ADD else np.multiply
    for order in permutations(range(4)):
        total = flush(x[:, order[0]])
        for k in order[1:]:
            total = flush(combine(total, flush(x[:, k])))
        assert inside(root, {0: x}, FLUSH, total.reshape(root.shape))


# excess_precision


def test_a_half_may_stay_unrounded_between_ops() -> None:
    a, b, c = (param(slot, (N,), F16) for slot in range(3))
    x, y, z = (given(seed, 4, np.float16) for seed in (6, 7, 8))
    wide = [v.astype(np.float32) for v in (x, y, z)]
    total = wide[0] * wide[1] + wide[2]
    inputs = {0: x, 1: y, 2: z}
    chain = UOp(Op.ADD, UOp(Op.MUL, a, b), c)
    assert inside(chain, inputs, EXCESS, round_to(total, F16))
    assert inside(UOp(Op.CAST, chain, arg=DTypeArg(F32)), inputs, EXCESS, total)
    assert inside(UOp(Op.CMPLT, chain, c), inputs, EXCESS, total < wide[2])
    longer = UOp(Op.MUL, UOp(Op.SUB, chain, a), b)
    assert inside(longer, inputs, EXCESS, round_to((total - wide[0]) * wide[1], F16))
    # One op alone is rounded when it is stored.
    assert only(UOp(Op.MUL, a, b), {0: x, 1: y}, EXCESS).single.all()


def test_a_cast_ends_excess_precision() -> None:
    x = param(0, (2,), F32)
    half = UOp(Op.CAST, x, arg=DTypeArg(F16))
    given = {0: np.array([1e6, 0.1], np.float32)}
    rounded = np.array([np.inf, 1638 / 2**14], np.float32)
    for root in (
        UOp(Op.CAST, half, arg=DTypeArg(F32)),
        UOp(Op.CAST, UOp(Op.CAST, half, arg=DTypeArg(F16)), arg=DTypeArg(F32)),
    ):
        assert inside(root, given, EXCESS, rounded)
        assert not inside(root, given, EXCESS, given[0])


def test_a_cast_may_read_an_unrounded_sum_and_rounds_it() -> None:
    a = param(0, (1,), F16)
    total = UOp(Op.ADD, a, const(1.0, F16))
    x = {0: np.array([2.0**11], np.float16)}
    wide = UOp(Op.CAST, total, arg=DTypeArg(F32))
    assert inside(wide, x, EXCESS, np.array([2.0**11 + 1], np.float32))
    rounded = UOp(Op.CAST, UOp(Op.CAST, total, arg=DTypeArg(F16)), arg=DTypeArg(F32))
    assert not inside(rounded, x, EXCESS, np.array([2.0**11 + 1], np.float32))


def test_what_overflows_a_half_may_come_back() -> None:
    a = param(0, (1,), F16)
    squared = UOp(Op.MUL, UOp(Op.MUL, a, a), const(2.0**-10, F16))
    actual = np.array([512.0**2 * 2.0**-10], np.float16)
    x = {0: np.array([512.0], np.float16)}
    assert inside(squared, x, EXCESS, actual)
    assert not inside(squared, x, STRICT, actual)


# reassociate


def groupings(terms: list[Array], combine: Callable[[Array, Array], Array]) -> Iterator[Array]:
    """Every result of terms in every order and grouping."""
    if len(terms) == 1:
        yield terms[0]
    for order in permutations(terms):
        for k in range(1, len(terms)):
            for a in groupings(list(order[:k]), combine):
                for b in groupings(list(order[k:]), combine):
                    yield combine(a, b)


def test_a_tree_may_be_regrouped() -> None:
    x, y, z = given(9, 12), given(10, 12), given(11, 12)
    inputs = {0: x, 1: y, 2: z}
    sums = UOp(Op.ADD, UOp(Op.SUB, X, Y), UOp(Op.ADD, Z, X))
    products = UOp(Op.MUL, UOp(Op.MUL, X, Y), UOp(Op.MUL, Z, X))
    for actual in groupings([x, -y, z, x], np.add):
        assert inside(sums, inputs, TREES, actual)
    for actual in groupings([x, y, z, x], np.multiply):
        assert inside(products, inputs, TREES, actual)


def test_a_value_that_is_used_twice_is_computed_once() -> None:
    x, one = np.full(N, 2.0**24, np.float32), np.ones(N, np.float32)
    total = UOp(Op.ADD, X, Y)
    both = UOp(Op.ADD, total, Z)
    inputs = {0: x, 1: one, 2: one}
    assert inside(both, inputs, TREES, x + 2)
    shared, _ = accept(UOp(Op.TUPLE, both, total), inputs, TREES)
    assert not shared.contains(x + 2).any()


# algebra


def test_laws_of_algebra_hold_whatever_x_is() -> None:
    x = np.full(N, np.inf, np.float32)
    zero = np.zeros(N, np.float32)
    for root, actual in (
        (UOp(Op.MUL, X, const(-0.0, F32)), zero),
        (UOp(Op.SUB, X, X), -zero),
        (UOp(Op.ADD, UOp(Op.NEG, X), X), zero),
        (UOp(Op.DIV, X, X), zero + 1),
        (UOp(Op.MUL, UOp(Op.RECIP, X), X), zero + 1),
    ):
        assert inside(root, {0: x}, ALGEBRA, actual)
        assert inside(root, {0: x}, ALGEBRA, np.full(N, np.nan, np.float32))
        assert not inside(root, {0: x}, STRICT, actual)
    # Of two values that happen to be the same nothing is known before.
    assert not inside(UOp(Op.SUB, X, Y), {0: x, 1: x}, ALGEBRA, zero)


# wmma


def test_matrix_units_may_read_fewer_bits() -> None:
    random = np.random.default_rng(12)
    a, b = random.normal(size=(2, 8, 16)).astype(np.float32)
    x, y = param(0, (8, 16, 1), F32), param(1, (1, 16, 8), F32)
    root = UOp(Op.REDUCE, UOp(Op.MUL, x, y), arg=ReduceArg(Op.ADD, (1,)))
    fewer = [(m.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(float) for m in (a, b)]
    actual = (fewer[0] @ fewer[1].T).astype(np.float32)
    inputs = {0: a.reshape(x.shape), 1: b.T.copy().reshape(y.shape)}
    assert inside(root, inputs, Profile(wmma=True), actual.reshape(root.shape))
    assert not inside(root, inputs, STRICT, actual.reshape(root.shape))


# decomposed


def test_a_power_may_have_the_error_of_its_parts() -> None:
    x, y = np.abs(given(13)) + np.float32(0.01), given(14)
    scaled = (np.log2(x.astype(float)).astype(np.float32) * y).astype(float)
    actual = np.exp2(scaled).astype(np.float32)
    root = UOp(Op.POW, X, Y)
    profile = Profile(decomposed=frozenset({Op.POW}))
    assert inside(root, {0: x, 1: y}, profile, actual)


# Kernels


SUM = UOp(Op.ADD, UOp(Op.ADD, X, Y), Z)
ONES = np.ones(N, np.float32)


@pytest.mark.parametrize("form", ["kernel", "linear"])
@pytest.mark.parametrize(
    ("root", "inputs", "profile", "actual"),
    [
        (
            UOp(Op.ADD, UOp(Op.MUL, X, Y), Z),
            {0: ONES * (1 + 2.0**-12), 1: ONES * (1 + 2.0**-12), 2: -ONES},
            CONTRACT,
            ONES * (2.0**-11 + 2.0**-24),
        ),
        (SUM, {0: ONES * 2.0**24, 1: ONES, 2: ONES}, TREES, ONES * (2.0**24 + 2)),
        (UOp(Op.SUB, X, X), {0: ONES * np.inf}, ALGEBRA, ONES * 0),
        (UOp(Op.MUL, X, Y), {0: ONES * 2.0**-100, 1: ONES * 2.0**-40}, FLUSH, ONES * 0),
    ],
)
def test_kernels_have_the_same_liberties(
    root: UOp, inputs: dict[int, Array], profile: Profile, actual: Array, form: str
) -> None:
    inputs = {slot: a.astype(np.float32) for slot, a in inputs.items()}
    hello = replace(InterpreterBackend().hello(), forms=frozenset({form}))
    case = Case(CaseId("op", "MIXED", "float32", "test", 0), root, (Batch(inputs),))
    lowered = submission_of(case, hello)
    assert lowered.root is not None
    for free, expected in ((profile, True), (STRICT, False)):
        sets = accept(lowered.root, lowered.batches[0].inputs, free)[lowered.positions[0]]
        assert sets.contains(actual.astype(np.float32)).all() == expected
