"""Extension ops: their meaning by exact integers and by hand, and their forms in core ops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from uop.compiler.pipeline import compile, lower
from uop.interpreter.accept import accept
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.interpreter.numeric.storage import Array, np_dtype, to_bits
from uop.interpreter.values import Value
from uop.spec.args import (
    AddrSpace,
    AllReduceArg,
    Device,
    LanesArg,
    LoadArg,
    ParamArg,
    PtrAddArg,
    RangeArg,
    ReduceArg,
    StageArg,
    UniqueArg,
    Unit,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.extension import in_core_ops
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param


def every_pair(dtype: DType) -> dict[int, Array]:
    bits = np.arange(256, dtype=np.uint8)
    pairs = np.stack(np.meshgrid(bits, bits, indexing="ij")).reshape(2, -1)
    return {k: pairs[k].view(np_dtype(dtype)) for k in range(2)}


def of_pairs(op: Op, dtype: DType) -> UOp:
    return UOp(op, *(param(k, (1 << 16,), dtype) for k in range(2)))


def toward_zero(a: int, b: int) -> int:
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=lambda d: d.name)
def test_division_rounds_toward_zero(dtype: DType) -> None:
    given = every_pair(dtype)
    quotient, remainder = (evaluate_full(of_pairs(op, dtype), given) for op in (Op.CDIV, Op.CMOD))
    assert isinstance(quotient, Value)
    assert isinstance(remainder, Value)
    pairs = list(zip(given[0].tolist(), given[1].tolist(), strict=True))
    open_ = [b == 0 for _, b in pairs]
    assert np.asarray(quotient.unspecified).tolist() == open_
    assert np.asarray(remainder.unspecified).tolist() == open_
    for (a, b), q, r in zip(pairs, quotient.data.tolist(), remainder.data.tolist(), strict=True):
        if b:
            exact = toward_zero(a, b)
            assert q == (exact if exact <= dtype.max else a)
            assert r == a - b * exact


@pytest.mark.parametrize("op", [Op.CDIV, Op.CMOD])
@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=lambda d: d.name)
def test_division_in_core_ops_is_the_same(op: Op, dtype: DType) -> None:
    u, given = of_pairs(op, dtype), every_pair(dtype)
    core = in_core_ops(u)
    assert all(v.declaration.section != "extension" for v in core.toposort())
    one, other = evaluate_full(u, given), evaluate_full(core, given)
    assert isinstance(one, Value)
    assert isinstance(other, Value)
    open_ = np.asarray(one.unspecified)
    np.testing.assert_array_equal(np.asarray(other.unspecified), open_)
    np.testing.assert_array_equal(one.data[~open_], other.data[~open_])


@pytest.mark.parametrize(
    "dtype", [dtypes.int8, dtypes.uint8, dtypes.fp8e4m3, dtypes.fp8e5m2], ids=lambda d: d.name
)
def test_the_smaller_one_of_every_pair(dtype: DType) -> None:
    u, given = of_pairs(Op.MIN, dtype), every_pair(dtype)
    got = np.asarray(evaluate(u, given))
    wide = [given[k].astype(np.float64) for k in range(2)]
    signs = [np.signbit(w) for w in wide]
    first = (wide[0] < wide[1]) | ((wide[0] == wide[1]) & signs[0])
    nan = np.isnan(wide[0]) | np.isnan(wide[1])
    want = np.where(first, to_bits(given[0]), to_bits(given[1]))
    np.testing.assert_array_equal(to_bits(got)[~nan], want[~nan])
    assert np.isnan(got.astype(np.float64))[nan].all()
    core = np.asarray(evaluate(in_core_ops(u), given))
    np.testing.assert_array_equal(to_bits(core)[~nan], to_bits(got)[~nan])


FOLDED = [dtypes.int8, dtypes.uint16, dtypes.float32, dtypes.bfloat16, dtypes.bool]


@pytest.mark.parametrize("dtype", FOLDED, ids=lambda d: d.name)
def test_a_fold_gives_the_smallest(dtype: DType) -> None:
    data = np.array([[3, 1, 2], [0, 7, 5]]).astype(np_dtype(dtype))
    t = param(0, (2, 3), dtype)
    u = UOp(Op.REDUCE, t, arg=ReduceArg(Op.MIN, (1,)))
    want = data.min(axis=1, keepdims=True)
    np.testing.assert_array_equal(np.asarray(evaluate(u, {0: data})), want)
    np.testing.assert_array_equal(np.asarray(evaluate(in_core_ops(u), {0: data})), want)
    assert u.min_max is not None
    assert u.min_max.max == dtype.max


def programs() -> list[tuple[UOp, dict[int, Array]]]:
    a, b = (param(k, (4,), dtypes.int32) for k in range(2))
    given = {0: np.array([7, -7, 8, -1], np.int32), 1: np.array([2, 2, -3, 9], np.int32)}
    lane = UOp(Op.UNROLL, a, arg=LanesArg((0,), (4,)))
    lanes = UOp(Op.CONTRACT, UOp(Op.MUL, lane, lane), arg=LanesArg((0,), (4,)))
    r = UOp(Op.RANGE, index_const(4), arg=RangeArg(0))
    staged = UOp(Op.STAGE, UOp(Op.NEG, UOp(Op.INDEX, a, r)), r)
    folded = UOp(Op.REDUCE, a, arg=ReduceArg(Op.MIN, (0,)))
    return [
        *((UOp(op, a, b), given) for op in (Op.CDIV, Op.CMOD, Op.MIN)),
        *((u, {0: given[0]}) for u in (lanes, staged, folded, UOp(Op.NOOP, a))),
    ]


@pytest.mark.parametrize(
    ("u", "given"), programs(), ids=lambda x: getattr(x, "op", None) and x.op.name
)
@pytest.mark.usefixtures("opencl")
def test_every_part_of_the_project_knows_them(u: UOp, given: dict[int, Array]) -> None:
    reference = np.asarray(evaluate(u, given))
    (accepted,) = accept(u, given)
    assert accepted.contains(reference).all()
    np.testing.assert_array_equal(np.asarray(evaluate_adversarially(u, given)), reference)
    np.testing.assert_array_equal(np.asarray(compile(u).run(given)), reference)


@pytest.mark.parametrize("op", [Op.MIN, Op.REDUCE])
def test_every_stage_of_a_minimum_means_it(op: Op) -> None:
    u, given = next((u, given) for u, given in programs() if u.op is op)
    compiled = compile(u)
    for program in compiled.stages.values():
        (accepted,) = accept(program, given)
        reference = np.asarray(evaluate(u, given))
        for found in (evaluate(program, given), evaluate_adversarially(program, given)):
            assert isinstance(found, dict)
            result = found[compiled.executable.results[0]]
            np.testing.assert_array_equal(result, reference)
            assert accepted.contains(reference).all()


def test_the_list_of_a_kernel_has_what_they_are_made_of() -> None:
    """In a loop and behind it, where what was listed in the loop is out of scope."""
    x, y = (param(k, (4,), dtypes.int32) for k in range(2))
    given = {0: np.array([7, -7, 8, -1], np.int32), 1: np.array([2, 2, -3, 9], np.int32)}
    total = UOp(Op.REDUCE, UOp(Op.IDIV, x, y), arg=ReduceArg(Op.ADD, (0,)))
    floors = lower(UOp(Op.IDIV, total, const(-2, dtypes.int32)), "linearize")
    kernels = with_op(floors, Op.IDIV, Op.CDIV)
    pairs = [(int(a), int(b)) for a, b in zip(given[0], given[1], strict=True)]
    want = [toward_zero(sum(toward_zero(a, b) for a, b in pairs), -2)]
    assert want != [sum(a // b for a, b in pairs) // -2]
    for program in (kernels, in_core_ops(kernels)):
        found = evaluate(program, given)
        assert isinstance(found, dict)
        assert found[2].tolist() == want
        (accepted,) = accept(program, given)
        assert accepted.value.data.tolist() == want


def test_a_list_with_an_end_too_many_is_undefined() -> None:
    r = UOp(Op.RANGE, index_const(2), arg=RangeArg(0))
    smaller = UOp(Op.MIN, r, index_const(1))
    end = UOp(Op.END, UOp(Op.GROUP), r)
    listed = UOp(Op.LINEAR, *smaller.toposort(), end.src[0], end, end)
    with pytest.raises(UndefinedError, match=r"LINEAR\.u1"):
        evaluate(UOp(Op.SINK, UOp(Op.CALL, listed)), {})


def with_op(root: UOp, old: Op, new: Op) -> UOp:
    done: dict[UOp, UOp] = {}
    for u in root.toposort():
        same = u.with_src(done[s] for s in u.src)
        done[u] = UOp(new, *same.src) if u.op is old else same
    return done[root]


def test_a_lane_is_chosen_in_row_major_order_of_its_axes() -> None:
    v = param(0, (6,), dtypes.int8)
    lane = UOp(Op.UNROLL, v, arg=LanesArg((4, 2), (2, 3)))
    u = UOp(Op.CONTRACT, lane, arg=LanesArg((2, 4), (3, 2)))
    given = {0: np.arange(6, dtype=np.int8)}
    want = [2 * 0 + 3 * j + i for i, j in product(range(3), range(2))]
    assert np.asarray(evaluate(u, given)).tolist() == want


def test_a_lane_that_nothing_chooses_has_no_value() -> None:
    lane = UOp(Op.UNROLL, param(0, (2,), dtypes.int8), arg=LanesArg((0,), (2,)))
    with pytest.raises(UndefinedError, match="UNROLL"):
        evaluate(lane, {0: np.zeros(2, np.int8)})


@pytest.mark.parametrize(
    "arg",
    [StageArg(), StageArg("A"), StageArg(None, AddrSpace.LOCAL), StageArg("A", removable=False)],
)
def test_what_is_staged_is_put_down_in_memory(arg: StageArg) -> None:
    """A copy to new memory on the device, with an axis for each of the loops, in their order."""
    r, s = (UOp(Op.RANGE, index_const(n), arg=RangeArg(k)) for k, n in enumerate((2, 3)))
    core = in_core_ops(UOp(Op.STAGE, UOp(Op.ADD, r, s), r, s, arg=arg))
    assert (core.op, core.arg) == (Op.LOAD, LoadArg(arg.device, arg.addrspace))
    assert (core.shape, core.device) == ((2, 3), arg.device)


@pytest.mark.parametrize("first", [None, 3])
def test_the_offsets_of_a_pointer_add_up(first: int | None) -> None:
    """Offsets 2, 1 and 4, the second one in bytes of elements of two, behind an index or none."""
    arg = ParamArg(0, dtypes.int16, None, AddrSpace.GLOBAL)
    place = UOp(Op.PARAM, dims((16,)), arg=arg)
    if first is not None:
        place = UOp(Op.INDEX, place, index_const(first))
    for offset, unit in ((2, Unit.ELEMENTS), (2, Unit.BYTES), (4, Unit.ELEMENTS)):
        place = UOp(Op.PTRADD, place, index_const(offset), arg=PtrAddArg(unit))
    data = np.arange(100, 116, dtype=np.int16)
    want = 100 + (first or 0) + 2 + 1 + 4
    # The whole chain at once, and pointer by pointer.
    core = place.decompose()
    assert core is not None
    for location in (core, place):
        assert np.asarray(evaluate(UOp(Op.LOAD, location), {0: data})) == want


FOLDS = {Op.ADD: np.add, Op.MUL: np.multiply, Op.MAX: np.maximum, Op.MIN: np.minimum}


@pytest.mark.parametrize("device", ["B", ("C", "D")])
@pytest.mark.parametrize("op", FOLDS, ids=lambda op: op.name)
def test_a_collective_folds_the_shards_by_its_op(op: Op, device: Device) -> None:
    """Shards of two elements on three devices; each fold gives another result."""
    on = ParamArg(0, dtypes.int32, ("A", "B", "C"))
    shards = UOp(Op.PARAM, dims((6,)), arg=on)
    folded = UOp(Op.ALLREDUCE, shards, arg=AllReduceArg(op, device))
    data = np.array([2, -3, 5, 7, -4, 6], np.int32)
    assert (folded.shape, folded.device, folded.axis) == ((2,), device, None)
    want = FOLDS[op].reduce(data.reshape(3, 2), axis=0)
    np.testing.assert_array_equal(np.asarray(evaluate(folded, {0: data})), want)


def test_names_stay_what_they_are() -> None:
    name = UOp(Op.UNIQUE, arg=UniqueArg(3))
    assert in_core_ops(name) is name
