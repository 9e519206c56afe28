"""The runtimes of ONNX models as backends; those that are not installed are skipped."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from uop.cli.suite.profile import observed
from uop.conformance.backends import load
from uop.conformance.checks import OptionError
from uop.conformance.profile.file import read_profile
from uop.conformance.protocol.hello import checked
from uop.conformance.protocol.types import (
    Backend,
    Hello,
    Outcome,
    Outputs,
    Problem,
    ProblemKind,
    Program,
)
from uop.interpreter.numeric.storage import Array, np_dtype
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError

pytestmark = pytest.mark.slow

PACKAGES = {
    "onnx-reference": "onnx",
    "onnxruntime": "onnxruntime",
    "onnxruntime:off": "onnxruntime",
    "openvino": "openvino",
    "tvm": "tvm",
}


@cache
def started(name: str) -> tuple[Backend, Hello]:
    """A backend and its hello; skips the test where its package is missing."""
    for package in ("onnx", PACKAGES[name]):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs the package {package}")
    backend = load(name)
    return backend, checked(backend.hello())


def outcome(name: str, text: str, *batches: dict[int, Array]) -> Outcome:
    backend, _ = started(name)
    (found,) = backend.run([Program(text, batches)])
    return found


def results(name: str, text: str, *batches: dict[int, Array]) -> list[list[Array]]:
    found = outcome(name, text, *batches)
    assert isinstance(found, Outputs), found
    return [[*batch] for batch in found.batches]


BY_NAME = pytest.mark.parametrize("name", PACKAGES)
STORES = """
%0 = BUFFER [5] {slot=3, dtype=int16, addrspace=GLOBAL}
%1 = PARAM [3] {slot=1, dtype=int16}
%2 = PAD %1, [1], [5]
%3 = STORE %0, %2
%4 = SINK %3
"""


@BY_NAME
def test_elements_that_are_absent_are_not_stored(name: str) -> None:
    a, b = np.array([7, 8, 9], np.int16), np.array([-1, -2, -3, -4, -5], np.int16)
    ((found,),) = results(name, STORES, {1: a, 3: b})
    assert found.dtype == np.int16
    assert found.tolist() == [-1, 7, 8, 9, -5]


@BY_NAME
def test_an_index_by_data_of_rank_0_and_a_run_on_each_batch(name: str) -> None:
    text = "%0 = PARAM [3] {slot=0, dtype=float32}\n%1 = PARAM [] {slot=1, dtype=int32}\n" \
        "%2 = INDEX %0, %1\n%3 = TUPLE %2, %0"  # fmt: skip
    x = np.array([4, 5, 6], np.float32)
    batches = [{0: x, 1: np.array(k, np.int32)} for k in (2, 0)]
    for (first, second), wanted in zip(results(name, text, *batches), (6, 4), strict=True):
        assert (first.shape, first.tolist()) == ((), wanted)
        assert second.tolist() == [4, 5, 6]


@BY_NAME
def test_values_without_elements(name: str) -> None:
    text = "%0 = PARAM [0,2] {slot=0, dtype=int32}\n%1 = REDUCE %0 {op=ADD, axes=(0)}\n" \
        "%2 = NEG %0\n%3 = TUPLE %1, %2"  # fmt: skip
    ((total, negated),) = results(name, text, {0: np.zeros((0, 2), np.int32)})
    assert total.tolist() == [[0, 0]]
    assert negated.shape == (0, 2)


@BY_NAME
@pytest.mark.parametrize("dtype", ["bfloat16", "fp8e4m3", "fp8e5m2", "float16", "bool", "uint8"])
def test_the_bits_of_every_dtype_go_in_and_out(name: str, dtype: str) -> None:
    if dtype not in started(name)[1].dtypes:
        pytest.skip(f"{name} has no {dtype}")
    x = np.array([1, 0, 2], np_dtype(getattr(dtypes, dtype)))
    ((found,),) = results(name, f"%0 = PARAM [3] {{slot=0, dtype={dtype}}}", {0: x})
    assert found.dtype == x.dtype
    assert found.tobytes() == x.tobytes()


@BY_NAME
def test_the_lowest_value_divided_by_minus_one_ends_no_process(name: str) -> None:
    text = "%0 = PARAM [3] {slot=0, dtype=int32}\n%1 = PARAM [3] {slot=1, dtype=int32}\n" \
        "%2 = IDIV %0, %1"  # fmt: skip
    a, b = np.array([-(2**31), 7, -7], np.int32), np.array([-1, 0, 2], np.int32)
    ((found,),) = results(name, text, {0: a, 1: b})
    assert (found[0], found[2]) == (-(2**31), -4)


def test_what_a_schema_allows_and_no_kernel_has_is_computed_in_another_dtype() -> None:
    text = "%0 = PARAM [3] {slot=0, dtype=int16}\n%1 = PARAM [3] {slot=1, dtype=int16}\n" \
        "%2 = MAX %0, %1\n%3 = CMPLT %0, %1\n%4 = WHERE %3, %0, %2"  # fmt: skip
    a, b = np.array([-5, 7, 300], np.int16), np.array([4, -9, 300], np.int16)
    ((found,),) = results("onnxruntime", text, {0: a, 1: b})
    assert found.tolist() == [-5, 7, 300]


def test_a_hello_lists_the_cells_that_a_runtime_lacks() -> None:
    _, hello = started("onnxruntime")
    assert not hello.takes("FLIP", "fp8e4m3")
    assert hello.takes("ADD", "fp8e4m3")
    assert hello.takes("MAX", "int16")
    assert hello.composed["TRUNC"] == ("CMPLT", "WHERE")
    assert "ADD" not in hello.composed
    assert started("onnxruntime:off")[1].variant == "off"
    _, full = started("onnx-reference")
    assert full.takes("FLIP", "fp8e4m3")


def test_a_program_with_a_cell_that_is_lacking_is_unsupported() -> None:
    text = "%0 = PARAM [3] {slot=0, dtype=fp8e4m3}\n%1 = FLIP %0 {flags=(true)}"
    found = outcome("onnxruntime", text, {0: np.zeros(3, np_dtype(dtypes.fp8e4m3))})
    assert isinstance(found, Problem)
    assert found.kind is ProblemKind.UNSUPPORTED
    assert found.message.startswith("there is no BitCast of fp8e4m3")


ANYWHERE = "onnx-reference"
"""It chooses the same on every processor."""
PROFILES = Path(__file__).parents[2] / "conformance" / "profiles"


@pytest.mark.parametrize("file", sorted(PROFILES.glob("*.toml")), ids=lambda file: file.stem)
def test_the_profile_of_a_backend_is_what_it_does(file: Path) -> None:
    """Written by `uop profile init NAME --output FILE`, of the version in its first line."""
    profile = read_profile(file)
    if file.stem != ANYWHERE:
        pytest.skip("what it chooses depends on the processor")
    _, hello = started(file.stem)
    if f" {hello.name} {hello.version} " in file.read_text("utf-8").partition("\n")[0]:
        assert observed(file.stem, None)[1].profile == profile


def test_a_level_of_optimisation_that_there_is_not() -> None:
    with pytest.raises(OptionError, match="expected one of off, basic, extended; found 'fast'"):
        load("onnxruntime:fast")


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("onnxruntime", "onnxruntime", "onnxruntime"),
        ("openvino", "openvino", "openvino"),
        ("tvm", "tvm", "tvm"),
        ("onnx-reference", "onnx.reference", "onnx"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnx", reason="needs the extra onnx")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UnsupportedError, match=rf'pip install "uop\[{extra}\]"'):
        load(name).hello()
