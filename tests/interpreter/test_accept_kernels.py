"""The sets of kernels: sums in no order, matrix products, memory that is not certain."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from kernels import (
    argument,
    at,
    kernel_param,
    load,
    loop,
    matrices,
    memory,
    program,
    special,
    store,
    sums,
    warp_product,
)
from oracles.exact import rounded

from uop.conformance.suite.levels.kernel.scalar import Listing
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.kernel.fragments import SHAPES, fragments_of
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import AddrSpace, AxisType, ReduceArg, WmmaArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError, UnsupportedError
from uop.spec.ops.codegen import WARP
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, index_const

F32 = dtypes.float32
HALF, DOUBLE = dtypes.float16, dtypes.float64


def allowed(root: UOp, inputs: dict[int, Array]) -> Accepted:
    (accepted,) = accept(root, inputs)
    return accepted


def never_accused(root: UOp, inputs: dict[int, Array], seeds: int = 30) -> int:
    """The adversary's results are accepted; how many different ones there were."""
    sets, seen = accept(root, inputs), set()
    for seed in range(seeds):
        result = evaluate_adversarially(root, inputs, seed)
        assert isinstance(result, dict)
        for a, slot in zip(sets, sorted(result), strict=True):
            assert a.contains(result[slot]).all()
        seen.add(tuple(result[slot].tobytes() for slot in sorted(result)))
    return len(seen)


def one(bits: int, dtype: DType) -> Array:
    return np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), np_dtype(dtype))


def nearest(dtype: DType, exact: Fraction) -> Array:
    bits = rounded(dtype, exact)
    assert bits is not None
    return one(bits, dtype)


@pytest.mark.parametrize("dtype", [HALF, F32, dtypes.bfloat16], ids=str)
def test_a_sum_in_no_order_is_a_fold_of_the_first_value_and_the_terms(dtype: DType) -> None:
    """RN(sum -+ (n-1) u sum |x|), of the formula in fractions."""
    random = np.random.default_rng(dtype.bits)
    for count in (1, 2, 5):
        terms = (random.standard_normal(count) * 4).astype(np_dtype(dtype))
        found = allowed(*sums(dtype, terms))
        exact = [Fraction(3), *(Fraction(float(x)) for x in terms)]
        error = count * Fraction(2) ** -dtype.format.precision * sum(map(abs, exact))
        lo, hi = (nearest(dtype, sum(exact) + e) for e in (-error, error))
        assert found.lo[0].tobytes() == lo.tobytes()
        assert found.hi[0].tobytes() == hi.tobytes()
        assert found.single.tolist() == [False, True]


def test_terms_of_several_instructions_come_in_any_order() -> None:
    """What cancels comes first or last, whichever instruction adds it."""
    terms = np.asarray([1e8, 1.5, -1e8, 2.25], np.float32)
    root, inputs = sums(F32, terms, copies=2)
    inputs[0][0] = 0
    found = allowed(root, inputs)
    results = set()
    for order in permutations(terms):
        total = np.float32(0)
        for term in order:
            total = np.float32(total + term)
        assert found.contains(np.asarray([total, 5], np.float32)).all()
        results.add(float(total))
    assert len(results) > 3
    assert never_accused(root, inputs) > 1


def test_a_sum_after_a_store_begins_with_what_is_stored() -> None:
    item, listing = special(1), Listing()
    out, given = kernel_param(0, 2, F32), kernel_param(1, 2, F32)
    listing.do(UOp(Op.ATOMICADD, at(out, item), load(given, item)))
    listing.do(store(out, item, const(2.0, F32)))
    listing.do(UOp(Op.ATOMICADD, at(out, item), load(given, UOp(Op.ADD, item, index_const(1)))))
    root = program(listing.body, argument(0, 2, F32), argument(1, 2, F32))
    found = allowed(root, {0: np.asarray([1e30, 5], np.float32), 1: np.float32([1e30, 0.5])})
    assert found.lo[0] < 2.5 < found.hi[0]
    assert found.hi[0] - found.lo[0] < 1e-5


def test_sums_of_ints_and_what_overflows() -> None:
    root, inputs = sums(dtypes.int8, np.asarray([100, 100, 7], np.int8))
    assert allowed(root, inputs).single.all()
    root, inputs = sums(HALF, np.asarray([6e4, 6e4, -6e4, -6e4], np.float16))
    found = allowed(root, inputs)
    assert (found.lo[0], found.hi[0]) == (-np.inf, np.inf)
    assert found.nan[0]
    assert never_accused(root, inputs) > 1


every_shape = pytest.mark.parametrize(
    "arg", SHAPES, ids=lambda a: f"{a.dtype_in.name}-k{a.k}-{a.dtype_out.name}"
)


def matrix(arg: WmmaArg, fragments: Array) -> Array:
    return fragments_of(arg).acc.gather(fragments.reshape(WARP, -1))


@every_shape
def test_a_matrix_product_lies_within_k_2u_of_the_exact_one(arg: WmmaArg) -> None:
    """E = k 2u (|acc| + sum |ab|), u of the accumulator, 2^-13 for fp8, in fractions."""
    random = np.random.default_rng(arg.k)
    a, b = random.integers(-8, 9, (arg.m, arg.k)) / 8, random.integers(-8, 9, (arg.k, arg.n)) / 8
    acc = random.integers(-64, 65, (arg.m, arg.n)) / 4
    inputs = matrices(arg, a, b, acc)
    root = warp_product(arg, special(WARP, "lidx0"))
    found = allowed(root, inputs)
    lo, hi = matrix(arg, found.lo), matrix(arg, found.hi)
    u = Fraction(1, 2**13) if arg.dtype_in.bits == 8 else Fraction(1, 2**24)
    if arg.dtype_out is HALF:
        u = Fraction(1, 2**11)
    for i, j in np.ndindex(arg.m, arg.n):
        terms = [Fraction(acc[i, j]), *(Fraction(x) for x in a[i] * b[:, j])]
        error = arg.k * 2 * u * sum(map(abs, terms))
        for end, real in ((lo, sum(terms) - error), (hi, sum(terms) + error)):
            assert end[i, j].tobytes() == nearest(arg.dtype_out, real).tobytes()
    assert never_accused(root, inputs, 8) > 4


def test_infinities_and_nans_of_a_matrix_product() -> None:
    arg = WmmaArg(16, 8, 16, HALF, F32)
    a, b, acc = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
    a[0, 3], a[1, 3], a[2, 1], a[3, 2], acc[3, 2] = np.inf, np.nan, -np.inf, 1, 3e38
    b[3, 0], b[1, 1], b[2, 2] = 2, 1, 6e4
    acc[2, 1], acc[5, 5] = np.inf, -0.0
    root = warp_product(arg, special(WARP, "lidx0"))
    inputs = matrices(arg, a, b, acc)
    found = allowed(root, inputs)
    lo, hi, nan = (matrix(arg, part) for part in (found.lo, found.hi, found.nan))
    assert (lo[0, 0], hi[0, 0], nan[0, 0]) == (np.inf, np.inf, 0)
    assert nan[0, 1] == nan[1, 4] == nan[2, 1] == 2
    assert (np.signbit(lo[5, 5]), np.signbit(hi[5, 5]), nan[5, 5]) == (True, False, 0)
    assert np.isfinite(lo[3, 2])
    never_accused(root, inputs)


def chain(effects: Listing, out: UOp, value: UOp) -> UOp:
    effects.do(store(out, special(4), value))
    return program(effects.body, argument(0, 4, F32), argument(1, 4, F32))


def test_what_is_not_certain_goes_through_registers_loops_and_vectors() -> None:
    item, listing = special(4), Listing()
    given, out = kernel_param(1, 4, F32), kernel_param(0, 4, F32)
    register = memory(AddrSpace.REG, 1, F32)
    listing.do(store(register, 0, const(1.0, F32)))
    with listing.each(loop(0, 3)):
        x = UOp(Op.EXP2, load(given, item))
        pair = UOp(Op.STACK, x, load(listing.now(register), 0))
        total = UOp(
            Op.MUL, UOp(Op.INDEX, pair, index_const(0)), UOp(Op.INDEX, pair, index_const(1))
        )
        listing.do(store(register, 0, total))
    root = chain(listing, out, load(listing.now(register), 0))
    inputs = {1: np.asarray([0.3, 0, -1.7, np.nan], np.float32)}
    found = allowed(root, inputs)
    assert found.single.tolist() == [False, True, False, True]
    exact = 2.0 ** (3 * inputs[1].astype(np.float64))
    apart = np.abs(np.stack([found.lo, found.hi]) / exact - 1)[:, ::2]
    assert (apart > 2.0**-23).all()
    assert (apart < 3 * 5 * 2.0**-23).all()
    assert never_accused(root, inputs) > 20


def test_a_store_under_a_gate_that_is_not_certain_leaves_the_old_value_or_the_new() -> None:
    item, listing = special(4), Listing()
    given, out = kernel_param(1, 4, F32), kernel_param(0, 4, F32)
    gate = UOp(Op.CMPLT, UOp(Op.EXP2, load(given, item)), const(1.5, F32))
    listing.do(store(out, item, const(7.0, F32), gate))
    root = program(listing.body, argument(0, 4, F32), argument(1, 4, F32))
    near = np.float32(np.log2(1.5))
    inputs = {0: np.full(4, 5, np.float32), 1: np.asarray([0, near, 1, near], np.float32)}
    found = allowed(root, inputs)
    assert found.lo.tolist() == [7, 5, 5, 5]
    assert found.hi.tolist() == [7, 7, 5, 7]
    assert never_accused(root, inputs) == 4


def test_a_choice_that_is_not_certain_stays_one_in_memory() -> None:
    """A register, and a buffer behind it, hold one of two values; what was there stays a value."""
    item, listing = special(2), Listing()
    given, out = kernel_param(0, 2, F32), kernel_param(1, 3, F32)
    unsure = UOp(Op.CMPGE, load(given, item), const(1.0, F32))
    picked = UOp(Op.WHERE, unsure, const(5.0, F32), const(-1.0, F32))
    listing.do(store(out, item, UOp(Op.ADD, picked, const(1.0, F32))))
    root = program(listing.body, argument(0, 2, F32), argument(1, 3, F32))
    inputs = {0: np.asarray([np.nan, 2.0], np.float32), 1: np.full(3, 9, np.float32)}
    accepted = allowed(root, inputs)
    said = [accepted.describe(k) for k in range(3)]
    assert said == ["0x0p+0 or 0x1.8p+2", "0x1.8p+2", "0x1.2p+3"]
    assert never_accused(root, inputs) == 2


def test_a_fold_over_a_range_of_no_iterations_is_its_identity() -> None:
    r = loop(0, 0, AxisType.REDUCE)
    term = load(kernel_param(1, 4, F32), r)
    total = UOp(Op.REDUCE, term, r, arg=ReduceArg(Op.ADD, ()))
    body = UOp(Op.SINK, store(kernel_param(0, 4, F32), 0, total))
    root = program(body, argument(0, 4, F32), argument(1, 4, F32))
    inputs = {slot: np.ones(4, np.float32) for slot in (0, 1)}
    assert never_accused(root, inputs, 3) == 1
    assert allowed(root, inputs).lo.tolist() == [0, 1, 1, 1]


def test_what_decides_where_and_whether_must_be_certain() -> None:
    item = special(4)
    given, out = kernel_param(1, 4, F32), kernel_param(0, 4, F32)
    value = UOp(Op.EXP2, load(given, item))
    unsure = UOp(Op.CMPLT, value, const(1.5, F32))
    branch, place = Listing(), Listing()
    with branch.where(unsure):
        branch.do(store(out, item, const(7.0, F32)))
    zero, last = index_const(0), index_const(3)
    place.do(store(out, UOp(Op.WHERE, unsure, zero, last), value))
    inputs = {k: np.full(4, np.log2(1.5), np.float32) for k in (0, 1)}
    for listing, what in ((branch, "the gate of an IF"), (place, "an index")):
        root = program(listing.body, argument(0, 4, F32), argument(1, 4, F32))
        with pytest.raises((UnsupportedError, UndefinedError), match=what):
            accept(root, inputs)


def is_accused(root: UOp, inputs: dict[int, Array], push: Op) -> bool:
    """Whether results with one op pushed outside its sets are refused, whatever the seed."""
    sets = accept(root, inputs)
    for seed in range(6):
        result = evaluate_adversarially(root, inputs, seed, push)
        assert isinstance(result, dict)
        pairs = zip(sets, sorted(result), strict=True)
        if all(a.contains(result[slot]).all() for a, slot in pairs):
            return False
    return True


@pytest.mark.parametrize("dtype", [HALF, F32, DOUBLE, dtypes.int8, dtypes.uint64], ids=str)
def test_a_sum_pushed_outside_is_accused(dtype: DType) -> None:
    terms = np.asarray([1, 2, 3, 4]).astype(np_dtype(dtype))
    root, inputs = sums(dtype, terms)
    assert is_accused(root, inputs, Op.ATOMICADD)
    assert never_accused(root, inputs, 5)


@every_shape
def test_a_matrix_pushed_outside_is_accused(arg: WmmaArg) -> None:
    random = np.random.default_rng(arg.n)
    sizes = ((arg.m, arg.k), (arg.k, arg.n), (arg.m, arg.n))
    a, b, acc = (random.integers(-4, 5, size) for size in sizes)
    root = warp_product(arg, special(WARP, "lidx0"))
    assert is_accused(root, matrices(arg, a, b, acc), Op.WMMA)


def test_values_and_folds_of_kernels_pushed_outside_are_accused() -> None:
    item, given, out = special(4), kernel_param(1, 4, F32), kernel_param(0, 4, F32)
    steps = loop(0, 4)
    total = UOp(Op.REDUCE, load(given, steps), steps, arg=ReduceArg(Op.ADD))
    value = UOp(Op.MUL, UOp(Op.EXP2, load(given, item)), const(2.0, F32))
    body = UOp(Op.SINK, store(out, item, UOp(Op.ADD, value, UOp(Op.MAX, total, value))))
    root = program(body, argument(0, 4, F32), argument(1, 4, F32))
    inputs = {1: np.asarray([0.3, 1.5, 2.75, 30], np.float32)}
    assert never_accused(root, inputs) > 4
    only = UOp(Op.SINK, store(out, item, UOp(Op.EXP2, load(given, item))))
    root = program(only, argument(0, 4, F32), argument(1, 4, F32))
    assert is_accused(root, inputs, Op.EXP2)
    folded = program(
        UOp(Op.SINK, store(out, item, total)), argument(0, 4, F32), argument(1, 4, F32)
    )
    assert is_accused(folded, inputs, Op.REDUCE)
