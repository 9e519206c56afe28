"""Report format 1: a report written as JSON, read back, and what is wrong with a file of none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from uop.conformance.checks import OptionError
from uop.conformance.protocol.codec import Json, from_json, to_json
from uop.conformance.report.model import Report
from uop.conformance.suite.vocabulary import Vocabulary

SCHEMA = "uop-report/1"
ADDED = ("card", "ledger", "origin", "strength", "others", "vote")
"""The keys of what others add to a report, which are there if it is."""
NOT_WRITTEN = ("faults", "graphs")
ONLY_OF_FILES = ("corpus", "outputs")
OF_FILES = ("backend", "timeout", *ONLY_OF_FILES, "seed")
"""The options of a report on files of outputs."""
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
"""Characters of a wrong value that are shown."""


def as_json(report: Report) -> Json:
    """A report in this format."""
    found: Json = {"schema": SCHEMA, **to_json(replace(report, others=None, faults={}))}
    asked = found["options"]
    is_of_files = asked["corpus"] is not None
    names = OF_FILES if is_of_files else [name for name in asked if name not in ONLY_OF_FILES]
    found["options"] = {name: asked[name] for name in names}
    if report.others is not None:
        found["others"] = list(map(as_json, report.others))
    left_out = {*NOT_WRITTEN, *(name for name in ADDED if found[name] is None)}
    return {name: value for name, value in found.items() if name not in left_out}


def report_text(report: Report) -> str:
    """What stands in the file of a report."""
    return json.dumps(as_json(report), indent=1) + "\n"


def read_report(path: Path) -> Report:
    """The report in a file. OptionError for any other file: which, where, what was found."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise OptionError(f"{path}: expected a report, found bytes that are no text") from None
    return parse_report(text, str(path))


def parse_report(text: str, name: str) -> Report:
    """The report that a text holds; `name` is where it stands."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        what = "the file is cut off" if _is_cut(text, error) else f"no JSON: {error.msg}"
        raise OptionError(f"{name}:{error.lineno}:{error.colno}: {what}") from None
    except RecursionError:
        raise OptionError(f"{name}: expected a report, found JSON nested too deep") from None
    if not isinstance(found, dict) or "schema" not in found:
        raise OptionError(f"{name}: expected a report, which has a key `schema`")
    if found["schema"] != SCHEMA:
        raise OptionError(
            f"{name}: expected a report of version {SCHEMA!r}, found {_shown(found['schema'])}"
        )
    for problem in problems(found):
        raise OptionError(f"{name}: {problem}")
    return from_json(Report, found)


def listed_in(path: Path) -> Vocabulary:
    """What the random programs of the report in a file were drawn from. OptionError for none."""
    found = read_report(path).generator.vocabulary
    if found is None:
        raise OptionError(f"--list: {path} does not say what its cases were drawn from")
    return found


def problems(found: object) -> Iterator[str]:
    """Where a value differs from the schema of reports, as `cells[3].op: expected ...`."""
    return _problems(found, _schema(), "")


@cache
def _schema() -> Json:
    schema: Json = json.loads(
        files("uop.conformance.report")
        .joinpath("uop-report-1.schema.json")
        .read_text(encoding="utf-8")
    )
    return schema


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether what is wrong is that the text ends: within a string, a number, a word."""
    rest = text[error.pos :].strip()
    started = error.pos > 0 or not rest
    return "Unterminated" in error.msg or (started and HALF_A_WORD.fullmatch(rest) is not None)


def _problems(found: object, schema: Json, place: str) -> Iterator[str]:
    """The keywords that the schema of reports uses, and no other."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = _schema() if name == "#" else _schema()["$defs"][name]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    allowed = tuple(kind for name in kinds for kind in TYPES[name])
    if kinds and (not isinstance(found, allowed) or (type(found) is bool and bool not in allowed)):
        yield f"{place or 'it'}: expected {' or '.join(kinds)}, found {_shown(found)}"
    elif found not in schema.get("enum", [found]):
        yield f"{place}: expected one of {', '.join(schema['enum'])}, found {_shown(found)}"
    elif isinstance(found, int | float) and not _is_in_range(found, schema):
        yield f"{place}: {found} is out of range"
    elif isinstance(found, str) and not re.fullmatch(schema.get("pattern", ANY), found):
        yield f"{place}: expected text like {schema['pattern']}, found {_shown(found)}"
    elif isinstance(found, dict):
        yield from _problems_of_object(found, schema, place)
    elif isinstance(found, list):
        for k, item in enumerate(found):
            yield from _problems(item, schema.get("items", {}), f"{place}[{k}]")


def _problems_of_object(found: Json, schema: Json, place: str) -> Iterator[str]:
    dot = f"{place}." if place else ""
    for name in schema.get("required", []):
        if name not in found:
            yield f"{dot}{name}: missing"
    for name, value in found.items():
        part = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if part is not None:
            yield from _problems(value, part, f"{dot}{name}")


def _is_in_range(found: float, schema: Json) -> bool:
    least, most = schema.get("minimum", found), schema.get("maximum", found)
    return bool(least <= found <= most)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
