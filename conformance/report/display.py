"""The interface of displays, which show the progress and the result of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uop.conformance.judging.verdict import Verdict
from uop.conformance.protocol.types import Hello
from uop.conformance.report.model import Failure, Report
from uop.conformance.report.tally import Tally

if TYPE_CHECKING:
    from uop.conformance.run.options import Options


class Display:
    """The base class of displays; it shows nothing."""

    def started(self, hello: Hello, options: Options, cases: int | None) -> None: ...

    def progress(self, tally: Tally, seconds: float) -> None: ...

    def failed(self, verdict: Verdict) -> None: ...

    def explored(self, causes: Sequence[Failure], points: int) -> None:
        """Show the causes that are known so far, and how many points of the spec were covered."""

    def finished(self, report: Report) -> None: ...
