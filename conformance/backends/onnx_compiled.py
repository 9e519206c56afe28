"""Runs OpenVINO and TVM on the ONNX models of programs, which they compile together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import Inputs, JointBackend, RunAll, imported
from uop.conformance.adapters.cells import cells
from uop.conformance.adapters.onnx.dtypes import ELEMENTS
from uop.conformance.adapters.onnx.graph import Tensor, Written, model
from uop.conformance.adapters.onnx.schemas import Takes, of_schemas
from uop.conformance.adapters.onnx.write import OnnxBuilder, written
from uop.interpreter.numeric.storage import Array, from_bits, to_bits
from uop.spec.dtype import DType, dtypes
from uop.spec.uop import UOp

TVM_LACKS: Mapping[str, frozenset[DType]] = {
    **dict.fromkeys(("Mod", "Pow"), frozenset({dtypes.bfloat16})),
    **dict.fromkeys(("Equal", "ReduceMax", "ReduceMin"), frozenset({dtypes.bool})),
}
"""What TVM's importer or compiler refuses of what ONNX allows."""


class JointOnnxBackend(JointBackend[Written]):
    """A compiler of ONNX models: the programs of a call become one graph."""

    builder = OnnxBuilder
    opset: int
    takes: Takes | None = None
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
        return OnnxBuilder(self.opset, self.takes, prefix=f"p{self.made}_")


class OpenVINOBackend(JointOnnxBackend):
    """OpenVINO's plugin for CPUs. Values of 64 bits are no dtypes of it: it computes in 32."""

    name, distribution, tested, opset = "openvino", "openvino", ("2026.4",), 22
    # It computes narrow floats in float32, fuses and regroups ops, and flushes constants.
    profile = "contract=all reassociate=ADD ftz=bfloat16,float32 excess_precision=bfloat16,float16"
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
        _, self.openvino = imported("openvino", "onnx", "openvino")
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


class TVMBackend(JointOnnxBackend):
    """TVM's Relax for the CPU, by LLVM."""

    name, distribution, tested, opset = "tvm", "apache-tvm", ("0.27",), 22
    dtypes = frozenset({*ELEMENTS.values(), dtypes.index})

    def start(self) -> str:
        _, self.tvm, self.relax, self.reader = imported(
            "tvm", "onnx", "tvm", "tvm.relax", "tvm.relax.frontend.onnx"
        )
        self.cpu = self.tvm.cpu()
        self.takes = {
            name: kinds - TVM_LACKS.get(name, frozenset())
            for name, kinds in of_schemas(self.opset).items()
        }
        return "CPU"

    def loaded(self, model: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Any:
        module = self.reader.from_onnx(model, keep_params_in_input=False)
        machine = self.relax.VirtualMachine(self.tvm.compile(module, target="llvm"), self.cpu)

        def call(arrays: Sequence[Array]) -> list[Array]:
            held = [self.tvm.runtime.tensor(np.asarray(a, order="C")) for a in arrays]
            results = machine["main"](*held)
            several = results if len(outputs) > 1 else [results]
            return [np.asarray(r.numpy()) for r in several]

        return call
