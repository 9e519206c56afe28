"""ONNX models as programs: `from_onnx` applies the rule of a node, or expands it as ONNX says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from uop.conformance.adapters.onnx import ops as ops
from uop.conformance.adapters.onnx.library import (
    array_of,
    decode_error,
    dtype_of,
    element_of,
    onnx,
    schema_of,
    stored,
)
from uop.conformance.adapters.onnx.rules import Body, constant, rule_of
from uop.conformance.checks import OptionError
from uop.interpreter.frontend import NumpyEvaluator
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import InvalidError, MalformedError, UnsupportedError
from uop.spec.frontend.evaluator import using
from uop.spec.frontend.tensor import Tensor
from uop.spec.frontend.values import contents
from uop.spec.graph import leaves, slot_of
from uop.spec.ops.names import Op
from uop.spec.text.reading import read_bytes
from uop.spec.uop import UOp, param

Scope = dict[str, Tensor | None]
Opsets = Mapping[str, int]
MOST_OF_MODEL = 1 << 30
"""The most bytes of the file of a model; larger weights lie in files beside it."""


@dataclass(frozen=True, slots=True, eq=False)
class OnnxProgram:
    """A model as a program: run it by `evaluate(p.root, p.inputs(x=array))`, or compile it."""

    root: UOp
    """The output of the model; a TUPLE of several."""
    slots: Mapping[str, int]
    """The slots of the inputs by name."""
    outputs: tuple[str, ...]
    """The names of the outputs in order."""
    weights: Mapping[int, Array]
    """What the model itself holds, by slot."""

    def inputs(self, **arrays: Array) -> dict[int, Array]:
        """The inputs of a run by slot, with the weights; those that no output needs are left out.

        OptionError for a name that is no input, and for an input without an array.
        """
        strange = sorted(arrays.keys() ^ self.slots.keys())
        if strange:
            expected = ", ".join(self.slots) or "none"
            raise OptionError(f"inputs: expected {expected}; found {', '.join(arrays) or 'none'}")
        used = {slot_of(leaf) for leaf in leaves(self.root)}
        given = {self.slots[name]: array for name, array in arrays.items()}
        return {slot: array for slot, array in {**given, **self.weights}.items() if slot in used}


def from_onnx(
    model: Any,
    static: Mapping[str, Array] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> OnnxProgram:
    """Read a model: a ModelProto, its bytes or the path of its file.

    `static` are inputs whose values are known now, as shapes must be; they are no inputs of the
    program. `sizes` are the numbers of symbolic dimensions by name. MalformedError for what is no
    model, and an UnsupportedError that names the node for one that has no image.
    """
    proto, folder = _loaded(model)
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in proto.opset_import}
    given = {each.name for each in proto.graph.initializer}
    declared = {each.name: each for each in proto.graph.input if each.name not in given}
    static = static or {}
    strange = sorted(static.keys() - declared.keys())
    if strange:
        raise OptionError(f"static: expected inputs of the model; found {strange[0]!r}")
    slots = {name: k for k, name in enumerate(name for name in declared if name not in static)}
    functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
    walk = ModelWalk(functions, {slot: name for name, slot in slots.items()}, folder)
    with using(NumpyEvaluator()):
        scope: Scope = {name: _static(declared[name], array) for name, array in static.items()}
        for name, slot in slots.items():
            scope[name] = _input(declared[name], slot, sizes or {})
        results = walk.graph(proto.graph, scope, opsets, {})
    names = tuple(output.name for output in proto.graph.output)
    return _program(results, slots, names)


def _loaded(model: Any) -> tuple[Any, str]:
    """The model, and the folder in which it lies."""
    library = onnx()
    if isinstance(model, library.ModelProto):
        return _checked(model), ""
    if isinstance(model, bytes):
        return _checked(_decoded(model)), ""
    path = os.fspath(model)
    try:
        proto = _decoded(read_bytes(path, MOST_OF_MODEL))
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}") from None
    # By its path the checker finds the files beside it; a pipe has none, and can be read once.
    _checked(path if os.path.isfile(path) else proto)
    return proto, os.path.dirname(path)


def _decoded(data: bytes) -> Any:
    try:
        return onnx().ModelProto.FromString(data)
    except decode_error() as error:
        raise MalformedError(f"no ONNX model: {error}") from None


def _checked(model: Any) -> Any:
    """The model; MalformedError for what the checker of onnx rejects."""
    library = onnx()
    try:
        library.checker.check_model(model)
    except library.checker.ValidationError as error:
        raise MalformedError(f"no valid ONNX model: {str(error).strip()}") from None
    except UnicodeDecodeError as error:
        # The message of the checker quotes names of the model as they are.
        said = error.object.decode(errors="backslashreplace").strip()
        raise MalformedError(f"no valid ONNX model: {said}") from None
    return model


def _input(declared: Any, slot: int, sizes: Mapping[str, int]) -> Tensor:
    kind = declared.type.WhichOneof("value")
    if kind != "tensor_type":
        raise UnsupportedError(f"input {declared.name!r} is a {kind}: expected a tensor")
    tensor = declared.type.tensor_type
    if not tensor.HasField("shape"):
        raise UnsupportedError(f"input {declared.name!r} has no shape")
    try:
        dtype = dtype_of(tensor.elem_type)
    except UnsupportedError as error:
        raise UnsupportedError(f"input {declared.name!r}: {error}") from None
    shape = [_size(declared.name, dim, sizes) for dim in tensor.shape.dim]
    return Tensor(param(slot, shape, dtype))


def _static(declared: Any, array: Array) -> Tensor:
    """An input whose value is known."""
    expected, found = dtype_of(declared.type.tensor_type.elem_type), stored(array)
    if found is not expected:
        text = f"expected {expected.name}; found {found.name}"
        raise OptionError(f"static: input {declared.name!r}: {text}")
    return constant(array)


def _size(name: str, dim: Any, sizes: Mapping[str, int]) -> int:
    if dim.HasField("dim_value"):
        value: int = dim.dim_value
        return value
    if dim.dim_param not in sizes:
        raise UnsupportedError(
            f"input {name!r} has the symbolic dimension {dim.dim_param!r}: "
            "give its number by from_onnx(..., sizes={name: number})"
        )
    return sizes[dim.dim_param]


def _program(
    results: list[Tensor], slots: Mapping[str, int], outputs: tuple[str, ...]
) -> OnnxProgram:
    """Number what the model holds behind its inputs."""
    root = results[0].uop if len(results) == 1 else UOp(Op.TUPLE, *(t.uop for t in results))
    held = contents(root)
    weights: dict[int, Array] = {}
    new: dict[UOp, UOp] = {}
    for leaf in leaves(root):
        if leaf.op is Op.BUFFER:
            slot = len(slots) + len(weights)
            weights[slot] = NumpyEvaluator().array(held[slot_of(leaf)])
            new[leaf] = param(slot, leaf.shape, leaf.dtype)
    return OnnxProgram(root.substitute(new), slots, outputs, weights)


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
    library, schema = onnx(), schema_of(node.op_type, opset, node.domain)
    if schema is None:
        raise UnsupportedError("ONNX has no such op, and the model no such function")
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
