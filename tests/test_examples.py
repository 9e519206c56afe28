"""The examples, each against an independent computation.

Where every intermediate result is a small integer the results must be equal. Softmax and layer
norm are enclosed: each op is done in ball arithmetic and widened by the rounding of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from uop.conformance.run.replay import replay
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp

EXAMPLES = Path(__file__).parent.parent / "examples"
UNIT = arb(2) ** -24
"""Half an ulp of float32, relative."""


def program(name: str) -> UOp:
    root = read_file(EXAMPLES / f"{name}.uop").cases[0].root
    assert root is not None
    return root


def run(name: str, *inputs: Array) -> Array:
    result = evaluate(program(name), dict(enumerate(inputs)))
    assert isinstance(result, np.ndarray)
    return result


def small_integers(shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    return st.integers(0, 2**32 - 1).map(
        lambda seed: np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)
    )


@given(small_integers((2, 3)), small_integers((3, 4)))
def test_gemm(a: Array, b: Array) -> None:
    expected = [[sum(a[i, k] * b[k, j] for k in range(3)) for j in range(4)] for i in range(2)]
    assert run("gemm", a, b).tolist() == expected


@given(small_integers((4, 5)), small_integers((3, 3)))
def test_conv2d(image: Array, kernel: Array) -> None:
    def pixel(i: int, j: int) -> float:
        return float(image[i, j]) if 0 <= i < 4 and 0 <= j < 5 else 0.0

    taps = [(di, dj) for di in range(3) for dj in range(3)]
    expected = [
        [sum(pixel(i + di - 1, j + dj - 1) * kernel[di, dj] for di, dj in taps) for j in range(5)]
        for i in range(4)
    ]
    assert run("conv2d", image, kernel).tolist() == expected


@given(st.lists(st.integers(0, 255), min_size=12, max_size=12))
def test_histogram(data: list[int]) -> None:
    expected = [data.count(value) for value in range(6)]
    assert run("histogram", np.array(data, np.uint8)).tolist() == expected


def rounded(exact: arb) -> arb:
    """Every float32 to which a number in this ball may be rounded, barring subnormals."""
    return exact * arb(1, UNIT)


def total(terms: list[arb]) -> arb:
    result = terms[0]
    for term in terms[1:]:
        result = rounded(result + term)
    return result


def exactly(x: float) -> arb:
    return arb(float(x))


def softmax(row: Array) -> list[arb]:
    largest = exactly(max(float(x) for x in row))
    log2_e = rounded(1 / arb.const_log2())
    powers = [rounded(arb(2) ** rounded(rounded(exactly(x) - largest) * log2_e)) for x in row]
    sum_of = total(powers)
    return [rounded(p / sum_of) for p in powers]


def layer_norm(row: Array, scale: Array, shift: Array) -> list[arb]:
    eighth = exactly(0.125)
    mean = rounded(total([exactly(x) for x in row]) * eighth)
    centred = [rounded(exactly(x) - mean) for x in row]
    variance = rounded(total([rounded(c * c) for c in centred]) * eighth)
    deviation = rounded(rounded(variance + rounded(arb("1e-5"))).sqrt())
    return [
        rounded(rounded(rounded(c / deviation) * exactly(g)) + exactly(b))
        for c, g, b in zip(centred, scale, shift, strict=True)
    ]


def rows(shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    return st.integers(0, 2**32 - 1).map(
        lambda seed: np.random.default_rng(seed).normal(0, 3, shape).astype(np.float32)
    )


def assert_enclosed(found: Array, enclosure: Callable[[Array], list[arb]], data: Array) -> None:
    for row, result in zip(data, found, strict=True):
        for ball, value in zip(enclosure(row), result, strict=True):
            assert ball.contains(exactly(value))


@given(rows((3, 5)))
def test_softmax(data: Array) -> None:
    assert_enclosed(run("softmax", data), softmax, data)


@given(rows((2, 8)), rows((8,)), rows((8,)))
def test_layer_norm(data: Array, scale: Array, shift: Array) -> None:
    assert_enclosed(
        run("layer_norm", data, scale, shift), lambda row: layer_norm(row, scale, shift), data
    )


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.uop")), ids=lambda p: p.stem)
def test_every_example_runs_on_the_inputs_it_carries_and_is_tested_here(path: Path) -> None:
    (case,) = read_file(path).cases
    assert case.root is not None
    inputs = {
        slot: np.frombuffer(a.data, np_dtype(a.dtype)).reshape(a.shape)
        for slot, a in case.inputs.items()
    }
    result = evaluate(case.root, inputs)
    assert isinstance(result, np.ndarray)
    assert result.shape == case.root.shape
    assert f"test_{path.stem}" in globals()


@pytest.mark.parametrize(
    ("backend", "status"), [("Fault", "PASSED"), ("ShiftThereAndBack", "FAILED")]
)
def test_a_planted_fault_fails_its_witness(
    backend: str, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES / "backends")
    monkeypatch.syspath_prepend(".")
    faults = import_module("faults")
    (tmp_path / "witness.uop").write_text(faults.ShiftThereAndBack.WITNESS)
    [replayed] = replay([tmp_path / "witness.uop"], f"faults:{backend}")
    assert replayed.verdict.status.name == status
