"""The adversarial conformer is never accused, and always once it leaves what one op may return."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.judging.lowering import submission_of
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.interpreter.accept import accept
from uop.interpreter.accepted.sets import Sets
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.adversary.kernels import pushed
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array, from_bits, np_dtype
from uop.spec.args import BufferArg, DTypeArg, FlipArg, PadArg, PermuteArg, ReduceArg
from uop.spec.dtype import FLOATS, DType, Kind, dtypes
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS
from uop.spec.text.profile_text import parse_profile
from uop.spec.uop import UOp, dims, index_const, param

COUNT = 24
FLOAT_OPS = (
    *(Op.RECIP, Op.SQRT, Op.EXP2, Op.LOG2, Op.SIN, Op.TRUNC, Op.NEG),
    *(Op.ADD, Op.SUB, Op.MUL, Op.MAX, Op.DIV, Op.POW, Op.CMPLT, Op.CMPGE, Op.CMPLE, Op.CMPNE),
)
ELEMENTWISE = [d for d in DECLARATIONS.values() if d.is_elementwise]


def outputs(result: Any) -> list[Array]:
    if isinstance(result, dict):
        return [result[slot] for slot in sorted(result)]
    return list(result) if isinstance(result, tuple) else [result]


def accused(
    root: UOp,
    inputs: dict[int, Array],
    seed: int,
    push: Op | None = None,
    profile: Profile = STRICT,
    judged_by: Profile | None = None,
) -> bool:
    results = outputs(evaluate_adversarially(root, inputs, seed, push, profile))
    sets = accept(root, inputs, judged_by or profile)
    return not all(a.contains(r).all() for a, r in zip(sets, results, strict=True))


def data(random: np.random.Generator, dtype: DType, *shape: int) -> Array:
    """Values of usual size, the special ones of the dtype among them."""
    n = int(np.prod(shape))
    if dtype.kind is Kind.BOOL:
        return (random.random(n) < 0.5).reshape(shape)
    least = -9 if dtype.is_signed or dtype.is_float else 0
    usual = random.integers(least, 10, n).astype(np_dtype(dtype))
    special = [dtype.encode(v) for v in (dtype.min, dtype.max, 0, 1)]
    if dtype.is_float:
        usual = (random.standard_normal(n) * 4).astype(np_dtype(dtype))
        form = dtype.format
        special += [form.nan_bits, form.max_bits, form.sign_bit, form.sign_bit | form.nan_bits]
    patterns = np.asarray(special, np.uint64).astype(f"u{dtype.itemsize}")
    chosen = from_bits(random.choice(patterns, n), dtype)
    return np.where(random.random(n) < 0.3, chosen, usual).reshape(shape)


def grown(random: np.random.Generator, dtype: DType) -> tuple[UOp, dict[int, Array]]:
    """A graph of some float ops, comparisons, reductions and movement over a few inputs."""
    nodes = [param(slot, (COUNT,), dtype) for slot in range(3)]
    inputs = {slot: data(random, dtype, COUNT) for slot in range(3)}
    for _ in range(random.integers(2, 8)):
        op = FLOAT_OPS[random.integers(len(FLOAT_OPS))]
        picked = [nodes[random.integers(len(nodes))] for _ in DECLARATIONS[op].src]
        made = UOp(op, *picked)
        if made.dtype is dtypes.bool:
            made = UOp(Op.WHERE, made, nodes[random.integers(len(nodes))], nodes[-1])
        nodes.append(made)
        if random.random() < 0.2:
            nodes.append(_folded(made, random))
        elif random.random() < 0.2:
            nodes.append(UOp(Op.SHRINK, _padded(made), dims((1,)), dims((COUNT,))))
    return UOp(Op.TUPLE, *nodes), inputs


def _folded(u: UOp, random: np.random.Generator) -> UOp:
    op = (Op.ADD, Op.MUL, Op.MAX)[random.integers(3)]
    rows = UOp(Op.RESHAPE, u, dims((COUNT // 4, 4)))
    folded = UOp(Op.REDUCE, rows, arg=ReduceArg(op, (1,)))
    again = UOp(Op.EXPAND, folded, dims((COUNT // 4, 4)))
    return UOp(Op.RESHAPE, again, dims((COUNT,)))


def _padded(u: UOp) -> UOp:
    return UOp(Op.PAD, u, dims((2,)), dims((COUNT + 3,)), arg=PadArg())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_what_an_op_may_return_is_never_accused(dtype: DType) -> None:
    random = np.random.default_rng(dtype.bits)
    for seed in range(25):
        root, inputs = grown(random, dtype)
        assert not accused(root, inputs, seed)


def single_op_programs() -> list[UOp]:
    """One program for each op that computes or moves, of one dtype or a few."""
    found = []
    for declaration in ELEMENTWISE:
        if declaration.op in (Op.CAST, Op.WHERE):
            continue
        allowed = (dtypes.float32, dtypes.fp8e4m3, dtypes.int8, dtypes.bool, dtypes.uint64)
        for d in allowed:
            if d in declaration.dtypes:
                src = [param(slot, (COUNT,), d) for slot in range(len(declaration.src))]
                found.append(UOp(declaration.op, *src))
    x, y, p = param(0, (4, 6), dtypes.float32), param(1, (4, 6), dtypes.float32), (4, 6)
    found += [UOp(Op.REDUCE, x, arg=ReduceArg(op, (1,))) for op in (Op.ADD, Op.MUL, Op.MAX)]
    found += [
        UOp(Op.WHERE, param(0, p, dtypes.bool), param(1, p, dtypes.int8), param(2, p, dtypes.int8)),
        UOp(Op.CAST, x, arg=DTypeArg(dtypes.float16)),
        UOp(Op.BITCAST, x, arg=DTypeArg(dtypes.uint32)),
        UOp(Op.PERMUTE, x, arg=PermuteArg((1, 0))),
        UOp(Op.FLIP, x, arg=FlipArg((True, False))),
        UOp(Op.PAD, x, dims((0, 1)), dims((4, 9))),
        UOp(Op.SHRINK, x, dims((1, 1)), dims((2, 2))),
        UOp(Op.INDEX, x, index_const(2)),
        UOp(Op.STACK, x, y),
        UOp(Op.LOAD, x),
    ]
    return found


@pytest.mark.parametrize("root", single_op_programs(), ids=lambda u: f"{u.op.name}-{u.dtype.name}")
def test_one_value_outside_is_always_accused(root: UOp) -> None:
    params = [u for u in root.toposort() if u.op is Op.PARAM]
    for seed in range(5):
        random = np.random.default_rng(seed)
        inputs = {u.arg.slot: data(random, u.dtype, *u.shape) for u in params}
        assert not accused(root, inputs, seed)
        assert accused(root, inputs, seed, push=root.op)


def test_every_liberty_is_taken() -> None:
    """Over many seeds both ends of a budget, both operands of a MAX, and both zeros are seen."""
    x = param(0, (1,), dtypes.float32)
    seen: dict[Op, set[bytes]] = {}
    inputs = {
        Op.EXP2: np.asarray([0.3], np.float32),
        Op.MAX: np.asarray([np.nan], np.float32),
        Op.CMPGE: np.asarray([np.nan], np.float32),
    }
    for op, given in inputs.items():
        root = UOp(op, *[x, UOp(Op.DETACH, param(1, (1,), dtypes.float32))][: len_src(op)])
        more = {1: np.ones(1, np.float32)} if len_src(op) == 2 else {}
        for seed in range(60):
            result = evaluate_adversarially(root, {0: given, **more}, seed)
            assert isinstance(result, np.ndarray)
            seen.setdefault(op, set()).add(result.tobytes())
    assert len(seen[Op.EXP2]) >= 3
    assert np.float32(1).tobytes() in seen[Op.MAX]
    assert len(seen[Op.MAX]) > 10
    assert seen[Op.CMPGE] == {b"\x00", b"\x01"}


def len_src(op: Op) -> int:
    return len(DECLARATIONS[op].src)


PROFILES = [
    *("contract=all", "reassociate=all", "algebra=all", "wmma=true", "decomposed=POW,SQRT"),
    *("ftz=float32,float16", "excess_precision=float32,float16"),
]


@pytest.mark.parametrize("text", PROFILES)
def test_the_liberties_of_a_profile_are_taken_and_are_accused_without_it(text: str) -> None:
    profile, accused_by_strict = parse_profile(text), 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        root, inputs = grown(random, (dtypes.float32, dtypes.float16)[seed % 2])
        # Sums of products, a law of algebra, and what is below the normal values.
        x, y, tiny = (u for u in root.toposort() if u.op is Op.PARAM)
        inputs[tiny.arg.slot] *= inputs[tiny.arg.slot].dtype.type(2.0**-13)  # type: ignore[union-attr]
        rows = UOp(Op.RESHAPE, UOp(Op.MUL, x, y), dims((COUNT // 4, 4)))
        more = (
            UOp(Op.REDUCE, rows, arg=ReduceArg(Op.ADD, (1,))),
            UOp(Op.ADD, UOp(Op.SUB, UOp(Op.MUL, x, y), y), x),
            UOp(Op.SUB, x, x),
            UOp(Op.MUL, tiny, tiny),
            UOp(Op.SQRT, tiny),
        )
        root = UOp(Op.TUPLE, *root.src, *more)
        assert not accused(root, inputs, seed, profile=profile)
        accused_by_strict += accused(root, inputs, seed, profile=profile, judged_by=STRICT)
    assert accused_by_strict


X, Y = (param(slot, (4, COUNT), dtypes.float32) for slot in range(2))
K, L = (param(slot, (4, COUNT), dtypes.int16) for slot in range(2))
TO_FP8 = DTypeArg(dtypes.fp8e4m3)
DEMANDS = {
    "max_nan=propagate": (UOp(Op.MAX, X, Y), UOp(Op.REDUCE, X, arg=ReduceArg(Op.MAX, (0,)))),
    "max_nan=number": (UOp(Op.MAX, X, Y), UOp(Op.REDUCE, X, arg=ReduceArg(Op.MAX, (0,)))),
    "cmp_nan=ieee": (UOp(Op.CMPGE, X, Y), UOp(Op.CMPLE, X, Y)),
    "fp8_saturate=true": (UOp(Op.CAST, X, arg=TO_FP8), UOp(Op.CAST, K, arg=TO_FP8)),
    "int_div=trunc": (UOp(Op.IDIV, K, L), UOp(Op.MOD, K, L)),
}
"""What a profile leaves no choice in, and programs that show it."""


@pytest.mark.parametrize("form", ["tensor", "kernel"])
@pytest.mark.parametrize("text", DEMANDS)
def test_what_a_profile_demands_is_given(text: str, form: str) -> None:
    demanded = parse_profile(text)
    hello = replace(InterpreterBackend().hello(), forms=frozenset({form}))
    for root in DEMANDS[text]:
        accused_otherwise = False
        for seed in range(6):
            random = np.random.default_rng(seed)
            params = [u for u in root.toposort() if u.op is Op.PARAM]
            given = {u.arg.slot: data(random, u.dtype, *u.shape) for u in params}
            if root.op in (Op.IDIV, Op.MOD):
                given[1] = np.where(given[1] == 0, given[1].dtype.type(3), given[1])
            case = Case(CaseId("op", "MIXED", "float32", "test", 0), root, (Batch(given),))
            lowered = submission_of(case, hello)
            here = lowered.root or root, (lowered.batches or case.batches)[0].inputs, seed
            assert not accused(*here, profile=demanded)
            accused_otherwise |= accused(*here, judged_by=demanded)
        assert accused_otherwise


def test_unspecified_elements_are_random() -> None:
    a = param(0, (1,), dtypes.int32)
    root = UOp(Op.IDIV, a, UOp(Op.SUB, a, a))
    results = {
        outputs(evaluate_adversarially(root, {0: np.ones(1, np.int32)}, seed))[0].tobytes()
        for seed in range(8)
    }
    assert len(results) == 8


def test_a_nan_keeps_the_bits_that_a_set_demands_beside_one_that_may_get_quiet() -> None:
    """The bits of a signalling NaN, and of its quiet copy, are a number and a NaN of bfloat16."""
    x = param(0, (2,), dtypes.float16)
    chosen = UOp(Op.WHERE, param(1, (2,), dtypes.bool), x, x)
    root = UOp(Op.BITCAST, chosen, arg=DTypeArg(dtypes.bfloat16))
    nans = from_bits(np.asarray([0xFDD6, 0xFFC0], np.uint16), dtypes.float16)
    inputs = {0: nans, 1: np.asarray([True, True])}
    for seed in range(20):
        assert not accused(root, inputs, seed)


def test_memory_and_functions_are_run_too() -> None:
    x = param(0, (2,), dtypes.float32)
    inputs = {0: np.asarray([0.3, 1.7], np.float32)}
    call = UOp(Op.FUNCTION, UOp(Op.TUPLE, UOp(Op.EXP2, x)), UOp(Op.SIN, x))
    out = UOp(Op.BUFFER, dims((2,)), arg=BufferArg(5, dtypes.float32))
    sink = UOp(Op.SINK, UOp(Op.STORE, out, UOp(Op.LOG2, x)))
    for root in (call, sink):
        for seed in range(20):
            assert not accused(root, inputs, seed)
    assert accused(sink, inputs, 0, push=Op.LOG2)
    assert accused(call, inputs, 0, push=Op.EXP2)


def test_the_same_seed_gives_the_same_results() -> None:
    root, inputs = grown(np.random.default_rng(3), dtypes.float32)
    first, second = (outputs(evaluate_adversarially(root, inputs, 7)) for _ in range(2))
    assert [a.tobytes() for a in first] == [a.tobytes() for a in second]
    assert [a.tobytes() for a in outputs(evaluate(root, inputs))] != [a.tobytes() for a in first]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_pushed_outside_is_the_next_value(seed: int) -> None:
    """A judge that accepts one value too many accepts it."""
    ends = Sets(np.array([-128, 5, 126], np.int8), np.array([-128, 6, 127], np.int8))
    made = pushed(ends, ends.lo, dtypes.int8, np.random.default_rng(seed))
    assert made[0] == -127
    assert made[1] in (4, 7)
    assert made[2] == 125
    one = np.array([1.0], np.float32)
    next_to = {float(np.nextafter(one, np.float32(x))[0]) for x in (0, 2)}
    assert (
        float(pushed(Sets(one, one), one, dtypes.float32, np.random.default_rng(seed))[0])
        in next_to
    )
