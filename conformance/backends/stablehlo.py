"""Runs StableHLO's reference interpreter as a backend, and XLA on the same modules."""

from __future__ import annotations

from collections.abc import Sequence
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
from uop.conformance.adapters.stablehlo.flat import NAMES
from uop.conformance.adapters.stablehlo.modules import Portable, joined, portable
from uop.conformance.adapters.stablehlo.write import FlatBuilder
from uop.interpreter.numeric.storage import Array
from uop.spec.uop import UOp

EXTRA = "xla"


class StableHLOBackend(LibraryBackend):
    """The interpreter of StableHLO's reference, as jaxlib has it."""

    name, distribution, builder, dtypes = "stablehlo", "jaxlib", FlatBuilder, frozenset(NAMES)

    def start(self) -> str:
        mlir, self.ir, self.stablehlo = imported(
            EXTRA,
            "jax._src.interpreters.mlir",
            "jaxlib.mlir.ir",
            "jaxlib.mlir.dialects.stablehlo",
        )
        self.context = mlir.make_ir_context()
        self.stablehlo.register_interpreter_dialect(self.context)
        return "reference interpreter"

    def compiled(self, root: UOp) -> Run:
        program = portable(root)
        with self.context:
            module = self.ir.Module.parse(program.flat.mlir())

        def run(inputs: Inputs) -> Sequence[Array]:
            with self.context:
                arguments = [self._attribute(a) for a in program.arguments(inputs)]
                results = self.stablehlo.eval_module(module, arguments)
                return program.results([np.array(r) for r in results])

        return run

    def _attribute(self, a: Array) -> Any:
        is_signless = a.dtype.kind != "u"
        return self.ir.DenseElementsAttr.get(np.asarray(a, order="C"), signless=is_signless)


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
