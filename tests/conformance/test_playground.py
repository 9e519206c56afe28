"""What the playground shows of a program, and its page as a file, also in Chromium."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest

from uop.compiler import pipeline
from uop.compiler.pipeline import OPENCL
from uop.compiler.stages.stage import Setting
from uop.conformance.locate.stages import check_stages
from uop.conformance.playground import shown as data
from uop.conformance.playground import worker
from uop.conformance.playground.page import page_of_file, served_page
from uop.conformance.playground.shown import Shown, Verdict, judged, outputs_of, shown
from uop.conformance.playground.worker import Check, Compare, Evaluate, Judge, answered, ask
from uop.spec.case import FileCase
from uop.spec.dtype import dtypes
from uop.spec.errors import BackendError
from uop.spec.ops.names import Op
from uop.spec.text.uop_file import parse_file, read_file
from uop.spec.uop import UOp, param

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.uop"))
SOFTMAX = (FOLDER / "softmax.uop").read_text()
WIDTHS = (380, 1200)
INPUT = "%0 = PARAM [2] {slot=0, dtype=int32}\n"


def judged_page(case: FileCase, inputs: dict[int, Any]) -> Shown:
    assert case.root is not None
    checked = check_stages(case.root, [inputs], Setting(OPENCL))
    outputs = outputs_of(case.root, inputs)
    page = shown(case.root, inputs, outputs, checked.log, checked.compiled)
    return judged(page, inputs, checked)


def case_of(root: UOp) -> FileCase:
    return FileCase("", root)


@pytest.fixture(scope="module")
def softmax() -> FileCase:
    return parse_file(SOFTMAX).cases[0]


@pytest.fixture(scope="module")
def example(softmax: FileCase) -> Shown:
    return judged_page(softmax, {0: np.arange(15, dtype=np.float32).reshape(3, 5)})


@pytest.fixture(scope="module")
def written(softmax: FileCase, example: Shown) -> str:
    return page_of_file("softmax.uop", softmax, "opencl", example)


def evaluated(text: str, seed: int = 0) -> Shown:
    found = answered(Evaluate(text, "opencl", seed))
    assert isinstance(found, Shown)
    return found


def test_every_stage_has_a_graph_with_values(example: Shown) -> None:
    names = [stage.name for stage in example.stages]
    assert names == [data.START, *(stage.name for stage in pipeline.STAGES)]
    assert "= [[4.0], [9.0], [14.0]]" in {node.value for node in example.graphs[0].nodes}
    assert not any(node.is_new for node in example.graphs[0].nodes)
    assert all(any(node.is_new for node in graph.nodes) for graph in example.graphs[1:])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_nodes_of_a_list_are_those_of_the_drawing(path: Path) -> None:
    for graph in evaluated(path.read_text()).graphs:
        drawn = re.findall(r'<tspan [^>]*font-weight="bold">(\w+)', graph.svg)
        assert drawn == [re.findall(r"= (\w+)", node.line)[0] for node in graph.nodes]


def test_every_firing_has_both_sides_and_a_verdict(example: Shown) -> None:
    assert len(example.steps) > 10
    assert all(step.matched and step.made and step.verdict.is_good for step in example.steps)
    assert Verdict("Both sides have the same value.") in {step.verdict for step in example.steps}
    assert example.verdict.said.startswith("every stage keeps the meaning")


def test_lines_of_the_source_lead_to_their_nodes(example: Shown) -> None:
    nodes = example.graphs[example.stages[-1].graph].nodes
    powers = [line for line in example.source if "exp2_f32(t" in line.text]
    assert powers
    assert all("= EXP2" in nodes[line.node].line for line in powers)


def test_outputs_have_what_is_accepted() -> None:
    (output,) = evaluated("%0 = CONST {value=nan, dtype=float32}\n%1 = MAX %0, %0").outputs
    assert [(e.place, e.value, e.accepted) for e in output.elements] == [("", "nan", "nan")]


def test_a_large_program_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("MOST", 5), ("MOST_STEPS", 2), ("MOST_LINES", 3), ("MOST_ELEMENTS", 4)):
        monkeypatch.setattr(data, name, most)
    t = param(0, (2, 3), dtypes.int32)
    whole = UOp(Op.ADD, UOp(Op.MUL, t, t), UOp(Op.NEG, t))
    page = judged_page(case_of(whole), {0: np.ones((2, 3), np.int32)})
    assert (len(page.steps), len(page.source), len(page.outputs[0].elements)) == (2, 3, 4)
    assert min(page.steps_left_out, page.lines_left_out, page.outputs[0].left_out) > 0
    assert max(graph.left_out for graph in page.graphs) > 0


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "no program"),
        (INPUT + "%1 = NEGG %0", 2, 6, "NEGG"),
        (INPUT + "%1 = ADD %0", 2, 1, "ADD.arity"),
        (INPUT + "input 0 = [1]", 2, 11, "expected 2 values"),
        (INPUT + "%1 = INDEX %0, 7", 2, 1, "INDEX"),
        (f"case a\n{INPUT}case b\n{INPUT}", 0, 0, "expected one case, found 2"),
        (INPUT + "invalid ADD.arity\n%1 = ADD %0", 0, 0, "breaks ADD.arity"),
        (INPUT + '%1 = CUSTOM %0 {fmt="f({0})", dtype=int32}', 2, 1, "native"),
    ],
)
def test_an_error_has_its_place(text: str, line: int, column: int, said: str) -> None:
    wrong = evaluated(text).wrong
    assert wrong is not None
    assert (wrong.line, wrong.column) == (line, column), wrong
    assert said in wrong.message
    assert "at: program" not in wrong.message


def test_a_program_without_meaning_still_has_a_graph() -> None:
    text = (
        INPUT
        + "%1 = PARAM [] {slot=1, dtype=index, min=0, max=9}\n%2 = INDEX %0, %1\ninput 1 = 7\n"
    )
    page = evaluated(text)
    assert page.wrong is not None
    assert page.wrong.line == 3
    assert [stage.name for stage in page.stages] == [data.START]
    assert answered(Check(text, "opencl", 0)).is_good is False  # type: ignore[union-attr]


def test_inputs_are_those_of_the_text_or_of_the_seed() -> None:
    def values(text: str, seed: int) -> list[str]:
        return [element.value for element in evaluated(text, seed).outputs[0].elements]

    assert values(INPUT, 1) == values(INPUT, 1) != values(INPUT, 2)
    assert values(INPUT + "input 0 = [3, 4]", 1) == ["3", "4"]


def test_a_firing_is_judged_by_its_number(example: Shown) -> None:
    found = answered(Judge(SOFTMAX, "opencl", 0, 0))
    assert found == example.steps[0].verdict
    assert answered(Judge(INPUT, "opencl", 0, 7)) == Verdict("No rule fires.", False)


def test_another_backend_beside_what_is_accepted() -> None:
    text = INPUT + "%1 = MUL %0, %0\ninput 0 = [3, -4]\n"
    found = json.loads(ask(Compare(text, 0, "numpy")))
    assert found["said"] == "every element is accepted"
    assert found["outputs"] == [[{"value": v, "is_accepted": True} for v in ("9", "16")]]
    assert "no program" in json.loads(ask(Compare("", 0, "numpy")))["said"]


def test_an_answer_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PATIENCE", 0.0)
    with pytest.raises(BackendError, match="longer than 0 s"):
        ask(Evaluate(SOFTMAX, "opencl", 0))


def test_the_page_loads_nothing_and_runs_its_own_script_alone(written: str) -> None:
    for page in (written, served_page(("numpy",))):
        assert not re.search(
            r"<script src|<link(?! rel=\"icon\" href=\"data:,\")|<img|@import", page
        )
        policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0]
        for kind, text in (
            ("script", re.findall(r"<script>(.*)</script>", page, re.DOTALL)[0]),
            ("style", re.findall(r"<style>(.*)</style>", page, re.DOTALL)[0]),
        ):
            digest = b64encode(sha256(text.encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}'" in policy


def test_text_of_a_program_ends_no_script(example: Shown) -> None:
    (case,) = parse_file("; </script><script>alert(1)</script><!--\n" + INPUT).cases
    page = page_of_file("<b>&", case, "opencl", example)
    assert page.count("</script>") == 2
    assert "<title>&lt;b&gt;&amp;</title>" in page


def test_the_program_of_a_page_has_its_inputs_unless_they_are_long(
    softmax: FileCase, example: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    def text_of(page: str) -> str:
        found = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0]
        return str(json.loads(found)["text"])

    assert "input 0 = " in text_of(page_of_file("", softmax, "opencl", example))
    monkeypatch.setattr("uop.conformance.playground.page.MOST_TEXT", 10)
    assert text_of(page_of_file("", softmax, "opencl", example)) == softmax.text


def test_examples_are_the_files_and_the_ops() -> None:
    page = served_page(())
    found = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])["examples"]
    texts = {(e["heading"], e["name"]): e["text"] for e in found}
    for path in EXAMPLES:
        assert texts["Programs", path.stem] == path.read_text()
    for op in (Op.PERMUTE, Op.CALL, Op.CUSTOM, Op.ALLREDUCE):
        assert evaluated(texts["Ops", op.name]).wrong is None, op


def test_the_file_opens_in_a_browser_and_fits(written: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(written)
    with browser.tab(tmp_path) as tab:
        for width in WIDTHS:
            tab.size(width)
            tab.open((tmp_path / "page.html").as_uri())
            assert tab.say("document.documentElement.scrollWidth <= innerWidth")
            assert tab.say("document.title") == "softmax.uop"
            for of_server in ("choices", "compare"):
                assert tab.say(f"document.getElementById('{of_server}').hidden")
            assert tab.say("document.getElementById('text').readOnly")
            assert "keeps the meaning" in tab.say("document.getElementById('verdict').textContent")
            tab.say("document.getElementById('stage-on').click()")
            # The program stands in the file, not in its address.
            assert tab.say("location.hash").startswith("#stage=callify&step=")
        assert tab.logged == []
        assert [name for name in tab.requests if not name.startswith(("file:", "data:"))] == []


def test_ids_are_distinct_and_labels_name_what_exists(written: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', written.partition("<script")[0])
    assert len(ids) == len(set(ids))
    for name in ("aria-labelledby", "aria-describedby"):
        assert set(re.findall(rf'{name}="([^"]+)"', written)) <= set(ids)
    assert {case.id for case in read_file(FOLDER / "softmax.uop").cases} == {""}
