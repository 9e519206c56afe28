"""Files of a report: its JSON, and a repro per failure."""

from __future__ import annotations

import json
import re
from pathlib import Path

from uop.conformance.options import OptionError
from uop.conformance.report import Failure, Report
from uop.conformance.repro import Finding

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+-]+")


def write_json(report: Report, path: Path) -> None:
    """Write the report as `uop-report/1`."""
    _write(path, json.dumps(report.to_json(), indent=1) + "\n")


def write_repro(finding: Finding, folder: Path) -> None:
    """Write the repro of a failure."""
    _write(_place(finding, folder), finding.text)


def failure_of(finding: Finding, folder: Path) -> Failure:
    """What a report says of a finding whose repro lies in a folder."""
    return Failure(
        finding.id,
        finding.signature,
        finding.label,
        finding.id.partition("/")[0],
        finding.ops,
        finding.dtypes,
        finding.message,
        str(_place(finding, folder)),
    )


def _place(finding: Finding, folder: Path) -> Path:
    """The file of a repro, named after the signature."""
    return folder / f"{NOT_IN_NAMES.sub('-', finding.signature)[:100]}.uop"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror}") from error
