"""The rules of optimisers: one step of gradient descent for each of several Tensors."""

from __future__ import annotations

from collections.abc import Sequence

from uop.conformance.adapters.onnx.rules import rule
from uop.spec.dtype import dtypes
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor

DOMAIN = "ai.onnx.preview.training"


def groups(tensors: Sequence[Tensor], count: int) -> list[tuple[Tensor, ...]]:
    """The operands of each step: the first of each group, the second of each, ..."""
    size = len(tensors) // count
    return [*zip(*(tensors[k * size : (k + 1) * size] for k in range(count)), strict=True)]


def in_groups(results: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """The results of all steps, group by group."""
    return [t for group in zip(*results, strict=True) for t in group]


@rule("Momentum", domain=DOMAIN)
def momentum(
    rate: Tensor,
    count: Tensor,
    *tensors: Tensor,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> list[Tensor]:
    results = []
    for x, gradient, v in groups(tensors, 3):
        g = x * norm_coefficient + gradient
        v_new = v * alpha + (count > 0).where(full((), beta, x.dtype), 1) * g
        step = g + v_new * alpha if mode == "nesterov" else v_new
        results.append((x - rate * step, v_new))
    return in_groups(results)


@rule("Adagrad", domain=DOMAIN)
def adagrad(
    rate: Tensor,
    count: Tensor,
    *tensors: Tensor,
    decay_factor: float = 0.0,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
) -> list[Tensor]:
    results = []
    for x, gradient, h in groups(tensors, 3):
        g = x * norm_coefficient + gradient
        h_new = h + g * g
        slower = rate / (count.cast(rate.dtype) * decay_factor + 1)
        results.append((x - slower * g / (h_new.sqrt() + epsilon), h_new))
    return in_groups(results)


@rule("Adam", domain=DOMAIN)
def adam(
    rate: Tensor,
    count: Tensor,
    *tensors: Tensor,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> list[Tensor]:
    results = []
    for x, gradient, v, h in groups(tensors, 4):
        g = x * norm_coefficient + gradient
        v_new = v * alpha + g * (1 - alpha)
        h_new = h * beta + g * g * (1 - beta)
        steps = count.cast(dtypes.float32)
        kept = [-(full((), base, dtypes.float32) ** steps) + 1 for base in (alpha, beta)]
        adjusted = (count > 0).where(rate * kept[1].sqrt() / kept[0], rate)
        x_new = x - adjusted * (v_new / (h_new.sqrt() + epsilon))
        results.append((x_new * (1 - norm_coefficient_post), v_new, h_new))
    return in_groups(results)
