"""Prints what a machine with a GPU is, and some figures of our kernels on it.

`python benchmarks/gpu_figures.py machine`, `python benchmarks/gpu_figures.py figures [--quick]`.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from figure import seconds

from uop.compiler.execute import open_device
from uop.compiler.pipeline import compile, find_target
from uop.compiler.runtime.cuda import CUDADevice
from uop.interpreter.inputs import Inputs
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.text.program import parse
from uop.spec.uop import UOp, param

GEMM = """\
%0 = PARAM [{n},{n}] {{slot=0, dtype=float32}} : float32[{n},{n}]
%1 = RESHAPE %0, [{n},{n},1] : float32[{n},{n},1]
%2 = PARAM [{n},{n}] {{slot=1, dtype=float32}} : float32[{n},{n}]
%3 = RESHAPE %2, [1,{n},{n}] : float32[1,{n},{n}]
%4 = MUL %1, %3 : float32[{n},{n},{n}]
%5 = REDUCE %4 {{op=ADD, axes=(1)}} : float32[{n},1,{n}]
%6 = RESHAPE %5, [{n},{n}] : float32[{n},{n}]
"""
RUNS = 7
ROWS = 100
"""Launches in a row, so that the wait for the last of them counts little."""

Row = tuple[str, str]


def machine() -> Iterator[Row]:
    """The machine and the versions on it; what can fail comes last."""
    yield "system", f"{platform.platform()}, {os.cpu_count()} processors"
    yield "Python", platform.python_version()
    yield "numpy", np.__version__
    if shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv"]
        said = subprocess.run(query, capture_output=True, text=True, check=False).stdout
        yield "nvidia-smi", "; ".join(said.splitlines()[1:])
    device = opened()
    yield "cupy", device.cupy.__version__
    yield "GPU", device.name
    yield "driver and compiler", device.version
    yield "CUDA runtime of cupy", str(device.cupy.cuda.runtime.runtimeGetVersion())


def figures(elements: int, side: int) -> Iterator[Row]:
    """The medians of warm runs."""
    device = opened()
    yield "copy on the device", bandwidth(copied(device, elements), 8 * elements)
    x, y = (param(slot, (elements,), dtypes.float32) for slot in range(2))
    inputs = {slot: np.full(elements, slot + 0.5, np.float32) for slot in range(2)}
    added = launched(device, UOp(Op.ADD, x, y), inputs)
    yield f"ADD of {elements:,} float32", bandwidth(added, 12 * elements)
    matrices = {slot: np.full((side, side), slot + 0.5, np.float32) for slot in range(2)}
    gemm = timed(launched(device, parse(GEMM.format(n=side)), matrices))
    yield f"gemm {side} x {side} x {side}, float32", f"{2 * side**3 / gemm / 1e9:,.0f} GFLOP/s"
    small = UOp(Op.ADD, *(param(slot, (1,), dtypes.float32) for slot in range(2)))
    ones = {slot: np.ones(1, np.float32) for slot in range(2)}
    yield "a launch", f"{timed(launched(device, small, ones)) * 1e6:.1f} us"
    program = compile(small, "cuda")
    yield "a run: upload, launch, download", f"{timed(lambda: program.run(ones)) * 1e6:.0f} us"
    yield "a build", f"{seconds(lambda: device.build(program.source), RUNS) * 1e3:.1f} ms"


def opened() -> CUDADevice:
    return cast(CUDADevice, open_device(find_target("cuda")))


def copied(device: CUDADevice, elements: int) -> Callable[[], Any]:
    source, target = (device.cupy.asarray(np.zeros(elements, np.float32)) for _ in range(2))
    return lambda: target.data.copy_from_device_async(source.data, source.nbytes)


def launched(device: CUDADevice, root: UOp, inputs: Inputs) -> Callable[[], Any]:
    """The launches of a program, on memory that is on the device."""
    program = compile(root, "cuda")
    built = device.build(program.source)
    held = [device.cupy.asarray(contents) for contents in program.executable.contents(inputs)]
    calls = [
        (built.kernel(launch.kernel), launch, tuple(held[i] for i in launch.buffers))
        for launch in program.executable.launches()
    ]

    def launch_all() -> None:
        for kernel, launch, buffers in calls:
            kernel(launch.groups, launch.local_size, buffers)

    return launch_all


def timed(work: Callable[[], Any]) -> float:
    """The seconds of one of many in a row, the median of some rounds."""

    def row() -> None:
        for _ in range(ROWS):
            work()
        opened().cupy.cuda.runtime.deviceSynchronize()

    return seconds(row, RUNS) / ROWS


def bandwidth(work: Callable[[], Any], moved: int) -> str:
    return f"{moved / timed(work) / 1e9:,.0f} GB/s"


def main(part: str, *quick: str) -> None:
    """Print rows of a table as they are known."""
    elements, side = (1 << 10, 8) if quick else (1 << 26, 1024)
    for name, value in machine() if part == "machine" else figures(elements, side):
        print(f"| {name} | {value} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
