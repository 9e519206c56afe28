"""Writes what a fuzz run finds to a store: any URL that fsspec reads, such as s3://bucket/folder.

Names are digests of the content, so that a file which is written twice is one, and one that was cut
off shows it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from uop.conformance.fuzz.folders import Remote
from uop.conformance.report.format import report_text
from uop.conformance.report.model import Failure, Report

DIGITS = 32


@dataclass(slots=True, eq=False)
class Store:
    """Repros in `repros/`, the reports of shards in `results/`, below a URL."""

    folder: Remote

    @classmethod
    def at(cls, url: str) -> Store:
        """The store at a URL; OptionError where fsspec does not know it."""
        return cls(Remote.at(url, "--output"))

    def keep(self, report: Report) -> Report:
        """Write the report of a shard and its repros; returns it with the URLs of these."""
        failures = tuple(self._keep_repro(failure) for failure in report.failures)
        report = replace(report, failures=failures)
        self._write("results", report_text(report), ".json")
        return report

    def problems(self) -> list[str]:
        """Wait for all files; returns error messages."""
        return self.folder.problems()

    def _keep_repro(self, failure: Failure) -> Failure:
        if not failure.text:
            return failure
        name = self._write("repros", failure.text, ".uop")
        return replace(failure, repro=f"{self.folder.url}/{name}")

    def _write(self, folder: str, text: str, suffix: str) -> str:
        """Begin to write a file; returns its name."""
        content = text.encode("utf-8", "backslashreplace")
        name = f"{folder}/{hashlib.sha256(content).hexdigest()[:DIGITS]}{suffix}"
        self.folder.write(name, text)
        return name
