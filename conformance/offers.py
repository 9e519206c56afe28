"""What a worker offers beside running programs: derived properties, its stages, its source."""

from __future__ import annotations

from functools import partial

from uop.conformance.backends.attempt import attempt
from uop.conformance.backends.interpreter import interpret
from uop.conformance.messages import PROPERTIES, DeviationError
from uop.conformance.protocol import Outputs, Program
from uop.conformance.wire import Json
from uop.conformance.workers import IsRight
from uop.spec.json_form import to_json
from uop.spec.text import parse
from uop.spec.uop import UOp

INTERVAL = "min_max"


def wrong_property(reply: Json, program: Program) -> str:
    """The first derived property that differs from the spec's, or nothing.

    A property that the worker leaves out is not judged, nor are intervals of floats.
    DeviationError for a reply without properties.
    """
    root = parse(program.text)
    props, nodes = reply.get("props"), to_json(root)["nodes"]
    if not isinstance(props, list) or len(props) != len(nodes):
        raise DeviationError("props", f"a list of {len(nodes)} objects", props)
    rows = zip(root.toposort(), nodes, props, strict=True)
    for number, (u, node, said) in enumerate(rows):
        if not isinstance(said, dict):
            raise DeviationError(f"props[{number}]", "an object", said)
        right = {**{name: node[name] for name in PROPERTIES}, **_interval(u)}
        for name in [name for name in right if name in said]:
            if _plain(said[name]) != _plain(right[name]):
                place = f"node {number}, {u.op.name}: {name}"
                return f"{place}: expected {right[name]}, found {said[name]}"
    return ""


def first_wrong_stage(reply: Json, program: Program, is_right: IsRight) -> str:
    """Which stage of a worker changed what a program means; the interpreter runs what it left.

    DeviationError for a reply without stages.
    """
    stages = reply.get("stages")
    if not isinstance(stages, list):
        raise DeviationError("stages", "a list of objects", stages)
    for number, stage in enumerate(stages):
        name, text = _stage(stage, f"stages[{number}]")
        left = Program(text, program.batches)
        outcome = attempt(partial(interpret, left))
        if not isinstance(outcome, Outputs):
            return f"its stage {name!r} leaves what does not run: {outcome.message}"
        if not is_right(outcome):
            return f"its stage {name!r} leaves a program that gives something else"
    return "what its stages leave is right: the fault comes after them" if stages else ""


def source(reply: Json) -> str:
    """What a worker made of a program, in any language. DeviationError for a reply without it."""
    text = reply.get("source")
    if not isinstance(text, str):
        raise DeviationError("source", "a string", text)
    return f"its source:\n{text.rstrip()}"


def _stage(stage: object, place: str) -> tuple[str, str]:
    """The name of a stage and the program that it left."""
    if isinstance(stage, dict):
        name, text = stage.get("name"), stage.get("text")
        if isinstance(name, str) and isinstance(text, str):
            return name, text
    raise DeviationError(place, "an object with name and text", stage)


def _interval(u: UOp) -> Json:
    if u.dtype.is_float or u.min_max is None:
        return {}
    return {INTERVAL: [int(u.min_max.min), int(u.min_max.max)]}


def _plain(said: object) -> object:
    """A property as data in which large integers may be strings of digits."""
    return [str(part) for part in said] if isinstance(said, list) else said
