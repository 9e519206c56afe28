"""Folders of files: on this machine, or behind a URL that fsspec reads, as s3://bucket/folder.

Names in a store are digests of the content, so that a file which is written twice is one, and one
that was cut off shows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from uop.compiler.runtime.device import require
from uop.conformance.checks import OptionError
from uop.conformance.report.files import write_file
from uop.conformance.report.format import report_text
from uop.conformance.report.model import Failure, Report

DIGITS = 32

URL = "://"
THREADS = 8
"""The files that are read or written at the same time: a store far away takes long for each."""


@dataclass(slots=True)
class Local:
    """A folder of this machine, which is made when the first file is written."""

    path: Path
    problem: str = ""

    def __str__(self) -> str:
        return str(self.path)

    def names(self) -> list[str]:
        """The names in it; none where it is missing. OptionError where it cannot be read."""
        try:
            return sorted(path.name for path in self.path.iterdir()) if self.path.exists() else []
        except OSError as error:
            raise OptionError(f"cannot read {self.path}: {error.strerror}") from None

    def contents(self, names: Sequence[str], most: int) -> Iterator[bytes | str]:
        """What each of some files holds, up to `most` bytes; as text why it cannot be read."""
        for path in (self.path / name for name in names):
            try:
                if not path.is_file():
                    yield "it is no file"
                    continue
                with path.open("rb") as file:
                    yield file.read(most)
            except OSError as error:
                yield error.strerror or str(error)

    def write(self, name: str, text: str) -> bool:
        """Write a file, or begin to; False where it fails, or another one has failed."""
        self.problem = self.problem or write_file(self.path / name, text)
        return not self.problem

    def remove(self, name: str) -> None:
        """Remove a file, which may be missing. OptionError where it cannot be removed."""
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise OptionError(f"cannot remove {self.path / name}: {error.strerror}") from None

    def problems(self) -> list[str]:
        """Wait for all files that are being written; returns error messages."""
        return [self.problem] if self.problem else []


@dataclass(slots=True, eq=False)
class Remote:
    """The same behind a URL. Names may have a folder in front, as `results/a.json`."""

    url: str
    files: Any
    root: str
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS))
    pending: dict[str, Future[None]] = field(default_factory=dict)
    """By name the files that were written, or are being written."""

    @classmethod
    def at(cls, url: str, option: str) -> Self:
        """Raises the errors of `folder_at`."""
        require("fsspec", "cluster")
        from fsspec.core import url_to_fs

        try:
            files, root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise OptionError(f"{option}: cannot use {url}: {error}") from None
        return cls(url.rstrip("/"), files, root.rstrip("/"))

    def __str__(self) -> str:
        return self.url

    def names(self) -> list[str]:
        # Stores raise errors of any class: a future holds them.
        listed = self.threads.submit(self.files.ls, self.root, detail=False)
        error = listed.exception()
        if isinstance(error, FileNotFoundError):
            return []
        if error:
            raise OptionError(f"cannot read {self.url}: {error}")
        names = (str(path).rstrip("/").removeprefix(f"{self.root}/") for path in listed.result())
        return sorted(name for name in names if name != self.root)

    def contents(self, names: Sequence[str], most: int) -> Iterator[bytes | str]:
        read = self.files.cat_file
        paths = (f"{self.root}/{name}" for name in names)
        for found in [self.threads.submit(read, path, start=0, end=most) for path in paths]:
            error = found.exception()
            yield str(error) if error else bytes(found.result())

    def write(self, name: str, text: str) -> bool:
        if name not in self.pending:
            # Output of a backend may contain surrogates, which UTF-8 cannot encode.
            content = text.encode("utf-8", "backslashreplace")
            self.pending[name] = self.threads.submit(self._put, f"{self.root}/{name}", content)
        return True

    def remove(self, name: str) -> None:
        error = self.threads.submit(self.files.rm_file, f"{self.root}/{name}").exception()
        if error and not isinstance(error, FileNotFoundError):
            raise OptionError(f"cannot remove {self.url}/{name}: {error}")

    def problems(self) -> list[str]:
        errors = {name: one.exception() for name, one in self.pending.items()}
        return [f"cannot write {self.url}/{name}: {e}" for name, e in errors.items() if e]

    def _put(self, path: str, content: bytes) -> None:
        self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
        self.files.pipe_file(path, content)


Folder = Local | Remote


def folder_at(place: str | Path, option: str) -> Folder:
    """The folder of a path or URL; OptionError with the name of the option where it is unknown.

    UnsupportedError for a URL without the extra.
    """
    is_url = isinstance(place, str) and URL in place
    return Remote.at(str(place), option) if is_url else Local(Path(place))


@dataclass(slots=True, eq=False)
class Store(Remote):
    """Repros in `repros/`, the reports of shards in `results/`, below a URL."""

    def keep(self, report: Report) -> Report:
        """Write the report of a shard and its repros; returns it with the URLs of these."""
        failures = tuple(self._keep_repro(failure) for failure in report.failures)
        report = replace(report, failures=failures)
        self._enter("results", report_text(report), ".json")
        return report

    def _keep_repro(self, failure: Failure) -> Failure:
        if not failure.text:
            return failure
        name = self._enter("repros", failure.text, ".uop")
        return replace(failure, repro=f"{self.url}/{name}")

    def _enter(self, folder: str, text: str, suffix: str) -> str:
        """Begin to write a file; returns its name."""
        content = text.encode("utf-8", "backslashreplace")
        name = f"{folder}/{hashlib.sha256(content).hexdigest()[:DIGITS]}{suffix}"
        self.write(name, text)
        return name
