"""ONNX models as programs: `from_onnx`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uop.conformance.adapters.onnx import ops as ops
from uop.conformance.adapters.onnx.library import decode_error, dtype_of, onnx, stored
from uop.conformance.adapters.onnx.rules import constant
from uop.conformance.adapters.onnx.walk import ModelWalk, Scope
from uop.conformance.checks import OptionError
from uop.interpreter.frontend import NumpyEvaluator
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import MalformedError, UnsupportedError
from uop.spec.frontend.evaluator import using
from uop.spec.frontend.tensor import Tensor
from uop.spec.frontend.values import contents
from uop.spec.graph import leaves, slot_of
from uop.spec.ops.names import Op
from uop.spec.text.reading import read_bytes
from uop.spec.uop import UOp, param

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
