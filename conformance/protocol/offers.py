"""Judges what a worker offers beside running programs: derived properties, stages, source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from uop.conformance.backends.attempt import attempt
from uop.conformance.backends.interpreter import interpret
from uop.conformance.protocol.codec import Json
from uop.conformance.protocol.hello import DeviationError, shown
from uop.conformance.protocol.messages import PROPERTIES
from uop.conformance.protocol.types import IsRight, Outputs, Program, StageText
from uop.conformance.protocol.untrusted import sanitized
from uop.interpreter.evaluate import evaluate
from uop.spec.errors import UnsupportedError, UopError
from uop.spec.graph import slots_of
from uop.spec.text.json_form import to_json
from uop.spec.text.program import parse
from uop.spec.uop import UOp

INTERVAL = "min_max"


def wrong_property(reply: Json, root: UOp) -> str:
    """The first derived property that differs from the spec's, or nothing.

    A property that the worker leaves out is not judged, nor are intervals of floats.
    DeviationError for a reply without properties.
    """
    props, nodes = reply.get("props"), to_json(root)["nodes"]
    if not isinstance(props, list) or len(props) != len(nodes):
        raise DeviationError("props", f"a list of {len(nodes)} objects", props)
    rows = zip(root.toposort(), nodes, props, strict=True)
    for number, (u, node, reported) in enumerate(rows):
        if not isinstance(reported, dict):
            raise DeviationError(f"props[{number}]", "an object", reported)
        right = {**{name: node[name] for name in PROPERTIES}, **_interval(u)}
        for name in [name for name in right if name in reported]:
            if _plain(reported[name]) != _plain(right[name]):
                place = f"node {number}, {u.op.name}: {name}"
                return f"{place}: expected {right[name]}, found {sanitized(shown(reported[name]))}"
    return ""


def first_wrong_stage(stages: Sequence[StageText], program: Program, is_right: IsRight) -> str:
    """Say which stage of a backend changed the meaning of a program, by the interpreter."""
    for stage in stages:
        outcome = attempt(partial(_interpreted, stage, program))
        if not isinstance(outcome, Outputs):
            message = f"its stage {shown(stage.name)} leaves what does not run: {outcome.message}"
            return sanitized(message)
        if not is_right(outcome):
            message = f"its stage {shown(stage.name)} leaves a program that gives something else"
            return sanitized(message)
    return "what its stages leave is right: the fault comes after them" if stages else ""


def first_unreadable_stage(reply: Json) -> str:
    """The first stage whose program cannot be parsed, or nothing. DeviationError without stages."""
    for stage in stages_of(reply):
        try:
            parse(stage.text)
        except UopError as error:
            return sanitized(f"stage {shown(stage.name)}: {error}")
    return ""


def source(reply: Json) -> str:
    """The source that a worker generates, in any language. DeviationError where it is missing."""
    text = reply.get("source")
    if not isinstance(text, str):
        raise DeviationError("source", "a string", text)
    return sanitized(f"its source:\n{text.rstrip()}")


def _interpreted(stage: StageText, program: Program) -> Outputs:
    """Evaluate what a stage leaves. Inputs may be gone, and buffers beside the outputs be written.

    UnsupportedError where it does not write an output.
    """
    if not stage.outputs:
        return interpret(Program(stage.text, program.batches))
    root = parse(stage.text)
    known, batches = slots_of(root), []
    for batch in program.batches:
        written = evaluate(root, {slot: a for slot, a in batch.items() if slot in known})
        if not isinstance(written, dict) or not written.keys() >= set(stage.outputs):
            raise UnsupportedError(f"not all outputs are written: {stage.outputs}")
        batches.append(tuple(written[slot] for slot in stage.outputs))
    return Outputs(tuple(batches))


def stages_of(reply: Json) -> list[StageText]:
    """The stages of a worker. DeviationError for a reply without stages."""
    stages = reply.get("stages")
    if not isinstance(stages, list):
        raise DeviationError("stages", "a list of objects", stages)
    rows = []
    for number, stage in enumerate(stages):
        name, text = (
            (stage.get("name"), stage.get("text")) if isinstance(stage, dict) else (None, None)
        )
        if not isinstance(name, str) or not isinstance(text, str):
            raise DeviationError(f"stages[{number}]", "an object with name and text", stage)
        rows.append(StageText(name, text))
    return rows


def _interval(u: UOp) -> Json:
    if u.dtype.is_float or u.min_max is None:
        return {}
    return {INTERVAL: [int(u.min_max.min), int(u.min_max.max)]}


def _plain(value: object) -> object:
    """A property in a form to compare: large integers may be strings of digits."""
    return [str(part) for part in value] if isinstance(value, list) else value
