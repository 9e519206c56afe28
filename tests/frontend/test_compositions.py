"""The compositions, as the documents list them, give what they are named for."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uop import Tensor, dtypes
from uop.spec.frontend import compositions

LISTED: dict[str, Any] = {"Tensor": Tensor}
# As written in the documents: Tensor has to read them.
exec(
    """
def gemm(A, B):
  M,K = A.shape; _,N = B.shape
  return (A.reshape(M,K,1) * B.reshape(1,K,N)).sum(1)

def prefix_sum(T):
  n = T.shape[0]
  x = T.pad((n-1, 0))
  x = x.reshape(1,2*n-1).expand(n+1,2*n-1)
  x = x.reshape((n+1)*(2*n-1)).shrink_to(2*n*n)
  x = x.reshape(n,2*n).shrink_to(n,n)
  return x.sum(-1)

def arange(n):
  return prefix_sum(Tensor(1).reshape(1).expand(n)) - 1

def gather(T, idx):
  K = T.shape[0]
  pos = arange(K).reshape(K, 1)
  mask = (pos == idx.reshape(1, -1)).cast(T.dtype)
  return (T.reshape(K, 1) * mask).sum(0)

def scatter_add(T, idx, val):
  K, D = T.shape[0], idx.shape[0]
  pos = arange(K).reshape(K, 1)
  mask = (pos == idx.reshape(1, D)).cast(T.dtype)
  return T + (mask * val.reshape(1, D)).sum(1)
""",
    LISTED,
)
OURS = {name: getattr(compositions, name) for name in LISTED if hasattr(compositions, name)}
BOTH = pytest.mark.parametrize("ops", [LISTED, OURS], ids=["listed", "ours"])

int32s = st.integers(-(2**31), 2**31 - 1)
rows = st.lists(int32s, min_size=1, max_size=6)


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def build(ops: dict[str, Any], name: str, *operands: Any) -> Any:
    return ops[name](*operands).tolist()


@BOTH
@given(st.data())
@settings(max_examples=20, deadline=None)
def test_gemm(ops: dict[str, Any], data: st.DataObject) -> None:
    m, k, n = (data.draw(st.integers(1, 4)) for _ in range(3))
    a, b = (
        [[data.draw(int32s) for _ in range(width)] for _ in range(height)]
        for height, width in ((m, k), (k, n))
    )
    wanted = [
        [wrapped(sum(x * row[j] for x, row in zip(r, b, strict=True))) for j in range(n)] for r in a
    ]
    assert build(ops, "gemm", Tensor(a), Tensor(b)) == wanted


@BOTH
@given(values=rows)
@settings(max_examples=20, deadline=None)
def test_prefix_sum(ops: dict[str, Any], values: list[int]) -> None:
    assert build(ops, "prefix_sum", Tensor(values)) == [wrapped(s) for s in accumulate(values)]


@BOTH
@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_arange(ops: dict[str, Any], n: int) -> None:
    assert build(ops, "arange", n) == list(range(n))


@BOTH
@given(values=rows, data=st.data())
@settings(max_examples=20, deadline=None)
def test_gather_and_scatter_add(
    ops: dict[str, Any], values: list[int], data: st.DataObject
) -> None:
    at = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=6))
    more = data.draw(st.lists(int32s, min_size=len(at), max_size=len(at)))
    assert build(ops, "gather", Tensor(values), Tensor(at)) == [values[i] for i in at]
    wanted = list(values)
    for i, v in zip(at, more, strict=True):
        wanted[i] = wrapped(wanted[i] + v)
    assert build(ops, "scatter_add", Tensor(values), Tensor(at), Tensor(more)) == wanted


def test_prefix_sum_skips_what_is_absent() -> None:
    """The fill of its PAD never counts, whatever the fold is."""
    values = np.array([-3.0, -1.0, -2.0])
    assert compositions.prefix_sum(Tensor(values)).tolist() == [-3.0, -4.0, -6.0]
    assert Tensor(values).pad((4, 0)).max().item() == -1.0
    assert Tensor([2, 5], dtypes.int32).pad((0, 3)).prod().item() == 10
