"""The public names of uop, each imported on first use to keep `import uop` fast."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uop.compiler.pipeline import compile as compile
    from uop.conformance.adapters.stablehlo.read import from_stablehlo as from_stablehlo
    from uop.conformance.adapters.stablehlo.write import to_flat as to_flat
    from uop.conformance.adapters.stablehlo.write import to_stablehlo as to_stablehlo
    from uop.interpreter.evaluate import evaluate as evaluate
    from uop.interpreter.evaluate import evaluate_full as evaluate_full
    from uop.interpreter.picture import show as show
    from uop.interpreter.values import Value as Value
    from uop.spec.dtype import DType as DType
    from uop.spec.dtype import dtypes as dtypes
    from uop.spec.frontend.function import function as function
    from uop.spec.frontend.gradient import gradient as gradient
    from uop.spec.frontend.tensor import Tensor as Tensor
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
    "UOp": "uop.spec.uop",
    "Value": "uop.interpreter.values",
    "compile": "uop.compiler.pipeline",
    "const": "uop.spec.uop",
    "dtypes": "uop.spec.dtype",
    "evaluate": "uop.interpreter.evaluate",
    "evaluate_full": "uop.interpreter.evaluate",
    "from_stablehlo": "uop.conformance.adapters.stablehlo.read",
    "function": "uop.spec.frontend.function",
    "gradient": "uop.spec.frontend.gradient",
    "param": "uop.spec.uop",
    "parse": "uop.spec.text.program",
    "print_program": "uop.spec.text.program",
    "show": "uop.interpreter.picture",
    "to_flat": "uop.conformance.adapters.stablehlo.write",
    "to_stablehlo": "uop.conformance.adapters.stablehlo.write",
    "variable": "uop.spec.uop",
}

__all__ = [
    "DType",
    "Op",
    "Tensor",
    "UOp",
    "Value",
    "compile",
    "const",
    "dtypes",
    "evaluate",
    "evaluate_full",
    "from_stablehlo",
    "function",
    "gradient",
    "param",
    "parse",
    "print_program",
    "show",
    "to_flat",
    "to_stablehlo",
    "variable",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'uop' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    if _HOME[name].startswith("uop.spec.frontend."):
        _install_evaluator()
    globals()[name] = value
    return value


def _install_evaluator() -> None:
    """Install the interpreter as the evaluator of Tensors."""
    from uop.interpreter.frontend import NumpyEvaluator
    from uop.spec.frontend.evaluator import install

    install(NumpyEvaluator())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
