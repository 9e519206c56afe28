"""The node tests that the package onnx ships, each read by `from_onnx`, run and compared."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from onnx.numpy_helper import to_array

from uop import UOp, from_onnx
from uop.conformance.adapters.onnx.read import NodeError, OnnxProgram
from uop.spec.errors import UnsupportedError

Array = NDArray[Any]
Run = Callable[[UOp, dict[int, Array]], Any]
"""Runs a program on inputs by slot: an array, or a tuple of them."""

EXCLUDED = Path(__file__).parent / "conformance" / "onnx_excluded.toml"


class Ending(Enum):
    """How a case ends."""

    PASSED = "passed"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case ended, and what was said."""

    name: str
    ending: Ending
    text: str = ""

    def fault(self) -> str:
        """What is wrong with it, by the lists of exclusions; empty if nothing is."""
        excluded = next((e for e in exclusions() if e.matches(self.name)), None)
        expected = Ending.PASSED if excluded is None else excluded.ending
        if self.ending is not expected:
            return f"{self.name}: expected {expected.value}; found {self.ending.value} {self.text}"
        if excluded is not None and excluded.error not in self.text:
            return f"{self.name}: expected {excluded.error!r}; found {self.text!r}"
        return ""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Cases that do not pass, by patterns of their names."""

    reason: str
    cases: tuple[str, ...]
    ending: Ending
    error: str = ""

    def matches(self, name: str) -> bool:
        return any(re.fullmatch(pattern, name) for pattern in self.cases)


@cache
def exclusions() -> tuple[Exclusion, ...]:
    """The cases that need not pass."""
    read = tomllib.loads(EXCLUDED.read_text())
    unsupported = (
        Exclusion(e["reason"], tuple(e["cases"]), Ending.UNSUPPORTED, e["error"])
        for e in read["excluded"]
    )
    inexact = (Exclusion(e["reason"], tuple(e["cases"]), Ending.FAILED) for e in read["inexact"])
    return (*unsupported, *inexact)


@dataclass(frozen=True, slots=True)
class Case:
    """A model with sets of inputs and of what it must give for them."""

    name: str
    model: Any
    data: tuple[tuple[Sequence[Any], Sequence[Any]], ...]
    rtol: float
    atol: float


@cache
def cases() -> tuple[Case, ...]:
    """All node tests, which onnx makes on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    return tuple(
        Case(
            each.name,
            each.model,
            tuple(([*map(_array, a)], [*map(_array, b)]) for a, b in each.data_sets),
            each.rtol,
            each.atol,
        )
        for each in loaded
    )


def models() -> Iterator[Case]:
    """The whole models whose inputs and outputs the package has, most of them from PyTorch."""
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        for each in load_model_tests(kind=kind):
            folder = Path(each.model_dir)
            sets = sorted(folder.glob("test_data_set_*"))
            data = tuple((_files(s, "input"), _files(s, "output")) for s in sets)
            model = onnx.load(folder / "model.onnx")
            yield Case(each.name, model, data, each.rtol, each.atol)


def _files(folder: Path, name: str) -> list[Array]:
    count = len([*folder.glob(f"{name}_*.pb")])
    return [
        to_array(TensorProto.FromString((folder / f"{name}_{k}.pb").read_bytes()))
        for k in range(count)
    ]


def outcome(case: Case, run: Run) -> Outcome:
    """Run one case and compare its outputs in ONNX's own way: its rtol and atol for floats."""
    try:
        for inputs, expected in case.data:
            program, arrays = read(case.model, inputs)
            found = run(program.root, program.inputs(**arrays))
            compare(found if isinstance(found, tuple) else (found,), expected, case)
    except UnsupportedError as error:
        return Outcome(case.name, Ending.UNSUPPORTED, str(error))
    except AssertionError as error:
        return Outcome(case.name, Ending.FAILED, str(error))
    return Outcome(case.name, Ending.PASSED)


def compare(found: tuple[Array, ...], expected: Sequence[Array], case: Case) -> None:
    for a, b in zip(found, expected, strict=True):
        if b.dtype.kind in "biu":
            # Within ONNX's rtol a large integer might be another one.
            np.testing.assert_array_equal(a, b)
    Runner.assert_similar_outputs(expected, found, case.rtol, case.atol)


def read(model: Any, inputs: Sequence[Array]) -> tuple[OnnxProgram, Mapping[str, Array]]:
    """Read a model. Inputs that its shapes depend on are bound; the others are left to the run."""
    arrays = dict(zip((each.name for each in model.graph.input), inputs, strict=False))
    static: dict[str, Array] = {}
    while True:
        try:
            program = from_onnx(model, static=static)
        except NodeError as error:
            if not error.needs:
                raise
            static |= {name: arrays.pop(name) for name in error.needs}
        else:
            return program, arrays


def _array(data: Any) -> Any:
    return to_array(data) if isinstance(data, TensorProto) else data
