"""Shrinks the devices of a failing program: none of them, or fewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from uop.conformance.judging.verdict import CaseFailure
from uop.conformance.shrink.reduce import Candidate, Probe, with_used_inputs
from uop.conformance.shrink.search import PLACED, Search, Step, devices_of
from uop.spec.args import Device
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import rebuild

Where = Callable[[Device], Device]


def reduce_devices(
    start: Candidate, failure: CaseFailure, probe: Probe
) -> tuple[Candidate, CaseFailure]:
    """Shrink a program that fails with `failure` to fewer devices."""
    search = Search(start, failure, probe)
    search.repeat(fewer_devices)
    return search.best, search.failure


def fewer_devices(candidate: Candidate) -> Iterator[Step]:
    """The program on no device, without one, or with one in place of another."""
    nodes = candidate.root.toposort()
    devices = dict.fromkeys(name for u in nodes for name in devices_of(u))
    if devices:
        yield partial(_placed, candidate, lambda device: None)
    for gone in reversed([*devices]):
        yield partial(_placed, candidate, partial(_without, gone))
        for kept in devices:
            if kept != gone:
                yield partial(_placed, candidate, partial(_instead, gone, kept))


def _without(gone: str, device: Device) -> Device:
    """The devices of a sharded value but one."""
    if isinstance(device, tuple) and len(device) > 1:
        return tuple(name for name in device if name != gone)
    return device


def _instead(gone: str, kept: str, device: Device) -> Device:
    return kept if device == gone else device


def _placed(candidate: Candidate, where: Where) -> Candidate:
    """The program with its values on other devices, without copies that stay where they are."""

    def placed(u: UOp, src: list[UOp]) -> UOp:
        arg = replace(u.arg, device=where(u.arg.device)) if isinstance(u.arg, PLACED) else u.arg
        return src[0] if _is_copy(u, src, where) else UOp(u.op, *src, arg=arg, tag=u.tag)

    return with_used_inputs(rebuild(candidate.root, placed), candidate.inputs)


def _is_copy(u: UOp, sources: list[UOp], where: Where) -> bool:
    """Whether a node only moves a value to the device where it is."""
    if u.op is Op.REPLICATED:
        return where(u.device) is None
    is_load = u.op is Op.LOAD and u.src[0].addrspace is None
    return is_load and len(sources) == 1 and where(u.device) == sources[0].device
