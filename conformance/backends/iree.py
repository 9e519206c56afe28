"""Runs IREE as a backend: its compiler, a process of its own, and its runtime on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import imported
from uop.conformance.backends.attempt import ERRORS
from uop.conformance.backends.stablehlo import ModuleBackend
from uop.interpreter.numeric.storage import Array

OPTIONS = (
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
)


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
