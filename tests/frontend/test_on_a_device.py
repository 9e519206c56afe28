"""Captured and differentiated graphs are programs like all others: a compiled device runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from uop import Tensor, UOp, backend, compile, evaluate, evaluators, function, gradient
from uop.compiler.pipeline import TARGETS
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.interpreter.accept import accept
from uop.interpreter.frontend import NumpyEvaluator
from uop.spec.errors import InvalidError, UnsupportedError
from uop.spec.frontend import compositions
from uop.spec.frontend.evaluator import using
from uop.spec.frontend.values import contents

X = [[0.5, 1.25, -3.0], [2.0, -0.75, 1.5]]
Y = [1.5, -2.0, 0.25]

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "attention": lambda x, y: compositions.attention(x, x * y, x) * y,
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
    assert t.tolist() == [2, 4, 6]
    assert asked == [t.uop]


def test_backends_have_the_names_of_targets(opencl: OpenCLDevice) -> None:
    """A new target has its name among those of the evaluators, which import no compiler."""
    assert tuple(TARGETS) == tuple(evaluators.TARGETS)
    x = Tensor([1, 2, 3])
    with backend("opencl"):
        y = (x * 2).eval()
        with backend("interpreter"):
            assert (y + 1).tolist() == [3, 5, 7]
        assert (y + 2).tolist() == [4, 6, 8]


def test_a_backend_runs_what_is_evaluated_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, UOp]] = []

    class Compiled:
        def __init__(self, root: UOp, target: str) -> None:
            self.root, self.target = root, target

        def run(self, inputs: dict[int, Any]) -> Any:
            ran.append((self.target, self.root))
            return evaluate(self.root, inputs)

    monkeypatch.setattr("uop.compiler.pipeline.compile", Compiled)
    first, second, outside = (Tensor([1, 2]) + k for k in range(3))
    with backend("cuda"):
        first.eval()
        with backend("cuda-host"):
            second.eval()
        # It has its value.
        assert second.tolist() == [2, 3]
    outside.eval()
    assert ran == [("cuda", first.uop), ("cuda-host", second.uop)]


def test_an_unknown_backend_is_refused_with_the_known_names() -> None:
    with pytest.raises(InvalidError, match=r"EVALUATOR\.name") as caught:
        backend("opncl")
    assert caught.value.found.startswith("'opncl': expected one of interpreter, opencl, cuda, ")
    assert caught.value.found.endswith("; did you mean opencl?")
    assert caught.value.where.startswith(f"{__file__}:")


def test_a_backend_of_the_suite_evaluates_too() -> None:
    with backend("numpy"):
        assert (Tensor([3, 4]) * 2).sum().tolist() == 14


def test_what_a_backend_lacks_is_named() -> None:
    whole = Tensor([1, 2]).copy(("A", "B"))
    with backend("numpy"), pytest.raises(UnsupportedError, match=r"backend 'numpy': .*devices"):
        whole.eval()
