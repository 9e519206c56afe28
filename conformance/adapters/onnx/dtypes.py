"""The dtypes of ONNX and of uop, and the tensors of a model as numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from uop.conformance.adapters.onnx.package import onnx
from uop.interpreter.numeric.storage import STORED, Array
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import MalformedError, UnsupportedError

ELEMENTS = {
    "BOOL": dtypes.bool,
    "INT8": dtypes.int8,
    "INT16": dtypes.int16,
    "INT32": dtypes.int32,
    "INT64": dtypes.int64,
    "UINT8": dtypes.uint8,
    "UINT16": dtypes.uint16,
    "UINT32": dtypes.uint32,
    "UINT64": dtypes.uint64,
    "FLOAT16": dtypes.float16,
    "BFLOAT16": dtypes.bfloat16,
    "FLOAT": dtypes.float32,
    "DOUBLE": dtypes.float64,
    "FLOAT8E4M3FN": dtypes.fp8e4m3,
    "FLOAT8E5M2": dtypes.fp8e5m2,
}
"""The dtypes of uop by the names of ONNX's element types."""


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
        _load(tensor, folder)
    try:
        array: Array = library.numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise MalformedError(f"tensor {tensor.name!r}: {error}") from None
    return np.ascontiguousarray(array).reshape(array.shape)


def stored(array: Array) -> DType:
    """The dtype of an array; UnsupportedError for one that uop lacks."""
    if array.dtype not in STORED:
        raise UnsupportedError(f"an array of {array.dtype.name}: uop has no such dtype")
    return STORED[array.dtype]


def _load(tensor: Any, folder: str) -> None:
    try:
        onnx().external_data_helper.load_external_data_for_tensor(tensor, folder)
    except (OSError, ValueError, onnx().checker.ValidationError) as error:
        raise MalformedError(f"external data of tensor {tensor.name!r}: {error}") from None
