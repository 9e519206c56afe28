"""Captured and differentiated graphs are programs like all others: a compiled device runs them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from uop import Tensor, compile, function, gradient
from uop.compiler.runtime.opencl import open_opencl, use_cache_dir
from uop.interpreter.accept import accept
from uop.interpreter.frontend import InterpreterEvaluator
from uop.spec.errors import UnsupportedError
from uop.spec.frontend import compositions, neural
from uop.spec.frontend.data import contents

X = [[0.5, 1.25, -3.0], [2.0, -0.75, 1.5]]
Y = [1.5, -2.0, 0.25]

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "attention": lambda x, y: neural.attention(x, x * y, x) * y,
    "gather": lambda x, y: compositions.prefix_sum(compositions.gather(y, Tensor([2, 0, 2]))) * x,
    "function": lambda x, y: function(lambda a, b: a.prod(1) * b[1:].max())(x, y),
    "index": lambda x, y: (x + x)[[1, 0, 1]] * (y + y)[[2, 2, 0]],
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_on_opencl_are_accepted(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    use_cache_dir(tmp_path_factory.getbasetemp() / "pocl")
    try:
        open_opencl()
    except UnsupportedError as error:
        pytest.skip(str(error))
    x, y = Tensor(X), Tensor(Y)
    (found,) = gradient(LOSSES[name](x, y).sum(), [x])
    assert found is not None
    evaluator = InterpreterEvaluator()
    inputs = {slot: evaluator.array(held) for slot, held in contents(found.uop).items()}
    result = compile(found.uop, target="opencl").run(inputs)
    (accepted,) = accept(found.uop, inputs)
    assert accepted.contains(result).all()  # type: ignore[arg-type]
