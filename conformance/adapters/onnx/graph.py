"""The graph of a model that is written: its inputs, constants and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uop.conformance.adapters.onnx.library import element_of, onnx
from uop.interpreter.numeric.storage import Array
from uop.spec.dtype import DType, dtypes
from uop.spec.registry import Shape


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
