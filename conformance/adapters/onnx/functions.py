"""Ops that are composed of others: functions of a model, and those that ONNX itself defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uop.conformance.adapters.onnx.dtypes import element_of
from uop.conformance.adapters.onnx.package import onnx
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its nodes, and for one of ONNX the declaration of its op."""

    proto: Any
    schema: Any = None


def function_of(
    node: Any,
    local: Any,
    attributes: Mapping[str, Any],
    inputs: Sequence[Tensor | None],
    opset: int,
) -> Function:
    """The function that a node calls; UnsupportedError if its op is not composed of others."""
    if local is not None:
        return Function(local)
    library = onnx()
    try:
        schema = library.defs.get_schema(node.op_type, opset, node.domain)
    except library.defs.SchemaError:
        raise UnsupportedError("ONNX has no such op, and the model no such function") from None
    data = None
    if schema.has_function:
        data = schema.get_function_with_opset_version(newest(schema.function_opset_versions, opset))
    elif schema.has_context_dependent_function:
        version = newest(schema.context_dependent_function_opset_versions, opset)
        called = library.NodeProto()
        called.CopyFrom(node)
        del called.attribute[:]
        called.attribute.extend(attributes.values())
        data = schema.get_context_dependent_function_with_opset_version(
            version, called.SerializeToString(), [_type_of(each) for each in inputs]
        )
    if data is None:
        raise UnsupportedError("this op has no rule")
    return Function(library.FunctionProto.FromString(data), schema)


def newest(versions: Sequence[int], opset: int) -> int:
    """The newest version up to that of the model, or the oldest."""
    return max((v for v in versions if v <= opset), default=min(versions))


def _type_of(tensor: Tensor | None) -> bytes:
    library = onnx()
    if tensor is None:
        data: bytes = library.TypeProto().SerializeToString()
    else:
        element = element_of(tensor.dtype)
        data = library.helper.make_tensor_type_proto(element, tensor.shape).SerializeToString()
    return data
