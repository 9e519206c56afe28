"""The contenders of `kernels.py`: each is ready to compute a work again and again.

The data of a peer are in place before its time counts, its kernels are built, and its result stays
where it is. tinygrad's kernels are those of its heuristic, without BEAM. They are launched on its
own buffers by its own runtime; what it does in Python to schedule them does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from kernel_works import Array, Work

from uop.compiler.loaded import DeviceArray, from_array
from uop.compiler.pipeline import compile
from uop.compiler.runtime.cuda import CUDADevice
from uop.compiler.runtime.device import Device, upload
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.conformance.backends.attempt import ERRORS
from uop.conformance.backends.tinygrad_library import load
from uop.spec.errors import UnsupportedError
from uop.spec.kernel.optimization import Optimization, parse_optimizations

HAND = Path(__file__).with_name("hand.cl")
ROWS = {16: 8}
"""The rows of its tile by the width of a vector, else 4: half of the registers hold sums."""
WIDEST = {"pocl": 8}
"""PoCL 3.0 names 16 as native, and crashes on it where its LLVM knows no AVX-512."""
GROUP = 16
"""The work items of a group, which were fastest on the machines tried."""


WARPS = "TC(2, m16n8k16)"


@dataclass(frozen=True, slots=True)
class Peer:
    """One that is timed."""

    name: str
    begin: Callable[[], object]
    """Computes the work, or puts that on a queue."""
    finish: Callable[[], object]
    """Waits for the queue."""
    result: Callable[[], Array]


def nothing() -> None:
    """What is left to wait for where a call returns a result."""


def ours(work: Work, data: Sequence[Array], device: Device, target: str) -> Peer:
    """What our compiler makes of it."""
    return _compiled("uop", work, data, device, target, None)


def by_warps(work: Work, data: Sequence[Array], device: Device, target: str) -> Peer | None:
    """The same with the matrix instruction; None for work that it does not fit."""
    if not work.is_for_warps:
        return None
    return _compiled("warps", work, data, device, target, [parse_optimizations(WARPS)])


def _compiled(
    name: str,
    work: Work,
    data: Sequence[Array],
    device: Device,
    target: str,
    optimizations: Sequence[Sequence[Optimization]] | None,
) -> Peer:
    loaded = compile(work.root, target, optimizations=optimizations).load(device)
    inputs = {slot: from_array(array, device) for slot, array in enumerate(data)}
    kept = [loaded.run_kept(inputs)]

    def begin() -> None:
        kept.clear()  # So the next result takes the memory of this one, as that of others does.
        kept.append(loaded.run_kept(inputs))

    return Peer(name, begin, device.finish, lambda: cast(DeviceArray, kept[0]).numpy())


def hand(work: Work, data: Sequence[Array], device: Device, target: str) -> Peer | None:
    """The gemm that a hand writes; None for other work."""
    if work.hand is None or not isinstance(device, OpenCLDevice):
        return None
    m, n, k = work.hand
    width = device.context.devices[0].native_vector_width_float
    width = min(width, WIDEST.get(device.variant, width))
    rows = ROWS.get(width, 4)
    source = f"#define WIDTH {width}\n#define ROWS {rows}\n" + HAND.read_text("utf-8")
    built = device.build(source)
    a, b = (upload(device, array) for array in data)
    c = device.allocate(4 * m * n)
    kernel = built.kernel("gemm")
    columns = n // (2 * width)

    def begin() -> None:
        kernel.set_args(c, a, b, np.int32(n), np.int32(k))
        size, group = (columns, m // rows), (min(GROUP, columns), 1)
        device.cl.enqueue_nd_range_kernel(device.queue, kernel, size, group)

    def result() -> Array:
        return device.read(c, 4 * m * n).view(np.float32).reshape(m, n)

    return Peer("hand", begin, device.finish, result)


def by_numpy(work: Work, data: Sequence[Array], device: Device, target: str) -> Peer:
    """numpy, whose gemm of floats is that of BLAS."""
    return Peer("numpy", lambda: work.numpy(*data), nothing, lambda: work.numpy(*data))


def by_cupy(work: Work, data: Sequence[Array], device: Device, target: str) -> Peer:
    """cupy, whose gemm of floats is that of cuBLAS; UnsupportedError where it cannot."""
    cupy = cast(CUDADevice, device).cupy
    try:
        arrays = [cupy.asarray(array) for array in data]
        work.numpy(*arrays)
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        raise UnsupportedError(f"{type(error).__name__}: {error}") from error
    return Peer(
        "cupy",
        lambda: work.numpy(*arrays),
        device.finish,
        lambda: cast(Array, cupy.asnumpy(work.numpy(*arrays))),
    )


def tinygrad(work: Work, data: Sequence[Array], device: Device, target: str) -> Peer:
    """tinygrad on the same driver; UnsupportedError where it does not compile the work."""
    module = load("CL")
    opened, realize = module.Device["CL"], module.engine.realize
    try:
        tensors = [module.Tensor(array, device="CL").realize() for array in data]
        out = work.tinygrad(*tensors).contiguous()
        linear, _ = out.linear_with_vars()
        launches = [_launch(realize, call) for call in realize.compile_linear(linear).src]
    except (module.device.CompileError, *ERRORS) as error:
        raise UnsupportedError(f"{type(error).__name__}: {error}") from error

    def begin() -> None:
        for launch in launches:
            launch()

    return Peer("tinygrad", begin, opened.synchronize, lambda: cast(Array, out.numpy()))


def _launch(realize: Any, call: Any) -> Callable[[], object]:
    """A function that puts a compiled kernel of tinygrad on its queue."""
    kernel = call.src[0]
    if kernel.op.name != "PROGRAM":
        raise UnsupportedError(f"a step of its that is no kernel: {kernel.op.name}")
    runtime = realize.get_runtime("CL", kernel)
    arguments = realize.get_call_arg_uops(call)
    memory = [arguments[k].buffer.ensure_allocated()._buf for k in kernel.arg.globals]
    groups, group = kernel.arg.launch_dims({})
    return lambda: runtime(*memory, global_size=groups, local_size=group)
