"""Which ops of ONNX take which dtypes, by their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from uop.conformance.adapters.onnx.dtypes import ELEMENTS
from uop.conformance.adapters.onnx.package import onnx
from uop.spec.dtype import DType

Takes = Mapping[str, frozenset[DType]]
"""By op of ONNX the dtypes of its operands."""
NAMES = (
    *("Add", "Sub", "Mul", "Div", "Mod", "Neg", "Reciprocal", "Max", "Min", "Pow", "Sqrt", "Sin"),
    *("Log", "Ceil", "Floor", "And", "Or", "Xor", "Not", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
    *("BitShift", "Less", "Greater", "Equal", "GreaterOrEqual", "LessOrEqual", "Where", "Cast"),
    *("BitCast", "Expand", "Reshape", "Transpose", "Slice", "Pad", "Concat", "Gather"),
    *("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "Identity"),
)
"""The ops of ONNX that a builder uses."""
KINDS = {f"tensor({name.lower()})": dtype for name, dtype in ELEMENTS.items()}


@cache
def of_schemas(opset: int) -> Takes:
    """The dtypes of each op in an opset; an op that it lacks takes none."""
    return {name: _of(name, opset) for name in NAMES}


def schema_of(name: str, opset: int) -> Any | None:
    """The schema of an op of ONNX; None if the opset lacks it."""
    defs = onnx().defs
    try:
        return defs.get_schema(name, opset, "")
    except defs.SchemaError:
        return None


def operand(schema: Any) -> Any:
    """The operand whose dtype is that of the op: a condition is none."""
    return next(i for i in schema.inputs if i.type_str != "B")


def _of(name: str, opset: int) -> frozenset[DType]:
    if (schema := schema_of(name, opset)) is None:
        return frozenset()
    allowed = operand(schema).types
    return frozenset(KINDS[text] for text in allowed if text in KINDS)
