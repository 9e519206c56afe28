"""axis of every op that moves elements, against a map of which device owns which element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from uop.spec.args import (
    BufferArg,
    DTypeArg,
    FlipArg,
    LoadArg,
    PermuteArg,
    ReduceArg,
    ReplicatedArg,
    SliceArg,
)
from uop.spec.dtype import DTYPES, dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.properties.axis import shards
from uop.spec.uop import UOp, const, dims, index_const, param

Owners = npt.NDArray[np.int64]
Shape = tuple[int, ...]
Build = Callable[[], UOp]

SHAPES: tuple[Shape, ...] = ((4,), (6, 2), (2, 4), (4, 1, 6), (1, 2, 4), (12,))


def devices(n: int) -> tuple[str, ...]:
    return tuple(f"D{k}" for k in range(n))


def owners(shape: Shape, axis: int | None, n: int) -> Owners | None:
    """The device of each element of a value split on an axis; None where every device has all."""
    if axis is None:
        return None
    counts = [1] * len(shape)
    counts[axis] = shape[axis]
    along = np.arange(shape[axis]) // max(1, shape[axis] // n)
    return np.broadcast_to(along.reshape(counts), shape)


def sharded(shape: Shape, axis: int, n: int, dtype: Any = dtypes.int32) -> UOp:
    """A value sharded on any axis: axis 0 of a PARAM, moved there."""
    order = (axis, *(a for a in range(len(shape)) if a != axis))
    source = param(0, [shape[a] for a in order], dtype, devices(n))
    back = tuple(order.index(a) for a in range(len(shape)))
    moved = UOp(Op.PERMUTE, source, arg=PermuteArg(back))
    assert (moved.shape, moved.axis) == (shape, axis)
    return moved


def splits() -> Iterator[tuple[Shape, int, int]]:
    for shape, n in product(SHAPES, (1, 2, 3, 4)):
        for axis, size in enumerate(shape):
            if size % n == 0:
                yield shape, axis, n


def moves(shape: Shape, t: UOp, before: Owners) -> Iterator[tuple[Op, Build, Owners]]:
    """Every movement op in several ways: how it is built, and where its elements come from."""
    rank = len(shape)
    for order in permutations(range(rank)):
        built = lambda order=order: UOp(Op.PERMUTE, t, arg=PermuteArg(order))  # noqa: E731
        yield Op.PERMUTE, built, before.transpose(order)
    for flags in product((False, True), repeat=rank):
        flipped = tuple(a for a, f in enumerate(flags) if f)
        built = lambda flags=flags: UOp(Op.FLIP, t, arg=FlipArg(flags))  # noqa: E731
        yield Op.FLIP, built, np.flip(before, flipped)
    for new in reshapes(prod(shape)):
        built = lambda new=new: UOp(Op.RESHAPE, t, dims(new))  # noqa: E731
        yield Op.RESHAPE, built, before.reshape(new)
    for axis in range(rank):
        for start, size in ((0, shape[axis]), (0, 1), (1, shape[axis] - 1)):
            offset = [start if a == axis else 0 for a in range(rank)]
            kept = [size if a == axis else d for a, d in enumerate(shape)]
            built = lambda o=offset, s=kept: UOp(Op.SHRINK, t, dims(o), dims(s))  # noqa: E731
            yield Op.SHRINK, built, before.take(range(start, start + size), axis)
        for k in range(shape[axis]):
            where = [dims(range(d)) if a < axis else index_const(k) for a, d in enumerate(shape)]
            built = lambda w=where[: axis + 1]: UOp(Op.INDEX, t, *w)  # noqa: E731
            yield Op.INDEX, built, before.take(k, axis)
    yield Op.INDEX, lambda: UOp(Op.INDEX, t), before
    yield Op.STACK, lambda: UOp(Op.STACK, t, t, t), np.stack([before] * 3)
    wide = tuple(5 if d == 1 else d for d in shape)
    yield Op.EXPAND, lambda: UOp(Op.EXPAND, t, dims(wide)), np.broadcast_to(before, wide)


PARTS = (Op.SHRINK, Op.INDEX)
"""What they keep may happen to split again, but each device would keep another part of its shard.
"""


def built_or_none(build: Callable[[], UOp]) -> UOp | None:
    try:
        return build()
    except InvalidError:
        return None


def splits_again(after: Owners, n: int) -> bool:
    """Whether some axis says who owns the elements."""
    return any(
        d % n == 0 and np.array_equal(after, owners(after.shape, a, n))  # type: ignore[arg-type]
        for a, d in enumerate(after.shape)
    )


def reshapes(count: int) -> Iterator[Shape]:
    """Shapes of up to four axes with this many elements."""
    factors = [f for f in range(1, count + 1) if count % f == 0]
    for a, b, c in product(factors, repeat=3):
        if count % (a * b * c) == 0:
            yield (a, b, c, count // (a * b * c))
    for a in factors:
        yield (a, count // a)
    yield (count,)


@pytest.mark.parametrize(("shape", "axis", "n"), list(splits()))
def test_every_element_is_where_the_derived_axis_says(shape: Shape, axis: int, n: int) -> None:
    before = owners(shape, axis, n)
    assert before is not None
    valid = 0
    for op, build, after in moves(shape, sharded(shape, axis, n), before):
        u = built_or_none(build)
        if u is None:
            assert n > 1, op
            assert op in PARTS or not after.size or not splits_again(after, n), op
            continue
        valid += 1
        assert u.shape == after.shape
        derived = owners(u.shape, u.axis, n)
        if derived is None:
            assert n == 1, u
        else:
            np.testing.assert_array_equal(derived, after, err_msg=repr(u))
    assert valid > 5


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("old", ["uint8", "int16", "float32", "float64"])
def test_no_element_of_a_bitcast_has_bytes_of_two_shards(old: str, n: int) -> None:
    for shard, new in product((1, 2, 3, 4, 8), ("bool", "bfloat16", "int32", "uint64")):
        source, target = DTYPES[old], DTYPES[new]
        t = param(0, (n * shard,), source, devices(n))
        if shard * source.itemsize % target.itemsize:
            fits = n * shard * source.itemsize % target.itemsize == 0
            with pytest.raises(InvalidError, match=r"BITCAST\.c3" if fits else r"BITCAST\.c2"):
                UOp(Op.BITCAST, t, arg=DTypeArg(target))
            continue
        u = UOp(Op.BITCAST, t, arg=DTypeArg(target))
        assert u.axis == 0
        assert u.shape[0] % n == 0


def test_the_shard_axis_is_not_padded() -> None:
    t = param(0, (4, 3), dtypes.int8, devices(2))
    assert UOp(Op.PAD, t, dims((0, 1)), dims((4, 5))).axis == 0
    with pytest.raises(InvalidError, match=r"PAD\.c5"):
        UOp(Op.PAD, t, dims((0, 0)), dims((6, 3)))
    alone = param(0, (4, 3), dtypes.int8, devices(1))
    assert UOp(Op.PAD, alone, dims((1, 0)), dims((6, 3))).axis == 0


@pytest.mark.parametrize("op", [Op.REDUCE, Op.REPLICATED], ids=lambda op: op.name)
def test_what_collapses_the_shard_axis_has_none(op: Op) -> None:
    for shape, axis, n in splits():
        t = sharded(shape, axis, n)
        for axes in ((), (0,), tuple(range(len(shape)))):
            arg = ReduceArg(Op.ADD, axes) if op is Op.REDUCE else ReplicatedArg(axes)
            u = UOp(op, t, arg=arg)
            assert u.axis == (None if axis in axes else axis)
            assert u.shape == tuple(1 if a in axes else d for a, d in enumerate(shape))
            assert u.device == devices(n)


def test_one_sharded_operand_decides_whichever_it_is() -> None:
    there, everywhere = sharded((4, 6), 1, 2), param(1, (4, 6), dtypes.int32)
    one = const(1, dtypes.int32)
    assert UOp(Op.STACK, everywhere, there).axis == 2
    assert UOp(Op.ADD, everywhere, there).axis == 1
    assert UOp(Op.MULACC, one, param(2, (6,), dtypes.int32), there).axis == 1
    assert UOp(Op.LOAD, everywhere, there).axis == 1
    p = param(3, (4, 1), dtypes.bool)
    assert UOp(Op.WHERE, p, one, there).axis == 1
    copies = UOp(Op.REPLICATED, param(0, (2, 6), dtypes.int32, devices(2)), arg=ReplicatedArg((0,)))
    assert UOp(Op.ADD, copies, there).axis == 1


def test_a_sharded_index_shards_what_it_picks() -> None:
    table, at = param(1, (5, 7, 3), dtypes.int32), sharded((4,), 0, 2)
    assert UOp(Op.INDEX, table, at).axis == 0
    assert UOp(Op.INDEX, table, dims((0, 1)), at).axis == 1
    assert UOp(Op.INDEX, table, index_const(0), at).axis == 0
    for operands in ((sharded((5, 4), 1, 2), at), (table, at, at)):
        with pytest.raises(InvalidError, match=r"INDEX\.c5"):
            UOp(Op.INDEX, *operands)
    memory = UOp(Op.BUFFER, dims((5,)), arg=BufferArg(1, dtypes.int32))
    with pytest.raises(InvalidError, match="a sharded index of a location"):
        UOp(Op.INDEX, memory, at)


def test_what_is_sharded_is_stored_where_its_shards_are() -> None:
    value = param(0, (4, 4), dtypes.int8, devices(2))
    turned = UOp(Op.PERMUTE, value, arg=PermuteArg((1, 0)))
    there = UOp(Op.BUFFER, dims((4, 4)), arg=BufferArg(1, dtypes.int8, devices(2)))
    nowhere = UOp(Op.BUFFER, dims((4, 4)), arg=BufferArg(1, dtypes.int8))
    assert UOp(Op.STORE, there, value).device == devices(2)
    UOp(Op.STORE, there, param(2, (4, 4), dtypes.int8))
    UOp(Op.STORE, UOp(Op.PERMUTE, there, arg=PermuteArg((1, 0))), turned)
    for target in (there, nowhere):
        with pytest.raises(InvalidError, match=r"STORE\.c6"):
            UOp(Op.STORE, target, turned)


def test_a_function_sees_the_shards_of_its_arguments() -> None:
    value = param(0, (4, 3), dtypes.int8, devices(2))
    body = UOp(Op.TUPLE, UOp(Op.FLIP, value, arg=FlipArg((False, True))))
    UOp(Op.FUNCTION, body, param(5, (4, 3), dtypes.int8, devices(2)))
    whole = param(0, (4, 3), dtypes.int8)
    flipped = UOp(Op.TUPLE, UOp(Op.FLIP, whole, arg=FlipArg((True, False))))
    copies = UOp(Op.LOAD, whole, arg=LoadArg(devices(1)))
    UOp(Op.FUNCTION, flipped, copies)
    for function, argument in ((flipped, value), (body, whole)):
        with pytest.raises(InvalidError, match=r"FUNCTION\.c3"):
            UOp(Op.FUNCTION, function, argument)


def test_a_slice_is_of_one_memory() -> None:
    alone = param(0, (4, 3), dtypes.int32, devices(1))
    u = UOp(Op.SLICE, alone, index_const(2), arg=SliceArg(3, dtypes.uint8))
    assert (u.axis, u.device, u.shape) == (None, devices(1), (3,))
    with pytest.raises(InvalidError, match=r"SLICE\.c5"):
        UOp(
            Op.SLICE,
            param(0, (4, 3), dtypes.int32, devices(2)),
            index_const(0),
            arg=SliceArg(3, dtypes.int32),
        )


@pytest.mark.parametrize("n", range(1, 9))
def test_a_copy_to_n_devices_splits_axis_0_or_is_refused(n: int) -> None:
    for size in range(1, 20):
        for source in (param(0, (size, 2), dtypes.int8), param(0, (size, 2), dtypes.int8, "A")):
            if size % n:
                with pytest.raises(InvalidError, match=rf"LOAD\.c6.*\n.*\n.*over {n} devices"):
                    UOp(Op.LOAD, source, arg=LoadArg(devices(n)))
            else:
                u = UOp(Op.LOAD, source, arg=LoadArg(devices(n)))
                assert (u.axis, u.shape, shards(u)) == (0, source.shape, n)
