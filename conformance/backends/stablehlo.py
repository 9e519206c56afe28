"""Runs StableHLO's reference interpreter as a backend, and XLA on the same modules."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import Inputs, JointBackend, LibraryBackend, Run, RunAll
from uop.conformance.adapters.stablehlo.flat import NAMES
from uop.conformance.adapters.stablehlo.library import DISTRIBUTION, TESTED, XLA, library
from uop.conformance.adapters.stablehlo.modules import Portable, joined, portable
from uop.conformance.adapters.stablehlo.write import FlatBuilder
from uop.interpreter.numeric.storage import Array
from uop.spec.uop import UOp


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
        self.xla = XLA()
        return self.xla.platform

    def loaded(self, text: str) -> Callable[[list[Array]], Sequence[Any]]:
        return self.xla.loaded(text)
