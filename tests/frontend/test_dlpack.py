"""Other libraries share memory with Tensors by DLPack, and cannot write to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from uop import Tensor, dtypes, from_dlpack
from uop.spec.errors import InvalidError


class Legacy:
    """A library of a version before DLPack 1.0: it asks for no version, and may write."""

    def __init__(self, lending: Any) -> None:
        self.lending = lending

    def __dlpack__(self, **options: Any) -> Any:
        return self.lending.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.lending.__dlpack_device__()
        return device


class Elsewhere(Legacy):
    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 3


class Once(Legacy):
    """Its capsule can be used once."""

    def __init__(self, lending: Any) -> None:
        super().__init__(lending)
        self.capsule = lending.__dlpack__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule


@pytest.mark.parametrize("take", [from_dlpack, Tensor.from_dlpack])
def test_memory_is_shared_in(take: Callable[[Any], Tensor]) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = take(array)
    assert (t.dtype, t.shape, t.tolist()) == (dtypes.float32, (2, 3), array.tolist())
    assert np.shares_memory(t.numpy(), array)
    assert (t * 2).tolist() == (array * 2).tolist()


def test_memory_is_shared_out() -> None:
    for t in (Tensor([1.5, 2.5]), Tensor([1.5, 2.5]) * 1):
        array = np.from_dlpack(t)
        assert np.shares_memory(array, t.numpy())
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_a_library_that_might_write_gets_a_copy() -> None:
    t = Tensor([1.5, 2.5]) * 1
    array = np.from_dlpack(Legacy(t))
    assert (array.tolist(), np.shares_memory(array, t.numpy())) == ([1.5, 2.5], False)
    copy = np.from_dlpack(t, copy=True)
    copy[0] = 9
    assert t.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int64", "float16", "float64"])
def test_dtypes_go_both_ways(name: str) -> None:
    t = Tensor(np.array([[0, 1], [1, 0]], name))
    assert np.from_dlpack(t).dtype == name
    assert from_dlpack(t).tolist() == t.tolist()
    assert from_dlpack(t).dtype is t.dtype


def test_memory_that_is_read_only_strided_or_empty() -> None:
    array = np.arange(12).reshape(3, 4)
    array.flags.writeable = False
    assert np.shares_memory(from_dlpack(array).numpy(), array)
    for view in (array[:, ::2], array.T, array[::-1], array[1:1], array[0, 0, ...]):
        found = from_dlpack(view)
        assert (found.tolist(), found.shape) == (view.tolist(), view.shape)
        assert found.numpy().flags.c_contiguous


STRUCT = np.zeros(2, [("a", "i4"), ("b", "f4")])


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ([1, 2], "a list without them"),
        (np.zeros(2).__dlpack__(), "a PyCapsule without them"),
        (Elsewhere(np.zeros(2)), "memory of device 2:3, expected 1:0, the CPU"),
        (np.zeros(2, np.complex64), "numbers of numpy's dtype complex64, which no dtype stores"),
        (STRUCT, "DLPack only supports"),
        (np.zeros(2, ">i4"), "native byte order"),
        (np.zeros(2, ml_dtypes.bfloat16), "DLPack only supports"),
    ],
    ids=["list", "capsule", "device", "complex", "struct", "byte order", "bfloat16"],
)
def test_what_cannot_be_taken_is_named(data: Any, found: str) -> None:
    with pytest.raises(InvalidError, match=r"TENSOR\.c7") as caught:
        from_dlpack(data)
    assert found in caught.value.found
    assert caught.value.where.startswith(f"{__file__}:")


def test_a_capsule_is_used_once() -> None:
    once = Once(np.arange(3))
    assert from_dlpack(once).tolist() == [0, 1, 2]
    with pytest.raises(InvalidError, match=r"TENSOR\.c7"):
        from_dlpack(once)


@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2], ids=repr)
def test_what_dlpack_has_no_code_for_is_named(dtype: Any) -> None:
    with pytest.raises(InvalidError, match=r"TENSOR\.c8") as caught:
        np.from_dlpack(Tensor([1.0], dtype))
    assert caught.value.node == dtype.name
