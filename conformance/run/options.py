"""What a run is asked to do, checked before anything starts.

Every start waits for this module, so what only some runs need is imported where they do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uop.conformance.protocol.types import Hello
from uop.conformance.suite.case import ALL_LEVELS, EFFORTS, LEVELS, MIXED, OWN, CaseId
from uop.conformance.workers.sessions import COMMAND, known
from uop.spec.dtype import DTYPES
from uop.spec.errors import UopError
from uop.spec.nearest import did_you_mean
from uop.spec.ops.names import Op
from uop.spec.text.profile_text import parse_profile

if TYPE_CHECKING:
    from uop.conformance.suite.vocabulary import Vocabulary

STRICT = "strict"
OBSERVED = "observed"
"""Stands for the profile that a backend shows; taken where neither it nor the run names one."""
PROFILE_SUFFIX = ".toml"
"""What the name of a profile's file ends with."""
KNOWN_FILE = Path("uop-known.toml")
"""Where known failures stand unless a run names another file."""
DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>s|m|h|)")
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
YEAR = 365 * 24 * 3600


class OptionError(UopError):
    """An option asks for what does not exist: says which, what it may be, what was found."""


def cores() -> int:
    """The processes of a run unless it is told otherwise: one per core."""
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Options:
    """The choices of a run. None selects all; `examples` is per level, op, dtype and group."""

    backend: str
    levels: tuple[str, ...] = LEVELS
    ops: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    cases: tuple[str, ...] = ()
    seed: int = 0
    examples: int | None = None
    effort: str = "default"
    seconds: float | None = None
    workers: int = field(default_factory=cores)
    profile: str = ""
    """As knobs, `strict` or `observed`; if empty what the backend declares, else `observed`."""
    json: Path | None = None
    output: Path = Path("uop-failures")
    timeout: float | None = None
    """Seconds for a start, one program of a command or one batch of an adapter, else it hangs."""
    junit: Path | None = None
    html: Path | None = None
    known: Path | None = None
    """The file of known failures."""
    folder: Path | None = None
    """Where cases of the adopter stand, besides those of the suite."""
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

    def to_json(self) -> dict[str, Any]:
        """What a report says about them."""
        return {
            "backend": self.backend,
            "seed": self.seed,
            "levels": list(self.levels),
            "ops": None if self.ops is None else list(self.ops),
            "dtypes": None if self.dtypes is None else list(self.dtypes),
            "cases": list(self.cases),
            "examples": self.examples,
            "effort": self.effort,
            "seconds": self.seconds,
            "timeout": self.timeout,
            "profile": self.profile,
            "folder": None if self.folder is None else str(self.folder),
            "known": None if self.known is None else str(self.known),
        }


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


def parse_duration(text: str, option: str = "--time") -> float:
    """Seconds: 30, 30s, 5m or 1h. OptionError for anything else, or more than a system waits."""
    found = DURATION.fullmatch(text)
    if found is None or not float(found["number"]):
        raise OptionError(f"{option}: expected a duration such as 30, 30s or 5m, found {text!r}")
    seconds = float(found["number"]) * UNITS[found["unit"]]
    if seconds > YEAR:
        raise OptionError(f"{option}: expected at most a year, {YEAR // 3600}h, found {text!r}")
    return seconds


def one_of(option: str, given: Collection[str], known: Collection[str]) -> None:
    """OptionError for a name that is not known, with those that are near."""
    for name in given:
        if name not in known:
            expected = f"expected one of {', '.join(known)}; found {name!r}"
            raise OptionError(f"{option}: {expected}{did_you_mean(name, known)}")


def require_files(*paths: Path | None) -> None:
    """OptionError unless each file of a report that is named can be written, and no two are one."""
    named: dict[str, Path] = {}
    for path in filter(None, paths):
        writable(path)
        other = named.setdefault(os.path.realpath(path), path)
        if other is not path:
            raise OptionError(f"cannot write two forms of a report to {other} and {path}: one file")


def require_lines(log: Path | None, backend: str) -> None:
    """OptionError for a log of lines of a backend that speaks none."""
    if log is not None and not backend.startswith(COMMAND):
        raise OptionError(f"--log-protocol: expected {COMMAND}PROGRAM, found {backend!r}")


def writable(path: Path) -> None:
    """OptionError unless the file can be written, its missing folders created."""
    if str(path) == "-":
        raise OptionError("expected the name of a file, found -: on stdout stands the run")
    try:
        obstacle = _obstacle(path)
    except OSError as error:
        obstacle = str(error.strerror)
    if obstacle:
        raise OptionError(f"cannot write {path}: {obstacle}")


def _obstacle(path: Path) -> str:
    """What keeps a file from being written, or nothing."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        return f"{folder} is no folder that this user may write to"
    return "it is read-only" if path.exists() and not os.access(path, os.W_OK) else ""
