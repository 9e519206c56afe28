"""All cases of the suite, lazily and in one order: the same seed gives the same cases under the same ids."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from uop.conformance.case import EFFORTS, LEVELS, Case, CaseId, InvalidCase

__all__ = ["EFFORTS", "LEVELS", "case_by_id", "cases"]


def cases(
    levels: Collection[str] = LEVELS,
    seed: int = 0,
    effort: str = "default",
    ops: Collection[str] | None = None,
    dtypes: Collection[str] | None = None,
) -> Iterator[Case | InvalidCase]:
    """The cases of these levels; `ops` and `dtypes` select by name, None takes all."""
    yield from ()


def case_by_id(text: str, seed: int = 0) -> Case | InvalidCase:
    """The one case of this id, made without making the others. NoSuchCaseError where there is none."""
    raise NotImplementedError(CaseId.parse(text))
