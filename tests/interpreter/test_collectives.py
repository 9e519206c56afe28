"""The collectives of the documents, each against its mathematical definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sharded import check, copy, devices, distinct, replicated, reshape, summed

from uop.interpreter.numeric.storage import Array
from uop.interpreter.tensor.devices import Sharded
from uop.spec.args import (
    PermuteArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import InvalidError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param

# The collectives, as both documents write them.


def broadcast(t: UOp, n: int) -> UOp:
    (s,) = t.shape
    spread = UOp(Op.EXPAND, reshape(t, 1, s), dims((n, s)))
    return replicated(copy(spread, devices(n)), 0)


def scatter(t: UOp, n: int) -> UOp:
    return copy(t, devices(n))


def gather(t: UOp, n: int) -> UOp:
    return copy(t, devices(n)[0])


def reduce(t: UOp, n: int) -> UOp:
    return summed(reshape(gather(t, n), n, t.shape[0] // n), 0)


def allgather(t: UOp, n: int) -> UOp:
    (size,) = t.shape
    spread = UOp(Op.EXPAND, reshape(t, 1, size), dims((n, size)))
    return replicated(copy(spread, devices(n)), 0)


def reduce_scatter(t: UOp, n: int) -> UOp:
    s = t.shape[0] // n
    turned = UOp(Op.PERMUTE, reshape(t, n, n, s // n), arg=PermuteArg((1, 0, 2)))
    return reshape(summed(copy(turned, devices(n)), 1), s)


def allreduce(t: UOp, n: int) -> UOp:
    return allgather(reduce_scatter(t, n), n)


N = pytest.mark.parametrize("n", range(1, 9))


def whole(n: int, s: int, dtype: DType = dtypes.float32) -> tuple[UOp, Array]:
    """(s,) on one device."""
    return param(0, (s,), dtype, "D0"), distinct((s,), dtype)


def shards_of(n: int, s: int, dtype: DType = dtypes.float32) -> tuple[UOp, Array]:
    """(n s,) on n devices: s elements each."""
    return param(0, (n * s,), dtype, devices(n)), distinct((n * s,), dtype)


def expect(result: Sharded, device: Any, axis: int | None, *parts: Array) -> None:
    assert (result.device, result.axis, len(result.parts)) == (device, axis, len(parts))
    for found, wanted in zip(result.parts, parts, strict=True):
        assert found.data.dtype == wanted.dtype
        np.testing.assert_array_equal(found.data, wanted)


@N
@pytest.mark.parametrize("s", [1, 3, 8])
def test_broadcast_gives_every_device_the_value(n: int, s: int) -> None:
    t, x = whole(n, s)
    expect(check(broadcast(t, n), {0: x}), devices(n), None, *[x] * n)


@N
@pytest.mark.parametrize("k", [1, 3])
def test_scatter_gives_every_device_a_chunk(n: int, k: int) -> None:
    t, x = whole(n, n * k)
    expect(check(scatter(t, n), {0: x}), devices(n), 0, *x.reshape(n, k))


@N
@pytest.mark.parametrize("s", [1, 4])
def test_gather_collects_the_shards_on_one_device(n: int, s: int) -> None:
    t, x = shards_of(n, s)
    expect(check(gather(t, n), {0: x}), "D0", None, x)


@N
@pytest.mark.parametrize("s", [1, 4])
def test_reduce_sums_the_shards_on_one_device(n: int, s: int) -> None:
    t, x = shards_of(n, s)
    root = reduce(t, n)
    assert root.shape == (s,)
    expect(check(root, {0: x}), "D0", None, x.reshape(n, s).sum(0))


@N
@pytest.mark.parametrize("s", [1, 4])
def test_allgather_gives_every_device_all_shards(n: int, s: int) -> None:
    t, x = shards_of(n, s)
    expect(check(allgather(t, n), {0: x}), devices(n), None, *[x] * n)


@N
@pytest.mark.parametrize("k", [1, 3])
def test_reduce_scatter_gives_every_device_a_chunk_of_the_sum(n: int, k: int) -> None:
    t, x = shards_of(n, n * k)
    root = reduce_scatter(t, n)
    assert root.shape == (n * k,)
    sums = x.reshape(n, n * k).sum(0)
    expect(check(root, {0: x}), devices(n), 0, *sums.reshape(n, k))


@N
@pytest.mark.parametrize("k", [1, 3])
def test_allreduce_gives_every_device_the_sum(n: int, k: int) -> None:
    t, x = shards_of(n, n * k)
    root = allreduce(t, n)
    assert root.shape == (n * k,)
    expect(check(root, {0: x}), devices(n), None, *[x.reshape(n, n * k).sum(0)] * n)


@pytest.mark.parametrize("n", range(2, 9))
def test_sizes_that_do_not_divide_are_named(n: int) -> None:
    with pytest.raises(InvalidError, match=rf"LOAD\.c6(.|\n)*\({n + 1},\) over {n} devices"):
        scatter(whole(n, n + 1)[0], n)
    with pytest.raises(InvalidError, match=r"RESHAPE\.c2"):
        reduce_scatter(shards_of(n, n + 1)[0], n)
    with pytest.raises(InvalidError, match=r"PARAM\.c3"):
        param(0, (n + 1,), dtypes.int8, devices(n))
