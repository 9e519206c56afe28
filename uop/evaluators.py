"""The evaluators of Tensors by name: the interpreter, and the targets of the compiler."""

from functools import partial

from uop.interpreter.frontend import NumpyEvaluator
from uop.interpreter.numeric.storage import Array
from uop.spec.frontend.evaluator import EVALUATORS, Evaluator, install
from uop.spec.uop import UOp

TARGETS = ("opencl", "cuda", "cuda-host")
"""The names of the compiler's targets, which is imported on use."""


def install_evaluators() -> None:
    """Enter all names, and make the interpreter the default."""
    EVALUATORS["interpreter"] = NumpyEvaluator
    for target in TARGETS:
        EVALUATORS[target] = partial(_compiled, target)
    install(NumpyEvaluator())


def _compiled(target: str) -> Evaluator:
    from uop.compiler.pipeline import compile

    def run(root: UOp, inputs: dict[int, Array]) -> object:
        return compile(root, target).run(inputs)

    return NumpyEvaluator(run)
