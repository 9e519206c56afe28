"""Defines the options of a run, and checks them before anything starts.

Every run imports this module first: what only some runs need is imported inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from uop.conformance.checks import (
    OBSERVED,
    PROFILE_SUFFIX,
    STRICT,
    OptionError,
    cores,
    one_of,
    require_files,
    require_lines,
    writable,
)
from uop.conformance.protocol.types import Hello
from uop.conformance.report.options import ReportedOptions
from uop.conformance.suite.case import ALL_LEVELS, EFFORTS, LEVELS, MIXED, OWN, CaseId
from uop.conformance.workers.sessions import known
from uop.spec.dtype import DTYPES
from uop.spec.editions import EDITIONS
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import parse_profile

if TYPE_CHECKING:
    from uop.conformance.suite.vocabulary import Skips, Vocabulary


SHARD_LENGTH = 11
"""The most characters of a shard."""


@dataclass(frozen=True, slots=True)
class Options(ReportedOptions):
    """The options of a run, from the command line or from Python."""

    workers: int = field(default_factory=cores)
    json: Path | None = None
    output: Path = Path("uop-failures")
    junit: Path | None = None
    html: Path | None = None
    log: Path | None = None
    """The file that logs the lines to and from a worker of `command:`."""
    command: tuple[str, ...] = ()
    """The words of the command line, for the report."""
    native: bool = False
    """Whether programs of files may hold native code."""
    fail_fast: bool = False
    """Whether judging ends at the first failure that is not known."""
    vocabulary: Vocabulary | None = None
    """The ops and dtypes of random programs; None means those that the backend lists."""

    def checked(self) -> Options:
        """Check the options and return them. OptionError where one is wrong."""
        known(self.backend)
        one_of("--level", self.levels, ALL_LEVELS)
        ops, dtypes = [*Op.__members__, MIXED], [*DTYPES, MIXED]
        one_of("--op", self.ops or (), ops)
        one_of("--with", self.with_ops or (), ops)
        one_of("--skip-op", self.skip_ops, ops)
        one_of("--dtype", self.dtypes or (), dtypes)
        one_of("--skip-dtype", self.skip_dtypes, dtypes)
        shard_of(self.shard)
        self._require_cases_left()
        one_of("--edition", [self.edition] if self.edition else [], EDITIONS)
        one_of("--effort", (self.effort,), EFFORTS)
        for id in self.cases:
            self._require_chosen(CaseId.parse(id))
        self._require_own_cases()
        parse_profile(STRICT if self.profile in ("", OBSERVED) else self.profile)
        for option, number in (("-n", self.workers), ("--examples", self.examples)):
            if number is not None and number < 1:
                raise OptionError(f"{option}: expected a positive number, found {number}")
        if self.known is not None:
            from uop.conformance.native import check_native
            from uop.conformance.run.known import read_known

            check_native(read_known(self.known).cases(), native=self.native)
        require_files(self.json, self.junit, self.html)
        writable(self.output / "repro.uop")
        require_lines(self.log, self.backend)
        return self

    @property
    def skips(self) -> Skips:
        """The ops and dtypes that the run leaves out."""
        from uop.conformance.suite.vocabulary import Skips

        return Skips(frozenset(self.skip_ops), frozenset(self.skip_dtypes))

    def _require_chosen(self, id: CaseId) -> None:
        """OptionError for a case that the other options exclude."""
        choices = {
            "--level": (id.level, None if self.levels == LEVELS else self.levels),
            "--op": (id.op, self.ops),
            "--dtype": (id.dtype, self.dtypes),
        }
        for option, (name, chosen) in choices.items():
            if chosen is not None and name not in chosen:
                raise OptionError(f"{option}: {', '.join(chosen)}; but --case asks for {id}")
        for option, name, skipped in (
            ("--skip-op", id.op, self.skip_ops),
            ("--skip-dtype", id.dtype, self.skip_dtypes),
        ):
            if name in skipped:
                raise OptionError(f"{option}: {name}; but --case asks for {id}")

    def _require_cases_left(self) -> None:
        """OptionError where nothing remains of the ops or dtypes that are selected."""
        for option, chosen, skipped in (
            ("op", self.ops, self.skip_ops),
            ("dtype", self.dtypes, self.skip_dtypes),
        ):
            if chosen is not None and set(chosen) <= set(skipped):
                names = ", ".join(chosen)
                raise OptionError(f"--skip-{option}: {names}; but --{option} asks for no other")

    def _require_own_cases(self) -> None:
        """OptionError, MalformedError unless all own cases of --case exist; NativeError for native
        code that is not allowed.
        """
        own = [id for id in self.cases if CaseId.parse(id).level == OWN]
        if self.folder is not None:
            from uop.conformance.native import check_native
            from uop.conformance.suite.own_cases import OwnCases

            cases = OwnCases.read(self.folder, self.edition)
            check_native(cases.files.values(), native=self.native)
            for id in own:
                cases.find(id)
        elif self.edition:
            raise OptionError(f"--edition {self.edition}: expected --cases DIR")
        elif own or OWN in self.levels:
            raise OptionError(f"{own[0] if own else f'--level {OWN}'}: expected --cases DIR")

    @property
    def takes_own(self) -> bool:
        """Whether all own cases are selected."""
        chosen = self.levels == LEVELS or OWN in self.levels
        is_skipped = MIXED in (*self.skip_ops, *self.skip_dtypes)
        named = MIXED in (self.ops or [MIXED]) and MIXED in (self.dtypes or [MIXED])
        return chosen and named and not is_skipped

    @property
    def is_whole(self) -> bool:
        """Whether no option leaves out cases."""
        chosen = self.ops or self.dtypes or self.cases or self.examples or self.skips
        return not chosen and self.levels == LEVELS and self.effort != EFFORTS[0]


def shard_of(text: str) -> tuple[int, int]:
    """Parse `3/8` into the number of a shard, from 1, and the count; empty is the one of one."""
    number, slash, count = text.partition("/")
    digits = number.isdecimal() and count.isdecimal() and len(text) <= SHARD_LENGTH
    if not text:
        return 1, 1
    if not (slash and digits and 1 <= int(number) <= int(count)):
        raise OptionError(f"--shard: expected K/N such as 3/8, with K of 1 to N; found {text!r}")
    return int(number), int(count)


def profile_of_run(profile: str, hello: Hello) -> str:
    """The profile to judge by: that of the options, else of the hello, else the observed one."""
    return profile or hello.profile or OBSERVED


def profile_named(text: str) -> str:
    """Read the value of --profile: knobs, or the name of a TOML file (ProfileFileError)."""
    if not text.strip():
        raise OptionError("--profile: expected strict, observed, knobs or a file; found nothing")
    if not text.lower().endswith(PROFILE_SUFFIX):
        return text.strip()
    from uop.conformance.profile.file import read_profile

    return str(read_profile(Path(text)))
