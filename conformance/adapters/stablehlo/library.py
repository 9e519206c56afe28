"""What is read of jax and jaxlib: StableHLO's modules, parser and interpreter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import imported
from uop.conformance.backends.versions import fitting
from uop.interpreter.numeric.storage import Array, from_bits
from uop.spec.dtype import DType
from uop.spec.errors import MalformedError, UnsupportedError

EXTRA, DISTRIBUTION = "xla", "jaxlib"
TESTED = ("0.10",)
"""The versions that the adapters were tested with; jax has the same numbers."""
PARTS = ("jax._src.interpreters.mlir", "jaxlib.mlir.ir", "jaxlib.mlir.dialects.stablehlo")
PLACE = re.compile(r":(\d+):(\d+)")


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """The bindings of MLIR and StableHLO, and a context with the dialects of the interpreter."""

    ir: Any
    stablehlo: Any
    context: Any

    def parsed(self, text: str) -> Any:
        """A module, verified; MalformedError with the first diagnostic for other text."""
        with self.context:
            try:
                return self.ir.Module.parse(text)
            except self.ir.MLIRError as error:
                if not error.error_diagnostics:
                    raise MalformedError(str(error)) from None
                first = error.error_diagnostics[0]
                raise MalformedError(first.message, *place_of(first.location)) from None

    def evaluated(self, module: Any, inputs: list[Array]) -> list[Array]:
        """The results of `main`, by the reference interpreter of StableHLO."""
        with self.context:
            get = self.ir.DenseElementsAttr.get
            arguments = [
                get(np.asarray(a, order="C"), signless=a.dtype.kind != "u") for a in inputs
            ]
            return [np.array(r) for r in self.stablehlo.eval_module(module, arguments)]

    def elements(self, attribute: Any, dtype: DType, shape: tuple[int, ...]) -> Array:
        """The elements of a constant. Those of narrow floats have no form in Python but as bits."""
        if not isinstance(attribute, self.ir.DenseElementsAttr):
            raise UnsupportedError("its elements are not in the text")
        if not dtype.is_float or dtype.itemsize >= 4:
            return np.array(attribute).reshape(shape)
        bits = f"tensor<{''.join(f'{n}x' for n in shape)}ui{dtype.bits}>"
        module = self.parsed(
            f"func.func @main() -> {bits} {{\n"
            f"  %0 = stablehlo.constant {attribute}\n"
            f"  %1 = stablehlo.bitcast_convert %0 : ({attribute.type}) -> {bits}\n"
            f"  return %1 : {bits}\n}}"
        )
        return from_bits(self.evaluated(module, [])[0].reshape(shape), dtype)


@cache
def library() -> Library:
    """The library; UnsupportedError where jaxlib is missing, UnfitError for another jaxlib."""
    imported(EXTRA, "jax", "jaxlib")
    with fitting(DISTRIBUTION, TESTED):
        mlir, ir, stablehlo = map(import_module, PARTS)
        context = mlir.make_ir_context()
        stablehlo.register_interpreter_dialect(context)
        return Library(ir, stablehlo, context)


def place_of(location: Any) -> tuple[int, int]:
    """The line and column of a location in the text; 0 without one."""
    found = PLACE.search(str(location))
    return (int(found[1]), int(found[2])) if found else (0, 0)
