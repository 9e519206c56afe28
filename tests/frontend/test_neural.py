"""Neural pieces against their formulas in balls; convolution against exact sums."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from oracles.derivatives import ENCLOSED, ball
from oracles.field import elements, evaluate_over

from uop import Tensor
from uop.spec.frontend import compositions

X = np.array([[0.5, -1.25, 3.0, 2.0], [2.0, 0.75, -1.5, 40.0], [0.0, -0.0, 1e-3, -7.5]])
Y = np.array([[1.0, 0.5, -2.0, 0.25], [-1.5, 2.5, 0.125, 3.0]])


@pytest.fixture(autouse=True)
def _precise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctx, "prec", 256)


def agree(result: Tensor, data: dict[Tensor, Any], wanted: Any) -> None:
    """One enclosure, which allows for every rounding, holds the formula and the result."""
    inputs = {t.uop: elements(v, ball) for t, v in data.items()}
    enclosed, computed = evaluate_over(ENCLOSED, result.uop, inputs), result.numpy()
    assert computed.shape == wanted.shape
    for where in np.ndindex(wanted.shape):
        assert enclosed[where].contains(arb(float(computed[where])))
        assert enclosed[where].overlaps(wanted[where])
        assert not enclosed[where].overlaps(wanted[where] + arb(2) ** -30)


def softmax(row: list[Any]) -> list[Any]:
    return [x.exp() / sum((y.exp() for y in row), arb(0)) for x in row]


def test_softmax() -> None:
    x = Tensor(X)
    agree(x.softmax(), {x: X}, np.array([softmax(row) for row in elements(X, ball)]))
    columns = np.array([softmax(column) for column in elements(X, ball).T]).T
    agree(x.softmax(0), {x: X}, columns)


def test_layer_norm() -> None:
    x, w, b = Tensor(X), Tensor(Y[0]), Tensor(Y[1])
    rows = []
    for row in elements(X, ball):
        mean = sum(row, arb(0)) / 4
        variance = sum(((v - mean) ** 2 for v in row), arb(0)) / 4
        scaled = [(v - mean) / (variance + arb(0.5)).sqrt() for v in row]
        rows.append([v * ball(s) + ball(o) for v, s, o in zip(scaled, Y[0], Y[1], strict=True)])
    agree(x.layer_norm(w, b, 0.5), {x: X, w: Y[0], b: Y[1]}, np.array(rows))


def test_attention() -> None:
    q, k, v = Tensor(Y), Tensor(X), Tensor(X[:, :2])
    rows = []
    for query in elements(Y, ball):
        scores = [sum(query * key, arb(0)) / 2 for key in elements(X, ball)]
        weights = softmax(scores)
        columns = elements(X[:, :2], ball).T
        rows.append([sum(np.array(weights) * column, arb(0)) for column in columns])
    agree(compositions.attention(q, k, v), {q: Y, k: X, v: X[:, :2]}, np.array(rows))


@pytest.mark.parametrize("padding", [0, 1, 2])
def test_conv2d(padding: int) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.integers(-9, 9, (2, 3, 5, 4)), rng.integers(-9, 9, (4, 3, 3, 2))
    found = compositions.conv2d(Tensor(x), Tensor(w), padding).tolist()
    side = (padding, padding)
    wide = np.pad(x, ((0, 0), (0, 0), side, side))
    height, width = wide.shape[2] - 2, wide.shape[3] - 1
    assert found == [
        [
            [
                [int((wide[n, :, i : i + 3, j : j + 2] * w[o]).sum()) for j in range(width)]
                for i in range(height)
            ]
            for o in range(4)
        ]
        for n in range(2)
    ]


def test_exponentials_and_logarithms_are_of_base_e() -> None:
    for data, found, wanted in ((Y, Tensor.exp, arb.exp), (abs(Y), Tensor.log, arb.log)):
        x = Tensor(data)
        agree(found(x), {x: data}, np.vectorize(wanted)(elements(data, ball)))


def test_windows() -> None:
    x = np.arange(2 * 4 * 5).reshape(2, 4, 5)
    wanted = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))
    np.testing.assert_array_equal(compositions.windows(Tensor(x), 3, 2).numpy(), wanted)


def test_softmax_of_large_numbers_is_no_nan() -> None:
    assert Tensor([1000.0, 0.0]).softmax().tolist() == [1.0, 0.0]
    assert Fraction(Tensor([5.0, 5.0]).softmax().tolist()[0]) == Fraction(1, 2)


def test_the_hyperbolic_tangent_of_a_constant_tensor() -> None:
    """A worked example of a lazy frontend: nothing runs before the value is asked for."""
    half = np.array([[0.5]])
    one = Tensor(half)
    filled = one.expand(2, 3)
    out = 1.0 - 2.0 / ((filled * 2.0).exp() + 1.0)
    assert (out.shape, out.dtype) == ((2, 3), filled.dtype)
    agree(out, {one: half}, np.full((2, 3), arb(0.5).tanh()))
