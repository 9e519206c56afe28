"""ONNX models of strangers: what asks for more than there is, or is no text, is an error of uop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uop.conformance.adapters.onnx.read import MOST_OF_MODEL, from_onnx
from uop.spec.errors import UopError

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")

LARGE = 10**12


def model(
    op: str, *known: Any, inputs: Sequence[tuple[int, ...]] = (), opset: int = 20, **attributes: Any
) -> bytes:
    """A model of one node: first inputs of these shapes, then initialisers."""
    helper, types = onnx.helper, onnx.TensorProto
    given = [
        helper.make_tensor_value_info(f"x{k}", types.INT64, shape) for k, shape in enumerate(inputs)
    ]
    held = [
        onnx.numpy_helper.from_array(np.asarray(value), f"c{k}") for k, value in enumerate(known)
    ]
    names = [each.name for each in (*given, *held)]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph(
        [node], "g", given, [helper.make_tensor_value_info("y", types.INT64, ("n",))], held
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    data: bytes = made.SerializeToString()
    return data


MODELS = {
    "a delta of 0": (model("Range", 0, 10, 0), "expected a delta that is not 0"),
    "a delta of 0.0": (model("Range", 0.0, 10.0, 0.0), "expected a delta that is not 0"),
    "a range": (model("Range", 0, LARGE, 1), "elements, found 1,000,000,000,000"),
    "a range of nan": (model("Range", 0.0, np.nan, 1.0), "elements, found nan"),
    "an endless range": (model("Range", 0.0, np.inf, 1.0), "elements, found inf"),
    "one hot": (
        model("OneHot", LARGE, np.asarray([0, 1]), inputs=[(2,)]),
        "elements, found 1,000,000,000,000",
    ),
    "an identity": (model("EyeLike", inputs=[(10**6, 10**6)]), "elements, found"),
    "a triangle": (model("Trilu", inputs=[(LARGE, 2)]), "elements, found"),
    "a loop without a body": (b"\x08\x0a", "no valid ONNX model"),
    "no model": (b"\xff" * 100, "no ONNX model"),
    "empty": (b"", "no valid ONNX model"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_asks_for_too_much_is_an_error(name: str) -> None:
    data, said = MODELS[name]
    with pytest.raises(UopError) as caught:
        from_onnx(data)
    assert said in str(caught.value)


def test_a_large_step_gives_few_numbers() -> None:
    program = from_onnx(model("Range", 0, 5, LARGE))
    assert program.root.shape == (1,)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    data = model("NoSuchOp", inputs=[(2,)]).replace(b"NoSuchOp", b"NoSuch\xff\xfe")
    with pytest.raises(UopError, match="ONNX model"):
        from_onnx(data)
    (tmp_path / "a.onnx").write_bytes(data)
    with pytest.raises(UopError, match="ONNX model"):
        from_onnx(tmp_path / "a.onnx")


def test_a_file_without_end_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.touch()
    with path.open("r+b") as file:
        file.truncate(MOST_OF_MODEL + 1)
    with pytest.raises(UopError, match=r"a\.onnx: expected at most 1,073,741,824 bytes"):
        from_onnx(path)
