"""What a run is asked to do, checked before anything starts.

Every start waits for this module, so what only some runs need is imported where they do.
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
from uop.conformance.report.asked import Asked
from uop.conformance.suite.case import ALL_LEVELS, EFFORTS, LEVELS, MIXED, OWN, CaseId
from uop.conformance.workers.sessions import known
from uop.spec.dtype import DTYPES
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import parse_profile

if TYPE_CHECKING:
    from uop.conformance.suite.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Options(Asked):
    """The choices of a run."""

    workers: int = field(default_factory=cores)
    json: Path | None = None
    output: Path = Path("uop-failures")
    junit: Path | None = None
    html: Path | None = None
    log: Path | None = None
    """Where the lines of a command are logged."""
    command: tuple[str, ...] = ()
    """The words of the command line, for the report."""
    vocabulary: Vocabulary | None = None
    """What random programs are drawn from; None for what the backend lists."""

    def checked(self) -> Options:
        """These options; OptionError where one is wrong."""
        known(self.backend)
        one_of("--level", self.levels, ALL_LEVELS)
        one_of("--op", self.ops or (), [*Op.__members__, MIXED])
        one_of("--dtype", self.dtypes or (), [*DTYPES, MIXED])
        one_of("--effort", (self.effort,), EFFORTS)
        for id in self.cases:
            self._require_chosen(CaseId.parse(id))
        self._require_own_cases()
        parse_profile(STRICT if self.profile in ("", OBSERVED) else self.profile)
        if self.workers < 1 or (self.examples is not None and self.examples < 1):
            raise OptionError("-n and --examples: expected a positive number")
        if self.known is not None:
            from uop.conformance.run.known import read_known

            read_known(self.known)
        require_files(self.json, self.junit, self.html)
        writable(self.output / "repro.uop")
        require_lines(self.log, self.backend)
        return self

    def _require_chosen(self, id: CaseId) -> None:
        """OptionError for a case that the other options leave out."""
        given = {
            "--level": (id.level, None if self.levels == LEVELS else self.levels),
            "--op": (id.op, self.ops),
            "--dtype": (id.dtype, self.dtypes),
        }
        for option, (name, chosen) in given.items():
            if chosen is not None and name not in chosen:
                raise OptionError(f"{option}: {', '.join(chosen)}; but --case asks for {id}")

    def _require_own_cases(self) -> None:
        """OptionError, MalformedError unless the cases of the adopter that are asked for exist."""
        own = [id for id in self.cases if CaseId.parse(id).level == OWN]
        if self.folder is not None:
            from uop.conformance.suite.own_cases import OwnCases

            found = OwnCases.read(self.folder)
            for id in own:
                found.find(id)
        elif own or OWN in self.levels:
            raise OptionError(f"{own[0] if own else f'--level {OWN}'}: expected --cases DIR")

    @property
    def takes_own(self) -> bool:
        """Whether all cases of the adopter are selected."""
        chosen = self.levels == LEVELS or OWN in self.levels
        return chosen and MIXED in (self.ops or [MIXED]) and MIXED in (self.dtypes or [MIXED])

    @property
    def is_whole(self) -> bool:
        """Whether nothing that it would judge is left out."""
        chosen = self.ops or self.dtypes or self.cases or self.examples
        return not chosen and self.levels == LEVELS and self.effort != EFFORTS[0]


def profile_of_run(profile: str, hello: Hello) -> str:
    """What a backend is judged by: the profile of the options, else what it declares or shows."""
    return profile or hello.profile or OBSERVED


def profile_named(text: str) -> str:
    """A profile as it is given: the name of a TOML file, or knobs. ProfileFileError for no file."""
    if not text.strip():
        raise OptionError("--profile: expected strict, observed, knobs or a file; found nothing")
    if not text.lower().endswith(PROFILE_SUFFIX):
        return text.strip()
    from uop.conformance.profile.file import read_profile

    return str(read_profile(Path(text)))
