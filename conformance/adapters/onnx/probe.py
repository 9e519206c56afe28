"""What a runtime of ONNX has: a model of one node for each op on each dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from uop.conformance.adapters.onnx.carriers import unsigned
from uop.conformance.adapters.onnx.dtypes import element_of
from uop.conformance.adapters.onnx.graph import Graph, Tensor, model
from uop.conformance.adapters.onnx.schemas import Takes, of_schemas, operand, schema_of
from uop.spec.dtype import DType, dtypes

SIZES: Mapping[str, Sequence[int]] = {
    **{"shape": [2], "axes": [0], "pads": [0, 1], "starts": [0], "ends": [1], "indices": [0]}
}
"""The operands that are sizes, axes or bounds, for a value of shape (2,)."""
ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "Transpose": {"perm": [0]},
    "Concat": {"axis": 0},
    "BitShift": {"direction": "LEFT"},
    "Mod": {"fmod": 1},
}
LONGER: Mapping[str, int] = {"Concat": 2, "Pad": 3}
SHORTER = frozenset({"Slice", "Gather", "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"})


def taken(opset: int, runs: Callable[[bytes], bool]) -> Takes:
    """The dtypes of each op that a runtime has; `runs` says whether it runs a model."""
    return {
        name: frozenset(d for d in kinds if runs(trial(name, d, opset)))
        for name, kinds in of_schemas(opset).items()
    }


def trial(name: str, dtype: DType, opset: int) -> bytes:
    """A model of one op on one dtype; CAST and BITCAST go to another dtype and back."""
    graph = Graph(opset)
    x = graph.input(0, dtype, (2,))
    if name in ("Cast", "BitCast"):
        other = dtypes.float32 if name == "Cast" else unsigned(dtype)
        there = graph.node(name, [x], other, (2,), to=element_of(other))
        made = graph.node(name, [there], dtype, (2,), to=element_of(dtype))
    else:
        schema = schema_of(name, opset)
        assert schema is not None
        inputs = [_operand(graph, i, x) for i in schema.inputs if _is_needed(i)]
        same = schema.outputs[0].type_str == operand(schema).type_str
        size = LONGER.get(name, 1 if name in SHORTER else 2)
        made = graph.node(
            name, inputs, dtype if same else dtypes.bool, (size,), **ATTRIBUTES.get(name, {})
        )
    text: bytes = model([graph.written([made])]).SerializeToString()
    return text


def _is_needed(formal: Any) -> bool:
    """Whether an op gets the operand: the axes of a Pad are not of its dtype, and optional."""
    return formal.option.name != "Optional" or (formal.name in SIZES and formal.type_str != "Tind")


def _operand(graph: Graph, formal: Any, x: Tensor) -> Tensor:
    if formal.name in SIZES:
        return graph.ints(SIZES[formal.name])
    if formal.type_str == "B":
        return graph.constant(np.array([True, False]), dtypes.bool)
    return x
