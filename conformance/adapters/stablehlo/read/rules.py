"""Reads a module by the table of rules: what each op of StableHLO is on Tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uop.conformance.adapters.builder import identity_of
from uop.conformance.adapters.stablehlo.flat import NAMES
from uop.conformance.adapters.stablehlo.library import Library, library, place_of
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.args import BinaryArg, ConstArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

DTYPES: dict[str, DType] = {name: d for d, name in NAMES.items() if d is not dtypes.index}
RETURNS = ("func.return", "stablehlo.return")
CALLED = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""By op that calls a function the attribute that names it."""
Run = Callable[[Any, Sequence[Tensor]], list[Tensor]]
"""Runs a block on arguments."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An op of a module on Tensors."""

    op: Any
    """The operation, as MLIR's bindings have it."""
    inputs: Sequence[Tensor]
    library: Library
    run: Run

    @property
    def dtype(self) -> DType:
        """The dtype of the first result."""
        return type_of(self.op.results[0].type, self.library)[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return type_of(self.op.results[0].type, self.library)[1]

    def has(self, name: str) -> bool:
        return name in self.op.attributes

    def ints(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """An attribute that is a list of integers."""
        return [int(n) for n in self.op.attributes[name]] if self.has(name) else [*default]

    def number(self, name: str, default: int = 0) -> int:
        return int(self.op.attributes[name]) if self.has(name) else default

    def pairs(self, name: str, rank: int) -> list[tuple[int, int]]:
        """An attribute that is a matrix of two columns, such as a padding; zeros without it."""
        if not self.has(name):
            return [(0, 0)] * rank
        matrix = np.array(self.op.attributes[name]).reshape(rank, 2)
        return [(int(low), int(high)) for low, high in matrix]

    def fold(self) -> Op:
        """The op of a body that folds two elements; UnsupportedError for any other body."""
        if len(self.inputs) != 2:
            raise UnsupportedError(f"expected one operand and its init, found {len(self.inputs)}")
        block = self.op.regions[0].blocks[0]
        first, *rest = (o.operation for o in block.operations)
        name = first.name.removeprefix("stablehlo.")
        is_plain = {*first.operands} == {*block.arguments} and len(rest) == 1
        table = FOLDS | (LOGICAL if self.dtype is dtypes.bool else {})
        if not is_plain or len(first.operands) != 2 or name not in table:
            names = ", ".join(o.operation.name for o in block.operations)
            raise UnsupportedError(f"expected a body of one of {', '.join(table)}; found {names}")
        return table[name]


FOLDS = {"add": Op.ADD, "multiply": Op.MUL, "maximum": Op.MAX, "minimum": Op.MIN}
LOGICAL = {"and": Op.MUL, "or": Op.ADD}

Rule = Callable[[Call], Tensor | Sequence[Tensor]]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enter a function as the rule of these ops."""

    def enter(apply: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, apply))
        return apply

    return enter


def type_of(kind: Any, library: Library) -> tuple[DType, tuple[int, ...]]:
    """The dtype and shape of a type; UnsupportedError for one that is no tensor of fixed sizes."""
    try:
        tensor = library.ir.RankedTensorType(kind)
    except ValueError:
        raise UnsupportedError(f"expected a tensor, found {kind}") from None
    element = str(tensor.element_type)
    if element not in DTYPES:
        raise UnsupportedError(f"{kind}: no dtype is {element}")
    if not tensor.has_static_shape:
        raise UnsupportedError(f"{kind} has a dynamic dimension: expected numbers")
    return DTYPES[element], tuple(tensor.shape)


def constant(array: Array, dtype: DType) -> Tensor:
    """An array as a graph by its bits: a CONST where all elements are equal, else a BINARY."""
    bits = to_bits(np.ascontiguousarray(array).reshape(-1))
    if not bits.size or (bits == bits[0]).all():
        one = UOp(Op.CONST, arg=ConstArg(int(bits[0]) if bits.size else 0, dtype))
        return full(Tensor(one), array.shape)
    data = Tensor(
        UOp(Op.BINARY, arg=BinaryArg(bits.astype(bits.dtype.newbyteorder("<")).tobytes()))
    )
    values = data != 0 if dtype is dtypes.bool else data.bitcast(dtype)
    return values.reshape(array.shape)


def full(one: Tensor, shape: Sequence[int]) -> Tensor:
    """A ()-shaped Tensor, repeated."""
    return one.expand(*shape) if shape else one


def positions(n: int, dtype: DType = dtypes.int64) -> Tensor:
    """0, 1, ..., n-1."""
    return constant(np.arange(n), dtypes.int64).cast(dtype)


def taken(x: Tensor, axis: int, index: Tensor) -> Tensor:
    """The elements at an index of shape (k,) along an axis, which becomes k."""
    return x[(*[slice(None)] * axis, index)]


def combined(op: Op, folded: Tensor, init: Tensor) -> Tensor:
    """A fold that starts with `init`, from one that starts with the identity."""
    same = int(to_bits(identity_of(op, init.dtype)))
    if init.uop.op is Op.CONST and init.uop.arg == ConstArg(same, init.dtype):
        return folded
    return Tensor.of(op, init, folded)


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
