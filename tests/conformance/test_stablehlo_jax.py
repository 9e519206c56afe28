"""Functions of JAX as programs: what XLA computes lies in the sets that the spec accepts.

Products and sums are of small whole numbers, so that every order of them is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from stablehlo_programs import fault

from uop.conformance.adapters.stablehlo.read import from_stablehlo
from uop.interpreter.numeric.storage import Array
from uop.spec.errors import UnsupportedError
from uop.spec.graph import slots_of

jax = pytest.importorskip("jax", reason="the tests of JAX's functions need the extra xla")

pytestmark = pytest.mark.slow
jnp, lax = jax.numpy, jax.lax
jax.config.update("jax_platforms", "cpu")


def whole(*shape: int) -> Array:
    """Distinct small whole numbers, as floats, in no order."""
    size = int(np.prod(shape))
    numbers = np.random.default_rng(size).permutation(size) - size // 2
    return numbers.astype(np.float32).reshape(shape)


def between(*shape: int) -> Array:
    """Floats from -1 to 1."""
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of JAX and its arguments."""

    of: Callable[..., Any]
    arguments: Sequence[Any]


def layer_norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.T / 2, -1) @ v


def convolution(**options: Any) -> Callable[..., Any]:
    return lambda x, kernel: lax.conv_general_dilated(x, kernel, **options)


def bits(x: Any) -> Any:
    return lax.population_count(x), lax.clz(x), x << 40, lax.shift_right_logical(x, np.int32(3)), ~x


def curves(x: Any) -> Any:
    roots = lax.rsqrt(x), jnp.cbrt(x), lax.logistic(x)
    return (jnp.tanh(x), jnp.exp(x), jnp.log(x), jnp.log1p(x), jnp.expm1(x), jnp.cos(x), *roots)


NHWC = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
DILATED = {"padding": ((1, 2), (0, 1)), "lhs_dilation": (2, 1), "rhs_dilation": (1, 2)}
ROUNDINGS = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.3, -0.3, 0.0, -0.0, 3e9, np.inf], np.float32)
I32 = np.int32
FUNCTIONS = {
    "softmax": Function(jax.nn.softmax, [between(3, 5)]),
    "layer norm": Function(layer_norm, [between(3, 5)]),
    "attention": Function(attention, [between(3, 4), between(5, 4), between(5, 2)]),
    "matmul": Function(jnp.matmul, [whole(3, 4), whole(4, 2)]),
    "einsum": Function(
        lambda a, b: jnp.einsum("bij,kbj->bik", a, b), [whole(2, 3, 4), whole(5, 2, 4)]
    ),
    "outer": Function(jnp.outer, [whole(3), whole(2)]),
    "int8 to int32": Function(
        lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
        [np.int8([[-128, 127, 3]]), np.int8([[-128], [127], [4]])],
    ),
    "cumsum": Function(lambda x: jnp.cumsum(x, 1), [whole(3, 5)]),
    "cummax": Function(lambda x: lax.cummax(x, 1), [whole(3, 5)]),
    "max pool": Function(
        lambda x: lax.reduce_window(x, np.float32(-np.inf), lax.max, (1, 2, 3), (1, 2, 1), "SAME"),
        [whole(2, 5, 6)],
    ),
    "convolution": Function(
        convolution(window_strides=(2, 1), feature_group_count=2, **DILATED),
        [whole(2, 4, 6, 7), whole(6, 2, 3, 2)],
    ),
    "channels last": Function(
        convolution(window_strides=(1, 1), padding="SAME", **NHWC),
        [whole(2, 5, 6, 3), whole(3, 2, 3, 4)],
    ),
    "groups of batches": Function(
        convolution(window_strides=(1,), padding="SAME", batch_group_count=2),
        [whole(4, 3, 6), whole(6, 3, 3)],
    ),
    "rows": Function(
        lambda x, n: jnp.take(x, n, axis=1, mode="clip"), [whole(3, 5), I32([4, 0, 9, -3])]
    ),
    "pairs of indices": Function(lambda x, n: x[n, :, n], [whole(3, 5, 4), I32([2, 0, 1])]),
    "along an axis": Function(
        lambda x, n: jnp.take_along_axis(x, n, axis=1), [whole(3, 5), I32([[2, 0], [1, 1], [4, 3]])]
    ),
    "a window": Function(
        lambda x, n: lax.dynamic_slice(x, (n, n - 4), (2, 3)), [whole(4, 5), I32(3)]
    ),
    "an update": Function(
        lambda x, u, n: lax.dynamic_update_slice(x, u, (n, n - 9)),
        [whole(4, 5), whole(2, 3) + 100, I32(3)],
    ),
    "padding": Function(
        lambda x: lax.pad(x, np.float32(77), ((1, -1, 2), (-1, 2, 1))), [whole(4, 5)]
    ),
    "parts": Function(lambda x, y: jnp.concatenate([x, y, x], 1), [whole(2, 3), whole(2, 4)]),
    "equal parts": Function(lambda x, y: jnp.concatenate([x, y], 1), [whole(2, 3), whole(2, 3)]),
    "steps": Function(lambda x: x[::2, 1:7:3], [whole(5, 8)]),
    "a transpose": Function(lambda x: x.transpose(2, 0, 1)[::-1], [whole(2, 3, 4)]),
    "roundings": Function(lambda x: (jnp.round(x), jnp.floor(x), jnp.ceil(x)), [ROUNDINGS]),
    "bits": Function(bits, [I32([5, -1, 0, 1 << 30, -7])]),
    "curves": Function(curves, [np.float32([0.1, 0.5, 0.9, 1e-6, 0.7])]),
    "bfloat16": Function(
        lambda x: jnp.where(x > 0, x, 0).astype(jnp.bfloat16) * jnp.bfloat16(0.1), [whole(5)]
    ),
    "division": Function(lambda x, y: (x // y, x % y), [I32([7, -7, 9]), I32([2, 2, -4])]),
    "a condition": Function(
        lambda p, x: lax.cond(p > 0, lambda v: v + 1, lambda v: v * 2, x), [I32(1), whole(3)]
    ),
    "folds": Function(
        lambda x: ((x > 0).any(0), (x > 1).all(0), x.min(1), x.max(), x[:2].prod()), [whole(3, 2)]
    ),
    "an iota": Function(lambda x: x + lax.broadcasted_iota(jnp.float32, (3, 4), 1), [whole(3, 4)]),
    "finite": Function(jnp.isfinite, [np.float32([1, np.inf, np.nan, -np.inf])]),
    "a gradient": Function(jax.grad(lambda x: (jnp.maximum(x, 0) ** 2).sum()), [whole(4)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_xla_computes_what_the_program_accepts(name: str) -> None:
    function = FUNCTIONS[name]
    lowered = jax.jit(function.of).lower(*function.arguments)
    root = from_stablehlo(lowered.as_text())
    inputs = {slot: np.asarray(function.arguments[slot]) for slot in slots_of(root)}
    results = jax.tree.leaves(lowered.compile()(*function.arguments))
    assert fault(root, inputs, [np.asarray(r) for r in results]) is None


@pytest.mark.parametrize(
    ("of", "op"),
    [
        (jnp.sort, "stablehlo.sort"),
        (lambda x: lax.fori_loop(0, 3, lambda i, v: v * 2, x), "stablehlo.while"),
        (jnp.argmax, "stablehlo.reduce: expected one operand and its init, found 4"),
        (jax.scipy.special.erf, "chlo.erf"),
    ],
)
def test_a_function_without_an_image_is_refused_by_its_op(of: Callable[..., Any], op: str) -> None:
    with pytest.raises(UnsupportedError, match=op):
        from_stablehlo(jax.jit(of).lower(whole(4)).as_text())
