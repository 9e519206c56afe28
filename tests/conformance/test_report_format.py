"""Reading reports: what is no report is named; the checks agree with those of jsonschema."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from reports import PASSED, damaged, failing, report

from uop.conformance.checks import OptionError
from uop.conformance.report.diff import changes, notes
from uop.conformance.report.format import as_json, parse_report, problems, read_report
from uop.conformance.report.html.page import page
from uop.conformance.report.sample import sample
from uop.conformance.report.tally import LONGEST, MARKS, NOT_RUN, listed_id, place_of
from uop.conformance.report.vote import polled
from uop.conformance.run.options import Options
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.generate import group_of
from uop.interpreter.accepted import order
from uop.spec.errors import UopError

SCHEMA_TEXT = files("uop.conformance.report").joinpath("uop-report-1.schema.json").read_text()
SCHEMA = json.loads(SCHEMA_TEXT)
WHOLE = as_json(failing())


def changed(*path: str | int, to: Any) -> Any:
    found = deepcopy(json.loads(json.dumps(WHOLE)))
    place = found
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return found


@pytest.mark.parametrize("index", [0, LONGEST - 1, LONGEST, 295_276_294_669])
def test_a_case_is_found_by_the_place_of_its_mark(index: int) -> None:
    """Also one with a number so large that no text could hold a mark for each number below."""
    key, place = place_of("graph/MIXED/int8/pairs", index)
    assert place < LONGEST
    assert CaseId.parse(listed_id(key, place)).index == index


@pytest.mark.slow
def test_what_is_read_can_be_compared_and_judged_again() -> None:
    whole = polled([failing(), report(PASSED, backend="other")])
    read = 0
    for other in damaged(json.loads(json.dumps(as_json(whole)))):
        with suppress(UopError):
            found = parse_report(json.dumps(other), "r.json")
            read += 1
            for a, b in ((found, whole), (whole, found)):
                assert isinstance([*changes(a, b), *notes(a, b)], list)
            options = found.options
            Options(options.backend, seed=options.seed, profile=found.profile).checked()
            assert page(found)
            for id in sample(found, 1000):
                group_of(CaseId.parse(id))
    assert read > 500


def test_the_marks_of_cases_are_those_that_are_written() -> None:
    for mark in map(chr, range(256)):
        wrong = list(problems(changed("cases", "op/EXP2/float32/edges", to=f".{mark}.")))
        assert (not wrong) == (mark in [*MARKS.values(), NOT_RUN])


def test_no_key_of_the_schema_stands_twice() -> None:
    """The second one would replace the first without a word."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), [name for name, _ in pairs]
        return dict(pairs)

    json.loads(SCHEMA_TEXT, object_pairs_hook=once)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(WHOLE))
    assert as_json(read_report(path)) == json.loads(json.dumps(WHOLE))


def test_the_largest_distance_is_read() -> None:
    """That from the first uint64 to the last, as a float."""
    ends = np.zeros(1, np.uint64), np.full(1, ~np.uint64(0))
    largest = float(order.distance(*ends)[0])
    text = json.dumps(changed("cells", 0, "max_ulp", to=largest))
    assert parse_report(text, "r.json").cells[0].max_ulp == largest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "r.json:1:1: the file is cut off"),
        (json.dumps(WHOLE)[:200], "the file is cut off"),
        (json.dumps(WHOLE)[: len(json.dumps(WHOLE)) // 2], "the file is cut off"),
        (json.dumps(WHOLE)[:-1], "the file is cut off"),
        ("no json", "r.json:1:1: no JSON"),
        ("[" * 100_000, "nested too deep"),
        ("[]", "expected a report"),
        ('{"a": 1}', "expected a report"),
        (json.dumps({**WHOLE, "schema": "uop-report/2"}), 'found "uop-report/2"'),
        (json.dumps({**WHOLE, "schema": None}), "found null"),
        (json.dumps({"schema": "uop-report/1"}), "suite: missing"),
        (json.dumps(changed("cells", 0, "op", to=5)), "cells[0].op: expected string, found 5"),
        (json.dumps(changed("cells", 0, "failed", to=-1)), "cells[0].failed: -1 is out of range"),
        (json.dumps(changed("cells", 0, "failed", to=1 << 63)), "is out of range"),
        (json.dumps(changed("cells", 0, "failed", to=True)), "cells[0].failed: expected integer"),
        (json.dumps(changed("summary", "verdict", to="fine")), "expected one of conforms"),
        (json.dumps(changed("cases", "op/x", to=["."])), "cases.op/x: expected string"),
    ],
)
def test_what_is_no_report_is_named(text: str, said: str) -> None:
    with pytest.raises(OptionError) as error:
        parse_report(text, "r.json")
    assert said in str(error.value)
    assert str(error.value).startswith("r.json")


def test_every_cut_of_a_report_is_named() -> None:
    text = json.dumps(WHOLE)
    for end in range(0, len(text), 97):
        with pytest.raises(OptionError, match="the file is cut off"):
            parse_report(text[:end], "r.json")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"cannot read .*none.json: No such file"):
        read_report(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(OptionError, match="bytes that are no text"):
        read_report(tmp_path / "bytes.json")


@pytest.mark.parametrize(
    "found",
    [
        WHOLE,
        as_json(report()),
        as_json(polled([failing(), report(backend="other")])),
        changed("cells", 0, "op", to=None),
        changed("cells", 0, "max_ulp", to="1"),
        changed("cells", 0, "largest", to={}),
        changed("failures", 0, "values", 0, "inputs", to=[1]),
        changed("options", to=[]),
        changed("unknown", to=1),
    ],
)
def test_the_checks_agree_with_a_validator_of_json_schema(found: Any) -> None:
    found = json.loads(json.dumps(found))
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert (not list(problems(found))) == validator.is_valid(found)
