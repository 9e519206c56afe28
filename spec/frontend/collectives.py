"""Collectives over n devices, composed of movement ops and copies as the documents list them."""

from __future__ import annotations

from uop.spec.frontend.calls import composed
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import places_of

Devices = tuple[str, ...]


@composed("broadcast")
def broadcast(t: Tensor, devices: Devices) -> Tensor:
    """Copy T, of shape (s,) on one device, to each of several devices."""
    n, (s,) = len(devices), t.shape
    return t.reshape(1, s).expand(n, s).copy(devices).replicated(0)


@composed("scatter")
def scatter(t: Tensor, devices: Devices) -> Tensor:
    """Split T, of shape (s,) on one device, into n equal shards on n devices."""
    return t.copy(devices)


@composed("gather")
def gather(t: Tensor, device: str) -> Tensor:
    """Concatenate the shards of T on one device."""
    return t.copy(device)


@composed("reduce_shards")
def reduce(t: Tensor, device: str) -> Tensor:
    """Sum the shards of T, each of shape (s,), on one device."""
    n, s = _shards(t)
    return gather(t, device).reshape(n, s).sum(0)


@composed("allgather")
def allgather(t: Tensor) -> Tensor:
    """Concatenate the shards of T on each device."""
    devices, (size,) = places_of(t.device), t.shape
    n = len(devices)
    return t.reshape(1, size).expand(n, size).copy(devices).replicated(0)


@composed("reduce_scatter")
def reduce_scatter(t: Tensor) -> Tensor:
    """Sum the shards of T, each of shape (s,), and split the sum over the n devices."""
    n, s = _shards(t)
    parts = t.reshape(n, n, s // n).permute(1, 0, 2)
    return parts.copy(places_of(t.device)).sum(1).reshape(s)


@composed("allreduce")
def allreduce(t: Tensor) -> Tensor:
    """Sum the shards of T on each device."""
    return allgather(reduce_scatter(t))


def _shards(t: Tensor) -> tuple[int, int]:
    """The number of shards and the size of each."""
    n = len(places_of(t.device))
    return n, t.shape[0] // max(n, 1)
