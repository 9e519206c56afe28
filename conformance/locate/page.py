"""Writes how a program is compiled as one self-contained HTML page, without scripts.

It shows the graph that each stage leaves with the value of each node, every firing of a rule as a
step, and the source with links to the nodes of its lines.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape

from uop.compiler.pipeline import STAGES
from uop.compiler.stages.render.stage import node_at
from uop.compiler.targets.c import CTarget
from uop.conformance.locate.firing import Firing, change_of
from uop.conformance.locate.results import Inputs
from uop.conformance.locate.stages import Checked
from uop.conformance.locate.text import graph_lines, lines_of
from uop.conformance.report.html.markup import Html, block, document, section, shortened, tag
from uop.interpreter.evaluate import evaluate_full
from uop.interpreter.show import show_value
from uop.interpreter.values import Value
from uop.spec.errors import UopError
from uop.spec.graph import slots_of
from uop.spec.text.program import lines_by_node
from uop.spec.uop import UOp

MOST_NODES = 300
"""The most nodes of a stage that are shown, the last ones."""
MOST_STEPS = 150
MOST_LINES = 600
LONGEST_VALUE = 90
LONGEST_LINE = 160
PROGRAM = "program"
"""The column of the program before the first stage."""
CSS = """
.stages { display: flex; gap: .75rem; overflow-x: auto; align-items: flex-start;
  padding-bottom: .5rem; }
.stages > details { flex: 0 0 25rem; max-width: 88vw; margin: 0; background: var(--panel);
  border: 1px solid var(--line); border-radius: 10px; padding: .6rem .8rem; }
.stages > details:not([open]) { flex-basis: auto; }
.stages ol { list-style: none; margin: .4rem 0 0; padding: 0; max-height: 32rem; overflow: auto; }
.stages li, .source li { padding: .1rem .25rem; border-radius: 4px; overflow-wrap: anywhere; }
.stages li small { display: block; padding-left: 1.2rem; }
.new { border-left: 3px solid var(--good-soft); }
li:target { background: var(--bad-soft); outline: 2px solid var(--link); }
.source { margin: .4rem 0; padding: .55rem .75rem .55rem 4rem; background: var(--code);
  border-radius: 6px; overflow-x: auto; }
.source code { white-space: pre; overflow-wrap: normal; }
.source a { color: inherit; text-decoration-style: dotted; text-underline-offset: 3px; }
.steps { display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
"""


def page(title: str, root: UOp, inputs: Inputs, checked: Checked) -> str:
    """The page of a program that was checked on these inputs."""
    programs = {PROGRAM: root, **{name: after for name, _, after in checked.log.stages}}
    firings = list(dict.fromkeys(checked.log.firings))
    main = [
        _head(title, checked),
        section("stages", "What each stage leaves", _columns(programs, inputs)),
        section("steps", "Each firing of a rule", *_steps(firings, programs, inputs)),
        section("source", "The source", *_source(checked)),
    ]
    return document(f"{title}: how it is compiled", "".join(main), CSS)


def _head(title: str, checked: Checked) -> Html:
    """The verdict on the stages, and where what is."""
    *_, verdict = [line for line in lines_of(checked) if checked.blame is None] or [""]
    if checked.blame is not None:
        verdict = f"{checked.blame.stage} changes the meaning: {checked.blame.message}"
    links = "".join(
        tag("a", name, href=f"#{id}")
        for id, name in (("stages", "stages"), ("steps", "firings"), ("source", "source"))
        if id != "source" or checked.compiled is not None
    )
    said = tag("h1", escape(title)) + tag("p", escape(shortened(verdict)))
    state = "good" if checked.blame is None else "bad"
    return tag("header", said, class_=state) + tag("nav", links, aria_label="parts of the page")


def _columns(programs: Mapping[str, UOp], inputs: Inputs) -> Html:
    """The graphs side by side."""
    columns: list[Html] = []
    seen: set[UOp] = set()
    about = {stage.name: stage.about for stage in STAGES}
    for name, root in programs.items():
        columns.append(_column(name, about.get(name, ""), root, seen, inputs))
        seen = set(root.toposort())
    return tag("div", "".join(columns), class_="stages", tabindex="0", role="group",
               aria_label="the graphs of the stages")  # fmt: skip


def _column(name: str, about: str, root: UOp, seen: set[UOp], inputs: Inputs) -> Html:
    """The nodes of a graph, one below the other, with their values; new ones are marked."""
    values = _values(root, inputs)
    lines = list(lines_by_node(root).items())
    first = max(len(lines) - MOST_NODES, 0)
    rows = []
    for number, (u, line) in list(enumerate(lines))[first:]:
        value = tag("small", escape(values[u])) if u in values else ""
        is_new = "new" if seen and u not in seen else ""
        inside = tag("code", escape(_clipped(line, LONGEST_LINE))) + value
        rows.append(tag("li", inside, id=f"{name}-{number}", class_=is_new))
    hidden = tag("p", f"{first:,} nodes before are not shown.", class_="quiet") if first else ""
    fresh = sum(u not in seen for u, _ in lines) if seen else 0
    count = f"{len(lines):,} nodes" + (f", {fresh:,} new" if fresh else "")
    summary = tag("summary", f"{tag('b', escape(name))} {tag('small', count)}")
    said = tag("p", escape(about), class_="quiet")
    inside = summary + said + hidden + tag("ol", "".join(rows), tabindex="0")
    return tag("details", inside, open="open", id=f"stage-{name}")


def _values(root: UOp, inputs: Inputs) -> dict[UOp, str]:
    """The value of each node that the interpreter reaches; of a loop its first iteration."""
    values: dict[UOp, str] = {}

    def note(u: UOp, value: Value) -> None:
        if u not in values and value.data.size:
            values[u] = _clipped(" ".join(show_value("= ", value).split()), LONGEST_VALUE)

    slots = slots_of(root)
    with suppress(UopError):
        evaluate_full(root, {slot: a for slot, a in inputs.items() if slot in slots}, note)
    return values


def _steps(firings: Sequence[Firing], done: Container[str], inputs: Inputs) -> Iterator[Html]:
    """What each firing matched and made, with links forward and back."""
    shown = firings[:MOST_STEPS]
    if not firings:
        yield tag("p", "No rule fired.")
    for number, firing in enumerate(shown, 1):
        links = [
            tag("a", words, href=f"#step-{other}", rel=rel)
            for words, other, rel in (("back", number - 1, "prev"), ("forward", number + 1, "next"))
            if 0 < other <= len(shown)
        ]
        to = f"#stage-{firing.stage}" if firing.stage in done else "#stages"
        stage = tag("a", f"to {firing.stage}", href=to)
        sides = "".join(
            tag("div", tag("p", side, class_="quiet") + block("\n".join(graph_lines(graph))))
            for side, graph in (("matched", firing.before), ("made", firing.after))
        )
        title = f"{number} of {len(firings)}: {firing.stage}/{firing.rule}"
        head = tag("h3", escape(title)) + _judged(firing, inputs)
        moves = tag("p", " ".join([*links, stage]), class_="steps")
        yield tag("article", head + moves + tag("div", sides, class_="pair"), id=f"step-{number}")
    if len(firings) > len(shown):
        yield tag("p", f"{len(firings) - len(shown):,} more firings are not shown.")


def _judged(firing: Firing, inputs: Inputs) -> Html:
    """Whether both sides of a firing have one value."""
    try:
        change = change_of(firing, inputs)
    except UopError:
        return tag("p", "The sides have no values of their own to compare.", class_="quiet")
    if change is None:
        return tag("p", "Both sides have the same value.", class_="quiet")
    where = f" at {change.where}" if change.where else ""
    said = f"The sides differ{where}: before {change.accepted}, after {change.found}."
    return tag("p", escape(said), class_="wrong")


def _source(checked: Checked) -> Iterator[Html]:
    """The source, each line a link to the instruction that it was written for."""
    if checked.compiled is None:
        return
    executable = checked.compiled.executable
    target = executable.target
    kernels = executable.names
    nodes = lines_by_node(checked.compiled.stages["render"])
    numbers: dict[UOp | None, int] = {u: number for number, u in enumerate(nodes)}
    first = max(len(numbers) - MOST_NODES, 0)
    lines = checked.compiled.source.splitlines()
    rows = []
    linear: UOp | None = None
    for line in lines[:MOST_LINES]:
        linear = next((u for u, name in kernels.items() if f" {name}(" in line), linear)
        text = tag("code", escape(_clipped(line, LONGEST_LINE)) or " ")
        origin = None
        if linear is not None and isinstance(target, CTarget) and line.strip() != "}":
            origin = node_at(line.strip(), linear, target.dialect)
        number = numbers.get(origin, -1)
        if number >= first:
            text = tag("a", text, href=f"#render-{number}")
        rows.append(tag("li", text))
    yield tag("ol", "".join(rows), class_="source", tabindex="0")
    if len(lines) > MOST_LINES:
        yield tag("p", f"{len(lines) - MOST_LINES:,} more lines are not shown.")


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
