"""Runs ONNX models by the evaluator that comes with ONNX, and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import Inputs, LibraryBackend, Run, imported
from uop.conformance.adapters.cells import cells
from uop.conformance.adapters.onnx.dtypes import ELEMENTS, element_of
from uop.conformance.adapters.onnx.graph import Graph, Tensor, model
from uop.conformance.adapters.onnx.package import TESTED, onnx
from uop.conformance.adapters.onnx.schemas import Takes, of_schemas, operand, schema_of
from uop.conformance.adapters.onnx.write import OnnxBuilder, unsigned, written
from uop.conformance.checks import OptionError
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.uop import UOp

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


OPSET = 26
"""The first that has BitCast."""
LEVELS: Mapping[str, str] = {
    **{"": "ORT_ENABLE_ALL", "off": "ORT_DISABLE_ALL"},
    **{"basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED"},
}
ERRORS = ("EPFail", "Fail", "InvalidArgument", "InvalidGraph", "RuntimeException")


class OnnxReferenceBackend(LibraryBackend):
    """The reference evaluator of ONNX, in numpy."""

    name, distribution, builder, tested = "onnx-reference", "onnx", OnnxBuilder, TESTED
    dtypes = frozenset({*ELEMENTS.values(), dtypes.index})

    def start(self) -> str:
        onnx()
        (self.reference,) = imported("onnx", "onnx.reference")
        np.seterr(all="ignore")
        return "numpy"

    def supports(self) -> Mapping[str, frozenset[DType]]:
        return cells(self._builder, self.dtypes)

    def compiled(self, root: UOp) -> Run:
        program = written(root, self._builder())
        evaluator = self.reference.ReferenceEvaluator(model([program]))

        def run(inputs: Inputs) -> Sequence[Array]:
            named = {x.name: inputs[slot] for slot, x in program.inputs.items()}
            return [np.asarray(result) for result in evaluator.run(None, named)]

        return run

    def _builder(self) -> OnnxBuilder:
        return OnnxBuilder(OPSET)


class OnnxRuntimeBackend(LibraryBackend):
    """ONNX Runtime on the CPU; its argument is the level of optimisation."""

    name, distribution, builder = "onnxruntime", "onnxruntime", OnnxBuilder
    tested = ("1.32",)
    # Its ops on float16 are those on float32 with casts around, which it removes between ops.
    profile = "excess_precision=float16"
    dtypes = frozenset({*ELEMENTS.values(), dtypes.index})

    def __init__(self, level: str = "") -> None:
        if level not in LEVELS:
            known = ", ".join(filter(None, LEVELS))
            raise OptionError(f"onnxruntime: expected one of {known}; found {level!r}")
        self.variant = level

    def start(self) -> str:
        _, module, state = imported(
            "onnxruntime", "onnx", "onnxruntime", "onnxruntime.capi.onnxruntime_pybind11_state"
        )
        self.session, self.missing = module.InferenceSession, state.NotImplemented
        self.errors = (*type(self).errors, *(getattr(state, name) for name in ERRORS))
        self.options = module.SessionOptions()
        self.options.intra_op_num_threads = self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 4
        level = getattr(module.GraphOptimizationLevel, LEVELS[self.variant])
        self.options.graph_optimization_level = level
        return "CPU"

    def supports(self) -> Mapping[str, frozenset[DType]]:
        return cells(self._builder, self.dtypes)

    @cached_property
    def takes(self) -> Takes:
        """The ops of ONNX that have kernels, by dtype."""
        return taken(OPSET, self._has)

    def compiled(self, root: UOp) -> Run:
        program = written(root, self._builder())
        session = self._loaded(model([program]).SerializeToString())

        def run(inputs: Inputs) -> Sequence[Array]:
            # Bound memory: numpy arrays of narrow floats are refused elsewhere.
            binding = session.io_binding()
            arrays = [np.asarray(inputs[slot], order="C") for slot in program.inputs]
            for x, a in zip(program.inputs.values(), arrays, strict=True):
                _bind(binding.bind_input, x, a)
            results = [np.empty(y.shape, np_dtype(y.dtype)) for y in program.outputs]
            for y, a in zip(program.outputs, results, strict=True):
                _bind(binding.bind_output, y, a)
            session.run_with_iobinding(binding)
            return results

        return run

    def _builder(self) -> OnnxBuilder:
        return OnnxBuilder(OPSET, self.takes)

    def _loaded(self, text: bytes) -> Any:
        try:
            return self.session(text, self.options, providers=["CPUExecutionProvider"])
        except self.missing as error:
            raise UnsupportedError(str(error)) from None

    def _has(self, text: bytes) -> bool:
        try:
            self._loaded(text)
        except UnsupportedError:
            return False
        return True


def _bind(bind: Callable[..., None], x: Tensor, a: Array) -> None:
    bind(x.name, "cpu", 0, element_of(x.dtype), a.shape, a.ctypes.data)
