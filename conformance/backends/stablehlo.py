"""Runs StableHLO's reference interpreter as a backend, and XLA on the same modules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uop.conformance.adapters.backend import (
    Inputs,
    JointBackend,
    LibraryBackend,
    Run,
    RunAll,
    imported,
)
from uop.conformance.adapters.stablehlo.flat import NAMES
from uop.conformance.adapters.stablehlo.library import EXTRA, library
from uop.conformance.adapters.stablehlo.modules import Portable, joined, portable
from uop.conformance.adapters.stablehlo.write import FlatBuilder
from uop.interpreter.numeric.storage import Array
from uop.spec.uop import UOp


class StableHLOBackend(LibraryBackend):
    """The interpreter of StableHLO's reference, as jaxlib has it."""

    name, distribution, builder, dtypes = "stablehlo", "jaxlib", FlatBuilder, frozenset(NAMES)

    def start(self) -> str:
        self.library = library()
        return "reference interpreter"

    def compiled(self, root: UOp) -> Run:
        program = portable(root)
        module = self.library.parsed(program.flat.mlir())

        def run(inputs: Inputs) -> Sequence[Array]:
            return program.results(self.library.evaluated(module, program.arguments(inputs)))

        return run


class XLABackend(JointBackend[Portable]):
    """XLA on the CPU: all programs of a call become one module."""

    name, distribution, builder, dtypes = "xla", "jaxlib", FlatBuilder, frozenset(NAMES)

    def start(self) -> str:
        self.jax, client = imported(EXTRA, "jax", "jaxlib.xla_client")
        self.jax.config.update("jax_platforms", "cpu")
        self.jax.config.update("jax_enable_x64", True)
        device = self.jax.devices()[0]
        self.client, self.options = device.client, client.CompileOptions()
        self.devices = client.DeviceList((device,))
        return f"{self.client.platform}"

    def prepared(self, root: UOp) -> Portable:
        return portable(root)

    def together(self, programs: Sequence[Portable]) -> RunAll:
        text = joined(programs).encode()
        executable = self.client.compile_and_load(text, self.devices, self.options)

        def run(batches: Sequence[Inputs]) -> Sequence[Sequence[Array]]:
            pairs = zip(programs, batches, strict=True)
            arguments = [self.jax.device_put(a) for p, batch in pairs for a in p.arguments(batch)]
            results = iter(executable.execute(arguments))
            return [p.results([np.asarray(next(results)) for _ in p.outputs]) for p in programs]

        return run
