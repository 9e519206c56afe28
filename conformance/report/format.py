"""Report format 1: writes, reads and validates reports as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from uop.conformance.checks import OptionError
from uop.conformance.protocol.codec import Json, from_json, to_json
from uop.conformance.report.model import Cell, Report, cell_of
from uop.conformance.report.tally import statuses_of
from uop.conformance.suite.case import ALL_LEVELS, FUZZ
from uop.conformance.suite.vocabulary import Vocabulary
from uop.spec.text.reading import MOST_OF_DOCUMENT, read_bytes

SCHEMA = "uop-report/1"
ADDED = ("card", "ledger", "origin", "strength", "others", "vote", "against", "rules", "composed",
         "tried")  # fmt: skip
"""Optional keys, left out if the value is None."""
NOT_WRITTEN = ("case_failures", "graphs")
ONLY_OF_FILES = ("exported", "outputs")
OF_FILES = ("backend", "timeout", *ONLY_OF_FILES, "seed")
"""The options in a report of `uop judge`."""
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
HALF_A_WORD = re.compile(r"[-+.\\\w]{0,8}")
ANY = re.compile(r"(?s).*")
SHOWN = 60
"""The most characters of a wrong value in a message."""


def as_json(report: Report) -> Json:
    """Convert a report to JSON."""
    document: Json = {"schema": SCHEMA, **to_json(replace(report, others=None, case_failures={}))}
    options = document["options"]
    is_of_files = options["exported"] is not None
    names = OF_FILES if is_of_files else [name for name in options if name not in ONLY_OF_FILES]
    document["options"] = {name: options[name] for name in names}
    if report.others is not None:
        document["others"] = list(map(as_json, report.others))
    left_out = {*NOT_WRITTEN, *(name for name in ADDED if document[name] is None)}
    return {name: value for name, value in document.items() if name not in left_out}


def report_text(report: Report) -> str:
    """The text of a report file."""
    return json.dumps(as_json(report), indent=1) + "\n"


def read_report(path: Path) -> Report:
    """Read a report. Raises OptionError for any other file, with the place of the error."""
    try:
        text = read_bytes(path, MOST_OF_DOCUMENT).decode()
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise OptionError(f"{path}: expected a report, found bytes that are no text") from None
    return parse_report(text, str(path))


def parse_report(text: str, name: str) -> Report:
    """Parse a report; `name` is the name of the file in error messages."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        reason = "the file is cut off" if _is_cut(text, error) else f"no JSON: {error.msg}"
        raise OptionError(f"{name}:{error.lineno}:{error.colno}: {reason}") from None
    except RecursionError:
        raise OptionError(f"{name}: expected a report, found JSON nested too deep") from None
    except ValueError:
        said = "expected a report, found an integer with too many digits"
        raise OptionError(f"{name}: {said}") from None
    if not isinstance(document, dict) or "schema" not in document:
        raise OptionError(f"{name}: expected a report, which has a key `schema`")
    if document["schema"] != SCHEMA:
        raise OptionError(
            f"{name}: expected a report of version {SCHEMA!r}, found {_shown(document['schema'])}"
        )
    for problem in problems(document):
        raise OptionError(f"{name}: {problem}")
    return from_json(Report, document)


def failed_in(path: Path) -> Failed:
    """Read the cases that failed in a report. Raises OptionError where none did."""
    report = read_report(path)
    failed = tuple(dict.fromkeys(id for one in report.every for id in failed_ids(one)))
    if not failed:
        raise OptionError(f"--last-failed: no case of {path} has failed")
    return Failed(failed, report.options.seed)


def failed_ids(report: Report) -> Iterator[str]:
    """The cases that failed. Of those of a fuzz run a report has what its causes explain."""
    for id, status in statuses_of(report, report.generator.version):
        if status.is_failure:
            yield id
    for failure in report.failures:
        if report.options.effort == FUZZ and failure.level in ALL_LEVELS:
            yield from failure.cases or (failure.id,)
    yield from report.unexplained


def first_failed(report: Report, cell: Cell) -> str:
    """The id of the first failed case of a cell."""
    return next(id for id in failed_ids(report) if cell_of(id) == cell.place)


def listed_in(path: Path) -> Vocabulary:
    """Read the vocabulary of a report. Raises OptionError if it has none."""
    vocabulary = read_report(path).generator.vocabulary
    if vocabulary is None:
        raise OptionError(f"--list: {path} does not say what its cases were drawn from")
    return vocabulary


def problems(value: object) -> Iterator[str]:
    """Validate a value against the schema of reports; yields `cells[3].op: expected ...`."""
    return _problems(value, _schema(), "")


@dataclass(frozen=True, slots=True)
class Failed:
    """The ids of the failed cases of a report, and the seed that chose them."""

    cases: tuple[str, ...]
    seed: int


@cache
def _schema() -> Json:
    schema: Json = json.loads(
        files("uop.conformance.report")
        .joinpath("uop-report-1.schema.json")
        .read_text(encoding="utf-8")
    )
    return schema


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the error is that the text is truncated."""
    rest = text[error.pos :].strip()
    started = error.pos > 0 or not rest
    return "Unterminated" in error.msg or (started and HALF_A_WORD.fullmatch(rest) is not None)


def _problems(value: object, schema: Json, place: str) -> Iterator[str]:
    """Validate a value. Supports only the keywords that the schema of reports uses."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = _schema() if name == "#" else _schema()["$defs"][name]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    allowed = tuple(kind for name in kinds for kind in TYPES[name])
    if kinds and (not isinstance(value, allowed) or (type(value) is bool and bool not in allowed)):
        yield f"{place or 'it'}: expected {' or '.join(kinds)}, found {_shown(value)}"
    elif value not in schema.get("enum", [value]):
        yield f"{place}: expected one of {', '.join(schema['enum'])}, found {_shown(value)}"
    elif isinstance(value, int | float) and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        yield f"{place}: {value} is out of range"
    elif isinstance(value, str) and not re.fullmatch(schema.get("pattern", ANY), value):
        yield f"{place}: expected text like {schema['pattern']}, found {_shown(value)}"
    elif isinstance(value, dict):
        yield from _problems_of_object(value, schema, place)
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), f"{place}[{k}]")


def _problems_of_object(entries: Json, schema: Json, place: str) -> Iterator[str]:
    dot = f"{place}." if place else ""
    for name in schema.get("required", []):
        if name not in entries:
            yield f"{dot}{name}: missing"
    for name, value in entries.items():
        part = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if part is not None:
            yield from _problems(value, part, f"{dot}{name}")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
