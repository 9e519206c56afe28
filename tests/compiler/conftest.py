"""Shared by the tests of the compiler: elementwise expressions and programs on an OpenCL device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uop.compiler import bundle, execute, loaded
from uop.compiler.runtime.device import Launch
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.targets.cstyle import Operation, c_type, spell
from uop.compiler.targets.opencl import OPENCL
from uop.spec.dtype import DType
from uop.spec.ops.names import Op

Array = NDArray[Any]
Result = tuple[Op, DType]
RunOps = Callable[[Sequence[Result], Sequence[DType], Sequence[Array]], list[Array]]

NUMPY = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
         "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
         "f32": np.float32, "f64": np.float64}  # fmt: skip


@pytest.fixture(scope="session")
def run_ops(opencl: OpenCLDevice) -> RunOps:
    """Several ops on the same operands in one kernel: one array in C storage per op."""

    def run(results: Sequence[Result], of: Sequence[DType], inputs: Sequence[Array]) -> list[Array]:
        operands = tuple(f"x{i}" for i in range(len(of)))
        lines = [f"{c_type(d)} {x} = in_{x}[i];" for d, x in zip(of, operands, strict=True)]
        for i, (op, dtype) in enumerate(results):
            expression = spell(Operation(op, dtype, tuple(of), operands))
            lines += [f"{c_type(dtype)} t{i} = {expression};", f"out{i}[i] = t{i};"]
        pointers = [f"global {c_type(d)}* in_{x}" for d, x in zip(of, operands, strict=True)]
        pointers += [f"global {c_type(d)}* out{i}" for i, (_, d) in enumerate(results)]
        size = len(inputs[0])
        body = "\n  ".join([f"i64 i = get_global_id(0);\n  if (i >= {size}) return;", *lines])
        kernel = f"kernel void k({', '.join(pointers)}) {{\n  {body}\n}}"
        built = opencl.build(OPENCL.source([kernel]))
        buffers = [*inputs, *(np.zeros(size, NUMPY[c_type(d)]) for _, d in results)]
        launch = Launch("k", tuple(range(len(buffers))), (-(-size // 64),), (64,))
        return opencl.run(built, [launch], buffers)[len(of) :]

    return run


@pytest.fixture
def run_on_opencl(opencl: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenCLDevice]:
    """Compiled programs run on the device of the session, with its kernel cache."""
    execute.build.cache_clear()
    for module in (bundle, loaded):
        monkeypatch.setattr(module, "open_device", lambda target: opencl)
    yield opencl
    # What was built for it runs on no other device.
    execute.build.cache_clear()
