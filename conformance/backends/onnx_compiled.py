"""Runs OpenVINO and TVM on the ONNX models of programs, which they compile together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import Inputs, JointBackend, RunAll, imported
from uop.conformance.adapters.cells import cells
from uop.conformance.adapters.onnx.graph import Tensor, Written, model
from uop.conformance.adapters.onnx.package import onnx
from uop.conformance.adapters.onnx.write import OnnxBuilder, written
from uop.interpreter.numeric.storage import Array, from_bits, to_bits
from uop.spec.dtype import DType, dtypes
from uop.spec.uop import UOp


class JointOnnxBackend(JointBackend[Written]):
    """A compiler of ONNX models: the programs of a call become one graph."""

    builder = OnnxBuilder
    opset: int
    made = 0

    def supports(self) -> Mapping[str, frozenset[DType]]:
        return cells(self._builder, self.dtypes)

    def prepared(self, root: UOp) -> Written:
        return written(root, self._builder())

    def together(self, programs: Sequence[Written]) -> RunAll:
        inputs = [x for program in programs for x in program.inputs.values()]
        outputs = [y for program in programs for y in program.outputs]
        call = self.loaded(model(programs), inputs, outputs)

        def run(batches: Sequence[Inputs]) -> Sequence[Sequence[Array]]:
            pairs = zip(programs, batches, strict=True)
            results = iter(call([batch[slot] for p, batch in pairs for slot in p.inputs]))
            return [[next(results) for _ in p.outputs] for p in programs]

        return run

    @abstractmethod
    def loaded(self, model: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Any:
        """A model as a function from the arrays of its inputs to those of its outputs."""

    def _builder(self) -> OnnxBuilder:
        self.made += 1
        return OnnxBuilder(self.opset, prefix=f"p{self.made}_")


class OpenVINOBackend(JointOnnxBackend):
    """OpenVINO's plugin for CPUs. Values of 64 bits are no dtypes of it: it computes in 32."""

    name, distribution, opset = "openvino", "openvino", 22
    dtypes = frozenset(
        {
            dtypes.bool,
            dtypes.int8,
            dtypes.int16,
            dtypes.int32,
            dtypes.float32,
            dtypes.uint8,
            dtypes.uint16,
            dtypes.uint32,
            dtypes.float16,
            dtypes.bfloat16,
        }
    )
    SETTINGS: Mapping[str, Any] = {
        # Else it may round to bfloat16, where the processor has that.
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
    }

    def start(self) -> str:
        onnx()
        (self.openvino,) = imported("openvino", "openvino")
        self.core = self.openvino.Core()
        return "CPU"

    def loaded(self, model: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Any:
        read = self.core.read_model(model.SerializeToString(), b"")
        request = self.core.compile_model(read, "CPU", self.SETTINGS).create_infer_request()

        def call(arrays: Sequence[Array]) -> list[Array]:
            held = [np.asarray(a, order="C") for a in arrays]
            for x, a in zip(inputs, held, strict=True):
                of = request.get_tensor(x.name).element_type
                request.set_tensor(x.name, self.openvino.Tensor(to_bits(a), a.shape, of))
            request.infer()
            return [_values(request.get_tensor(y.name), y) for y in outputs]

        return call


def _values(tensor: Any, y: Tensor) -> Array:
    """The contents of a tensor: numpy has no bfloat16, so they come as another dtype."""
    bits = to_bits(np.array(tensor.data)).reshape(y.shape)
    return from_bits(bits, y.dtype)
