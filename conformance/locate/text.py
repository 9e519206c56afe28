"""Says what the locator found: lines for a reader, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from uop.conformance.locate.device import RUN
from uop.conformance.locate.stages import Blame, Checked
from uop.conformance.protocol.types import BLAMED
from uop.spec.text.program import print_program
from uop.spec.uop import UOp

MOST_LINES = 12
"""The most lines of a graph that are shown, the last ones: a firing is about its root."""


def lines_of(checked: Checked) -> Iterator[str]:
    """The stages that were judged, then the verdict."""
    for stage in checked.stages:
        fired = f"{stage.firings} firings, " if stage.name != RUN else ""
        yield f"{stage.name:<10} ok: {fired}{stage.elements} elements"
    if checked.blame is None:
        stages = [stage for stage in checked.stages if stage.name != RUN]
        firings = sum(stage.firings for stage in stages)
        elements = sum(stage.elements for stage in checked.stages)
        said = f"{len(stages)} stages, {firings} firings, {elements} elements checked"
        yield f"every stage keeps the meaning: {said}"
        return
    yield f"{checked.blame.stage:<10} WRONG: {checked.blame.message}"
    yield from blame_lines(checked.blame)


def blame_lines(blame: Blame) -> Iterator[str]:
    """The rule that is to blame and what it did, where one was found."""
    if blame.firing is None or blame.change is None:
        return
    yield f"{BLAMED}{blame.stage}/{blame.firing.rule} changes a value {_shown(blame)}"
    for side, root in (("before", blame.firing.before), ("after", blame.firing.after)):
        yield f"  {side}"
        yield from (f"    {line}" for line in graph_lines(root))


def _shown(blame: Blame) -> str:
    change = blame.change
    assert change is not None
    where = f"at {change.where}: " if change.where else ""
    return f"({where}before {change.accepted}, after {change.found})"


def graph_lines(root: UOp) -> list[str]:
    """The text of a graph, cut at its beginning."""
    lines = print_program(root).splitlines()
    hidden = len(lines) - MOST_LINES
    return lines if hidden <= 1 else [f"; {hidden} lines before", *lines[hidden:]]


def sentence(blame: Blame) -> str:
    """What is to blame, for the message of a failure: the firing of a rule, or all of a stage."""
    found = [*blame_lines(blame)]
    return "\n".join(found or [f"{BLAMED}{blame.stage}: {blame.message}"])


def to_json(checked: Checked) -> dict[str, Any]:
    """The object that `uop compile --check --json` prints."""
    return {
        "schema": "uop-check/1",
        "ok": checked.blame is None,
        "stages": [
            {"name": s.name, "firings": s.firings, "elements": s.elements} for s in checked.stages
        ],
        "blame": None if checked.blame is None else _blame_json(checked.blame),
    }


def _blame_json(blame: Blame) -> dict[str, Any]:
    found: dict[str, Any] = {"stage": blame.stage, "message": blame.message, "rule": None}
    if blame.firing is not None and blame.change is not None:
        found |= {
            "rule": blame.firing.rule,
            "before": print_program(blame.firing.before),
            "after": print_program(blame.firing.after),
            "where": blame.change.where,
            "value_before": blame.change.accepted,
            "value_after": blame.change.found,
        }
    return found
