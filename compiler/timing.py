"""The time of each kernel of a program on a device, and its cost: arithmetic and memory traffic.

Costs are counted for the instructions of a kernel as they are launched:

- An elementwise op counts 1 for each element of its value, if that is a number other than an index.
  Comparisons count 0, and so do CAST, BITCAST and WHERE, which only move numbers. A WMMA counts
  2 MNK, of which each work item does its share.
- A buffer that a kernel reads counts once, and so does one that it writes: the whole buffer, or the
  accesses if there are fewer.
- An instruction counts once for each work item and each iteration of the loops around it, whatever
  an IF around it decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from statistics import median

import numpy as np

from uop.compiler.execute import KernelRun, size_of
from uop.compiler.loaded import Given, Loaded
from uop.compiler.runtime.device import Device, Launch, upload
from uop.compiler.stages.render.grid import Numbers, bound_under, runs, specials
from uop.compiler.targets.target import COPIES
from uop.spec.args import AddrSpace, WmmaArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.graph import base_of
from uop.spec.ops.codegen import WARP
from uop.spec.ops.names import Op
from uop.spec.properties.shape import size
from uop.spec.properties.symbolic import bind, variables
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True)
class Cost:
    """The arithmetic operations of a launch, and the bytes that it must move."""

    flops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Executed:
    """An instruction, and the number of times that it runs."""

    u: UOp
    times: int


def cost_of(step: KernelRun) -> Cost:
    """The cost of a kernel under the numbers of its launch."""
    executed = list(_executed(step))
    flops = sum(each.times * _operations(each.u) for each in executed)
    moved = sum(_moved(executed, op, step.numbers) for op in (Op.LOAD, Op.STORE))
    return Cost(flops // WARP, moved)


def _executed(step: KernelRun) -> Iterator[Executed]:
    """The instructions of a kernel in order."""
    times = [prod(bound_under(u, step.numbers) for u in specials(step.linear))]
    for u in step.linear.src:
        if u.op is Op.RANGE:
            times.append(times[-1] * bound_under(u, step.numbers))
        yield Executed(u, times[-1])
        if u.op is Op.END:
            del times[len(times) - len(u.src[1:]) :]


def _operations(u: UOp) -> int:
    """The operations of one instruction, in parts of WARP."""
    if u.op is Op.WMMA:
        arg = arg_of(u, WmmaArg)
        return 2 * arg.m * arg.n * arg.k
    counts = u.declaration.is_elementwise and u.op not in COPIES
    is_number = u.dtype not in (dtypes.index, dtypes.bool)
    return WARP * size(u.shape) if counts and is_number else 0


def _moved(executed: list[Executed], op: Op, numbers: Numbers) -> int:
    """The bytes that the LOADs, or STOREs, of a kernel reach, over all its buffers."""
    reached: dict[UOp, int] = {}
    for each in executed:
        place = each.u.src[0] if each.u.op is op else None
        if place is None or place.addrspace is not AddrSpace.GLOBAL:
            continue
        memory = base_of(place)
        moved = each.times * size(place.shape) * place.dtype.itemsize
        reached[memory] = reached.get(memory, 0) + moved
    return sum(min(moved, _size(memory, numbers)) for memory, moved in reached.items())


def _size(memory: UOp, numbers: Numbers) -> int:
    """The size of a buffer of a kernel under the numbers of its launch."""
    sizes = {v: numbers[v] for v in variables(memory)}
    return size_of(bind(memory, sizes) if sizes else memory)


TURN = 0.005
"""A turn takes at least so many seconds: a short run is repeated in it."""
TURNS = 9
COPIED = 1 << 24
"""The bytes of the copy by which the bandwidth is measured."""


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The median time of a launch, and its cost."""

    launch: Launch
    seconds: float
    cost: Cost

    @property
    def flops(self) -> float:
        """Arithmetic operations per second."""
        return self.cost.flops / self.seconds

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.cost.bytes / self.seconds


def kernel_times(loaded: Loaded, inputs: Given, turns: int = TURNS) -> list[KernelTime]:
    """Time each kernel of a program, in order: it runs many times, on the output of those before
    it.
    """
    prepared = loaded.prepare(inputs)
    kernels = iter([s for s in prepared.bound.kernels if runs(s.linear, s.numbers)])
    found: list[KernelTime] = []
    for step in prepared.bound.launched():
        loaded.launch(step, prepared)
        if not isinstance(step, Launch):
            continue
        seconds = time_of(partial(loaded.launch, step, prepared), loaded.finish, turns)
        found.append(KernelTime(step, seconds, cost_of(next(kernels))))
    return found


def copy_bandwidth(device: Device, turns: int = TURNS) -> float:
    """The bytes per second that a copy on the device reads and writes."""
    source, to = (upload(device, np.zeros(COPIED, np.uint8)) for _ in range(2))
    seconds = time_of(lambda: device.copy(source, to, COPIED), device.finish, turns)
    return 2 * COPIED / seconds


def time_of(begin: Callable[[], object], finish: Callable[[], object], turns: int) -> float:
    """The median seconds of a run, over some turns of several runs, after a warm-up."""
    turn(begin, finish, 1)
    repeats = repeats_of(turn(begin, finish, 1))
    return median(turn(begin, finish, repeats) for _ in range(turns))


def repeats_of(seconds: float, least: float = TURN) -> int:
    """The number of runs in a turn of at least some seconds, if a run takes so many seconds."""
    return max(1, round(least / seconds))


def turn(begin: Callable[[], object], finish: Callable[[], object], repeats: int) -> float:
    """The seconds per run of several runs, including the wait for the last one."""
    begun = time.perf_counter()
    for _ in range(repeats):
        begin()
    finish()
    return (time.perf_counter() - begun) / repeats
