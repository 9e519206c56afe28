"""Reads a module: `from_stablehlo` walks the ops of `main` and of the functions that it calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uop.conformance.adapters.stablehlo.library import Library, library, place_of
from uop.conformance.adapters.stablehlo.read.rules import RULES, Call, type_of
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

RETURNS = ("func.return", "stablehlo.return")
CALLED = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""By op that calls a function the attribute that names it."""


def from_stablehlo(text: str) -> UOp:
    """The text of a StableHLO module as a tensor program: argument k of `main` is the PARAM of slot
    k, and the root its result, or a TUPLE of several.

    MalformedError, with line and column, for text that is no valid module; UnsupportedError, with
    the op and its place, for a module without an image: dynamic dimensions, loops, sorting, complex
    numbers, random numbers, communication.
    """
    reader = _ModuleReader(library())
    module = reader.library.parsed(text)
    with reader.library.context:
        functions = [o.operation for o in module.body.operations]
        named = {o.attributes["sym_name"].value: o for o in functions if o.name == "func.func"}
        reader.functions.update(named)
        if "main" not in named:
            raise UnsupportedError(f"expected a function main, found {', '.join(named) or 'none'}")
        results = reader.main()
    if len(results) == 1:
        return results[0].uop
    return UOp(Op.TUPLE, *(t.uop for t in results))


class _PlacedError(UnsupportedError):
    """An error that names an op and its place."""


class _ModuleReader:
    """The values of the functions that are being read, by their values in MLIR."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.functions: dict[str, Any] = {}
        self._calling: list[str] = []
        self._values: dict[Any, Tensor] = {}

    def main(self) -> list[Tensor]:
        """The results of `main` on PARAMs."""
        (block,) = self.functions["main"].regions[0].blocks
        inputs = []
        for slot, argument in enumerate(block.arguments):
            try:
                dtype, shape = type_of(argument.type, self.library)
            except UnsupportedError as error:
                raise UnsupportedError(f"argument {slot} of main: {error}") from None
            inputs.append(Tensor(param(slot, shape, dtype)))
        return self.block(block, inputs)

    def _called(self, name: str, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The results of another function."""
        blocks = [*self.functions[name].regions[0].blocks]
        if not blocks:
            raise UnsupportedError(f"{name} has no body")
        if name in self._calling:
            raise UnsupportedError(f"{name} calls itself")
        self._calling.append(name)
        results = self.block(blocks[0], inputs)
        self._calling.pop()
        return results

    def block(self, block: Any, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The results of a block on arguments."""
        self._values.update(zip(block.arguments, arguments, strict=True))
        for view in block.operations:
            op = view.operation
            if op.name in RETURNS:
                return [self._values[v] for v in op.operands]
            try:
                results = self._results(op)
            except _PlacedError:
                raise
            except UnsupportedError as error:
                line, column = place_of(op.location)
                raise _PlacedError(f"{line}:{column}: {op.name}: {error}") from None
            self._values.update(zip(op.results, results, strict=True))
        return []

    def _results(self, op: Any) -> Sequence[Tensor]:
        inputs = [self._values[v] for v in op.operands]
        if op.name in CALLED:
            return self._called(op.attributes[CALLED[op.name]].value, inputs)
        name = op.name.removeprefix("stablehlo.")
        if name not in RULES:
            raise UnsupportedError("it has no image")
        results = RULES[name](Call(op, inputs, self.library, self.block))
        return [results] if isinstance(results, Tensor) else results
