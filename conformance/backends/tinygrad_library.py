"""What is read of tinygrad: its modules, classes and functions, and how it is imported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from math import prod
from types import ModuleType
from typing import Any

from uop.compiler.runtime.drivers import loader
from uop.compiler.runtime.trials import choose
from uop.conformance.backends.versions import fitting
from uop.spec.args import ConstArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError

NAME = "tinygrad"
TESTED = ("0.14",)
"""The versions that the adapter was tested with."""
TARGETS = {"PYTHON": "PYTHON", "CL": "CL", "CPU": "CPU:CLANG", "X86": "CPU:X86"}
"""The names of targets here and in tinygrad: X86 is its own assembler on its device CPU."""
PARTS = ("device", "tensor", "schedule", "engine.realize", "uop.ops", "codegen.opt.postrange")

Node = Any
"""A node of tinygrad."""


class Language:
    """tinygrad on a target: the constructors of its nodes, its compiler and its memory."""

    def __init__(self, tinygrad: ModuleType, target: str) -> None:
        ops, opt = tinygrad.uop.ops, tinygrad.codegen.opt
        self.target, self.device = target, TARGETS[target].partition(":")[0]
        self.uop, self.ops = ops.UOp, ops.Ops
        self.axis_types, self.kernel_info = ops.AxisType, ops.KernelInfo
        self.dtypes, self.addrspace = tinygrad.dtypes, tinygrad.dtype.AddrSpace
        self.devices, self.compile_error = tinygrad.device.Device, tinygrad.device.CompileError
        self.opt, self.opt_ops, self.opt_error = opt.Opt, opt.OptOps, opt.KernelOptError
        self.scheduler, self.context = opt.postrange.Scheduler, tinygrad.helpers.Context
        self.to_call = tinygrad.tensor.transform_to_call
        self.to_linear = tinygrad.schedule.create_linear_with_vars
        self.realize = tinygrad.engine.realize

    @property
    def renderer(self) -> Any:
        """That of the device, which it opens."""
        return self.devices[self.device].renderer

    def node(self, op: str, *src: Node, arg: object = None) -> Node:
        return self.uop(self.ops[op], src=src, arg=arg)

    def dtype(self, dtype: DType) -> Any:
        """tinygrad's dtype; `index` is its integer of any size, which it cannot store."""
        name = "weakint" if dtype is dtypes.index else dtype.name
        found = getattr(self.dtypes, name, None)
        if found is None:
            raise UnsupportedError(f"tinygrad has no {name}")
        return found

    def constant(self, arg: ConstArg) -> Node:
        """A constant, a Python number in tinygrad. UnsupportedError for a NaN with a payload."""
        dtype = arg.dtype
        if dtype.is_float and dtype.format.is_nan(arg.bits) and arg.bits != dtype.format.nan_bits:
            raise UnsupportedError("tinygrad keeps no payload and no sign of a constant NaN")
        return self.uop.const(arg.value, self.dtype(dtype))

    def dims(self, values: Sequence[int]) -> Node:
        """A shape or offset operand: a STACK, or a constant for one number."""
        numbers = [self.uop.const(v) for v in values]
        return numbers[0] if len(numbers) == 1 else self.node("STACK", *numbers)

    def reshape(self, x: Node, shape: Sequence[int]) -> Node:
        return self.node("RESHAPE", x, self.dims(shape))

    def buffer(self, size: int, dtype: DType) -> Node:
        """A flat buffer on the device."""
        return self.uop.new_buffer(self.device, size, self.dtype(dtype))

    def write(self, buffer: Node, data: bytes) -> None:
        if data:
            memory = buffer.buffer.ensure_allocated()
            memory.allocator._copyin(memory._buf, memoryview(bytearray(data)))

    def read(self, buffer: Node) -> bytes:
        return (
            bytes(buffer.buffer.ensure_allocated().as_memoryview()) if prod(buffer.shape) else b""
        )

    def scheduled(self, stores: Sequence[Node]) -> Any:
        """What runs some stores; None for none."""
        if not stores:
            return None
        call, _ = self.to_call(self.uop.sink(*stores))
        linear, _ = self.to_linear(call)
        return self.compiled(linear)

    def compiled(self, linear: Any) -> Any:
        """Compile and load what a program calls, so that only running is left."""
        compiled = self.realize.link_linear(self.realize.compile_linear(linear))
        for call in compiled.src:
            if call.src[0].op is self.ops.PROGRAM:
                # Some devices build the source when they load it.
                self.realize.get_runtime(self.device, call.src[0])
        return compiled

    def run(self, linear: Any) -> None:
        """Run what is compiled already, as what its jit keeps."""
        self.realize.run_linear(linear, {}, jit=True)


def opened(target: str) -> Language:
    """tinygrad on a target. UnsupportedError where it is missing, UnfitError where a part is."""
    tinygrad = load(target)
    with fitting(NAME, TESTED):
        return Language(tinygrad, target)


def load(target: str) -> ModuleType:
    """Import tinygrad and its parts, set to run on a target and to cache nothing on disk.

    Raises as `opened` does.
    """
    # tinygrad reads these when it is imported. A cache would outlive the run that filled it.
    os.environ["DEV"] = TARGETS[target]
    os.environ["CCACHE"] = "0"
    # Compilers in further processes would outlive a program that crashes or hangs.
    os.environ["PARALLEL"] = "0"
    if target == "CL":
        _find_opencl()
    try:
        tinygrad = import_module(NAME)
    except ImportError as error:
        raise UnsupportedError(
            f'{error}; install tinygrad with: pip install "uop[tinygrad]"'
        ) from error
    with fitting(NAME, TESTED):
        for part in PARTS:
            import_module(f"{NAME}.{part}")
    return tinygrad


def _find_opencl() -> None:
    """Make tinygrad load the OpenCL loader of pyopencl, with a driver that builds.

    Loads pyopencl first: otherwise the loader ends the process.
    """
    if (library := loader()) is None:
        return
    os.environ.setdefault("OPENCL_PATH", str(library))
    os.environ.update(choose().driver.variables())
    with suppress(ImportError):
        import_module("pyopencl._cl")
