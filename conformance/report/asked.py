"""What a report says of the options of its run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from uop.conformance.suite.case import LEVELS


@dataclass(frozen=True, slots=True)
class Asked:
    """The choices of a run that a report tells; `corpus` and `outputs` are of files of outputs.

    None selects all; `examples` is per level, op, dtype and group.
    """

    backend: str
    seed: int = 0
    levels: tuple[str, ...] = LEVELS
    ops: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    cases: tuple[str, ...] = ()
    examples: int | None = None
    effort: str = "default"
    seconds: float | None = None
    timeout: float | None = None
    """Seconds for a start, one program of a command or one batch of an adapter, else it hangs."""
    profile: str = ""
    """As knobs, `strict` or `observed`; if empty what the backend declares, else `observed`."""
    folder: Path | None = None
    """Where cases of the adopter stand, besides those of the suite."""
    known: Path | None = None
    """The file of known failures."""
    corpus: Path | None = None
    outputs: Path | None = None
