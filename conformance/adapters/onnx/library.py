"""What is read of the package onnx: its modules, dtypes, tensors and schemas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from uop.conformance.adapters.backend import imported
from uop.interpreter.numeric.storage import STORED, Array
from uop.spec.dtype import INTS, DType, dtypes
from uop.spec.errors import MalformedError, UnsupportedError

ELEMENTS: dict[str, DType] = {
    **{d.name.upper(): d for d in (dtypes.bool, *INTS, dtypes.float16, dtypes.bfloat16)},
    "FLOAT": dtypes.float32,
    "DOUBLE": dtypes.float64,
    "FLOAT8E4M3FN": dtypes.fp8e4m3,
    "FLOAT8E5M2": dtypes.fp8e5m2,
}
"""The dtypes of uop by the names of ONNX's element types."""
TESTED = ("1.21", "1.22", "1.23")
"""The versions that the adapters were tested with."""
PARTS = ("checker", "defs", "external_data_helper", "helper", "numpy_helper")
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


def dtype_of(element: int) -> DType:
    """The dtype of an element type of ONNX; UnsupportedError for one that uop lacks."""
    names = onnx().TensorProto.DataType
    if element not in names.values():
        raise MalformedError(f"element type {element}: expected one of onnx.TensorProto.DataType")
    name = names.Name(element)
    if name not in ELEMENTS:
        raise UnsupportedError(f"element type {name}: uop has no such dtype")
    return ELEMENTS[name]


def element_of(dtype: DType) -> int:
    """The element type of ONNX of a dtype."""
    name = next(name for name, known in ELEMENTS.items() if known is dtype)
    value: int = onnx().TensorProto.DataType.Value(name)
    return value


def array_of(tensor: Any, folder: str = "") -> Array:
    """The contents of a TensorProto, also of one whose data lie in a file beside the model."""
    library = onnx()
    dtype_of(tensor.data_type)
    if library.external_data_helper.uses_external_data(tensor):
        # What is read would stay in the model of the user.
        tensor = library.TensorProto.FromString(tensor.SerializeToString())
    try:
        array: Array = library.numpy_helper.to_array(tensor, folder)
    except (OSError, ValueError, TypeError, library.checker.ValidationError) as error:
        raise MalformedError(f"tensor {tensor.name!r}: {error}") from None
    return array


def stored(array: Array) -> DType:
    """The dtype of an array; UnsupportedError for one that uop lacks."""
    if array.dtype not in STORED:
        raise UnsupportedError(f"an array of {array.dtype.name}: uop has no such dtype")
    return STORED[array.dtype]


@cache
def onnx() -> Any:
    """The package; UnsupportedError with the line that installs it."""
    package, *_ = imported("onnx", "onnx", *(f"onnx.{part}" for part in PARTS))
    return package


def decode_error() -> type[Exception]:
    """What the package raises for bytes that are no message."""
    (below,) = imported("onnx", "google.protobuf.message")
    error: type[Exception] = below.DecodeError
    return error


@cache
def of_schemas(opset: int) -> Takes:
    """The dtypes of each op in an opset; an op that it lacks takes none."""
    return {name: _of(name, opset) for name in NAMES}


def schema_of(name: str, opset: int, domain: str = "") -> Any | None:
    """The schema of an op of ONNX; None if the opset lacks it."""
    defs = onnx().defs
    try:
        return defs.get_schema(name, opset, domain)
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
