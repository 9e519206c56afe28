"""The failures section: each cause with graph, wrong values and program; the rules of the ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from uop.conformance.reference.words import latitude_words, signature
from uop.conformance.report.format import first_failed
from uop.conformance.report.html.markup import (
    Html,
    block,
    both,
    code,
    in_decimals,
    in_id,
    table,
    tag,
)
from uop.conformance.report.html.page_cells import anchor
from uop.conformance.report.model import Failure, Report
from uop.conformance.report.text import explained
from uop.conformance.run.commands import repro_command
from uop.conformance.suite.levels.written import inputs_of
from uop.interpreter.show import show
from uop.spec.case import FileCase
from uop.spec.errors import UopError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, OpDef
from uop.spec.text.draw import svg
from uop.spec.text.uop_file import parse_file
from uop.spec.uop import UOp

FIRST = 3
"""The number of failures on the first screen."""
MOST_NODES = 60
"""Larger graphs have no picture."""
WORDS = {
    "value": "a wrong value",
    "special": "a wrong 0, infinity or NaN",
    "ulp": "not accurate enough",
    "unsteady": "two equal runs differ",
    "crash": "it crashed",
    "hang": "it gave no answer",
    "leak": "it took too much memory",
    "refused": "a valid program is refused",
    "not-rejected": "an invalid program is accepted",
}
LONGEST = 160


def first_failures(every: Sequence[Report]) -> Html:
    """The first few failures, with a sentence each."""
    numbered = [(number, fault[0]) for number, one in enumerate(every) for fault in one.faults]
    cards = "".join(
        tag(
            "li",
            tag("a", escape(title_of(failure)), href=f"#{_place(failure, number)}")
            + tag("p", escape(_sentence(failure)[:LONGEST])),
        )
        for number, failure in numbered[:FIRST]
    )
    return tag("ol", cards, class_="three") if cards else ""


def failures(report: Report, number: int = 0) -> Html:
    """All causes in full, then the other failed cells."""
    parts = [_failure(report, failure, number) for failure in report.failures]
    shown = {
        place: k
        for k, failure in reversed([*enumerate(report.failures)])
        for place in failure.cells
    }
    # The matrix links to the first cause of a cell.
    for place, k in shown.items():
        parts[k] = tag("span", "", id=anchor(number, place)) + parts[k]
    rest = [
        [
            tag("span", escape(f"{cell.op} {cell.dtype}"), id=anchor(number, cell.place)),
            escape(cell.level),
            f"{cell.failed:,} of {cell.programs:,}",
            code(first_failed(report, cell)),
        ]
        for cell in report.cells
        if cell.failed and cell.place not in shown
    ]
    header = ["op and type", "level", "programs", "first case"]
    more = table("Also failed, with causes not yet found", header, rest) if rest else ""
    return "".join(parts) + more


def rules(every: Sequence[Report]) -> Html:
    """The rules of each op that failed, from its declaration."""
    names = {op for report in every for failure in report.failures for op in failure.ops}
    names |= {c.op for one in every for c in one.cells if c.failed and c.level == "op"}
    known = [DECLARATIONS[op] for op in Op if op.name in names and op in DECLARATIONS]
    return "".join(map(_rule, known))


def _place(failure: Failure, number: int) -> str:
    """The element id of a cause; signatures are unique within a report."""
    return f"c{number}-{in_id(failure.signature)}"


def title_of(failure: Failure) -> str:
    """What fails, and how, in words."""
    if not failure.ops:
        return failure.signature
    about = f"{' + '.join(failure.ops)} on {', '.join(failure.dtypes) or 'any type'}"
    label, needs = failure.label, failure.when.needs
    only = f", only if {' and '.join(needs)}" if needs else ""
    return f"{about}: {WORDS.get(label, f'breaks {label} and was accepted')}{only}"


def _sentence(failure: Failure) -> str:
    """The failure in one sentence for readers without context."""
    if not failure.values:
        return failure.message.partition("\n")[0]
    first = failure.values[0]
    inputs = f"For {', '.join(first.inputs)} it" if first.inputs else "It"
    return in_decimals(f"{inputs} gives {first.got}; allowed is {first.accepted}.")


def _failure(report: Report, failure: Failure, number: int) -> Html:
    case = _case(failure.text)
    program = tag("details", tag("summary", "The program") + block(failure.text), open="open")
    command = repro_command(report.options, failure.repro)
    again = tag("p", "Run it again:") + block(command)
    same = f"The same fault as {failure.same_as}" if failure.same_as else ""
    said = filter(None, (failure.when.text, same, *failure.remarks))
    remarks = "".join(tag("p", escape(f"{remark[0].upper()}{remark[1:]}.")) for remark in said)
    words = tag("div", _symptom(failure) + remarks + again + program)
    place = tag("p", escape("case ") + code(failure.id), class_="quiet") + _cases(failure)
    heading = tag("h3", escape(title_of(failure)))
    both_parts = tag("div", words + _picture(case), class_="pair")
    return tag("article", heading + place + both_parts, id=_place(failure, number))


def _cases(failure: Failure) -> Html:
    """What a cause explains, with the ids of its cases to open."""
    if len(failure.cases) < 2:
        return ""
    return tag(
        "details", tag("summary", escape(explained(failure))) + block("\n".join(failure.cases))
    )


def _symptom(failure: Failure) -> Html:
    """The symptom: the message, a table of wrong values, and the explanation of the backend."""
    message, _, explained = failure.message.partition("\n")
    values = failure.values
    if not values:
        return block(failure.message)
    # Elementwise cases have the inputs of each element; otherwise the program shows them.
    inputs = ["for"] if any(value.inputs for value in values) else []
    rows = [
        [
            code(value.place),
            *(["<br>".join(map(both, value.inputs))] if inputs else []),
            tag("span", both(value.got), class_="wrong"),
            both(value.accepted),
        ]
        for value in values
    ]
    intro = tag("p", escape(in_decimals(message)))
    wrong_values = table("Values that differ", ["where", *inputs, "got", "allowed"], rows)
    return intro + wrong_values + (block(explained) if explained else "")


def _case(text: str) -> FileCase | None:
    """The case of a repro; None if this version of the suite cannot parse it."""
    try:
        cases = parse_file(text).cases
    except UopError:
        return None
    return cases[-1] if cases else None


def _picture(case: FileCase | None) -> Html:
    """The graph with the interpreted values of its nodes."""
    if case is None or case.root is None or len(case.root.toposort()) > MOST_NODES:
        return ""
    image = svg(case.root, _notes(case, case.root))
    label = f"graph of {len(case.root.toposort())} nodes that ends in {case.root.op.name}"
    caption = tag("figcaption", "The graph, with the values that the interpreter computes")
    picture = tag("div", image, role="img", aria_label=label, class_="scroll", tabindex="0")
    return tag("figure", picture + caption)


def _notes(case: FileCase, root: UOp) -> Mapping[UOp, str]:
    try:
        return show(root, inputs_of(case)).notes
    except UopError:
        return {}


def _rule(declaration: OpDef) -> Html:
    name = declaration.op.name
    allowed = [(tag("code", names), escape(says)) for names, says in latitude_words(declaration)]
    parts = [
        tag("h3", escape(name)),
        tag("p", code(signature(declaration))),
        tag("p", escape(declaration.doc)),
        table("Allowed results", ["types", "a result is allowed if it is"], allowed),
    ]
    if declaration.undefined:
        parts.append(tag("p", escape(f"The language gives no value {declaration.undefined}")))
    if declaration.constraints:
        held = [(code(c.label), escape(c.title)) for c in declaration.constraints]
        inside = table("Constraints", ["label", "holds in every program"], held)
        parts.append(tag("details", tag("summary", "Constraints") + inside))
    return tag("article", "".join(parts), id=f"rule-{name}")
