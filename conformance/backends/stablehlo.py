"""Runs StableHLO's reference interpreter, XLA and IREE as backends, on the same modules."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import (
    Inputs,
    JointBackend,
    LibraryBackend,
    Run,
    RunAll,
    imported,
)
from uop.conformance.adapters.stablehlo.flat import NAMES, Flat, FlatTensor, function, module
from uop.conformance.adapters.stablehlo.library import DISTRIBUTION, EXTRA, TESTED, library
from uop.conformance.adapters.stablehlo.write import FlatBuilder
from uop.conformance.adapters.walk import build, values_of
from uop.conformance.backends.attempt import ERRORS
from uop.interpreter.numeric.storage import STORED, Array, from_bits, to_bits
from uop.spec.dtype import DType, dtypes
from uop.spec.registry import Shape
from uop.spec.uop import UOp

OPTIONS = (
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
)


class PortableBuilder(FlatBuilder):
    """Narrow floats enter and leave as their bits: runtimes and numpy do not share all of them."""

    def param(self, slot: int, dtype: DType, shape: Shape) -> FlatTensor:
        return self.bitcast(super().param(slot, carrier(dtype), shape), dtype, shape)

    def carried(self, x: FlatTensor) -> FlatTensor:
        return self.bitcast(x, carrier(x.dtype), x.shape)


@dataclass(frozen=True, slots=True)
class Portable:
    """A program whose narrow floats enter and leave as their bits."""

    flat: Flat
    slots: tuple[int, ...]
    outputs: tuple[FlatTensor, ...]

    def arguments(self, inputs: Inputs) -> list[Array]:
        """The arguments of its function."""
        arrays = [inputs[slot] for slot in self.slots]
        return [a if carrier(STORED[a.dtype]) is STORED[a.dtype] else to_bits(a) for a in arrays]

    def results(self, arrays: Iterable[Array]) -> tuple[Array, ...]:
        """Its outputs, from the results of its function."""
        return tuple(_restored(a, t) for a, t in zip(arrays, self.outputs, strict=True))


def portable(root: UOp) -> Portable:
    """A program for a runtime; UnsupportedError if it has no image."""
    builder = PortableBuilder()
    outputs = build(values_of(root), builder)
    flat = builder.program([builder.carried(t) for t in outputs])
    return Portable(flat, tuple(sorted(builder.inputs)), tuple(outputs))


def joined(programs: Sequence[Portable]) -> str:
    """One module that calls each program; arguments and results of all follow each other."""
    functions, takes, calls, results, types = [], [], [], [], []
    for k, flat in enumerate(program.flat for program in programs):
        functions.append(flat.function(f"private @program{k}"))
        names = [f"%in{k}_{n}" for n in range(len(flat.inputs))]
        given = [t.type for t in flat.inputs]
        gives = [t.type for t in flat.outputs]
        takes += [f"{name}: {type}" for name, type in zip(names, given, strict=True)]
        left = f"%out{k}:{len(gives)} = " if gives else ""
        kind = f"({', '.join(given)}) -> ({', '.join(gives)})"
        calls.append(f"{left}call @program{k}({', '.join(names)}) : {kind}")
        results += [f"%out{k}#{n}" for n in range(len(gives))]
        types += gives
    main = function(f"@main({', '.join(takes)})", calls, ", ".join(results), types)
    return module([*functions, main])


def carrier(dtype: DType) -> DType:
    """The dtype in which values of a dtype enter and leave a module."""
    narrow = dtype.is_float and dtype.itemsize < 4
    return {1: dtypes.uint8, 2: dtypes.uint16}[dtype.itemsize] if narrow else dtype


def _restored(a: Array, t: FlatTensor) -> Array:
    a = np.asarray(a).reshape(t.shape)
    return a if carrier(t.dtype) is t.dtype else from_bits(a, t.dtype)


class StableHLOBackend(LibraryBackend):
    """The interpreter of StableHLO's reference, as jaxlib has it."""

    name, distribution, tested = "stablehlo", DISTRIBUTION, TESTED
    builder, dtypes = FlatBuilder, frozenset(NAMES)

    def start(self) -> str:
        self.library = library()
        return "reference interpreter"

    def compiled(self, root: UOp) -> Run:
        program = portable(root)
        module = self.library.parsed(program.flat.mlir())

        def run(inputs: Inputs) -> Sequence[Array]:
            return program.results(self.library.evaluated(module, program.arguments(inputs)))

        return run


class ModuleBackend(JointBackend[Portable]):
    """A compiler of StableHLO: all programs of a call become one module."""

    builder, dtypes = FlatBuilder, frozenset(NAMES)

    @abstractmethod
    def loaded(self, text: str) -> Callable[[list[Array]], Sequence[Any]]:
        """A compiled module: it takes and gives arrays."""

    def prepared(self, root: UOp) -> Portable:
        return portable(root)

    def together(self, programs: Sequence[Portable]) -> RunAll:
        main = self.loaded(joined(programs))

        def run(batches: Sequence[Inputs]) -> Sequence[Sequence[Array]]:
            pairs = zip(programs, batches, strict=True)
            results = iter(main([a for p, batch in pairs for a in p.arguments(batch)]))
            return [p.results([np.asarray(next(results)) for _ in p.outputs]) for p in programs]

        return run


class XLABackend(ModuleBackend):
    """XLA on the CPU."""

    name, distribution, tested = "xla", DISTRIBUTION, TESTED
    # JAX's "Sharp Bits" document the flush of subnormals; the flag xla_allow_excess_precision, on
    # by default, keeps narrow floats in float32. The flag xla_cpu_enable_fast_math is off, so that
    # a fused or regrouped sum is a failure.
    profile = "ftz=bfloat16,float32,float64 excess_precision=bfloat16,float16"

    def start(self) -> str:
        self.jax, _ = imported(EXTRA, "jax", "jaxlib")
        xla, device = import_module("jaxlib.xla_client"), self.jax.devices("cpu")[0]
        self.client, self.options = device.client, xla.CompileOptions()
        self.devices = xla.DeviceList((device,))
        return f"{self.client.platform}"

    def loaded(self, text: str) -> Callable[[list[Array]], Sequence[Any]]:
        executable = self.client.compile_and_load(text.encode(), self.devices, self.options)

        def run(arguments: list[Array]) -> Sequence[Any]:
            # Without it JAX halves numbers of 64 bits; as a setting it would hold for the process.
            with self.jax.enable_x64(True):
                buffers = [self.jax.device_put(a, self.devices[0]) for a in arguments]
            results: Sequence[Any] = executable.execute(buffers)
            return results

        return run


class IREEBackend(ModuleBackend):
    """IREE with the target llvm-cpu, run in the calling thread."""

    name, distribution, tested = "iree", "iree-base-runtime", ("3.13",)
    programs = 8
    """Compiling one takes more than a second."""
    profile = "contract=all ftz=bfloat16,float32,float64 decomposed=POW excess_precision=bfloat16"

    def start(self) -> str:
        self.compiler, self.runtime = imported("iree", "iree.compiler", "iree.runtime")
        self.errors = (*ERRORS, self.compiler.CompilerToolError)
        self.config = self.runtime.Config("local-sync")
        return "llvm-cpu"

    def loaded(self, text: str) -> Callable[[list[Array]], Sequence[Any]]:
        binary = self.compiler.compile_str(
            text, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=[*OPTIONS]
        )
        context = self.runtime.SystemContext(config=self.config)
        context.add_vm_module(self.runtime.VmModule.copy_buffer(context.instance, binary))
        main = context.modules.module["main"]

        def run(arguments: list[Array]) -> Sequence[Any]:
            found = main(*arguments)
            results = found if isinstance(found, Sequence) else () if found is None else (found,)
            # An array shares the memory of its result, and does not keep it.
            return [np.asarray(r).copy() for r in results]

        return run
