"""The rules, by families of ops; each module enters its own."""

from uop.conformance.adapters.onnx.ops import activations as activations
from uop.conformance.adapters.onnx.ops import control as control
from uop.conformance.adapters.onnx.ops import elementwise as elementwise
from uop.conformance.adapters.onnx.ops import indexing as indexing
from uop.conformance.adapters.onnx.ops import matrix as matrix
from uop.conformance.adapters.onnx.ops import movement as movement
from uop.conformance.adapters.onnx.ops import pooling as pooling
from uop.conformance.adapters.onnx.ops import recurrent as recurrent
from uop.conformance.adapters.onnx.ops import reduce as reduce
from uop.conformance.adapters.onnx.ops import sampling as sampling
from uop.conformance.adapters.onnx.ops import text as text
from uop.conformance.adapters.onnx.ops import training as training
