"""Files of a report: a repro per failure; the whole as JSON, as JUnit XML and as a page."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from uop.conformance.profile.card import Observation
from uop.conformance.report.format import report_text
from uop.conformance.report.html.page import page
from uop.conformance.report.junit import junit_text
from uop.conformance.report.model import Failure, Report
from uop.conformance.suite.case import MIXED, CaseId

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+-]+")


def written_to(failure: Failure, folder: Path) -> Failure:
    """The failure with the place of its repro in a folder."""
    path = folder / f"{in_names(failure.signature)[:100]}.uop"
    return replace(failure, repro=str(path))


def failure_at(entry: Observation, folder: Path) -> Failure:
    """What a report says of a backend that does two things where it declares nothing."""
    id = CaseId("card", MIXED, MIXED, in_names(entry.point), 0)
    said, text, point = entry.message, entry.repro, f"card {entry.point}"
    return written_to(Failure(str(id), point, entry.knob, id.level, (), (), said, "", text), folder)


def write_repros(failures: Iterable[Failure]) -> list[str]:
    """Write the repro of every failure; what could not be written, in words."""
    return _all_of(write_file(Path(failure.repro), failure.text) for failure in failures)


def write_reports(
    report: Report, json: Path | None, junit: Path | None = None, html: Path | None = None
) -> list[str]:
    """Write the files that are named, each by itself; what could not be written, in words."""
    forms: list[tuple[Path | None, Callable[[Report], str]]] = [
        (json, report_text),
        (junit, junit_text),
        (html, page),
    ]
    return _all_of(write_file(path, form(report)) for path, form in forms if path is not None)


def in_names(text: str) -> str:
    """The text with nothing that may not stand in the name of a file."""
    return NOT_IN_NAMES.sub("-", text)


def _all_of(problems: Iterable[str]) -> list[str]:
    return [problem for problem in problems if problem]


def write_file(path: Path, text: str) -> str:
    """Write a whole file or leave the old one; what went wrong, or nothing."""
    target = path.resolve()
    is_replaced = target.is_file() or not target.exists()
    beside = target.with_name(f".{target.name[:100]}.{os.getpid()}") if is_replaced else target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # What a backend printed may hold what is no text.
        beside.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        if is_replaced:
            beside.replace(target)
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    finally:
        if is_replaced:
            with suppress(OSError):
                beside.unlink()
    return ""
