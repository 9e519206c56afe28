"""Judges what a device makes of a program whose stages are right; words for what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from uop.compiler.execute import open_device
from uop.compiler.loaded import Compiled
from uop.compiler.pipeline import TARGETS, compile
from uop.compiler.runtime.device import Device
from uop.compiler.runtime.drivers import listed
from uop.compiler.runtime.opencl import open_driver
from uop.compiler.stages.render.stage import node_at
from uop.compiler.stages.stage import Setting
from uop.compiler.targets.c import CTarget
from uop.compiler.targets.opencl import OPENCL
from uop.conformance.backends.interpreter import in_order
from uop.conformance.locate.firing import Inputs, accepted_of, first_outside
from uop.conformance.locate.stages import Blame, Checked, StageCheck
from uop.conformance.protocol.types import BLAMED
from uop.interpreter.values import Value
from uop.spec.errors import LaunchError, UopError
from uop.spec.graph import ProgramKind, kind_of, returns_memory, slot_of, written
from uop.spec.ops.names import Op
from uop.spec.text.program import print_program
from uop.spec.uop import UOp

MOST_LINES = 12
"""The most lines of a graph that are shown, the last ones: a firing is about its root."""

RENDER, RUN = "render", "run"
"""To blame are the source of a kernel, or what builds and runs it: runtime and driver."""


def check_device(
    root: UOp, batches: Sequence[Inputs], checked: Checked, setting: Setting, device: Device
) -> Checked:
    """Run a program whose stages are right; the source or what runs it is to blame for the rest."""
    compiled = checked.compiled
    assert compiled is not None
    for number, inputs in enumerate(batches):
        found = _wrong(root, inputs, compiled, device)
        if found:
            stage, why = _blamed(root, inputs, compiled, device, setting)
            message = "\n".join([found, *why, *_culprit(root, inputs, setting, device)])
            return replace(checked, blame=Blame(stage, message, number))
    elements = checked.stages[-1].elements if checked.stages else 0
    return replace(checked, stages=(*checked.stages, StageCheck(RUN, 0, elements)))


def _wrong(root: UOp, inputs: Inputs, compiled: Compiled, device: Device) -> str:
    """What is wrong with a result of a device; empty if nothing is."""
    slots = sorted(map(slot_of, written(root))) if returns_memory(root) else ()
    try:
        outputs = in_order(compiled.run(inputs, device))
    except LaunchError as error:
        return str(error)
    sets = accepted_of(root, inputs, slots)
    return first_outside(sets, [Value(output) for output in outputs])


def _blamed(
    root: UOp, inputs: Inputs, compiled: Compiled, device: Device, setting: Setting
) -> tuple[str, list[str]]:
    """The source or what runs it, by what else runs the same source."""
    agree: list[str] = []
    differ: list[str] = []
    for other in _others(device, setting):
        with suppress(UopError):
            (differ if _wrong(root, inputs, compiled, other) else agree).append(other.name)
    if agree:
        return RUN, [f"the same source is right on {', '.join(agree)}: a fault of {device.name}"]
    why = [f"the same source is wrong on {', '.join(differ)} too"] if differ else []
    return RENDER, why + _by_other_targets(root, inputs, setting)


def _others(device: Device, setting: Setting) -> Iterator[Device]:
    """Other devices here that run the same source."""
    if setting.target.name != OPENCL.name:
        return
    for driver in listed():
        try:
            other = cast(Device, open_driver(driver))
        except UopError:
            continue
        if other.name != device.name:
            yield other


def _by_other_targets(root: UOp, inputs: Inputs, setting: Setting) -> list[str]:
    lines = []
    for name, target in TARGETS.items():
        if name != setting.target.name:
            with suppress(UopError):
                wrong = _wrong(root, inputs, compile(root, target), open_device(target))
                lines.append(f"the source for {name} is {'wrong too' if wrong else 'right'}")
    return lines


def _culprit(root: UOp, inputs: Inputs, setting: Setting, device: Device) -> Iterator[str]:
    """The first node whose value is wrong on the device, and its lines in the source."""
    if kind_of(root) is not ProgramKind.TENSOR or returns_memory(root):
        return
    for u in root.toposort():
        if u.op in (Op.CONST, Op.PARAM, Op.STACK, Op.TUPLE) or u.addrspace is not None:
            continue
        try:
            compiled = compile(u, setting.target)
            wrong = _wrong(u, inputs, compiled, device)
        except UopError:
            continue
        if wrong:
            yield f"the first wrong node: {print_program(u).splitlines()[-1]}"
            yield from _lines_of(u, compiled)
            return


def _lines_of(u: UOp, compiled: Compiled) -> Iterator[str]:
    """The lines of the source that compute a node, by its op."""
    target = compiled.executable.target
    if not isinstance(target, CTarget):
        return
    lines = [line.strip() for line in compiled.source.splitlines()]
    for linear in compiled.executable.names:
        for number, line in enumerate(lines, 1):
            origin = node_at(line, linear, target.dialect)
            if origin is not None and origin.op is u.op:
                yield f"  line {number}: {line}"


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
    firing, change = blame.firing, blame.change
    if firing is None or change is None:
        return
    where = f"at {change.where}: " if change.where else ""
    said = f"({where}before {change.accepted}, after {change.found})"
    yield f"{BLAMED}{blame.stage}/{firing.rule} changes a value {said}"
    for side, root in (("before", firing.before), ("after", firing.after)):
        yield f"  {side}"
        yield from (f"    {line}" for line in graph_lines(root))


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
