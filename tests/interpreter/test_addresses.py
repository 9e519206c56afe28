"""Addresses in tensor graphs: of buffers, of their elements, in functions, on devices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from uop.interpreter.accept import accept
from uop.interpreter.adversary.evaluation import evaluate_adversarially
from uop.interpreter.evaluate import evaluate
from uop.spec.args import AddrSpace, BufferArg, GetAddrArg, GetTupleArg, ParamArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const


def buffer(slot: int, shape: tuple[int, ...], dtype: DType) -> UOp:
    return UOp(Op.BUFFER, dims(shape), arg=BufferArg(slot, dtype))


def address(location: UOp, device: str = "A") -> UOp:
    return UOp(Op.GETADDR, location, arg=GetAddrArg(device))


def numbers(*values: UOp) -> list[int]:
    found = evaluate(UOp(Op.TUPLE, *values))
    assert isinstance(found, tuple)
    return [int(x) for x in found]


SIZES = ((3, dtypes.int8), (1, dtypes.float64), (300, dtypes.uint16), (0, dtypes.int32))


def test_addresses_are_distinct_for_each_buffer_and_device_and_aligned() -> None:
    buffers = [buffer(k, (n,), d) for k, (n, d) in enumerate(SIZES)]
    places = [(b, device) for b in buffers for device in ("A", "B")]
    starts = numbers(*(address(b, device) for b, device in places))
    for (b, _), start in zip(places, starts, strict=True):
        assert start > 0
        assert start % b.dtype.itemsize == 0
    spans = sorted(
        (start, b.shape[0] * b.dtype.itemsize) for (b, _), start in zip(places, starts, strict=True)
    )
    assert all(a + n <= b and a < b for (a, n), (b, _) in pairwise(spans))


def test_an_element_of_a_view_is_counted_in_bytes() -> None:
    b = buffer(0, (3, 4), dtypes.float64)
    picked = UOp(Op.INDEX, b, index_const(2), index_const(1))
    shrunk = UOp(Op.SHRINK, b, dims((1, 2)), dims((2, 2)))
    turned = UOp(Op.RESHAPE, shrunk, dims((4,)))
    start, *rest = numbers(*(address(x) for x in (b, picked, shrunk, turned)))
    assert [x - start for x in rest] == [8 * 9, 8 * 6, 8 * 6]
    padded = UOp(Op.PAD, b, dims((1, 0)), dims((4, 4)))
    with pytest.raises(UnsupportedError, match="PAD"):
        numbers(address(padded))


def test_an_address_reads_nothing_and_orders_nothing() -> None:
    b = buffer(0, (2,), dtypes.uint64)
    value = UOp(Op.STACK, address(b), const(7, dtypes.uint64))
    (found,) = evaluate(UOp(Op.SINK, UOp(Op.STORE, b, value))).values()  # type: ignore[union-attr]
    assert found[0] > 0
    assert found[1] == 7
    stored = UOp(Op.AFTER, b, UOp(Op.STORE, b, value))
    assert len(set(numbers(address(b), address(stored)))) == 1


def test_a_function_sees_the_buffers_of_its_caller() -> None:
    b, other = (buffer(k, (2,), dtypes.uint64) for k in (0, 1))
    p = UOp(Op.PARAM, dims((2,)), arg=ParamArg(0, dtypes.uint64, None, AddrSpace.GLOBAL))
    body = UOp(Op.TUPLE, address(p))
    inside = [UOp(Op.GETTUPLE, UOp(Op.FUNCTION, body, a), arg=GetTupleArg(0)) for a in (b, other)]
    one, two, three, four = numbers(address(b), address(other), *inside)
    assert one == three != two == four
    root = UOp(Op.TUPLE, *inside)
    moved = evaluate_adversarially(root, {})
    for a, x in zip(accept(root, {}), moved, strict=True):
        assert a.contains(np.asarray(x)).all()
