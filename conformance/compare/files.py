"""Writes the files of a comparison: JSON, HTML, Markdown, badges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from uop.conformance.checks import require_files
from uop.conformance.compare.badge import badge
from uop.conformance.compare.columns import columns
from uop.conformance.compare.markdown import markdown
from uop.conformance.compare.page import page
from uop.conformance.report.files import in_names, write_file
from uop.conformance.report.format import report_text
from uop.conformance.report.model import Report


@dataclass(frozen=True, slots=True)
class Files:
    """Where the forms of a comparison are written; None for those that are not."""

    json: Path | None = None
    html: Path | None = None
    markdown: Path | None = None
    badges: Path | None = None
    """A folder, with a file NAME.svg for each backend."""

    def require(self) -> None:
        """OptionError where one of them cannot be written."""
        a_badge = None if self.badges is None else self.badges / "badge.svg"
        require_files(self.json, self.html, self.markdown, a_badge)

    def write(self, report: Report) -> list[str]:
        """Write them independently; returns error messages."""
        forms = ((self.json, report_text), (self.html, page), (self.markdown, markdown))
        problems = [write_file(path, form(report)) for path, form in forms if path is not None]
        if self.badges is not None:
            for column in columns(report):
                path = self.badges / f"{in_names(column.name)}.svg"
                problems.append(write_file(path, badge(column)))
        return [problem for problem in problems if problem]
