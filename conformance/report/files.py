"""Writes the files of a report: repros, JSON, JUnit XML, HTML."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from uop.conformance.checks import OptionError
from uop.conformance.profile.card import Observation
from uop.conformance.report.ci import junit_text
from uop.conformance.report.format import report_text
from uop.conformance.report.html.page import page
from uop.conformance.report.model import Failure, Report
from uop.conformance.report.terminal import Display
from uop.conformance.suite.case import MIXED, CaseId

if TYPE_CHECKING:
    from uop.conformance.run.options import Options

LONGEST = 100
"""The most characters of the name of a repro, without its suffix."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+-]+")


def written_to(failure: Failure, folder: Path) -> Failure:
    """Set the path of the repro of a failure, in `folder`."""
    name = in_names(failure.signature)
    if len(name) > LONGEST:
        # Long names may differ at the end alone.
        name = f"{name[: LONGEST - 9]}-{crc32(name.encode()):08x}"
    return replace(failure, repro=str(folder / f"{name}.uop"))


def failure_at(entry: Observation, folder: Path) -> Failure:
    """Make a failure of an observation: contradicting choices, or a liberty."""
    id = CaseId("card", MIXED, MIXED, in_names(entry.point), 0)
    message, text, point = entry.message, entry.repro, f"card {entry.point}"
    failure = Failure(str(id), point, entry.knob, id.level, (), (), message, "", text)
    return written_to(failure, folder)


def write_repros(failures: Iterable[Failure]) -> list[str]:
    """Write the repros of failures; returns error messages."""
    return [p for f in failures if (p := write_file(Path(f.repro), f.text))]


def write_reports(
    report: Report, json: Path | None, junit: Path | None = None, html: Path | None = None
) -> list[str]:
    """Write the requested files independently; returns error messages."""
    forms: list[tuple[Path | None, Callable[[Report], str]]] = [
        (json, report_text),
        (junit, junit_text),
        (html, page),
    ]
    return [p for path, form in forms if path and (p := write_file(path, form(report)))]


def written(report: Report, problems: list[str], options: Options, display: Display) -> Report:
    """Write the files of a report and show it.

    OptionError where a file could not be written; `problems` are those of other files.
    """
    try:
        problems += write_reports(report, options.json, options.junit, options.html)
    finally:
        # Show the verdict even where the disk is full.
        display.finished(report)
    if problems:
        raise OptionError("\n".join(problems))
    return report


def in_names(text: str) -> str:
    """Replace characters that are unsafe in file names."""
    return NOT_IN_NAMES.sub("-", text)


def write_file(path: Path, text: str) -> str:
    """Write a file atomically; returns an error message or an empty string."""
    target = path.resolve()
    is_replaced = target.is_file() or not target.exists()
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}") if is_replaced else target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Output of a backend may contain surrogates, which UTF-8 cannot encode.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        if is_replaced:
            temporary.replace(target)
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    finally:
        if is_replaced:
            with suppress(OSError):
                temporary.unlink()
    return ""
