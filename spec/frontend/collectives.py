"""Collectives over n devices as compositions of movement and copies, as the documents list them."""

from __future__ import annotations

from uop.spec.frontend.tensor import Tensor

Devices = tuple[str, ...]


def broadcast(t: Tensor, devices: Devices) -> Tensor:
    """T, of shape (s,) on one device, whole on each of several."""
    n, (s,) = len(devices), t.shape
    return t.reshape(1, s).expand(n, s).copy(devices).replicated(0)


def scatter(t: Tensor, devices: Devices) -> Tensor:
    """T, of shape (s,) on one device, in n equal parts on n devices."""
    return t.copy(devices)


def gather(t: Tensor, device: str) -> Tensor:
    """The shards of T, one after another on one device."""
    return t.copy(device)


def reduce(t: Tensor, device: str) -> Tensor:
    """The sum of the shards of T, each of shape (s,), on one device."""
    n, s = _shards(t)
    return gather(t, device).reshape(n, s).sum(0)


def allgather(t: Tensor) -> Tensor:
    """The shards of T, one after another on each device."""
    devices, (size,) = _devices(t), t.shape
    n = len(devices)
    return t.reshape(1, size).expand(n, size).copy(devices).replicated(0)


def reduce_scatter(t: Tensor) -> Tensor:
    """The sum of the shards of T, each of shape (s,), in n equal parts on the n devices."""
    n, s = _shards(t)
    parts = t.reshape(n, n, s // n).permute(1, 0, 2)
    return parts.copy(_devices(t)).sum(1).reshape(s)


def allreduce(t: Tensor) -> Tensor:
    """The sum of the shards of T on each device."""
    return allgather(reduce_scatter(t))


def _devices(t: Tensor) -> Devices:
    return t.device if isinstance(t.device, tuple) else (t.device,) if t.device else ()


def _shards(t: Tensor) -> tuple[int, int]:
    """How many shards, and the size of each."""
    n = len(_devices(t))
    return n, t.shape[0] // max(n, 1)
