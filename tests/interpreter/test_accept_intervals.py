"""Whatever values are drawn from sets, what an op may return for them is in the set of the op."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from uop.interpreter.accepted import order
from uop.interpreter.accepted.apply import elementwise
from uop.interpreter.accepted.sets import Sets, points
from uop.interpreter.numeric.storage import Array, from_bits, np_dtype
from uop.interpreter.values import Value
from uop.spec.dtype import DType, dtypes
from uop.spec.latitude import STRICT, Profile
from uop.spec.ops.names import Op

E4M3, E5M2, INT8, UINT8, BOOL = (
    dtypes.fp8e4m3,
    dtypes.fp8e5m2,
    dtypes.int8,
    dtypes.uint8,
    dtypes.bool,
)
COUNT = 120
MOST_MEMBERS = {1: 256, 2: 40, 3: 12}
UNARY = (Op.NEG, Op.TRUNC, Op.RECIP, Op.SQRT, Op.EXP2, Op.LOG2, Op.SIN)
BINARY = (Op.ADD, Op.SUB, Op.MUL, Op.MAX, Op.DIV, Op.POW)
COMPARISONS = (Op.CMPLT, Op.CMPGT, Op.CMPGE, Op.CMPLE, Op.CMPEQ, Op.CMPNE)
INT_BINARY = (Op.ADD, Op.SUB, Op.MUL, Op.MAX, Op.IDIV, Op.MOD, Op.SHL, Op.SHR, Op.XOR, Op.AND)
BOOL_BINARY = (Op.ADD, Op.MUL, Op.MAX, Op.XOR, Op.OR, Op.AND)
TARGETS = (BOOL, INT8, UINT8, E4M3, E5M2, dtypes.float16, dtypes.float32, dtypes.uint32)
Case = tuple[Op, tuple[DType, ...], DType, Profile]


def cases() -> list[Case]:
    found: list[Case] = []
    for d in (E4M3, E5M2):
        found += [(op, (d,), d, STRICT) for op in UNARY]
        found += [(op, (d, d), d, STRICT) for op in BINARY]
        found += [(Op.MAX, (d, d), d, Profile(max_nan="propagate"))]
        found += [(Op.MAX, (d, d), d, Profile(max_nan="number"))]
        found += [(op, (d, d), BOOL, Profile(cmp_nan="ieee")) for op in COMPARISONS]
        found += [(Op.CAST, (d,), t, Profile(fp8_saturate=True)) for t in (E4M3, E5M2)]
    for d in (INT8, UINT8):
        found += [(op, (d,), d, STRICT) for op in (Op.NEG, Op.TRUNC)]
        found += [(op, (d, d), d, STRICT) for op in INT_BINARY]
        found += [(op, (d, d), d, Profile(int_div="trunc")) for op in (Op.IDIV, Op.MOD)]
    found += [(op, (BOOL, BOOL), BOOL, STRICT) for op in BOOL_BINARY]
    found += [(Op.NOT, (BOOL,), BOOL, STRICT)]
    for d in (E4M3, E5M2, INT8, UINT8):
        found += [(op, (d, d), BOOL, STRICT) for op in COMPARISONS]
        found += [(Op.WHERE, (BOOL, d, d), d, STRICT), (Op.MULACC, (d, d, d), d, STRICT)]
        found += [(Op.CAST, (d,), t, STRICT) for t in TARGETS]
    return found


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("op", "sources", "target", "profile"),
    cases(),
    ids=lambda x: x.name if isinstance(x, Op | DType) else str(x).replace("dtypes.", ""),
)
def test_sets_hold_the_results_of_their_members(
    op: Op, sources: tuple[DType, ...], target: DType, profile: Profile
) -> None:
    random = np.random.default_rng([len(op.name), len(sources[-1].name), len(target.name)])
    operands = [random_sets(random, d) for d in sources]
    result = apply(op, sources, target, profile, operands)
    wide = parts(result, COUNT)
    closed = ~wide.any & ~wide.only
    assert (wide.lo <= wide.hi)[closed].all()
    assert not (order.is_nan(result.lo) | order.is_nan(result.hi))[closed].any()
    for i in np.flatnonzero(~wide.any):
        points_of = [
            members(random, s, i, d, len(sources)) for s, d in zip(operands, sources, strict=True)
        ]
        grid = [np.ravel(g) for g in np.meshgrid(*points_of, indexing="ij")]
        single = [points(as_value(g, d), d.is_float) for g, d in zip(grid, sources, strict=True)]
        got = parts(apply(op, sources, target, profile, single), len(grid[0]))
        outside = (got.lo < wide.lo[i]) | (got.hi > wide.hi[i]) | wide.only[i]
        wrong = got.any | (got.nan & ~wide.nan[i]) | (~got.only & outside)
        assert not wrong.any(), [g[wrong][0] for g in grid]


def test_single_operands_give_the_reference() -> None:
    """On exact ops the sets of single values are single, whatever the rest of the array holds."""
    a, b = np.meshgrid(all_values(E5M2), all_values(E5M2))
    single = [points(as_value(np.ravel(x), E5M2), is_float=True) for x in (a, b)]
    for op, reference in ((Op.ADD, np.add), (Op.MUL, np.multiply), (Op.SUB, np.subtract)):
        s = apply(op, (E5M2, E5M2), E5M2, STRICT, single)
        with np.errstate(all="ignore"):
            expected = reference(np.ravel(a), np.ravel(b))
        nan = order.is_nan(expected)
        assert s.is_point().all()
        assert (order.same_bits(s.lo, expected) | nan).all()
        assert s.only is not None
        np.testing.assert_array_equal(s.only, nan)


class Parts(SimpleNamespace):
    """Keys of the ends as int64, and all masks in full."""

    lo: Array
    hi: Array
    nan: Array
    only: Array
    any: Array


def parts(s: Sets, count: int) -> Parts:
    none = np.zeros(count, np.bool_)
    return Parts(
        lo=order.keys(s.lo).astype(np.int64),
        hi=order.keys(s.hi).astype(np.int64),
        nan=none if s.nan is None else s.nan,
        only=none if s.only is None else s.only,
        any=none if s.any is None else s.any,
    )


def apply(
    op: Op, sources: Sequence[DType], target: DType, profile: Profile, operands: Sequence[Sets]
) -> Sets:
    u = SimpleNamespace(
        op=op,
        dtype=target,
        src=[SimpleNamespace(dtype=d) for d in sources],
        arg=None,
        shape=operands[0].lo.shape,
    )
    with np.errstate(all="ignore"):
        return elementwise(u, profile, *operands)


def all_values(d: DType) -> Array:
    if d.is_float:
        return from_bits(np.arange(256, dtype=np.uint8), d)
    return np.arange(int(d.min), int(d.max) + 1).astype(np_dtype(d))


def as_value(data: Array, d: DType) -> Value:
    return Value(data, free_nan=order.is_nan(data) if d.is_float else None)


def random_sets(random: np.random.Generator, d: DType) -> Sets:
    """Intervals of all widths, many that end at a zero, an infinity or an end of the dtype."""
    values = all_values(d)
    k = np.unique(order.keys(values[~order.is_nan(values)]).astype(np.int64))
    zero = int(np.searchsorted(k, 0))
    edges = np.asarray([0, 1, zero - 1, zero, len(k) - 2, len(k) - 1]) % len(k)
    start = np.where(
        random.random(COUNT) < 0.3, random.choice(edges, COUNT), random.integers(0, len(k), COUNT)
    )
    width = random.choice([0, 1, 3, 20, len(k)], COUNT)
    stop = np.minimum(start + random.integers(0, width, endpoint=True), len(k) - 1)
    edge = random.choice(edges, COUNT)
    at_edge = random.random(COUNT) < 0.2
    start, stop = (
        np.where(at_edge, f(end, edge), end) for f, end in ((np.minimum, start), (np.maximum, stop))
    )
    storage, kind = np_dtype(d), order.keys(values).dtype
    lo, hi = (order.unkeys(k[end].astype(kind), storage) for end in (start, stop))
    if not d.is_float:
        return Sets(lo, hi)
    nan = random.random(COUNT) < 0.2
    only = nan & (random.random(COUNT) < 0.5)
    return Sets(*(np.where(only, storage.type(np.nan), end) for end in (lo, hi)), nan, only)


def members(random: np.random.Generator, s: Sets, i: int, d: DType, arity: int) -> Array:
    """The values of one set: all of them, or its ends, its zeros and some others."""
    values = all_values(d)
    k, nan = order.keys(values), order.is_nan(values)
    inside = ~nan & (k >= order.keys(s.lo)[i]) & (k <= order.keys(s.hi)[i])
    if s.only is not None and s.nan is not None:
        inside = np.where(nan, s.nan[i], inside & ~s.only[i])
    found = values[inside]
    most = MOST_MEMBERS[arity]
    if len(found) <= most:
        return found
    ends = np.argsort(order.keys(found))[[0, 1, 2, -3, -2, -1]]
    zeros = np.flatnonzero((found == 0) | order.is_nan(found))[:4]
    some = random.integers(0, len(found), most - 10)
    return found[np.concatenate([ends, zeros, some])]
