"""Captured and differentiated graphs are programs like all others: a compiled device runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from uop import Tensor, UOp, compile, function, gradient
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.interpreter.accept import accept
from uop.interpreter.frontend import NumpyEvaluator
from uop.spec.frontend import compositions, neural
from uop.spec.frontend.data import contents
from uop.spec.frontend.evaluator import using

X = [[0.5, 1.25, -3.0], [2.0, -0.75, 1.5]]
Y = [1.5, -2.0, 0.25]

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "attention": lambda x, y: neural.attention(x, x * y, x) * y,
    "gather": lambda x, y: compositions.prefix_sum(compositions.gather(y, Tensor([2, 0, 2]))) * x,
    "function": lambda x, y: function(lambda a, b: a.prod(1) * b[1:].max())(x, y),
    "index": lambda x, y: (x + x)[[1, 0, 1]] * (y + y)[[2, 2, 0]],
}


@pytest.fixture
def on_opencl(opencl: OpenCLDevice) -> NumpyEvaluator:
    return NumpyEvaluator(lambda root, inputs: compile(root, target="opencl").run(inputs))


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_on_opencl_are_accepted(name: str, on_opencl: NumpyEvaluator) -> None:
    x, y = Tensor(X), Tensor(Y)
    (found,) = gradient(LOSSES[name](x, y).sum(), [x])
    assert found is not None
    inputs = {slot: on_opencl.array(held) for slot, held in contents(found.uop).items()}
    (accepted,) = accept(found.uop, inputs)
    with using(on_opencl):
        assert accepted.contains(found.numpy()).all()


def test_the_evaluator_in_use_is_asked(on_opencl: NumpyEvaluator) -> None:
    asked: list[UOp] = []

    def run(root: UOp, inputs: dict[int, Any]) -> Any:
        asked.append(root)
        return on_opencl.run(root, inputs)

    t = Tensor([1, 2, 3]) * 2
    with using(NumpyEvaluator(run)):
        assert t.realize().tolist() == [2, 4, 6]
    assert asked[0] is t.uop
    assert t.tolist() == [2, 4, 6]
    assert len(asked) == 2
