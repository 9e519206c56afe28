"""The public names of uop, each imported on first use to keep `import uop` fast."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uop.compiler.pipeline import compile as compile
    from uop.conformance.adapters.onnx.read import from_onnx as from_onnx
    from uop.conformance.adapters.onnx.write import to_onnx as to_onnx
    from uop.conformance.adapters.stablehlo.read import from_stablehlo as from_stablehlo
    from uop.conformance.adapters.stablehlo.traced import flat as flat
    from uop.conformance.adapters.stablehlo.write import to_flat as to_flat
    from uop.conformance.adapters.stablehlo.write import to_stablehlo as to_stablehlo
    from uop.interpreter.evaluate import evaluate as evaluate
    from uop.interpreter.evaluate import evaluate_full as evaluate_full
    from uop.interpreter.show import show as show
    from uop.interpreter.values import Value as Value
    from uop.spec.dtype import DType as DType
    from uop.spec.dtype import dtypes as dtypes
    from uop.spec.frontend.compositions import exp as exp
    from uop.spec.frontend.compositions import from_dlpack as from_dlpack
    from uop.spec.frontend.compositions import full as full
    from uop.spec.frontend.compositions import log as log
    from uop.spec.frontend.compositions import ones as ones
    from uop.spec.frontend.compositions import relu as relu
    from uop.spec.frontend.compositions import sigmoid as sigmoid
    from uop.spec.frontend.compositions import sin as sin
    from uop.spec.frontend.compositions import sqrt as sqrt
    from uop.spec.frontend.compositions import tanh as tanh
    from uop.spec.frontend.compositions import zeros as zeros
    from uop.spec.frontend.evaluator import backend as backend
    from uop.spec.frontend.function import function as function
    from uop.spec.frontend.gradient import gradient as gradient
    from uop.spec.frontend.tensor import Tensor as Tensor
    from uop.spec.frontend.trace import Trace as Trace
    from uop.spec.frontend.trace import parse_trace as parse_trace
    from uop.spec.frontend.trace import trace as trace
    from uop.spec.frontend.values import show_graphs as show_graphs
    from uop.spec.frontend.values import show_values as show_values
    from uop.spec.ops.names import Op as Op
    from uop.spec.text.program import parse as parse
    from uop.spec.text.program import print_program as print_program
    from uop.spec.uop import UOp as UOp
    from uop.spec.uop import const as const
    from uop.spec.uop import param as param
    from uop.spec.uop import variable as variable

_FOLDER = os.path.dirname(__file__)
if not os.path.isdir(os.path.join(_FOLDER, "spec")):
    # In a clone the packages are beside this folder; in an installation they are inside it.
    __path__.append(os.path.dirname(_FOLDER))

# By public name the module that defines it.
_HOME = {
    "DType": "uop.spec.dtype",
    "Op": "uop.spec.ops.names",
    "Tensor": "uop.spec.frontend.tensor",
    "Trace": "uop.spec.frontend.trace",
    "UOp": "uop.spec.uop",
    "Value": "uop.interpreter.values",
    "backend": "uop.spec.frontend.evaluator",
    "compile": "uop.compiler.pipeline",
    "const": "uop.spec.uop",
    "dtypes": "uop.spec.dtype",
    "evaluate": "uop.interpreter.evaluate",
    "evaluate_full": "uop.interpreter.evaluate",
    "exp": "uop.spec.frontend.compositions",
    "flat": "uop.conformance.adapters.stablehlo.traced",
    "from_dlpack": "uop.spec.frontend.compositions",
    "from_onnx": "uop.conformance.adapters.onnx.read",
    "from_stablehlo": "uop.conformance.adapters.stablehlo.read",
    "full": "uop.spec.frontend.compositions",
    "function": "uop.spec.frontend.function",
    "gradient": "uop.spec.frontend.gradient",
    "log": "uop.spec.frontend.compositions",
    "ones": "uop.spec.frontend.compositions",
    "param": "uop.spec.uop",
    "parse": "uop.spec.text.program",
    "parse_trace": "uop.spec.frontend.trace",
    "print_program": "uop.spec.text.program",
    "relu": "uop.spec.frontend.compositions",
    "show": "uop.interpreter.show",
    "show_graphs": "uop.spec.frontend.values",
    "show_values": "uop.spec.frontend.values",
    "sigmoid": "uop.spec.frontend.compositions",
    "sin": "uop.spec.frontend.compositions",
    "sqrt": "uop.spec.frontend.compositions",
    "tanh": "uop.spec.frontend.compositions",
    "to_flat": "uop.conformance.adapters.stablehlo.write",
    "to_onnx": "uop.conformance.adapters.onnx.write",
    "to_stablehlo": "uop.conformance.adapters.stablehlo.write",
    "trace": "uop.spec.frontend.trace",
    "variable": "uop.spec.uop",
    "zeros": "uop.spec.frontend.compositions",
}

__all__ = [
    "DType",
    "Op",
    "Tensor",
    "Trace",
    "UOp",
    "Value",
    "backend",
    "compile",
    "const",
    "dtypes",
    "evaluate",
    "evaluate_full",
    "exp",
    "flat",
    "from_dlpack",
    "from_onnx",
    "from_stablehlo",
    "full",
    "function",
    "gradient",
    "log",
    "ones",
    "param",
    "parse",
    "parse_trace",
    "print_program",
    "relu",
    "show",
    "show_graphs",
    "show_values",
    "sigmoid",
    "sin",
    "sqrt",
    "tanh",
    "to_flat",
    "to_onnx",
    "to_stablehlo",
    "trace",
    "variable",
    "zeros",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'uop' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    if _HOME[name].startswith("uop.spec.frontend."):
        _install_evaluators()
    globals()[name] = value
    return value


def _install_evaluators() -> None:
    """Make the interpreter the evaluator of Tensors, and the backends known by name."""
    from uop.evaluators import install_evaluators

    install_evaluators()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
