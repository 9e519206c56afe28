"""Writes what a fuzz run finds to a store: any URL that fsspec reads, such as s3://bucket/folder.

Names are digests of the content, so that a file which is written twice is one, and one that was cut
off shows it.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from fsspec.core import url_to_fs

from uop.conformance.checks import OptionError
from uop.conformance.report.format import report_text
from uop.conformance.report.model import Failure, Report

DIGITS = 32
AT_ONCE = 8
"""The files that are written at the same time: a store far away takes long for each."""


@dataclass(slots=True, eq=False)
class Store:
    """Repros in `repros/`, the reports of shards in `results/`, below a URL."""

    url: str
    files: Any
    root: str
    writers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(AT_ONCE))
    pending: dict[str, Future[None]] = field(default_factory=dict)
    """By name the files that this run has written, or is writing."""

    @classmethod
    def at(cls, url: str) -> Store:
        """The store at a URL; OptionError where fsspec does not know it."""
        try:
            files, root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise OptionError(f"--output: cannot write to {url}: {error}") from None
        return cls(url.rstrip("/"), files, root.rstrip("/"))

    def keep(self, report: Report) -> Report:
        """Write the report of a shard and its repros; returns it with the URLs of these."""
        failures = tuple(self._keep_repro(failure) for failure in report.failures)
        report = replace(report, failures=failures)
        self._write("results", report_text(report), ".json")
        return report

    def problems(self) -> list[str]:
        """Wait for all files; returns error messages."""
        self.writers.shutdown()
        errors = {name: one.exception() for name, one in self.pending.items()}
        return [f"cannot write {self.url}/{name}: {e}" for name, e in errors.items() if e]

    def _keep_repro(self, failure: Failure) -> Failure:
        if not failure.text:
            return failure
        return replace(failure, repro=f"{self.url}/{self._write('repros', failure.text, '.uop')}")

    def _write(self, folder: str, text: str, suffix: str) -> str:
        """Begin to write a file; returns its name."""
        # Output of a backend may contain surrogates, which UTF-8 cannot encode.
        content = text.encode("utf-8", "backslashreplace")
        name = f"{folder}/{hashlib.sha256(content).hexdigest()[:DIGITS]}{suffix}"
        if name not in self.pending:
            self.pending[name] = self.writers.submit(self._put, folder, name, content)
        return name

    def _put(self, folder: str, name: str, content: bytes) -> None:
        self.files.makedirs(f"{self.root}/{folder}", exist_ok=True)
        self.files.pipe_file(f"{self.root}/{name}", content)
