"""Runs the ONNX models of programs: by ONNX's own evaluator, ONNX Runtime, OpenVINO and TVM."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from uop.conformance.adapters.backend import (
    Inputs,
    JointBackend,
    LibraryBackend,
    Run,
    RunAll,
    cells,
    imported,
)
from uop.conformance.adapters.onnx.library import (
    ELEMENTS,
    TESTED,
    Takes,
    element_of,
    of_schemas,
    onnx,
    operand,
    schema_of,
)
from uop.conformance.adapters.onnx.write import (
    Graph,
    OnnxBuilder,
    Tensor,
    Written,
    model,
    unsigned,
    written,
)
from uop.conformance.checks import OptionError
from uop.interpreter.numeric.storage import Array, from_bits, np_dtype, to_bits
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
OPSET = 26
"""The first that has BitCast."""
LEVELS: Mapping[str, str] = {
    **{"": "ORT_ENABLE_ALL", "off": "ORT_DISABLE_ALL"},
    **{"basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED"},
}
ERRORS = ("EPFail", "Fail", "InvalidArgument", "InvalidGraph", "RuntimeException")
TVM_LACKS: Mapping[str, frozenset[DType]] = {
    **dict.fromkeys(("Mod", "Pow"), frozenset({dtypes.bfloat16})),
    **dict.fromkeys(("Equal", "ReduceMax", "ReduceMin"), frozenset({dtypes.bool})),
}
"""What TVM's importer or compiler refuses of what ONNX allows."""
FP8 = (dtypes.fp8e4m3, dtypes.fp8e5m2)


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
        # The axes of a Pad are not of its dtype, and optional.
        inputs = [
            _operand(graph, i, x)
            for i in schema.inputs
            if i.option.name != "Optional" or (i.name in SIZES and i.type_str != "Tind")
        ]
        same = schema.outputs[0].type_str == operand(schema).type_str
        size = LONGER.get(name, 1 if name in SHORTER else 2)
        made = graph.node(
            name, inputs, dtype if same else dtypes.bool, (size,), **ATTRIBUTES.get(name, {})
        )
    text: bytes = model([graph.written([made])]).SerializeToString()
    return text


def _operand(graph: Graph, formal: Any, x: Tensor) -> Tensor:
    if formal.name in SIZES:
        return graph.ints(SIZES[formal.name])
    if formal.type_str == "B":
        return graph.constant(np.array([True, False]), dtypes.bool)
    return x


class OnnxBackend(LibraryBackend):
    """What runs ONNX models of an opset, with the dtypes of each op that it takes."""

    builder = OnnxBuilder
    dtypes = frozenset({*ELEMENTS.values(), dtypes.index})
    opset = OPSET
    takes: Takes | None = None

    def supports(self) -> Mapping[str, frozenset[DType]]:
        return cells(self.new_builder, self.dtypes)

    def new_builder(self) -> OnnxBuilder:
        return OnnxBuilder(self.opset, self.takes)


class OnnxReferenceBackend(OnnxBackend):
    """The reference evaluator of ONNX, in numpy."""

    name, distribution, tested = "onnx-reference", "onnx", TESTED

    def start(self) -> str:
        onnx()
        (self.reference,) = imported("onnx", "onnx.reference")
        np.seterr(all="ignore")
        return "numpy"

    def compiled(self, root: UOp) -> Run:
        program = written(root, self.new_builder())
        evaluator = self.reference.ReferenceEvaluator(model([program]))

        def run(inputs: Inputs) -> Sequence[Array]:
            named = {x.name: inputs[slot] for slot, x in program.inputs.items()}
            return [np.asarray(result) for result in evaluator.run(None, named)]

        return run


class OnnxRuntimeBackend(OnnxBackend):
    """ONNX Runtime on the CPU; its argument is the level of optimisation."""

    name, distribution, tested = "onnxruntime", "onnxruntime", ("1.32",)
    # Its ops on float16 are those on float32 with casts around, which it removes between ops.
    profile = "excess_precision=float16"

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
        self.takes = taken(OPSET, self._has)
        return "CPU"

    def compiled(self, root: UOp) -> Run:
        program = written(root, self.new_builder())
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


class JointOnnxBackend(JointBackend[Written], OnnxBackend):
    """A compiler of ONNX models: the programs of a call become one graph."""

    opset = 22
    made = 0

    def prepared(self, root: UOp) -> Written:
        return written(root, self.new_builder())

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

    def new_builder(self) -> OnnxBuilder:
        self.made += 1
        return OnnxBuilder(self.opset, self.takes, prefix=f"p{self.made}_")


class OpenVINOBackend(JointOnnxBackend):
    """OpenVINO's plugin for CPUs. Values of 64 bits are no dtypes of it: it computes in 32."""

    name, distribution, tested = "openvino", "openvino", ("2026.4",)
    # It computes narrow floats in float32, fuses and regroups ops, and flushes constants.
    profile = "contract=all reassociate=ADD ftz=bfloat16,float32 excess_precision=bfloat16,float16"
    dtypes = frozenset(d for d in ELEMENTS.values() if d.itemsize < 8 and d not in FP8)
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

    name, distribution, tested = "tvm", "apache-tvm", ("0.27",)

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
