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


def write_failure(finding: Finding, folder: Path) -> Failure:
    """Write the repro of a failure, named after its signature."""
    path = folder / f"{NOT_IN_NAMES.sub('-', finding.signature)[:100]}.uop"
    _write(path, finding.text)
    return Failure(
        finding.id,
        finding.signature,
        finding.label,
        finding.id.partition("/")[0],
        finding.ops,
        finding.dtypes,
        finding.message,
        str(path),
    )


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror}") from error
