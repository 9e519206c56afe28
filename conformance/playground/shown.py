"""What the page shows of a program, as data for its script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod

from uop.compiler.loaded import Compiled
from uop.compiler.pipeline import STAGES
from uop.compiler.stages.render.stage import node_at
from uop.compiler.targets.c import CTarget
from uop.conformance.judging.compare import place_of
from uop.conformance.judging.storage import numbered
from uop.conformance.locate.device import graph_lines, lines_of
from uop.conformance.locate.firing import Firing, Inputs, change_of
from uop.conformance.locate.stages import Checked, Log
from uop.conformance.native import native_in
from uop.conformance.suite.levels.written import inputs_and_drawn, ordinary
from uop.interpreter.accept import accept
from uop.interpreter.accepted.result import Accepted
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.inputs import with_numbers
from uop.interpreter.numeric.storage import Array
from uop.interpreter.show import accepted_words, show_value, word
from uop.interpreter.values import Value
from uop.spec.case import FileCase
from uop.spec.errors import LabelledError, MalformedError, NativeError, UopError
from uop.spec.graph import slots_of
from uop.spec.text.draw import MOST, svg
from uop.spec.text.program import lines_by_node
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp

PATH = "program"
"""What errors call the text."""
WHERE = re.compile(rf"{PATH}:(\d+)(?::(\d+))?")
START = "program"
"""The name of what stands before the first stage."""
APART = 1 << 10
"""The distance between the keys of the inputs of two seeds."""
MOST_STEPS = 200
MOST_LINES = 600
MOST_OUTPUTS = 8
MOST_ELEMENTS = 64
"""The most elements of an output that are shown."""
LONGEST_VALUE = 90
LONGEST_LINE = 160


@dataclass(frozen=True, slots=True)
class Wrong:
    """An error, and its place in the text, counted from 1; 0 where that is not known."""

    message: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison found; nothing yet where it says nothing."""

    said: str = ""
    is_good: bool = True


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its line in the text of the program, and its value where it has one."""

    line: str
    value: str
    is_new: bool
    """Whether the graph before does not have it."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A drawing with the nodes in it, in their order; the nodes before them are left out."""

    svg: str
    nodes: tuple[Node, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage, and which graph it leaves."""

    name: str
    about: str
    graph: int


@dataclass(frozen=True, slots=True)
class Step:
    """A firing of a rule: the text of what it matched and made, and whether it kept the value."""

    stage: str
    rule: str
    matched: str
    made: str
    verdict: Verdict = Verdict()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the source, and the number of its node in the last graph; -1 without one."""

    text: str
    node: int = -1


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an output: its indices, its value by the interpreter, and what is accepted."""

    place: str
    value: str
    accepted: str


@dataclass(frozen=True, slots=True)
class Output:
    """An output, or its first elements."""

    number: int
    elements: tuple[Element, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page shows of a program; of a wrong one as much as there is."""

    wrong: Wrong | None = None
    verdict: Verdict = Verdict()
    outputs: tuple[Output, ...] = ()
    graphs: tuple[Graph, ...] = ()
    stages: tuple[Stage, ...] = ()
    steps: tuple[Step, ...] = ()
    steps_left_out: int = 0
    source: tuple[Line, ...] = ()
    lines_left_out: int = 0


def read(text: str, seed: int) -> tuple[FileCase, UOp, dict[int, Array]]:
    """The only case of a text with its program, and inputs: its own, else those of a seed.

    MalformedError, InvalidError, NativeError.
    """
    cases = parse_file(text, PATH).cases
    if len(cases) > 1:
        raise MalformedError(f"expected one case, found {len(cases)}")
    (case,) = cases
    if case.root is None:
        raise MalformedError(f"expected a program to run, found one that breaks {case.invalid}")
    if found := dict(native_in(case.root)):
        said = ", ".join(dict.fromkeys(found.values()))
        where = case.place_of(found)
        raise NativeError(f"{where}: expected a program without native code, found {said}")
    inputs, _ = inputs_and_drawn(case, case.root, lambda u, slot: ordinary(u, slot + APART * seed))
    return case, case.root, inputs


def shown(
    root: UOp, inputs: Inputs, outputs: Sequence[Output], log: Log, compiled: Compiled | None
) -> Shown:
    """What there is to show of a program on these inputs, without verdicts.

    The log has the stages until the compiler failed, where that is so.
    """
    programs = {START: root, **{name: after for name, _, after in log.stages}}
    graphs, stages = _graphs(programs, inputs)
    firings, source = firings_of(log), [] if compiled is None else _source(compiled)
    return Shown(
        outputs=tuple(outputs),
        graphs=graphs,
        stages=stages,
        steps=tuple(map(_step, firings[:MOST_STEPS])),
        steps_left_out=len(firings[MOST_STEPS:]),
        source=tuple(source[:MOST_LINES]),
        lines_left_out=len(source[MOST_LINES:]),
    )


def outputs_of(root: UOp, inputs: Inputs) -> list[Output]:
    """The first outputs. UndefinedError and UnsupportedError as by `accept`."""
    outputs = []
    for key, (value, accepted) in [*results(root, inputs).items()][:MOST_OUTPUTS]:
        flat, size = value.map(lambda a: a.reshape(-1)), value.data.size
        elements = tuple(
            Element(place_of(value.data, i), word(flat, i), accepted_words(accepted, i))
            for i in range(size)[:MOST_ELEMENTS]
        )
        outputs.append(Output(key, elements, size - len(elements)))
    return outputs


def results(root: UOp, inputs: Inputs) -> dict[int, tuple[Value, Accepted]]:
    """The outputs by number: the value by the interpreter, and what is accepted."""
    root, inputs = with_numbers(root, inputs)
    found = numbered(evaluate_full(root, inputs))
    sets = accept(root, inputs)
    return {key: (found[key], one) for key, one in zip(sorted(found), sets, strict=True)}


def judged(page: Shown, inputs: Inputs, checked: Checked) -> Shown:
    """The same with all verdicts."""
    pairs = zip(page.steps, firings_of(checked.log), strict=False)
    steps = (replace(step, verdict=verdict_on_firing(firing, inputs)) for step, firing in pairs)
    return replace(page, steps=tuple(steps), verdict=verdict_on_stages(checked))


def verdict_on_stages(checked: Checked) -> Verdict:
    """Whether every stage keeps the meaning."""
    if checked.blame is None:
        return Verdict([*lines_of(checked)][-1])
    return Verdict(f"{checked.blame.stage} changes the meaning: {checked.blame.message}", False)


def verdict_on_firing(firing: Firing, inputs: Inputs) -> Verdict:
    """Whether both sides of a firing have one value."""
    try:
        change = change_of(firing, inputs)
    except UopError:
        return Verdict("The sides have no values of their own to compare.")
    if change is None:
        return Verdict("Both sides have the same value.")
    where = f" at {change.where}" if change.where else ""
    said = f"The sides differ{where}: before {change.accepted}, after {change.found}."
    return Verdict(said, False)


def firings_of(log: Log) -> list[Firing]:
    """The distinct firings, in order."""
    return list(dict.fromkeys(log.firings))


def wrong_of(error: UopError, case: FileCase | None = None) -> Wrong:
    """An error with its place in the text, by the nodes of a case where it names some."""
    if isinstance(error, MalformedError):
        return Wrong(error.message, error.line, error.column)
    if isinstance(error, LabelledError) and case is not None:
        error.where = case.place_of(error.subjects)
    place = WHERE.search(str(error))
    line, column = place.groups(default="1") if place else ("0", "0")
    if isinstance(error, LabelledError):
        # The page shows the place in its own way.
        error.where = ""
    return Wrong(str(error), int(line), int(column))


def _graphs(
    programs: Mapping[str, UOp], inputs: Inputs
) -> tuple[tuple[Graph, ...], tuple[Stage, ...]]:
    """The distinct graphs, and which one each stage leaves."""
    about = {stage.name: stage.about for stage in STAGES}
    numbers: dict[UOp, int] = {}
    graphs: list[Graph] = []
    seen: set[UOp] = set()
    for root in dict.fromkeys(programs.values()):
        numbers[root] = len(graphs)
        graphs.append(_graph(root, seen, inputs))
        seen = set(root.toposort())
    stages = [Stage(name, about.get(name, ""), numbers[root]) for name, root in programs.items()]
    return tuple(graphs), tuple(stages)


def _graph(root: UOp, seen: set[UOp], inputs: Inputs) -> Graph:
    values = _values(root, inputs)
    lines = lines_by_node(root)
    nodes = [
        Node(_clipped(line, LONGEST_LINE), values.get(u, ""), bool(seen) and u not in seen)
        for u, line in lines.items()
    ]
    return Graph(svg(root, values), tuple(nodes[-MOST:]), len(nodes[:-MOST]))


def _values(root: UOp, inputs: Inputs) -> dict[UOp, str]:
    """The value of each node that the interpreter reaches; of a loop its first iteration."""
    values: dict[UOp, str] = {}

    def note(u: UOp, value: Value) -> None:
        if u not in values and value.data.size:
            # An element takes three characters at least: the rows behind these would be clipped.
            most = -(-LONGEST_VALUE // (3 * prod(value.data.shape[1:])))
            first = value.map(lambda a: a[:most]) if value.data.ndim else value
            values[u] = _clipped(" ".join(show_value("= ", first).split()), LONGEST_VALUE)

    slots = slots_of(root)
    with suppress(UopError):
        evaluate_full(root, {slot: a for slot, a in inputs.items() if slot in slots}, note)
    return values


def _step(firing: Firing) -> Step:
    matched, made = ("\n".join(graph_lines(side)) for side in (firing.before, firing.after))
    return Step(firing.stage, firing.rule, matched, made)


def _source(compiled: Compiled) -> list[Line]:
    """The source, each line with the node that it was written for."""
    executable = compiled.executable
    target, kernels = executable.target, executable.names
    nodes = list(lines_by_node(compiled.stages["render"]))[-MOST:]
    numbers: dict[UOp | None, int] = {u: number for number, u in enumerate(nodes)}
    lines: list[Line] = []
    linear: UOp | None = None
    for line in compiled.source.splitlines():
        linear = next((u for u, name in kernels.items() if f" {name}(" in line), linear)
        origin = None
        if linear is not None and isinstance(target, CTarget) and line.strip() != "}":
            origin = node_at(line.strip(), linear, target.dialect)
        lines.append(Line(_clipped(line, LONGEST_LINE), numbers.get(origin, -1)))
    return lines


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
