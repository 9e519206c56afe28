"""Tensor programs as ONNX models: `to_onnx`, the graph of a model and the builder of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from uop.conformance.adapters.builder import GraphBuilder
from uop.conformance.adapters.onnx.library import Takes, element_of, of_schemas, onnx
from uop.conformance.adapters.walk import build, values_of
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import INTS, DType, Kind, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Shape
from uop.spec.uop import UOp

OPSET = 22
"""Read by all runtimes that were tried; BITCAST needs 26, which has BitCast."""
ARITHMETIC: Mapping[Op, str] = {
    **{Op.ADD: "Add", Op.SUB: "Sub", Op.MUL: "Mul", Op.DIV: "Div", Op.NEG: "Neg"},
    **{Op.MAX: "Max", Op.MIN: "Min", Op.SQRT: "Sqrt", Op.SIN: "Sin", Op.POW: "Pow"},
    **{Op.RECIP: "Reciprocal", Op.CDIV: "Div", Op.CMOD: "Mod", Op.XOR: "BitwiseXor"},
    **{Op.OR: "BitwiseOr", Op.AND: "BitwiseAnd"},
}
COMPARISONS: Mapping[Op, str] = {
    **{Op.CMPLT: "Less", Op.CMPGT: "Greater", Op.CMPEQ: "Equal"},
    **{Op.CMPGE: "GreaterOrEqual", Op.CMPLE: "LessOrEqual"},
}
ON_BOOL: Mapping[Op, str] = {
    **{Op.ADD: "Or", Op.MUL: "And", Op.MAX: "Or", Op.MIN: "And", Op.NOT: "Not"},
    **{Op.OR: "Or", Op.AND: "And", Op.XOR: "Xor", Op.CMPNE: "Xor"},
}
FOLDS: Mapping[Op, str] = {
    **{Op.ADD: "ReduceSum", Op.MUL: "ReduceProd", Op.MAX: "ReduceMax", Op.MIN: "ReduceMin"}
}
COMPOSES = {
    Op.CMPNE: frozenset({Op.CMPEQ, Op.NOT}),
    Op.EXP2: frozenset({Op.POW}),
    Op.LOG2: frozenset({Op.DIV}),
    Op.TRUNC: frozenset({Op.CMPLT, Op.WHERE}),
}
LAST, BEFORE_FIRST = -1, np.iinfo(np.int64).min


def to_onnx(root: UOp, opset: int = OPSET) -> Any:
    """A tensor program as an ONNX ModelProto of an opset.

    The inputs are named in0, in1 and so on by slot, the outputs out0, out1. An op on a dtype that
    ONNX does not have for it is computed in another one and cast back where that is exact. EXP2 is
    a power of 2, LOG2 a logarithm over that of 2, TRUNC a choice of Floor and Ceil; integer
    divisions are guarded. UnsupportedError for what is no tensor program on one device with sizes
    that are numbers, and for what ONNX lacks.
    """
    return model([written(root, OnnxBuilder(opset))])


def written(root: UOp, builder: OnnxBuilder) -> Written:
    """A tensor program as the graph of a new builder; UnsupportedError as for `to_onnx`."""
    return builder.graph.written(build(values_of(root), builder))


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of a graph: its name, dtype and shape."""

    name: str
    dtype: DType
    shape: Shape


class Graph:
    """Nodes in the order in which they run; a constant is made once. An index is an int64."""

    def __init__(self, opset: int, prefix: str = "") -> None:
        """`prefix` starts the names of its values."""
        self.opset, self.prefix = opset, prefix
        self.inputs: dict[int, Tensor] = {}
        self._nodes: list[Any] = []
        self._constants: dict[tuple[bytes, DType, Shape], Tensor] = {}

    def input(self, slot: int, dtype: DType, shape: Shape) -> Tensor:
        self.inputs[slot] = Tensor(f"{self.prefix}in{slot}", held(dtype), tuple(shape))
        return self.inputs[slot]

    def constant(self, value: Array, dtype: DType) -> Tensor:
        key = value.tobytes(), held(dtype), value.shape
        name = f"{self.prefix}c{len(self._constants)}"
        return self._constants.setdefault(key, Tensor(name, held(dtype), value.shape))

    def ints(self, values: Iterable[int]) -> Tensor:
        """Sizes, axes or bounds."""
        return self.constant(np.array([*values], np.int64), dtypes.int64)

    def node(
        self, name: str, inputs: Sequence[Tensor], dtype: DType, shape: Shape, **has: Any
    ) -> Tensor:
        """Append a node; its result."""
        made = Tensor(f"{self.prefix}t{len(self._nodes)}", dtype, tuple(shape))
        names = [x.name for x in inputs]
        self._nodes.append(onnx().helper.make_node(name, names, [made.name], **has))
        return made

    def written(self, outputs: Sequence[Tensor]) -> Written:
        """The graph, with these values as outputs out0, out1 and so on, and the inputs used."""
        named = []
        for k, x in enumerate(outputs):
            named.append(Tensor(f"{self.prefix}out{k}", x.dtype, x.shape))
            self._nodes.append(onnx().helper.make_node("Identity", [x.name], [named[k].name]))
        used = {name for node in self._nodes for name in node.input}
        held = [
            onnx().TensorProto(
                name=x.name, data_type=element_of(x.dtype), dims=x.shape, raw_data=data
            )
            for (data, *_), x in self._constants.items()
        ]
        inputs = {slot: x for slot, x in sorted(self.inputs.items()) if x.name in used}
        return Written(self.opset, inputs, tuple(self._nodes), tuple(held), tuple(named))


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A graph that is finished: its inputs by slot, its nodes, constants and outputs."""

    opset: int
    inputs: Mapping[int, Tensor]
    nodes: tuple[Any, ...]
    constants: tuple[Any, ...]
    outputs: tuple[Tensor, ...]


def model(parts: Sequence[Written]) -> Any:
    """The model of graphs of one opset, whose names differ by their prefix."""
    helper = onnx().helper
    graph = helper.make_graph(
        [node for part in parts for node in part.nodes],
        "program",
        [_info(x) for part in parts for x in part.inputs.values()],
        [_info(y) for part in parts for y in part.outputs],
        [held for part in parts for held in part.constants],
    )
    opsets = [helper.make_opsetid("", parts[0].opset)]
    version = helper.find_min_ir_version_for(opsets)
    return helper.make_model(graph, opset_imports=opsets, ir_version=version)


def held(dtype: DType) -> DType:
    """The dtype of a value in a model."""
    return dtypes.int64 if dtype is dtypes.index else dtype


def _info(x: Tensor) -> Any:
    return onnx().helper.make_tensor_value_info(x.name, element_of(x.dtype), x.shape)


class OnnxBuilder(GraphBuilder[Tensor]):
    """Appends nodes to a graph."""

    partial = frozenset({Op.CDIV, Op.CMOD})
    ops = frozenset({*ARITHMETIC, *COMPARISONS, *COMPOSES, *ON_BOOL}) - partial
    ops |= {Op.CAST, Op.WHERE, Op.SHL, Op.SHR}
    composes = COMPOSES

    def __init__(self, opset: int = OPSET, takes: Takes | None = None, prefix: str = "") -> None:
        """`takes` are the ops of ONNX with the dtypes that a runtime has; without, the schema's."""
        self.takes = of_schemas(opset) if takes is None else takes
        self.graph = Graph(opset, prefix)

    def param(self, slot: int, dtype: DType, shape: Shape) -> Tensor:
        return self.graph.input(slot, dtype, shape)

    def const(self, value: Array, dtype: DType) -> Tensor:
        return self.graph.constant(value, dtype)

    def broadcast(self, x: Tensor, shape: Shape) -> Tensor:
        return self._moved("Expand", [x], shape, self.graph.ints(shape))

    def reshape(self, x: Tensor, shape: Shape) -> Tensor:
        if x.shape == tuple(shape):
            return x
        return self._moved("Reshape", [x], shape, self.graph.ints(shape), allowzero=1)

    def permute(self, x: Tensor, order: Sequence[int]) -> Tensor:
        if list(order) == list(range(len(order))):
            return x
        shape = tuple(x.shape[k] for k in order)
        return self._moved("Transpose", [x], shape, perm=list(order))

    def flip(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        n = len(axes)
        words = [LAST] * n, [BEFORE_FIRST] * n, axes, [-1] * n
        return self._moved("Slice", [x], x.shape, *map(self.graph.ints, words))

    def pad(self, x: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
        shape = tuple(b + n + a for b, n, a in zip(before, x.shape, after, strict=True))
        return self._moved("Pad", [x], shape, self.graph.ints([*before, *after]))

    def shrink(self, x: Tensor, start: Sequence[int], stop: Sequence[int]) -> Tensor:
        shape = tuple(b - a for a, b in zip(start, stop, strict=True))
        axes = [k for k, n in enumerate(shape) if n != x.shape[k]]
        words = [start[k] for k in axes], [stop[k] for k in axes], axes
        return self._moved("Slice", [x], shape, *map(self.graph.ints, words))

    def stack(self, xs: Sequence[Tensor]) -> Tensor:
        rows = [self.reshape(x, (1, *x.shape)) for x in xs]
        return self._moved("Concat", rows, (len(xs), *xs[0].shape), axis=0)

    def take(self, x: Tensor, axis: int, index: Tensor) -> Tensor:
        row = self.cast(index, dtypes.int64)
        shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
        return self._moved("Gather", [x], shape, row, axis=axis)

    def reduce(self, op: Op, x: Tensor, axes: Sequence[int]) -> Tensor:
        shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
        if x.dtype is dtypes.bool:
            op = {Op.ADD: Op.MAX, Op.MUL: Op.MIN}.get(op, op)
        by = self._carrier(FOLDS[op], x.dtype, _exact(op, x.dtype))
        inputs = self.cast(x, by), self.graph.ints(axes)
        return self.cast(self.graph.node(FOLDS[op], inputs, by, shape, keepdims=1), x.dtype)

    def bitcast(self, x: Tensor, dtype: DType, shape: Shape) -> Tensor:
        """An element of other size is split or joined by shifts; a bool is converted."""
        bits = self._bitcast(x, unsigned(x.dtype))
        old, new = bits.dtype, unsigned(dtype)
        if old.bits > new.bits:
            bits = self.reshape(self._split(bits, new), shape)
        elif old.bits < new.bits:
            bits = self._joined(self.reshape(bits, (*shape, new.bits // old.bits)), new)
        return self._bitcast(bits, dtype)

    def elementwise(self, op: Op, dtype: DType, xs: Sequence[Tensor]) -> Tensor:
        x = xs[0]
        if op is Op.CAST:
            return self.cast(x, dtype)
        if op is Op.WHERE:
            return self._moved("Where", xs[1:], xs[1].shape, condition=xs[:1])
        if x.dtype is dtypes.bool and op in ON_BOOL:
            return self.graph.node(ON_BOOL[op], xs, dtypes.bool, x.shape)
        if op is Op.CMPNE:
            same = self.elementwise(Op.CMPEQ, dtypes.bool, xs)
            return self.graph.node("Not", [same], dtypes.bool, x.shape)
        if DECLARATIONS[op].is_shift:
            return self._shifted(op, x, self.cast(xs[1], x.dtype))
        if op in (Op.TRUNC, Op.EXP2, Op.LOG2):
            return self.composed(op, x)
        name = COMPARISONS.get(op) or ARITHMETIC[op]
        by = self._carrier(name, x.dtype, _exact(op, x.dtype))
        gives = dtypes.bool if op in COMPARISONS else by
        extra = {"fmod": 1} if op is Op.CMOD else {}
        made = self.graph.node(name, [self.cast(s, by) for s in xs], gives, x.shape, **extra)
        return made if op in COMPARISONS else self.cast(made, x.dtype)

    def function(self, name: str, x: Tensor) -> Tensor:
        name = name.capitalize()
        by = self._carrier(name, x.dtype, wider(x.dtype))
        return self.cast(self.graph.node(name, [self.cast(x, by)], by, x.shape), x.dtype)

    def _shifted(self, op: Op, x: Tensor, count: Tensor) -> Tensor:
        """BitShift is for unsigned dtypes: a negative value is shifted right as its complement."""
        if op is Op.SHR and x.dtype.is_signed:
            below = self.elementwise(Op.CMPLT, dtypes.bool, [x, self.full(0, x)])
            sign = self.elementwise(Op.WHERE, x.dtype, [below, self.full(-1, x), self.full(0, x)])
            other = self.cast(self.elementwise(Op.XOR, x.dtype, [x, sign]), unsigned(x.dtype))
            moved = self.cast(self._shifted(op, other, self.cast(count, other.dtype)), x.dtype)
            return self.elementwise(Op.XOR, x.dtype, [moved, sign])
        ways = [d for d in _exact(op, x.dtype) if not d.is_signed]
        by = self._carrier("BitShift", x.dtype, ways)
        inputs = self.cast(x, by), self.cast(count, by)
        direction = "LEFT" if op is Op.SHL else "RIGHT"
        made = self.graph.node("BitShift", inputs, by, x.shape, direction=direction)
        return self.cast(made, x.dtype)

    def _split(self, x: Tensor, part: DType) -> Tensor:
        """The parts of unsigned integers, the lowest first, along a new last axis."""
        rows = []
        for k in range(x.dtype.bits // part.bits):
            moved = self._shifted(Op.SHR, x, self.full(k * part.bits, x)) if k else x
            rows.append(self.reshape(self.cast(moved, part), (*x.shape, 1)))
        shape = (*x.shape, len(rows))
        return self._moved("Concat", rows, shape, axis=len(x.shape))

    def _joined(self, x: Tensor, whole: DType) -> Tensor:
        """The inverse of `_split`."""
        *outer, count = x.shape
        start, total = [0] * len(outer), self.full(0, Tensor("", whole, tuple(outer)))
        for k in range(count):
            part = self.shrink(x, [*start, k], [*outer, k + 1])
            part = self.cast(self.reshape(part, tuple(outer)), whole)
            if k:
                part = self._shifted(Op.SHL, part, self.full(k * x.dtype.bits, part))
            total = self.elementwise(Op.OR, whole, [total, part])
        return total

    def cast(self, x: Tensor, dtype: DType) -> Tensor:
        """CAST; a float that does not fit fp8 becomes NaN or an infinity."""
        if x.dtype is dtype:
            return x
        self._need("Cast", x.dtype, dtype)
        narrow = {"saturate": 0} if dtype.bits == 8 and dtype.is_float else {}
        return self.graph.node("Cast", [x], dtype, x.shape, to=element_of(dtype), **narrow)

    def _bitcast(self, x: Tensor, dtype: DType) -> Tensor:
        """Another dtype of one size; a CAST between integers wraps, and a bool is a number."""
        if not x.dtype.is_float and not dtype.is_float:
            return self.cast(x, dtype)
        self._need("BitCast", x.dtype, dtype)
        return self.graph.node("BitCast", [x], dtype, x.shape, to=element_of(dtype))

    def _moved(
        self,
        name: str,
        xs: Sequence[Tensor],
        shape: Shape,
        *rest: Tensor,
        condition: Sequence[Tensor] = (),
        **has: Any,
    ) -> Tensor:
        """A node that copies elements, by their bits where ONNX does not copy them as they are."""
        dtype, bits = xs[0].dtype, unsigned(xs[0].dtype)
        by = self._carrier(name, dtype, wrapping(bits))
        if by is dtype:
            return self.graph.node(name, [*condition, *xs, *rest], dtype, shape, **has)
        carried = [self.cast(self._bitcast(x, bits), by) for x in xs]
        made = self.graph.node(name, [*condition, *carried, *rest], by, shape, **has)
        return self._bitcast(self.cast(made, bits), dtype)

    def _carrier(self, name: str, dtype: DType, ways: Sequence[DType]) -> DType:
        """The dtype in which an op of ONNX is computed."""
        taken = self.takes.get(name, frozenset())
        for way in (dtype, *ways):
            if way in taken:
                return way
        raise UnsupportedError(f"there is no {name} of {dtype.name}")

    def _need(self, name: str, *kinds: DType) -> None:
        for dtype in kinds:
            self._carrier(name, dtype, ())


def _exact(op: Op, dtype: DType) -> Sequence[DType]:
    """The dtypes in which an op is computed exactly, or rounded once more without harm."""
    if dtype.is_float:
        return wider(dtype)
    # The low bits of these depend on the low bits of the operands alone.
    if op in (Op.ADD, Op.SUB, Op.MUL, Op.NEG, Op.AND, Op.OR, Op.XOR, Op.SHL):
        return wrapping(dtype)
    return containing(dtype)


@cache
def wrapping(dtype: DType) -> tuple[DType, ...]:
    """The integers that hold the low bits of an integer: a CAST there and back wraps."""
    fits = [d for d in INTS if d.bits >= dtype.bits]
    return tuple(sorted(fits, key=lambda d: (d.bits, d.is_signed is not dtype.is_signed)))


@cache
def containing(dtype: DType) -> tuple[DType, ...]:
    """The integers that hold every value of an integer or bool."""
    if dtype is dtypes.bool:
        return tuple(sorted(INTS, key=lambda d: (d.bits, d.is_signed)))
    same = [d for d in INTS if d.is_signed is dtype.is_signed and d.bits > dtype.bits]
    more = [d for d in INTS if d.is_signed and not dtype.is_signed and d.bits > dtype.bits]
    return tuple(sorted([*same, *more], key=lambda d: d.bits))


def wider(dtype: DType) -> tuple[DType, ...]:
    """float32 for a narrow float: it has more than twice the precision, so that a result which is
    rounded there and again is the one that is rounded once.
    """
    return (dtypes.float32,) if dtype.is_float and dtype.bits < 32 else ()


def unsigned(dtype: DType) -> DType:
    """The unsigned integer of the size of a dtype; a bool is a byte."""
    bits = 8 * dtype.itemsize
    return next(d for d in INTS if d.kind is Kind.UINT and d.bits == bits)
