"""The rules of normalisations over batches, instances and channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from uop.conformance.adapters.onnx.ops.views import over_channels, sliding
from uop.conformance.adapters.onnx.rules import rule
from uop.conformance.adapters.tensors import in_float32
from uop.spec.args import PadFill
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.ops.names import Op


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
    squares = (x * x).pad(
        (0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2), fill=PadFill.ZERO
    )
    total = sliding(squares, 1, size).sum(-1)
    return in_float32(lambda x, s: x / (s * (alpha / size) + bias) ** beta, x, total)
