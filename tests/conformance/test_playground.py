"""The page of `uop view`: what stands on it, and, in Chromium, that it opens, is whole and fits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest

from uop.compiler import pipeline
from uop.compiler.pipeline import OPENCL
from uop.compiler.stages.stage import Setting
from uop.conformance.locate import page as pages
from uop.conformance.locate.page import page
from uop.conformance.locate.stages import check_stages
from uop.spec.dtype import dtypes
from uop.spec.ops.names import Op
from uop.spec.text.uop_file import read_file
from uop.spec.uop import UOp, param

EXAMPLE = Path(__file__).parents[2] / "examples" / "softmax.uop"
WIDTHS = {"wide": 1280, "narrow": 390}


def page_of(root: UOp, inputs: dict[int, Any]) -> str:
    return page("softmax.uop", root, inputs, check_stages(root, [inputs], Setting(OPENCL)))


@pytest.fixture(scope="module")
def example() -> str:
    (case,) = read_file(EXAMPLE).cases
    assert case.root is not None
    return page_of(case.root, {0: np.arange(15, dtype=np.float32).reshape(3, 5)})


@pytest.fixture(scope="module")
def probed(example: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("pages")
    extra = "focused: all('[tabindex], a, summary').length,"
    return browser.probed(folder, dict.fromkeys(WIDTHS, example), WIDTHS, extra)


@pytest.mark.parametrize("size", WIDTHS)
def test_it_opens_in_a_browser_and_fits(probed: dict[str, Any], size: str) -> None:
    found = probed[size]
    assert found["width"] <= found["room"] == WIDTHS[size]
    assert (found["loaded"], found["twice"], found["dead"]) == ([], [], [])
    assert (found["main"], found["lang"]) == (1, "en")
    assert found["title"] == "softmax.uop: how it is compiled"
    assert found["focused"] > 20


def test_it_loads_nothing_and_runs_nothing(example: str) -> None:
    assert not re.search(r"<script|<link(?! rel=\"icon\" href=\"data:,\")|<img|@import", example)
    assert not re.search(r"https?://", example)


def test_it_has_every_stage_every_step_and_values(example: str) -> None:
    for stage in pipeline.STAGES:
        assert f'id="stage-{stage.name}"' in example
    steps = re.findall(r"<h3>(\d+) of (\d+): (\w+)/(\w+)</h3>", example)
    assert [int(step[0]) for step in steps] == [*range(1, int(steps[0][1]) + 1)]
    assert "= [[4.0], [9.0], [14.0]]" in example, "the maximum of each row"
    assert "Both sides have the same value." in example
    assert "every stage keeps the meaning" in example


def test_lines_of_the_source_lead_to_their_nodes(example: str) -> None:
    lines = dict(re.findall(r'<a href="#(render-\d+)"><code>\s*(.*?)</code>', example))
    powers = [id for id, line in lines.items() if "exp2" in line]
    assert powers
    for id in powers:
        assert re.search(rf'<li id="{id}"[^>]*><code>%\d+ = EXP2', example)


def test_a_large_program_is_cut_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("MOST_NODES", 5), ("MOST_STEPS", 2), ("MOST_LINES", 3)):
        monkeypatch.setattr(pages, name, most)
    t = param(0, (2, 3), dtypes.int32)
    whole = UOp(Op.ADD, UOp(Op.MUL, t, t), UOp(Op.NEG, t))
    text = page_of(whole, {0: np.ones((2, 3), np.int32)})
    assert "nodes before are not shown" in text
    assert "more firings are not shown" in text
    assert "more lines are not shown" in text
    assert text.count("<h3>") == 2
    ids = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= ids
