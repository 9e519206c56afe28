"""Runs ONNX models as backends: the reference evaluator, ONNX Runtime and OpenVINO."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import Inputs, LibraryBackend, Run, imported
from uop.conformance.adapters.cells import cells
from uop.conformance.adapters.onnx.dtypes import ELEMENTS, element_of
from uop.conformance.adapters.onnx.graph import Tensor
from uop.conformance.adapters.onnx.package import onnx
from uop.conformance.adapters.onnx.probe import taken
from uop.conformance.adapters.onnx.schemas import Takes, of_schemas
from uop.conformance.adapters.onnx.write import OnnxBuilder
from uop.conformance.adapters.walk import build, values_of
from uop.conformance.checks import OptionError
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.uop import UOp

WITH_BITCAST = 26
"""The first opset that has BitCast."""


class OnnxBackend(LibraryBackend):
    """A runtime of ONNX models."""

    builder = OnnxBuilder
    dtypes = frozenset({*ELEMENTS.values(), dtypes.index})
    opset = WITH_BITCAST

    @cached_property
    def takes(self) -> Takes:
        """The ops of ONNX that the runtime has, by dtype."""
        return of_schemas(self.opset)

    def supports(self) -> Mapping[str, frozenset[DType]]:
        return cells(self._builder, self.dtypes)

    def compiled(self, root: UOp) -> Run:
        builder = self._builder()
        outputs = build(values_of(root), builder)
        return self.loaded(builder.graph.model(outputs), builder.graph.inputs, outputs)

    @abstractmethod
    def loaded(self, model: Any, inputs: Mapping[int, Tensor], outputs: Sequence[Tensor]) -> Run:
        """A model in the runtime."""

    def _builder(self) -> OnnxBuilder:
        return OnnxBuilder(self.opset, self.takes)


class OnnxReferenceBackend(OnnxBackend):
    """The evaluator that comes with ONNX, in numpy."""

    name, distribution = "onnx-reference", "onnx"

    def start(self) -> str:
        onnx()
        (self.reference,) = imported("onnx", "onnx.reference")
        np.seterr(all="ignore")
        return "numpy"

    def loaded(self, model: Any, inputs: Mapping[int, Tensor], outputs: Sequence[Tensor]) -> Run:
        evaluator = self.reference.ReferenceEvaluator(model)

        def run(batch: Inputs) -> Sequence[Array]:
            results = evaluator.run(None, {x.name: batch[slot] for slot, x in inputs.items()})
            return [np.asarray(r) for r in results]

        return run


LEVELS = {"": "ENABLE_ALL", "extended": "ENABLE_EXTENDED", "basic": "ENABLE_BASIC"}
LEVELS["off"] = "DISABLE_ALL"


class OnnxRuntimeBackend(OnnxBackend):
    """ONNX Runtime on the CPU, by the level of its optimisations."""

    name, distribution = "onnxruntime", "onnxruntime"

    def __init__(self, level: str = "") -> None:
        if level not in LEVELS:
            known = ", ".join(filter(None, LEVELS))
            raise OptionError(f"onnxruntime: expected one of {known}; found {level!r}")
        self.variant = level

    def start(self) -> str:
        onnx()
        self.ort, state = imported(
            "onnxruntime", "onnxruntime", "onnxruntime.capi.onnxruntime_pybind11_state"
        )
        self.missing = state.NotImplemented
        self.errors = (
            *type(self).errors,
            state.Fail,
            state.InvalidArgument,
            state.InvalidGraph,
            state.RuntimeException,
            state.EPFail,
        )
        self.options = self.ort.SessionOptions()
        self.options.intra_op_num_threads = self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 4
        level = f"ORT_{LEVELS[self.variant]}"
        self.options.graph_optimization_level = getattr(self.ort.GraphOptimizationLevel, level)
        return "CPU"

    @cached_property
    def takes(self) -> Takes:
        return taken(self.opset, self._has)

    def _has(self, model: bytes) -> bool:
        try:
            self._session(model)
        except UnsupportedError:
            return False
        return True

    def _session(self, model: bytes) -> Any:
        try:
            return self.ort.InferenceSession(
                model, self.options, providers=["CPUExecutionProvider"]
            )
        except self.missing as error:
            raise UnsupportedError(str(error)) from None

    def loaded(self, model: Any, inputs: Mapping[int, Tensor], outputs: Sequence[Tensor]) -> Run:
        session = self._session(model.SerializeToString())

        def run(batch: Inputs) -> Sequence[Array]:
            binding = session.io_binding()
            held = [np.ascontiguousarray(batch[slot]) for slot in inputs]
            for x, a in zip(inputs.values(), held, strict=True):
                self._bound(binding.bind_input, x, a)
            results = [np.empty(y.shape, np_dtype(y.dtype)) for y in outputs]
            for k, a in enumerate(results):
                self._bound(binding.bind_output, Tensor(f"out{k}", outputs[k].dtype, a.shape), a)
            session.run_with_iobinding(binding)
            return results

        return run

    def _bound(self, bind: Any, x: Tensor, a: Array) -> None:
        bind(x.name, "cpu", 0, element_of(x.dtype), a.shape, a.ctypes.data)
