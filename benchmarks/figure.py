"""A figure: one promise and what was measured; and how times are taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """One promise and what was measured; `holds` None where nothing was promised."""

    name: str
    promised: str
    measured: str
    holds: bool | None = None


def at_least(name: str, measured: float, promised: float, unit: str) -> Figure:
    return Figure(name, f">= {promised:,g} {unit}", f"{measured:,.5g} {unit}", measured >= promised)


def at_most(name: str, measured: float, promised: float, unit: str) -> Figure:
    return Figure(name, f"<= {promised:,g} {unit}", f"{measured:,.3g} {unit}", measured <= promised)


def equal(name: str, measured: object, promised: object) -> Figure:
    return Figure(name, f"{promised}", f"{measured}", measured == promised)


def seconds(work: Callable[[], object], runs: int) -> float:
    """The median time of a run, after one that does not count."""
    return alternated((work,), runs)[0]


def alternated(works: tuple[Callable[[], object], ...], runs: int) -> list[float]:
    """The median time of each, all run in turn, so that a busy moment meets all of them."""
    times: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(runs):
        for work, taken in zip(works, times, strict=True):
            begun = time.perf_counter()
            work()
            taken.append(time.perf_counter() - begun)
    return [median(taken) for taken in times]
