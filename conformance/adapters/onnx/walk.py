"""The walk over a model: applies the rule of each node, or expands it as ONNX says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from uop.conformance.adapters.onnx.library import array_of, element_of, onnx
from uop.conformance.adapters.onnx.rules import Body, constant, rule_of
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import InvalidError, MalformedError, UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import leaves, slot_of
from uop.spec.ops.names import Op


def function_of(
    node: Any,
    local: Any,
    attributes: Mapping[str, Any],
    inputs: Sequence[Tensor | None],
    opset: int,
) -> tuple[Any, dict[str, Any]]:
    """The function that a node calls, with the attributes of the call and the defaults that it
    declares; UnsupportedError if its op is not composed of others.
    """
    if local is not None:
        return local, {**{each.name: each for each in local.attribute_proto}, **attributes}
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
    proto = library.FunctionProto.FromString(data)
    defaults = {each.name: each for each in proto.attribute_proto}
    for name, declared in schema.attributes.items():
        if declared.default_value.type:
            defaults[name] = declared.default_value
    return proto, {**defaults, **attributes}


def newest(versions: Sequence[int], opset: int) -> int:
    """The newest version up to that of the model, or the oldest."""
    return max((v for v in versions if v <= opset), default=min(versions))


def _type_of(tensor: Tensor | None) -> bytes:
    made = onnx().TypeProto()
    if tensor is not None:
        made = onnx().helper.make_tensor_type_proto(element_of(tensor.dtype), tensor.shape)
    data: bytes = made.SerializeToString()
    return data


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


Scope = dict[str, Tensor | None]
Opsets = Mapping[str, int]


class NodeError(UnsupportedError):
    """A node of a model that has no image; `needs` names inputs whose values would be needed."""

    def __init__(self, reason: str, place: str, needs: tuple[str, ...] = ()) -> None:
        super().__init__(f"{place}: {reason}")
        self.reason, self.place, self.needs = reason, place, needs


class MalformedNodeError(MalformedError):
    """A node of a model that breaks a condition."""


@dataclass(slots=True)
class ModelWalk:
    """A walk over the graphs of one model."""

    functions: Mapping[tuple[str, str, str], Any]
    """The functions of the model by domain, name and overload."""
    names: Mapping[int, str]
    """The names of the model's inputs by slot."""
    folder: str = ""
    """Where files with the data of tensors lie."""
    places: list[str] = field(default_factory=list)

    def graph(
        self, graph: Any, scope: Scope, opsets: Opsets, outer: Mapping[str, Any]
    ) -> list[Tensor]:
        """The outputs of a graph. `scope` has its inputs and what its nodes see from outside,
        `outer` the attributes of the function around it.
        """
        if graph.sparse_initializer:
            raise UnsupportedError(f"graph {graph.name!r} has sparse initialisers")
        for tensor in graph.initializer:
            scope[tensor.name] = constant(array_of(tensor, self.folder))
        self.nodes(graph.node, scope, opsets, outer)
        return [_given(scope[output.name]) for output in graph.output]

    def nodes(
        self, nodes: Sequence[Any], scope: Scope, opsets: Opsets, outer: Mapping[str, Any]
    ) -> None:
        """Enter the outputs of nodes into the scope."""
        for position, node in enumerate(nodes):
            with self.at(position, node):
                self.node(node, scope, opsets, outer)

    def node(self, node: Any, scope: Scope, opsets: Opsets, outer: Mapping[str, Any]) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        inputs = [scope[name] if name else None for name in node.input]
        held = [outer.get(a.ref_attr_name) if a.ref_attr_name else a for a in node.attribute]
        attributes = {
            new.name: a for new, a in zip(node.attribute, held, strict=True) if a is not None
        }
        function = self.functions.get((node.domain, node.op_type, node.overload))
        opset = opsets.get(domain, 0)
        found = None if function else rule_of(domain, node.op_type, opset)
        if found is not None:
            decoded = {
                name: self.body(a.g, scope, opsets, outer) if a.HasField("g") else attribute_of(a)
                for name, a in attributes.items()
            }
            operands = [
                self.array(value) if k in found.known and value is not None else value
                for k, value in enumerate(inputs)
            ]
            results = found(operands, decoded, len(node.output), self.array)
        else:
            proto, given = function_of(node, function, attributes, inputs, opset)
            results = self.called(proto, inputs, given, opsets)
        for name, result in zip(node.output, results, strict=False):
            if name and result is not None:
                scope[name] = result

    def called(
        self,
        proto: Any,
        inputs: Sequence[Tensor | None],
        attributes: Mapping[str, Any],
        opsets: Opsets,
    ) -> list[Tensor | None]:
        """The outputs of a function."""
        missing = [None] * (len(proto.input) - len(inputs))
        scope: Scope = dict(zip(proto.input, [*inputs, *missing], strict=True))
        inner = {**opsets, **{each.domain: each.version for each in proto.opset_import}}
        self.nodes(proto.node, scope, inner, attributes)
        return [scope.get(name) for name in proto.output]

    def body(self, graph: Any, scope: Scope, opsets: Opsets, outer: Mapping[str, Any]) -> Body:
        """A subgraph as a Python function of its inputs."""

        def call(*inputs: Tensor) -> list[Tensor]:
            names = [each.name for each in graph.input]
            if len(names) != len(inputs):
                raise MalformedError(f"body {graph.name!r}: expected {len(names)} inputs")
            inner = {**scope, **dict(zip(names, inputs, strict=True))}
            return self.graph(graph, inner, opsets, outer)

        return call

    def array(self, value: Tensor) -> Array:
        """What a Tensor holds; NodeError where it depends on inputs."""
        needs = tuple(self.names[slot_of(u)] for u in leaves(value.uop) if u.op is Op.PARAM)
        if needs:
            said = "its shape or its course depends on values that are inputs"
            raise NodeError(said, self.place, needs)
        array: Array = value.numpy()
        return array

    @property
    def place(self) -> str:
        """Where the walk is, the innermost node first."""
        return ", in ".join(reversed(self.places))

    @contextmanager
    def at(self, position: int, node: Any) -> Iterator[None]:
        """Name the place of a node in errors."""
        domain = f"{node.domain}." * bool(node.domain)
        name = f" {node.name!r}" * bool(node.name)
        self.places.append(f"{domain}{node.op_type}, node {position}{name}")
        try:
            yield
        except (NodeError, MalformedNodeError):
            raise
        except (
            InvalidError, MalformedError, ValueError, ArithmeticError, MemoryError,
        ) as error:  # fmt: skip
            # What Python and numpy say of lengths that do not fit, or are too large.
            raise MalformedNodeError(f"{self.place}: {error}") from error
        except UnsupportedError as error:
            raise NodeError(str(error), self.place) from None
        finally:
            self.places.pop()


def _given(output: Tensor | None) -> Tensor:
    if output is None:
        raise UnsupportedError("an output of the graph is absent")
    return output
