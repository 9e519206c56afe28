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

_PUBLIC = {
    "uop.compiler.pipeline": "compile",
    "uop.conformance.adapters.onnx.read": "from_onnx",
    "uop.conformance.adapters.onnx.write": "to_onnx",
    "uop.conformance.adapters.stablehlo.read": "from_stablehlo",
    "uop.conformance.adapters.stablehlo.traced": "flat",
    "uop.conformance.adapters.stablehlo.write": "to_flat to_stablehlo",
    "uop.interpreter.evaluate": "evaluate evaluate_full",
    "uop.interpreter.show": "show",
    "uop.interpreter.values": "Value",
    "uop.spec.dtype": "DType dtypes",
    "uop.spec.frontend.compositions": (
        "exp from_dlpack full log ones relu sigmoid sin sqrt tanh zeros"
    ),
    "uop.spec.frontend.evaluator": "backend",
    "uop.spec.frontend.function": "function",
    "uop.spec.frontend.gradient": "gradient",
    "uop.spec.frontend.tensor": "Tensor",
    "uop.spec.frontend.trace": "Trace parse_trace trace",
    "uop.spec.frontend.values": "show_graphs show_values",
    "uop.spec.ops.names": "Op",
    "uop.spec.text.program": "parse print_program",
    "uop.spec.uop": "UOp const param variable",
}
"""By module its public names."""
_HOME = {name: module for module, names in _PUBLIC.items() for name in names.split()}
__all__ = sorted(_HOME)


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
