"""Reports that `uop compare` reads: which can be compared, in which order, what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from comparisons import MISSING, failing, ran

from uop.conformance.checks import OptionError
from uop.conformance.compare.gather import compare, compared
from uop.conformance.report.format import report_text
from uop.conformance.report.model import Report
from uop.conformance.run.options import Options


def written(folder: Path, name: str, made: Report) -> str:
    path = folder / name
    path.write_text(report_text(made))
    return str(path)


def test_reports_are_compared_without_judging(tmp_path: Path) -> None:
    sources = [written(tmp_path, f"{name}.json", failing(name)) for name in "ba"]
    poll = compare(sources, Options(sources[0]))
    assert [one.options.backend for one in poll.report.every] == ["b", "a"]
    whole = [written(tmp_path, "c.json", ran(name="c")),
             written(tmp_path, "all.json", compared(poll.report.every, [MISSING]))]  # fmt: skip
    poll = compare(whole, Options(whole[0]))
    assert [one.options.backend for one in poll.report.every] == ["c", "b", "a"]
    assert poll.report.vote is not None
    assert poll.report.vote.missing == (MISSING,)
    # It is named once, and no more where it has a report.
    again = written(tmp_path, "again.json", compared([ran(name="d")], ["gone: otherwise"]))
    poll = compare([*whole, again], Options(again))
    assert poll.report.vote is not None
    assert poll.report.vote.missing == ("gone: otherwise",)
    poll = compare([*whole, written(tmp_path, "gone.json", ran(name="gone"))], Options(again))
    assert poll.report.vote is not None
    assert poll.report.vote.missing == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 3}, "expected seed 0 as in {a}, found 3"),
        ({"levels": ("op", "graph")}, "found op,graph"),
        ({"ops": ("ADD",)}, "expected ops None as in {a}, found ADD"),
        ({"effort": "smoke"}, "expected effort default as in {a}, found smoke"),
        ({"effort": "fuzz"}, "expected a report of `uop conform`, found one of `uop fuzz`"),
        ({"shard": "1/2"}, "found that of shard 1/2; `uop merge` joins the shards"),
        ({"exported": Path("x"), "outputs": Path("y")}, "found one of `uop judge`"),
    ],
)
def test_reports_of_other_cases_are_not_comparable(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    a, other = written(tmp_path, "a.json", ran(name="a")), ran(name="b")
    b = written(tmp_path, "b.json", replace(other, options=replace(other.options, **changed)))
    with pytest.raises(OptionError) as caught:
        compare([a, b], Options(a))
    assert str(caught.value).startswith(f"{b}: ")
    assert said.format(a=a) in str(caught.value)


def test_reports_of_another_suite_are_not_comparable(tmp_path: Path) -> None:
    a = written(tmp_path, "a.json", ran(name="a"))
    old = replace(ran(name="b"), generator=replace(ran().generator, version=1))
    b = written(tmp_path, "b.json", old)
    with pytest.raises(OptionError, match=r"expected generator 2 as in .*, found 1"):
        compare([a, b], Options(a))
    with pytest.raises(OptionError, match="expected generator 2 as in this uop, found 1"):
        compare([b, "interpreter"], Options(b))
    c = written(tmp_path, "c.json", replace(ran(name="c"), suite="0.0.1"))
    with pytest.raises(OptionError, match=r"expected suite .* as in .*, found 0\.0\.1"):
        compare([a, c], Options(a))


def test_a_backend_comes_once(tmp_path: Path) -> None:
    a = written(tmp_path, "a.json", ran(name="a"))
    b = written(tmp_path, "b.json", ran(name="a"))
    for sources, said in (
        ([a, b], f"found a twice: {a} and {b}"),
        ([a, a], f"found a twice: {a}"),
        ([a, "a"], f"found a twice: {a} and the command line"),
        (["interpreter", "interpreter"], "found interpreter twice: the command line"),
        ([a], "expected at least two backends, found 1: a; `uop conform` judges one"),
    ):
        with pytest.raises(OptionError, match=re.escape(said)):
            compare(sources, Options(a))


def test_a_report_that_is_damaged_is_named(tmp_path: Path) -> None:
    a = written(tmp_path, "a.json", ran(name="a"))
    (tmp_path / "b.json").write_text(Path(a).read_text()[:100])
    with pytest.raises(OptionError, match=r"b\.json:\d+:\d+: the file is cut off"):
        compare([a, str(tmp_path / "b.json")], Options(a))
    with pytest.raises(OptionError, match=r"cannot read .*c\.json: No such file"):
        compare([a, str(tmp_path / "c.json")], Options(a))
