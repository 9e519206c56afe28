"""The table of rules: what each op of StableHLO is on Tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uop.conformance.adapters.builder import identity_of
from uop.conformance.adapters.stablehlo.flat import NAMES
from uop.conformance.adapters.stablehlo.library import Library
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.args import BinaryArg, ConstArg
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op
from uop.spec.uop import UOp

DTYPES: dict[str, DType] = {name: d for d, name in NAMES.items() if d is not dtypes.index}
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


def filled(value: float, like: Tensor) -> Tensor:
    """A ()-shaped constant of the dtype of a Tensor."""
    return Tensor(value, like.dtype)


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
