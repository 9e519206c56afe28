"""The suite as files: it can be checked without this project, and outputs are judged by it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from click.testing import CliRunner

from uop.__main__ import main
from uop.cli import cli
from uop.conformance.backends.interpreter import evaluate_whole, in_order, is_sharded
from uop.conformance.exported.files import Described, ExportError, export, read_arrays, read_sets
from uop.conformance.exported.score import read_manifest, score
from uop.conformance.report.ci import junit_text
from uop.conformance.report.html.page import page
from uop.conformance.report.model import Conclusion, Report, cell_of
from uop.conformance.run import Exit
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id, groups
from uop.interpreter.evaluate import evaluate
from uop.spec.errors import UopError
from uop.spec.text import json_form

DOCS = Path(__file__).parents[2] / "docs" / "suite-as-files.md"
BYTES = ("int8", "uint8", "fp8e4m3", "fp8e5m2")
IDS = [
    *(f"op/{op}/{dtype}/edges/0" for op in ("ADD", "MAX", "SUB") for dtype in BYTES),
    *(f"op/REDUCE/{dtype}/MAX-edges/0" for dtype in BYTES),
    *(f"op/POW/{dtype}/edges/0" for dtype in ("float16", "float32", "fp8e5m2")),
    "op/CMPLT/bool/edges/0",
    "op/IDIV/int8/edges/0",
    *(str(group.id(0)) for level in ("graph", "kernel", "device") for group in groups(level)[:4]),
]
Check = Callable[[int, list[tuple[int, int]], int, dict[str, Any]], bool]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    made = [case_by_id(id) for id in IDS]
    done = export(folder, [case for case in made if isinstance(case, Case)])
    assert (done.cases, done.left_out) == (len(IDS), 0)
    return folder


@pytest.fixture(scope="module")
def outputs(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the interpreter gives, by the files alone."""
    folder = tmp_path_factory.mktemp("outputs")
    for line in lines(exported)[1:]:
        case = exported / line["id"]
        root = json_form.loads((case / "graph.json").read_text())
        described = [Described.from_json(found) for found in line["inputs"]]
        arrays = read_arrays(case / "inputs.bin", described) if described else []
        inputs = {i["slot"]: a for i, a in zip(line["inputs"], arrays, strict=True)}
        run = evaluate_whole if is_sharded(root) else evaluate
        (folder / line["id"]).mkdir(parents=True)
        data = b"".join(a.tobytes() for a in in_order(run(root, inputs)))
        (folder / line["id"] / "outputs.bin").write_bytes(data)
    return folder


def lines(exported: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (exported / "manifest.jsonl").read_text().splitlines()]


def test_every_case_of_the_reference_passes(exported: Path, outputs: Path) -> None:
    report = score(exported, outputs)
    assert report.conclusion is Conclusion.CONFORMS
    assert report.summary.passed == len(lines(exported)) - 1
    assert report.summary.measured == report.summary.elements > 0
    assert 0 < report.summary.single_share <= report.summary.constrained_share <= 1


def test_the_command_of_the_documentation_writes_its_reports(
    exported: Path, outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command,) = re.findall(r"```sh\nuop (.*?)\n```", DOCS.read_text("utf-8"), re.DOTALL)
    given = {"DIR": str(exported), "OUTPUTS": str(outputs)}
    words = [given.get(word, word) for word in command.split()]
    monkeypatch.chdir(tmp_path)
    assert main(words) == Exit.OK
    assert {path.name for path in tmp_path.iterdir()} == {w for w in words if "report." in w}


def checker() -> Check:
    """The checker that the documentation prints."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    return cast(Check, names["accepted"])


@pytest.mark.slow
def test_the_checker_in_the_documentation_agrees_on_every_pattern_of_a_byte(exported: Path) -> None:
    """Over all bytes as results of cases with 8-bit outputs."""
    header, *cases = lines(exported)
    accepted, seen = checker(), set[tuple[str, bool]]()
    for line in cases:
        outputs = [Described.from_json(found) for found in line["outputs"]]
        names = [d.dtype.name for d in outputs]
        kind = (names[0], line["intervals"] > 1)
        if names not in ([name] for name in ("bool", *BYTES)) or kind in seen:
            continue
        case, dtype = exported / line["id"], header["dtypes"][outputs[0].dtype.name]
        low = (case / "low.bin").read_bytes()
        high = (case / "high.bin").read_bytes() if (case / "high.bin").exists() else low
        flags = case / "flags.bin"
        size, count = outputs[0].elements, line["intervals"]
        given = flags.read_bytes() if flags.exists() else bytes(size)
        ends = list(zip(low, high, strict=True))
        assert len(ends) == size * count
        intervals = [ends[k::size] for k in range(size)]
        (sets,) = read_sets(case, outputs, count)
        for x in range(256):
            values = np.full(outputs[0].shape, x, np.uint8).view(sets.value.data.dtype)
            expected = sets.contains(values).reshape(-1).tolist()
            found = [accepted(x, *parts, dtype) for parts in zip(intervals, given, strict=True)]
            assert found == expected, (line["id"], x)
        seen.add(kind)
    ones = {(name, False) for name in ("bool", *BYTES)}
    assert seen >= ones | {(name, True) for name in BYTES if name.startswith("fp8")}


def test_an_export_of_one_interval_for_each_element_is_read(
    exported: Path, outputs: Path, tmp_path: Path
) -> None:
    """The first schema, whose manifest counts no intervals."""
    header, *cases = lines(exported)
    kept = [line for line in cases if line.pop("intervals") == 1]
    assert 0 < len(kept) < len(cases)
    first = tmp_path / "exported"
    shutil.copytree(exported, first)
    text = [json.dumps(line) for line in ({**header, "schema": "uop-corpus/1"}, *kept)]
    (first / "manifest.jsonl").write_text("\n".join([*text, ""]))
    report = score(first, outputs)
    assert report.conclusion is Conclusion.CONFORMS
    assert report.summary.passed == len(kept)


@pytest.mark.parametrize("count", [0, 6, 10**9, "1", True])
def test_a_wrong_count_of_intervals_is_refused(
    exported: Path, tmp_path: Path, count: object
) -> None:
    header, case, *_ = lines(exported)
    text = [json.dumps(line) for line in (header, {**case, "intervals": count})]
    (tmp_path / "manifest.jsonl").write_text("\n".join([*text, ""]))
    with pytest.raises(ExportError, match="intervals: expected 1 to 5"):
        score(tmp_path, tmp_path)


def test_the_checker_in_the_documentation_knows_the_special_values() -> None:
    """By hand, in float32: both zeros, NaNs, the ends of intervals."""
    accepted, dtype = checker(), {"bits": 32, "order": "float", "last": 0x7F800000}
    minus_zero, zero, one, nan, other_nan = 0x80000000, 0, 0x3F800000, 0x7FC00000, 0xFFC00001
    assert accepted(zero, [(minus_zero, zero)], 0, dtype)
    assert not accepted(minus_zero, [(zero, one)], 0, dtype)
    assert accepted(one, [(minus_zero, one)], 0, dtype)
    assert not accepted(one + 1, [(minus_zero, one)], 0, dtype)
    assert not accepted(nan, [(zero, one)], 0, dtype)
    assert accepted(other_nan, [(zero, one)], 2, dtype)
    assert accepted(other_nan, [(nan, nan)], 6, dtype)
    assert not accepted(one, [(nan, nan)], 6, dtype)
    assert not accepted(other_nan, [(nan, nan)], 14, dtype)
    assert accepted(nan, [(nan, nan)], 14, dtype)
    assert accepted(other_nan, [(zero, zero)], 1, dtype)
    assert accepted(one, [(zero, zero), (one, one)], 0, dtype)
    assert not accepted(one - 1, [(zero, zero), (one, one)], 0, dtype)
    signalling, quiet = 0x7F800001, 0x7FC00001
    assert accepted(quiet, [(signalling, quiet)], 14, dtype)
    assert not accepted(nan, [(signalling, quiet)], 14, dtype)


def altered(outputs: Path, folder: Path, id: str, change: Callable[[bytes], bytes]) -> Path:
    shutil.copytree(outputs, folder)
    path = folder / id / "outputs.bin"
    path.write_bytes(change(path.read_bytes()))
    return folder


def an_int8_case(exported: Path) -> str:
    return next(
        str(line["id"]) for line in lines(exported) if line.get("id", "").startswith("op/ADD/int8/")
    )


def test_one_wrong_element_is_found(exported: Path, outputs: Path, tmp_path: Path) -> None:
    id = an_int8_case(exported)
    wrong = altered(outputs, tmp_path / "wrong", id, lambda b: bytes([b[0] ^ 1]) + b[1:])
    report = score(exported, wrong)
    assert [failure.id for failure in report.failures] == [id]
    assert "output 0[0] is" in report.failures[0].message


@pytest.mark.parametrize("byte", [2, 0xFF])
def test_a_bool_is_0_or_1(exported: Path, outputs: Path, tmp_path: Path, byte: int) -> None:
    id = next(line["id"] for line in lines(exported)[1:] if line["outputs"][0]["dtype"] == "bool")
    true = (outputs / id / "outputs.bin").read_bytes().index(1)
    wrong = altered(
        outputs, tmp_path / "wrong", id, lambda b: b[:true] + bytes([byte]) + b[true + 1 :]
    )
    (failure,) = score(exported, wrong).failures
    assert f"is 0x{byte:02x}, accepted " in failure.message


def test_outputs_that_are_cut_off_fail_alone(exported: Path, outputs: Path, tmp_path: Path) -> None:
    id = an_int8_case(exported)
    report = score(exported, altered(outputs, tmp_path / "short", id, lambda b: b[:-1]))
    assert [failure.id for failure in report.failures] == [id]
    assert re.search(r"expected \d+ bytes, found \d+", report.failures[0].message)


def test_what_is_not_there_is_skipped_with_its_reason(
    exported: Path, outputs: Path, tmp_path: Path
) -> None:
    id = an_int8_case(exported)
    folder = altered(outputs, tmp_path / "less", id, lambda b: b)
    (folder / id / "skipped.txt").write_text("no int8 here\n")
    assert reason(score(exported, folder), id) == "no int8 here"
    (folder / id / "skipped.txt").unlink()
    (folder / id / "outputs.bin").unlink()
    assert reason(score(exported, folder), id) == "no outputs"


@pytest.mark.parametrize("kind", ["fifo", "device", "sparse"])
def test_what_has_no_end_is_not_read(
    exported: Path, outputs: Path, tmp_path: Path, kind: str
) -> None:
    id = an_int8_case(exported)
    path = altered(outputs, tmp_path / "odd", id, lambda b: b) / id / "outputs.bin"
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 1 << 40)
    report = score(exported, tmp_path / "odd")
    assert [failure.id for failure in report.failures] == [id]


def test_a_reason_of_any_bytes_is_printed_safely(
    exported: Path, outputs: Path, tmp_path: Path
) -> None:
    id = an_int8_case(exported)
    folder = altered(outputs, tmp_path / "less", id, lambda b: b)
    (folder / id / "skipped.txt").write_bytes(b"no \xff \x1b[2J" + bytes(1 << 20))
    assert str(reason(score(exported, folder), id)).startswith("no \ufffd \\x1b[2J\\x00")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"shape": [', '"shape": [-1, '),
        ('"shape": [', '"shape": ["a", '),
        ('"shape": [', f'"shape": [{"9" * 4000}, '),
        ('"dtype": "', '"dtype": "x'),
        ('"dtype": "int8"', '"dtype": "void"'),
        ('"id": "', '"id": 7, "x": "'),
        ('"uop": "', '"u": "'),
        ('"profile": "', '"profile": 7, "x": "'),
        ('"outputs": [', '"outputs": 7, "x": ['),
        ('"outputs": [', '"outputs": ' + "[" * 100_000),
    ],
)
def test_a_manifest_with_a_wrong_part_is_refused(
    exported: Path, tmp_path: Path, old: str, new: str
) -> None:
    text = (exported / "manifest.jsonl").read_text()
    assert old in text
    (tmp_path / "manifest.jsonl").write_text(text.replace(old, new))
    with pytest.raises(UopError):
        read_manifest(tmp_path)


def reason(report: Report, id: str) -> str | None:
    (cell,) = (cell for cell in report.cells if cell.place == cell_of(id))
    return cell.skipped_reason


def test_a_score_is_written_in_every_form(
    exported: Path,
    outputs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ["--json", "r.json", "--junit", "r.xml", "--html", "r.html"]
    result = CliRunner().invoke(
        cli, ["judge", str(exported), str(outputs), *files], standalone_mode=False
    )
    assert result.return_value == 0
    assert json.loads(Path("r.json").read_text())["schema"] == "uop-report/1"
    assert Path("r.xml").read_text().startswith("<?xml")
    assert f"uop judge {exported} {outputs}" in Path("r.html").read_text()
    assert main(["replay", "r.json"]) == Exit.USAGE
    assert "a report of `uop judge` names no backend" in capsys.readouterr().err


def test_a_file_that_fails_is_judged_again_by_the_same_command(
    exported: Path, outputs: Path, tmp_path: Path
) -> None:
    shutil.copytree(outputs, wrong := tmp_path / "wrong")
    (wrong / an_int8_case(exported) / "outputs.bin").write_bytes(b"")
    report = score(exported, wrong)
    for text in (junit_text(report), page(report)):
        assert f"uop judge {exported} {wrong}" in text
        assert "uop replay /" not in text


def test_no_outputs_at_all_is_inconclusive(exported: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["judge", str(exported), str(tmp_path)], standalone_mode=False)
    assert result.return_value == 4


def test_an_export_that_is_cut_off_is_named(exported: Path, outputs: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(exported, broken)
    low = broken / an_int8_case(exported) / "low.bin"
    low.write_bytes(low.read_bytes()[:-1])
    with pytest.raises(ExportError, match=r"low\.bin: expected"):
        score(broken, outputs)
    manifest = broken / "manifest.jsonl"
    manifest.write_text(manifest.read_text()[:-20])
    with pytest.raises(ExportError, match="not a manifest, or is truncated"):
        read_manifest(broken)


@pytest.mark.parametrize("text", ["", "{}\n", "[]\n", '{"schema": "uop-corpus/9"}\n', "\x00\xff"])
def test_what_is_no_export_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.jsonl").write_text(text)
    with pytest.raises(ExportError):
        read_manifest(tmp_path)


def test_a_folder_that_is_not_empty_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(ExportError, match="is not empty"):
        export(tmp_path, [])
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_does_not_fit_is_left_out(tmp_path: Path) -> None:
    case = case_by_id("op/POW/float32/edges/0")
    assert isinstance(case, Case)
    done = export(tmp_path, [case], most_bytes=1000)
    assert (done.cases, done.left_out) == (0, 1)
    assert len(lines(tmp_path)) == 1


def test_folders_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="cannot read"):
        score(tmp_path / "nothing", tmp_path)
    with pytest.raises(ExportError, match="is not a folder"):
        score(tmp_path, tmp_path / "nothing")
