"""Memory read and written as elements of another dtype; numpy's views of bytes are the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate, evaluate_full
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.interpreter.values import Value
from uop.spec.args import BufferArg, DTypeArg, FlipArg, GetAddrArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UndefinedError
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, dims, param

BYTES = 64
OLD = (dtypes.uint8, dtypes.int16, dtypes.float32, dtypes.uint64)
NEW = (dtypes.int8, dtypes.float16, dtypes.uint32, dtypes.float64)
PAIRS = list(itertools.product(OLD, NEW))


def memory(dtype: DType) -> UOp:
    shape = dims((BYTES // dtype.itemsize,))
    return UOp(Op.BUFFER, shape, arg=BufferArg(0, dtype))


def as_elements(location: UOp, dtype: DType) -> UOp:
    return UOp(Op.BITCAST, location, arg=DTypeArg(dtype))


def reversed_(location: UOp) -> UOp:
    return UOp(Op.FLIP, location, arg=FlipArg((True,)))


def second_half(location: UOp) -> UOp:
    half = dims((location.shape[0] // 2,))
    return UOp(Op.SHRINK, location, half, half)


def numbers(dtype: DType, count: int) -> Array:
    return np.arange(1, count + 1).astype(np_dtype(dtype))


def check(root: UOp, inputs: dict[int, Array], right: Array) -> None:
    """The result has these bytes, and nothing else is accepted."""
    result = evaluate(root, inputs)
    found = np.asarray(result[0] if isinstance(result, dict) else result)
    assert found.tobytes() == right.tobytes()
    accepted = accept(root, inputs)[0]
    spread = accepted.spread
    assert spread.any is None or not spread.any.any()
    assert spread.lo.tobytes() == spread.hi.tobytes() == right.tobytes()


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_memory_has_the_bytes_of_its_elements(old: DType, new: DType) -> None:
    buffer = memory(old)
    location = as_elements(buffer, new)
    data = numbers(old, BYTES // old.itemsize)
    bits = data.view(np_dtype(new))
    check(UOp(Op.LOAD, location), {0: data}, bits)
    check(UOp(Op.LOAD, reversed_(location)), {0: data}, bits[::-1])
    back = as_elements(reversed_(location), old)
    check(UOp(Op.LOAD, back), {0: data}, bits[::-1].copy().view(data.dtype))


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_store_changes_the_bytes_of_its_elements(old: DType, new: DType) -> None:
    buffer = memory(old)
    location = as_elements(buffer, new)
    data, count = numbers(old, BYTES // old.itemsize), BYTES // new.itemsize
    value = numbers(new, count // 2)[::-1].copy()
    store = UOp(Op.STORE, second_half(location), param(1, value.shape, new))
    bits = data.copy().view(np_dtype(new))
    bits[count // 2 :] = value
    check(UOp(Op.SINK, store), {0: data, 1: value}, bits.view(data.dtype))
    after = reversed_(UOp(Op.AFTER, location, store))
    check(UOp(Op.LOAD, after), {0: data, 1: value}, bits[::-1])


def test_stores_to_one_byte_race_and_stores_to_two_do_not() -> None:
    halves = as_elements(memory(dtypes.uint64), dtypes.uint32)
    value = param(1, (8,), dtypes.uint32)
    data = {0: np.zeros(8, np.uint64), 1: np.arange(8, dtype=np.uint32)}
    first = UOp(Op.SHRINK, halves, dims((1,)), dims((8,)))
    second = UOp(Op.SHRINK, as_elements(halves, dtypes.uint32), dims((9,)), dims((7,)))
    part = UOp(Op.SHRINK, value, dims((0,)), dims((7,)))
    bits = np.zeros(16, np.uint32)
    bits[1:9], bits[9:16] = data[1], data[1][:7]
    effects = (UOp(Op.STORE, first, value), UOp(Op.STORE, second, part))
    check(UOp(Op.SINK, *effects), data, bits.view(np.uint64))
    nibble = UOp(
        Op.SHRINK, as_elements(memory(dtypes.uint64), dtypes.uint8), dims((5,)), dims((1,))
    )
    byte = UOp(Op.SHRINK, param(2, (8,), dtypes.uint8), dims((0,)), dims((1,)))
    both = UOp(Op.SINK, UOp(Op.STORE, first, value), UOp(Op.STORE, nibble, byte))
    with pytest.raises(UndefinedError, match=r"race(.|\n)*element 0 of the buffer"):
        evaluate(both, data | {2: np.zeros(8, np.uint8)})


def test_a_bool_in_memory_that_is_no_bool_is_open() -> None:
    location = as_elements(memory(dtypes.uint8), dtypes.bool)
    data = np.arange(BYTES, dtype=np.uint8)
    found = evaluate_full(UOp(Op.LOAD, location), {0: data})
    assert isinstance(found, Value)
    assert found.unspecified is not None
    assert found.unspecified.tolist() == (data > 1).tolist()


def test_the_address_of_an_element_of_another_size_is_that_of_its_first_byte() -> None:
    buffer = memory(dtypes.uint64)
    byte = UOp(Op.SHRINK, as_elements(buffer, dtypes.uint8), dims((13,)), dims((1,)))
    start, later = (
        evaluate(UOp(Op.GETADDR, place, arg=GetAddrArg("D0")), {0: np.zeros(8, np.uint64)})
        for place in (buffer, byte)
    )
    assert isinstance(start, np.ndarray)
    assert isinstance(later, np.ndarray)
    assert int(later) - int(start) == 13


def test_one_element_of_memory_is_an_array() -> None:
    place = UOp(Op.BUFFER, dims((1,)), arg=BufferArg(0, dtypes.int32))
    value = evaluate_full(UOp(Op.RESHAPE, place, dims(())), {0: np.array([7], np.int32)})
    assert isinstance(value, Value)
    assert isinstance(value.data, np.ndarray)
    assert (value.data.shape, value.data.item()) == ((), 7)
