"""A graph drawn with its values, as cells of a notebook show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from uop.interpreter.show import show
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, param

NOTEBOOK = Path(__file__).parents[2] / "examples" / "graphs.ipynb"


def test_every_node_shows_its_value() -> None:
    x = param(0, (2,), dtypes.int8)
    root = UOp(Op.IDIV, UOp(Op.ADD, x, x), x)
    picture = show(root, {0: np.array([100, 0], np.int8)})._repr_html_()
    assert "= [100, 0]" in picture
    assert "= [-56, 0]" in picture
    assert "= [-1, unspecified]" in picture
    ElementTree.fromstring(picture)


def outputs(notebook: dict[str, Any]) -> list[str]:
    """Run the code cells in order, as a kernel does; what each shows for its last expression."""
    names: dict[str, Any] = {}
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            *statements, last = "".join(cell["source"]).rstrip().splitlines()
            exec("\n".join(statements), names)
            shown.append(eval(last, names)._repr_html_())
    return shown


def test_the_notebook_runs() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    found = outputs(notebook)
    assert len(found) == 3
    for picture in found:
        ElementTree.fromstring(picture)
    assert ["MUL" in picture for picture in found] == [True, True, True]
    assert "= [[4.0, 5.0, 5.0, 7.0]" in found[-1]
