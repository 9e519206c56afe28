"""The attributes of nodes as Python values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uop.conformance.adapters.onnx.dtypes import array_of
from uop.conformance.adapters.onnx.package import onnx
from uop.spec.errors import UnsupportedError


def attribute_of(attribute: Any) -> Any:
    """The value of an AttributeProto: numbers, text, tuples of them, or the array of a tensor."""
    types = onnx().AttributeProto
    match attribute.type:
        case types.FLOAT:
            return attribute.f
        case types.INT:
            return attribute.i
        case types.STRING:
            return attribute.s.decode()
        case types.FLOATS:
            return tuple(attribute.floats)
        case types.INTS:
            return tuple(attribute.ints)
        case types.STRINGS:
            return tuple(text.decode() for text in attribute.strings)
        case types.TENSOR:
            return array_of(attribute.t)
    kind = types.AttributeType.Name(attribute.type)
    raise UnsupportedError(f"attribute {attribute.name} of type {kind}")


def with_defaults(proto: Any, schema: Any, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a call of a function, with the defaults that it declares."""
    defaults = {each.name: each for each in proto.attribute_proto}
    if schema is not None:
        for name, declared in schema.attributes.items():
            if declared.default_value.type:
                defaults[name] = declared.default_value
    return {**defaults, **attributes}
