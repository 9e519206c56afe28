"""The evaluators of Tensors by name: the interpreter, the compiler's targets, other backends."""

from functools import partial

from uop.interpreter.frontend import NumpyEvaluator
from uop.interpreter.numeric.storage import Array
from uop.spec.distribution import entry_points
from uop.spec.frontend.evaluator import EVALUATORS, Evaluator, install
from uop.spec.uop import UOp

TARGETS = ("opencl", "cuda", "cuda-host")
"""The names of the compiler's targets, which is imported on use."""


def install_evaluators() -> None:
    """Enter all names, and make the interpreter the default."""
    EVALUATORS["interpreter"] = NumpyEvaluator
    for target in TARGETS:
        EVALUATORS[target] = partial(_compiled, target)
    for entry in entry_points("uop.backends"):
        EVALUATORS.setdefault(entry.name, partial(_adapted, entry.name))
    install(NumpyEvaluator())


def _compiled(target: str) -> Evaluator:
    from uop.compiler.pipeline import compile

    def run(root: UOp, inputs: dict[int, Array]) -> object:
        return compile(root, target).run(inputs)

    return NumpyEvaluator(run)


def _adapted(name: str) -> Evaluator:
    """A backend of the suite, in this process; UnsupportedError where it lacks something."""
    from uop.conformance.backends import load
    from uop.conformance.protocol.types import Program
    from uop.conformance.workers.single import outputs_of
    from uop.spec.text.program import print_program

    adapter = load(name)
    adapter.hello()

    def run(root: UOp, inputs: dict[int, Array]) -> object:
        (outcome,) = adapter.run([Program(print_program(root), (inputs,))])
        return outputs_of(name, outcome)[0]

    return NumpyEvaluator(run)
