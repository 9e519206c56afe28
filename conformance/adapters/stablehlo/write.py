"""Tensor programs as StableHLO: `to_stablehlo`, and the builder of the flat IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from uop.conformance.adapters.builder import GraphBuilder, identity_of
from uop.conformance.adapters.stablehlo.flat import (
    Flat,
    FlatOp,
    FlatTensor,
    bounds,
    literal,
    numbers,
)
from uop.conformance.adapters.walk import build, values_of
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.args import Device
from uop.spec.dtype import DType, dtypes
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp

SAME: Mapping[Op, str] = {
    **{Op.ADD: "add", Op.SUB: "subtract", Op.MUL: "multiply", Op.DIV: "divide", Op.NEG: "negate"},
    **{Op.MAX: "maximum", Op.MIN: "minimum", Op.XOR: "xor", Op.OR: "or", Op.AND: "and"},
    **{Op.NOT: "not", Op.SHL: "shift_left", Op.WHERE: "select", Op.SIN: "sine", Op.SQRT: "sqrt"},
    **{Op.POW: "power", Op.CAST: "convert", Op.CDIV: "divide", Op.CMOD: "remainder"},
}
"""The ops of StableHLO with the same operands."""
DIRECTIONS: Mapping[Op, str] = {
    **{Op.CMPLT: "LT", Op.CMPNE: "NE", Op.CMPEQ: "EQ"},
    **{Op.CMPGT: "GT", Op.CMPGE: "GE", Op.CMPLE: "LE"},
}
FOLDS: Mapping[Op, str] = {op: SAME[op] for op in (Op.ADD, Op.MUL, Op.MAX, Op.MIN)}


def to_stablehlo(root: UOp) -> str:
    """A tensor program as the text of a StableHLO module.

    The inputs of `main` are those of the program by slot, the results its outputs. EXP2 is a power
    of 2, LOG2 a logarithm over that of 2, TRUNC a choice of floor and ceil, integer divisions are
    guarded. UnsupportedError for what is no tensor program on one device with sizes that are
    numbers.
    """
    return to_flat(root).mlir()


def to_flat(root: UOp) -> Flat:
    """A tensor program as flat ops; UnsupportedError as for `to_stablehlo`."""
    values = values_of(root)
    builder = FlatBuilder(next((u.device for u in values if u.device is not None), None))
    return builder.program(build(values, builder))


class FlatBuilder(GraphBuilder[FlatTensor]):
    """Appends flat ops; a constant is made once."""

    partial = frozenset({Op.CDIV, Op.CMOD})
    ops = frozenset({*SAME, *DIRECTIONS, Op.SHR, Op.TRUNC, Op.EXP2, Op.LOG2}) - partial

    def __init__(self, device: Device = None) -> None:
        self.inputs: dict[int, FlatTensor] = {}
        self.made: list[FlatOp] = []
        self.device = device
        self._constants: dict[tuple[str, DType, Shape], FlatTensor] = {}

    def program(self, outputs: Sequence[FlatTensor]) -> Flat:
        """The ops so far, with the inputs by slot."""
        inputs = tuple(self.inputs[slot] for slot in sorted(self.inputs))
        return Flat(inputs, tuple(self.made), tuple(outputs))

    def add(
        self, name: str, inputs: Sequence[FlatTensor], dtype: DType, shape: Shape, **has: str
    ) -> FlatTensor:
        """Append an op; its result."""
        output = self._new(dtype, shape)
        self.made.append(FlatOp(name, tuple(inputs), output, tuple(has.items())))
        return output

    def _new(self, dtype: DType, shape: Shape) -> FlatTensor:
        return FlatTensor(len(self.inputs) + len(self.made), dtype, tuple(shape), self.device)

    def param(self, slot: int, dtype: DType, shape: Shape) -> FlatTensor:
        self.inputs[slot] = self._new(dtype, shape)
        return self.inputs[slot]

    def const(self, value: Array, dtype: DType) -> FlatTensor:
        text = literal(value, dtype)
        key = text, dtype, value.shape
        if key not in self._constants:
            self._constants[key] = self.add("constant", (), dtype, value.shape, data=text)
        return self._constants[key]

    def broadcast(self, x: FlatTensor, shape: Shape) -> FlatTensor:
        dims = numbers(range(len(shape) - len(x.shape), len(shape)))
        return self.add("broadcast_in_dim", [x], x.dtype, shape, dims=dims)

    def reshape(self, x: FlatTensor, shape: Shape) -> FlatTensor:
        return x if x.shape == tuple(shape) else self.add("reshape", [x], x.dtype, shape)

    def permute(self, x: FlatTensor, order: Sequence[int]) -> FlatTensor:
        shape = tuple(x.shape[k] for k in order)
        return self.add("transpose", [x], x.dtype, shape, dims=numbers(order))

    def flip(self, x: FlatTensor, axes: Sequence[int]) -> FlatTensor:
        return self.add("reverse", [x], x.dtype, x.shape, dims=numbers(axes))

    def pad(self, x: FlatTensor, before: Sequence[int], after: Sequence[int]) -> FlatTensor:
        zero = self.const(np.zeros((), np_dtype(x.dtype)), x.dtype)
        shape = tuple(b + n + a for b, n, a in zip(before, x.shape, after, strict=True))
        inner = numbers([0] * len(shape))
        low, high = numbers(before), numbers(after)
        return self.add("pad", [x, zero], x.dtype, shape, low=low, high=high, interior=inner)

    def shrink(self, x: FlatTensor, start: Sequence[int], stop: Sequence[int]) -> FlatTensor:
        shape = tuple(b - a for a, b in zip(start, stop, strict=True))
        return self.add("slice", [x], x.dtype, shape, bounds=bounds(start, stop))

    def reduce(self, op: Op, x: FlatTensor, axes: Sequence[int]) -> FlatTensor:
        init = self.const(identity_of(op, x.dtype), x.dtype)
        left = tuple(n for k, n in enumerate(x.shape) if k not in axes)
        kept = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
        has = {"body": FOLDS[op], "dims": numbers(axes)}
        return self.reshape(self.add("reduce", [x, init], x.dtype, left, **has), kept)

    def stack(self, xs: Sequence[FlatTensor]) -> FlatTensor:
        rows = [self.reshape(x, (1, *x.shape)) for x in xs]
        shape = (len(xs), *xs[0].shape)
        return self.add("concatenate", rows, xs[0].dtype, shape, dim="0")

    def bitcast(self, x: FlatTensor, dtype: DType, shape: Shape) -> FlatTensor:
        """An element of other size gets or loses an axis; a bool has a bit, so it is converted."""
        if x.dtype is dtype:
            return x
        if x.dtype is dtypes.bool:
            return self.bitcast(self.cast(x, dtypes.uint8), dtype, shape)
        if dtype is dtypes.bool:
            bytes_ = x if x.dtype is dtypes.uint8 else self.bitcast(x, dtypes.uint8, shape)
            return self.cast(bytes_, dtype)
        old, new = x.dtype.itemsize, dtype.itemsize
        if old > new:
            split = self.add("bitcast_convert", [x], dtype, (*x.shape, old // new))
            return self.reshape(split, shape)
        if old < new:
            x = self.reshape(x, (*shape, new // old))
        return self.add("bitcast_convert", [x], dtype, shape)

    def elementwise(self, op: Op, dtype: DType, xs: Sequence[FlatTensor]) -> FlatTensor:
        x = xs[0]
        if op in DIRECTIONS:
            kind = "FLOAT" if x.dtype.is_float else "SIGNED" if x.dtype.is_signed else "UNSIGNED"
            has = {"direction": DIRECTIONS[op], "type": kind}
            return self.add("compare", xs, dtype, x.shape, **has)
        if DECLARATIONS[op].is_shift:
            xs = x, self.cast(xs[1], dtype)
        if op in SAME:
            return self.add(SAME[op], xs, dtype, x.shape)
        if op is Op.SHR:
            kind = "arithmetic" if dtype.is_signed else "logical"
            return self.add(f"shift_right_{kind}", xs, dtype, x.shape)
        return self.composed(op, x)

    def function(self, name: str, x: FlatTensor) -> FlatTensor:
        return self.add(name, [x], x.dtype, x.shape)

    def cast(self, x: FlatTensor, dtype: DType) -> FlatTensor:
        return x if x.dtype is dtype else self.add("convert", [x], dtype, x.shape)

    def take(self, x: FlatTensor, axis: int, index: FlatTensor) -> FlatTensor:
        """A gather of slices of size 1 along the axis."""
        kept = [k for k in range(len(x.shape)) if k != axis]
        numbering = (
            f"#stablehlo.gather<offset_dims = {numbers(kept)}, collapsed_slice_dims = [{axis}], "
            f"start_index_map = [{axis}], index_vector_dim = 1>"
        )
        sizes = [1 if k == axis else n for k, n in enumerate(x.shape)]
        has = {
            "dimension_numbers": numbering,
            "indices_are_sorted": "false",
            "slice_sizes": f"array<i64{':' * bool(sizes)} {', '.join(map(str, sizes))}>",
        }
        shape = tuple(index.shape[0] if k == axis else n for k, n in enumerate(x.shape))
        return self.add("gather", [x, index], x.dtype, shape, **has)
