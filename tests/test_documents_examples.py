"""The example programs of the documents: each runs, and gives what was computed without this code.

The files state hand vectors; here the compositions are computed once more by numpy, and all run on
two targets of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from flint import arb

from uop.conformance.judging.storage import from_literal
from uop.conformance.judging.verdict import Status
from uop.conformance.run.replay import replay
from uop.interpreter.evaluate import evaluate
from uop.interpreter.numeric.storage import Array
from uop.spec.case import FileCase
from uop.spec.editions import EDITIONS, print_program, print_tree
from uop.spec.editions import parse as parse_edition
from uop.spec.text.uop_file import read_file

FOLDER = Path(__file__).parent.parent / "examples" / "documents"
CASES = {
    f"{path.stem}/{case.id}": case
    for path in sorted(FOLDER.glob("*.uop"))
    for case in read_file(path).cases
}
COUNTS = {"2026-05": 13, "2026-06": 13, "bestiary": 20, "tripy": 1}
every_case = pytest.mark.parametrize("name", CASES)


def inputs_of(case: FileCase) -> dict[int, Array]:
    return {slot: from_literal(array) for slot, array in case.inputs.items()}


def by_number(result: object) -> dict[int, Array]:
    return result if isinstance(result, dict) else {0: np.asarray(result)}


def test_every_document_has_its_examples() -> None:
    found = dict.fromkeys(COUNTS, 0)
    for name in CASES:
        found[name.partition("/")[0]] += 1
    assert found == COUNTS


@every_case
def test_it_names_its_source(name: str) -> None:
    assert CASES[name].comment.startswith(f"{name.partition('/')[0]}, section")


@every_case
def test_it_gives_what_its_file_says(name: str) -> None:
    case = CASES[name]
    assert case.root is not None
    assert case.expect or name == "tripy/tanh_of_fill"
    found = by_number(evaluate(case.root, inputs_of(case)))
    for number, expected in case.expect.items():
        np.testing.assert_array_equal(found[number], from_literal(expected))


def scattered(t: Array, idx: Array, val: Array) -> Array:
    result = t.copy()
    np.add.at(result, idx, val)
    return result


BY_NUMPY: dict[str, Callable[..., Array]] = {
    "gemm": np.matmul,
    "prefix_sum": np.cumsum,
    "arange": lambda: np.arange(5),
    "gather": lambda t, idx: t[idx],
    "scatter_add": scattered,
    "broadcast": np.copy,
    "scatter": np.copy,
    "gather_shards": np.copy,
    "reduce": lambda t: t.reshape(2, 4).sum(0),
    "allgather": np.copy,
    "reduce_scatter": lambda t: t.reshape(2, 4).sum(0),
    "allreduce": lambda t: t.reshape(2, 4).sum(0),
    "function": np.add,
}


@pytest.mark.parametrize("edition", ["2026-05", "2026-06"])
@pytest.mark.parametrize("name", BY_NUMPY)
def test_a_composition_is_what_numpy_computes(edition: str, name: str) -> None:
    case = CASES[f"{edition}/{name}"]
    assert case.root is not None
    stated = inputs_of(case)
    draw = np.random.default_rng(7)
    drawn = {
        slot: draw.integers(0, 4, a.shape).astype(a.dtype) for slot, a in sorted(stated.items())
    }
    for inputs in (stated, drawn):
        expected = BY_NUMPY[name](*(inputs[slot] for slot in sorted(inputs)))
        np.testing.assert_array_equal(evaluate(case.root, inputs), expected)


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("target", ["opencl", "cuda-host"])
def test_it_gives_the_same_when_it_is_compiled(target: str) -> None:
    """As `uop replay` judges the files: every example runs, and none is left out."""
    found = replay([FOLDER], target)
    assert {f"{r.path.stem}/{r.case}": str(r.verdict.status) for r in found} == dict.fromkeys(
        CASES, str(Status.PASSED)
    )


def test_tanh_lies_in_the_enclosure_of_its_steps() -> None:
    """Each step in ball arithmetic, widened by half an ulp, as the steps of the file round."""
    unit, x = arb(1, arb(2) ** -24), arb(0.5)
    factor = 2 / arb.const_log2() * unit
    power = arb(2) ** (x * factor * unit) * unit
    ball = (1 - 2 / ((power + 1) * unit) * unit) * unit
    case = CASES["tripy/tanh_of_fill"]
    assert case.root is not None
    found = np.asarray(evaluate(case.root, {}))
    assert found.shape == (2, 3)
    assert all(ball.contains(arb(float(v))) for v in found.flat)
    assert ball.contains(x.tanh())


@every_case
def test_it_reads_back_in_its_edition(name: str) -> None:
    edition, root = name.partition("/")[0], CASES[name].root
    assert root is not None
    if edition in EDITIONS:
        assert parse_edition(print_program(root, edition)) is root
    if edition == "bestiary":
        assert parse_edition(print_tree(root)) is root
