"""The seven collectives, as the documents list them: where the value is, and which."""

from __future__ import annotations

from typing import Any

import pytest

from uop import Tensor, dtypes, gradient
from uop.spec.errors import InvalidError
from uop.spec.frontend import collectives

# As written in the documents: D, n and s are those of the call.
LISTED = """
def broadcast(T):
  return T.reshape(1, s).expand(n, s).copy(D).replicated(0)

def scatter(T):
  return T.copy(D)

def gather(T):
  return T.copy(D[0])

def reduce(T):
  return gather(T).reshape(n, s).sum(0)

def allgather(T):
  return T.reshape(1, n*s).expand(n, n*s).copy(D).replicated(0)

def reduce_scatter(T):
  return T.reshape(n, n, s//n).permute(1, 0, 2).copy(D).sum(1).reshape(s)

def allreduce(T):
  return allgather(reduce_scatter(T))
"""

COUNTS = pytest.mark.parametrize("n", range(1, 9))


def devices(n: int) -> tuple[str, ...]:
    return tuple(f"D{k}" for k in range(n))


def listed(n: int, s: int) -> dict[str, Any]:
    """Each function with the s of what it is given: (s,) on one device, (n*s,) on several."""
    names: dict[str, Any] = {"D": devices(n), "n": n}
    exec(LISTED, names)

    def sized(f: Any) -> Any:
        def call(t: Tensor) -> Tensor:
            outer = names.get("s")
            names["s"] = t.shape[0] // n if isinstance(t.device, tuple) else t.shape[0]
            result: Tensor = f(t)
            names["s"] = outer
            return result

        return call

    names |= {name: sized(f) for name, f in names.items() if name in ours(n, s)}
    return names


def ours(n: int, s: int) -> dict[str, Any]:
    d = devices(n)
    return {
        "broadcast": lambda t: collectives.broadcast(t, d),
        "scatter": lambda t: collectives.scatter(t, d),
        "gather": lambda t: collectives.gather(t, d[0]),
        "reduce": lambda t: collectives.reduce(t, d[0]),
        "allgather": collectives.allgather,
        "reduce_scatter": collectives.reduce_scatter,
        "allreduce": collectives.allreduce,
    }


BOTH = pytest.mark.parametrize("ops", [listed, ours])


def seen(t: Tensor) -> tuple[Any, Any, Any]:
    """Values, device and axis."""
    return t.tolist(), t.device, t.axis


@BOTH
@COUNTS
def test_from_one_device(ops: Any, n: int) -> None:
    s, d = 2 * n, devices(n)
    data = [k * k - 5 for k in range(s)]
    f = ops(n, s)
    assert seen(f["broadcast"](Tensor(data, device="D0"))) == (data, d, None)
    assert seen(f["scatter"](Tensor(data, device="D0"))) == (data, d, 0)


@BOTH
@COUNTS
def test_from_shards(ops: Any, n: int) -> None:
    s, d = 3 * n, devices(n)
    data = [k * k - 5 for k in range(n * s)]
    total = [sum(data[k::s]) for k in range(s)]
    t, f = Tensor(data, device=d), ops(n, s)
    assert seen(f["gather"](t)) == (data, "D0", None)
    assert seen(f["reduce"](t)) == (total, "D0", None)
    assert seen(f["allgather"](t)) == (data, d, None)
    assert seen(f["reduce_scatter"](t)) == (total, d, 0)
    assert seen(f["allreduce"](t)) == (total, d, None)


@BOTH
@pytest.mark.parametrize("n", range(2, 9))
def test_sizes_that_do_not_split(ops: Any, n: int) -> None:
    s = n + 1
    f = ops(n, s)
    with pytest.raises(InvalidError, match=r"LOAD\.c6") as caught:
        f["scatter"](Tensor(list(range(s)), device="D0"))
    assert str(n) in caught.value.found
    shards = Tensor(list(range(n * s)), device=devices(n))
    with pytest.raises(InvalidError, match=r"RESHAPE\.c2"):
        f["reduce_scatter"](shards)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_come_back_to_where_the_data_is(n: int) -> None:
    """Each shard meets each weight once, wherever it was summed."""
    s, d = 2 * n, devices(n)
    weights = [float(2 * k + 3) for k in range(s)]
    t = Tensor([float(k) for k in range(n * s)], dtypes.float64, d)
    single, w = Tensor([0.5] * s, dtypes.float64, "D0"), Tensor(weights, dtypes.float64)
    for name, collective in ours(n, s).items():
        one = name in ("broadcast", "scatter")
        given = single if one else t
        value = collective(given)
        total = value.reshape(-1, s) * w if name in ("gather", "allgather") else value * w
        (found,) = gradient(total.sum(), [given])
        assert found is not None
        assert seen(found) == (weights * (1 if one else n), given.device, given.axis), name


def test_a_value_stays_where_it_is() -> None:
    on = ("D0", "D1")
    single, data = Tensor([1, 2], device="D0"), Tensor([[1, 2, 3, 4], [5, 6, 7, 8]]) * 1
    everywhere = collectives.broadcast(single, on)
    rows = data.copy(on)
    columns = data.permute(1, 0).copy(on).permute(1, 0)
    for t in (single * 1, everywhere, rows, columns):
        wanted = seen(t)
        assert seen(t.realize()) == wanted
        # What is built on an evaluated Tensor starts from a node on the same devices.
        assert (t.operand is not t.uop, seen(t + 0)) == (True, wanted)
