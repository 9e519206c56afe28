"""The flat IR of a trace, and the worked example of the document of the lazy frontend."""

from __future__ import annotations

import numpy as np
import pytest

import uop
from uop import Tensor, dtypes, flat, trace
from uop.conformance.adapters.stablehlo.traced import IMAGES
from uop.spec.errors import UnsupportedError

X = np.array([[1, 2, 4], [8, 16, 32]], np.float32)


def test_the_worked_example() -> None:
    """tanh(full((2, 3), 0.5)) in the forms of the document, with static shapes and own names."""
    out = uop.tanh(uop.full((2, 3), value=0.5))
    assert str(trace(out)) == (
        "t0 = storage(data=[2, 3], shape=(2,), dtype=int32, device=None)\n"
        "t1 = storage(data=0.5, shape=(), dtype=float32, device=None)\n"
        "t2 = fill(t0, t1, dtype=float32)\n"
        "t3 = unaryelementwise(t2, kind=Kind.TANH)\n"
        "outputs:\n"
        "    t3: [shape=([2, 3]), dtype=(float32), loc=(None)]"
    )
    lowered = flat(trace(out))
    assert str(lowered) == (
        "Main Function:\n"
        "inputs:\n"
        "t0: [rank=(0), shape=([]), dtype=(float32)] = ConstantOp(data=5.000000e-01)\n"
        "t1: [rank=(2), shape=([2, 3]), dtype=(float32)] = BroadcastInDimOp(t0, dims=[])\n"
        "t2: [rank=(2), shape=([2, 3]), dtype=(float32)] = TanhOp(t1)\n"
        "outputs:\n"
        "    t2: [rank=(2), shape=([2, 3]), dtype=(float32)]"
    )
    assert lowered.mlir() == (
        "module {\n"
        "  func.func @main() -> (tensor<2x3xf32>) {\n"
        "    %0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>\n"
        "    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>\n"
        "    %2 = stablehlo.tanh %1 : tensor<2x3xf32>\n"
        "    return %2 : tensor<2x3xf32>\n"
        "  }\n"
        "}\n"
    )


@pytest.mark.parametrize("kind", IMAGES)
def test_a_function_with_an_image_is_one_op(kind: str) -> None:
    x = Tensor(uop.param(0, (2, 3), dtypes.float32))
    called = getattr(x, kind.removeprefix("Kind.").lower(), x.__abs__)()
    lowered = flat(trace(called))
    assert [op.name for op in lowered.ops] == [IMAGES[kind]]
    assert [t.shape for t in lowered.inputs] == [(2, 3)]


def test_calls_inside_calls_data_and_other_ops() -> None:
    x = Tensor(X)
    y = ((x.exp() + x).tanh() * 2).sum(0)
    lowered = flat(trace(y, x.exp()))
    assert lowered.inputs == ()
    names = [op.name for op in lowered.ops]
    assert (names.count("exponential"), names.count("tanh"), names.count("constant")) == (1, 1, 3)
    assert [t.shape for t in lowered.outputs] == [(3,), (2, 3)]
    # One line of the module for each op, and the six around them.
    assert len(lowered.mlir().splitlines()) == len(lowered.ops) + 5
    assert "dense<[[1.000000e+00, 2.000000e+00, 4.000000e+00], [8.0" in lowered.mlir()


def test_absent_elements_stay_absent_in_a_call() -> None:
    """A sum skips them: exp of what stands for them would be counted."""
    x = Tensor(X).pad((1, 0), (0, 0)).exp().sum(0)
    lowered = flat(trace(x))
    assert "exponential" not in {op.name for op in lowered.ops}
    assert "select" in {op.name for op in lowered.ops}


def test_a_trace_from_text_has_no_nodes() -> None:
    read = uop.parse_trace(str(trace(Tensor(X).exp())))
    with pytest.raises(UnsupportedError, match="expected a trace of Tensors, found one from text"):
        flat(read)


@pytest.mark.slow
def test_the_modules_are_those_of_stablehlo() -> None:
    """Its parser verifies them, and its interpreter gives what JAX gives."""
    jnp = pytest.importorskip("jax.numpy", reason="needs the extra xla")
    from uop.conformance.adapters.stablehlo.library import library

    x = Tensor(X / 8)
    lowered = flat(trace(x.tanh(), x.exp(), x.log(), x.sigmoid(), abs(-x)))
    found = library().evaluated(library().parsed(lowered.mlir()), [])
    assert [np.asarray(a).shape for a in found] == [(2, 3)] * 5
    assert np.asarray(found[4]).tolist() == jnp.abs(-X / 8).tolist()


@pytest.mark.slow
def test_xla_compiles_and_runs_it() -> None:
    pytest.importorskip("jax", reason="needs the extra xla")
    with uop.backend("xla"):
        out = uop.relu(Tensor(X) - uop.full((2, 3), value=7.5))
        assert isinstance(out.eval(), Tensor)
    assert out.tolist() == [[0.0, 0.0, 0.0], [0.5, 8.5, 24.5]]
