"""The rules of functions of one number, of EXP2, LOG2, SIN and short series; of normalisations.

In float32 a result is within 2e-6 of the exact one, relatively; those of Cos and Tan within an ULP
of the argument, absolutely. A test compares them with exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from uop.conformance.adapters.onnx.ops.elementwise import between
from uop.conformance.adapters.onnx.ops.views import over_channels, sliding
from uop.conformance.adapters.onnx.rules import rule
from uop.conformance.adapters.tensors import in_float32, padded
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op

SMALL = 0.25
"""Below it exp(x) - 1 and log(1 + x) are computed by their series."""


def series(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """c0 + c1 x + c2 x^2 + ..., from the last one on."""
    result = full((), coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result


def exp_minus_1(x: Tensor) -> Tensor:
    small = x * series(x, [1 / math.factorial(k + 1) for k in range(8)])
    return (abs(x) < SMALL).where(small, x.exp() - 1)


def log_of_1_plus(x: Tensor) -> Tensor:
    """log(1 + x) = 2 artanh(x / (2 + x))."""
    t = x / (x + 2)
    small = t * 2 * series(t * t, [1 / (2 * k + 1) for k in range(6)])
    return (abs(x) < SMALL).where(small, (x + 1).log())


def odd(apply: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """An odd function from its values at 0 and above."""
    value = apply(abs(x))
    return (x < 0).where(-value, value)


def sinh(x: Tensor) -> Tensor:
    """Halves go into the exponent, so that it is finite as long as the result."""

    def above_0(x: Tensor) -> Tensor:
        e = exp_minus_1(x)
        half = (x - math.log(2)).exp()
        return (x < 1).where((e + e / (e + 1)) * 0.5, half - (-x).exp() * 0.5)

    return odd(above_0, x)


def acosh(x: Tensor) -> Tensor:
    t = x - 1
    return log_of_1_plus(t + (t * (t + 2)).sqrt())


def cos(x: Tensor) -> Tensor:
    return (x + math.pi / 2).sin()


def atan(x: Tensor) -> Tensor:
    """Two steps bring the argument below tan(pi/8); 10 terms of the series do the rest."""

    def above_0(x: Tensor) -> Tensor:
        inverted = x > 1
        t = inverted.where(x.recip(), x)
        turned = t > math.tan(math.pi / 8)
        t = turned.where((t - 1) / (t + 1), t)
        value = t * series(t * t, [(-1) ** k / (2 * k + 1) for k in range(10)])
        value = turned.where(value + math.pi / 4, value)
        return inverted.where(-value + math.pi / 2, value)

    return odd(above_0, x)


def erf(x: Tensor) -> Tensor:
    """Below 1 its Maclaurin series; above it 7.1.26 of Abramowitz and Stegun, within 1.5e-7."""

    def above_0(x: Tensor) -> Tensor:
        terms = [(-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(11)]
        small = x * (2 / math.sqrt(math.pi)) * series(x * x, terms)
        t = (x * 0.3275911 + 1).recip()
        fit = [0, 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429]
        return (x < 1).where(small, -series(t, fit) * (-x * x).exp() + 1)

    return odd(above_0, x)


UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Exp": Tensor.exp,
    "Log": Tensor.log,
    "Sigmoid": Tensor.sigmoid,
    "Softplus": lambda x: x.maximum(0) + log_of_1_plus((-abs(x)).exp()),
    "Softsign": lambda x: x / (abs(x) + 1),
    "Tanh": Tensor.tanh,
    "Sin": Tensor.sin,
    "Cos": cos,
    "Tan": lambda x: x.sin() / cos(x),
    "Asin": lambda x: atan(x / ((x + 1) * (-x + 1)).sqrt()),
    "Acos": lambda x: atan(((-x + 1) / (x + 1)).sqrt()) * 2,
    "Atan": atan,
    "Sinh": sinh,
    "Cosh": lambda x: (abs(x) - math.log(2)).exp() + (-abs(x)).exp() * 0.5,
    "Asinh": partial(odd, lambda x: log_of_1_plus(x + x * x / ((x * x + 1).sqrt() + 1))),
    "Acosh": acosh,
    "Atanh": partial(odd, lambda x: log_of_1_plus(x * 2 / (-x + 1)) * 0.5),
    "Erf": erf,
}


for name, apply in UNARY.items():
    rule(name)(partial(in_float32, apply))


@rule("HardSigmoid", since=6)
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return between(x * alpha + beta, min=0, max=1)


@rule("LeakyRelu", since=6)
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return (x < 0).where(x * alpha, x)


@rule("PRelu")
def parametric_relu_of_channels(
    x: Tensor, slope: Tensor, *, consumed_inputs: Sequence[int] | None = None
) -> Tensor:
    """Before version 7 a vector has one slope for each channel."""
    return parametric_relu(x, slope.reshape(-1, *[1] * max(x.ndim - 2, 0)))


@rule("PRelu", since=7)
def parametric_relu(x: Tensor, slope: Tensor) -> Tensor:
    return (x < 0).where(x * slope, x)


@rule("Elu", since=6)
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return in_float32(lambda x: (x < 0).where(exp_minus_1(x) * alpha, x), x)


@rule("Selu", since=6)
def selu(
    x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Tensor:
    return elu(x, alpha=alpha) * gamma


@rule("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return (x > alpha).where(x, full((), 0, x.dtype))


def mean_and_variance(x: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
    """Along these axes, which become of size 1."""
    count = math.prod(x.shape[axis] for axis in axes)
    mean = x.reduce(Op.ADD, axes) / count
    centred = x - mean
    return mean, (centred * centred).reduce(Op.ADD, axes) / count


@rule("BatchNormalization", since=9)
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    outputs: int,
) -> list[Tensor]:
    """While training, by the statistics of the batch, which move those that are kept."""
    used_mean, used_variance = mean, variance
    if training_mode:
        m, v = mean_and_variance(x, [0, *range(2, x.ndim)])
        used_mean, used_variance = m.reshape(-1), v.reshape(-1)
    m, v = over_channels(used_mean, x.ndim), over_channels(used_variance, x.ndim)
    y = (x - m) / (v + epsilon).sqrt()
    y = y * over_channels(scale, x.ndim) + over_channels(bias, x.ndim)
    moved = [
        old * momentum + new * (1 - momentum)
        for old, new in ((mean, used_mean), (variance, used_variance))
    ]
    return [y, *moved][:outputs]


@rule("BatchNormalization")
def batch_normalization_of_inference(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    consumed_inputs: Sequence[int] | None = None,
    epsilon: float = 1e-5,
    is_test: int = 0,
    momentum: float = 0.9,
    spatial: int = 1,
    outputs: int,
) -> list[Tensor]:
    """Before version 9 the number of outputs says whether it trains."""
    if outputs > 1 or not spatial:
        raise UnsupportedError("training, or statistics of each element, before version 9")
    return batch_normalization(x, scale, bias, mean, variance, epsilon=epsilon, outputs=1)


@rule("InstanceNormalization", since=6)
def instance_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5
) -> Tensor:
    mean, variance = mean_and_variance(x, [*range(2, x.ndim)])
    y = (x - mean) / (variance + epsilon).sqrt()
    return y * over_channels(scale, x.ndim) + over_channels(bias, x.ndim)


@rule("LRN")
def local_response(
    x: Tensor, *, size: int, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    """Divided by a power of the sum of squares over the channels around each one."""
    before = (size - 1) // 2
    total = sliding(padded(x * x, 1, before, size - 1 - before), 1, size).sum(-1)
    return in_float32(lambda x, s: x / (s * (alpha / size) + bias) ** beta, x, total)
