"""The functions beside Tensor, against numpy and balls."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx

import uop
from uop import Tensor, dtypes, full, gradient, ones, tanh, zeros
from uop.interpreter.numeric.storage import STORAGE
from uop.spec.dtype import DType


def test_filled_tensors() -> None:
    assert full((2, 3), value=0.5).tolist() == [[0.5] * 3] * 2
    assert (full((), 7).tolist(), full((0, 2), 1).shape) == (7, (0, 2))
    assert full((2,), Tensor(3) + 1).tolist() == [4, 4]
    for fill, number in ((ones, 1), (zeros, 0)):
        assert (fill((2,)).dtype, fill((2,)).tolist()) == (dtypes.float32, [number] * 2)
        assert fill((1, 2), dtypes.uint8).tolist() == [[number] * 2]


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu", "exp", "log", "sqrt", "sin"])
def test_functions_are_methods_that_take_numbers_too(name: str) -> None:
    apply, method = getattr(uop, name), getattr(Tensor, name)
    x = Tensor([0.5, 2.0])
    assert apply(x).uop is method(x).uop
    assert apply(0.5).tolist() == method(Tensor(0.5)).tolist()


def test_the_documents_program() -> None:
    inp = full((2, 3), value=0.5)
    out = tanh(inp)
    assert out.eval() is out
    (value,) = set(np.asarray(out).ravel().tolist())
    assert abs(value - float(arb(0.5).tanh())) < 2**-23


FLOATS = [dtypes.float64, dtypes.float32, dtypes.float16, dtypes.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_the_hyperbolic_tangent_is_accurate_everywhere(
    dtype: DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its relative error is below 2^(3 - p), also where 1 - 2/(exp(2x) + 1) cancels."""
    monkeypatch.setattr(ctx, "prec", 200)
    steps = np.concatenate([np.linspace(-25, 25, 201), 10.0 ** np.linspace(-7, 1, 120)])
    x = np.concatenate([steps, [0.4999, 0.5, -0.5, 60000.0]]).astype(STORAGE[dtype.name])
    most = 2.0 ** (3 - dtype.format.precision)
    for value, found in zip(x.astype(float), Tensor(x).tanh().tolist(), strict=True):
        wanted = float(arb(value).tanh())
        assert abs(found - wanted) <= most * abs(wanted), value


def test_special_values_of_the_hyperbolic_tangent() -> None:
    found = tanh(Tensor([np.inf, -np.inf, 0.0, -0.0, np.nan])).numpy()
    np.testing.assert_array_equal(found, np.float32([1, -1, 0, 0, np.nan]))
    assert np.signbit(found[2:4]).tolist() == [False, True]
    assert tanh(Tensor([3.0, 100.0], dtypes.fp8e4m3)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_gradients_are_finite_everywhere(name: str) -> None:
    x = Tensor([-3e38, -100.0, 0.0, 50.0, 3e38])
    (slope,) = gradient(getattr(uop, name)(x).sum(), [x])
    assert slope is not None
    found = slope.numpy()
    assert np.isfinite(found).all()
    assert found[2] == {"tanh": 1.0, "sigmoid": 0.25}[name]


def test_the_logistic_function_and_the_rectifier() -> None:
    x = Tensor([-1000.0, -2.0, 0.0, 2.0, 1000.0])
    low, a, half, b, high = x.sigmoid().tolist()
    assert (low, half, high) == (0.0, 0.5, 1.0)
    assert abs(a + b - 1) < 2**-20
    assert abs(b - float(1 / (1 + arb(-2).exp()))) < 2**-20
    assert x.relu().tolist() == [0.0, 0.0, 0.0, 2.0, 1000.0]
